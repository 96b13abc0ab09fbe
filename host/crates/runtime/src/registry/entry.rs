//! One plugin in the registry: its metadata, and access to the running plugin.

use std::{
    path::Path,
    sync::{Arc, OnceLock},
};

use sallyport_contract::{
    AdmittedCall, CallFailure, CallReport, Denial, FailureKind, PluginName, ToolDescriptor, ToolId,
};
use sallyport_policy::{Capability, Grant, Manifest};
use sallyport_sandbox::{
    ComponentFile, HostCallAuthorizer, InstanceInfo, Plugin, Sandbox, schema::CompiledSchema,
};
use serde_json::{Map, Value};

use super::implementation::{LazyComponent, PluginContext, PluginImplementation, PluginKind};
use crate::{gate::authorizer::PluginAuthorizer, lock::PluginPin, script};

/// One plugin: its manifest, its tools, its effective grant.
pub struct RegisteredPlugin {
    pub(super) authorizer: Arc<PluginAuthorizer>,
    pub(super) implementation: PluginImplementation,
    pub(super) tools: Vec<ToolDescriptor>,
    /// Its settings, with defaults.
    pub(super) settings: Map<String, Value>,
    pub(super) availability: PluginAvailability,
    pub(super) schemas: Vec<ToolSchemas>,
    /// Remarks on its files, for its owner.
    pub(super) remarks: Vec<String>,
}

/// The schemas of one tool, compiled at its first call.
#[derive(Debug, Default)]
pub(super) struct ToolSchemas {
    arguments: OnceLock<Result<CompiledSchema, String>>,
    output: OnceLock<Result<CompiledSchema, String>>,
}

/// Whether a plugin can be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PluginAvailability {
    /// It can be called.
    Ready,
    /// It is still being compiled or inspected. Its tools are available at a later start.
    Compiling,
    /// It differs from the version that the user accepted.
    Changed {
        /// The differences, one sentence each.
        differences: Vec<String>,
    },
    /// It reports itself as unavailable, or its settings are invalid.
    Disabled {
        /// The reason.
        reason: String,
    },
}

impl PluginAvailability {
    /// Why a plugin cannot be called, phrased to follow its name, and a suggested fix.
    pub fn problem_and_hint(&self, plugin: &PluginName) -> Option<(String, Option<String>)> {
        match self {
            Self::Ready => None,
            Self::Compiling => {
                let reason = "is still being compiled, which is done once".to_owned();
                let hint = format!("`sallyport plugin show {plugin}` waits for it");
                Some((reason, Some(hint)))
            }
            Self::Changed { differences } => {
                let reason =
                    format!("has changed since you accepted it: {}", differences.join("; "));
                let hint = format!("accept the change with `sallyport plugin accept {plugin}`");
                Some((reason, Some(hint)))
            }
            Self::Disabled { reason } => Some((format!("is disabled: {reason}"), None)),
        }
    }
}

impl RegisteredPlugin {
    /// The plugin's name.
    pub fn name(&self) -> &PluginName {
        &self.manifest().name
    }

    /// Its manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.authorizer.plugin_info().manifest
    }

    /// The kind of the plugin.
    pub fn kind(&self) -> PluginKind {
        self.implementation.kind()
    }

    /// The file that runs; `None` for a plugin that is compiled into the host.
    pub fn file(&self) -> Option<&Path> {
        self.implementation.file()
    }

    /// Its digest in hexadecimal: of a component's bytes, of a script's definition and program, or
    /// of a built-in plugin's name and version.
    pub fn digest(&self) -> &str {
        &self.authorizer.plugin_info().digest
    }

    /// Its tools, in the order that it lists them.
    pub fn tools(&self) -> &[ToolDescriptor] {
        &self.tools
    }

    /// Remarks on its files and its grant, one sentence each.
    pub fn notes(&self) -> Vec<String> {
        [self.remarks.as_slice(), &self.grant().notes()].concat()
    }

    /// Its current warm instances, with the names of their sessions.
    pub fn warm_instances(&self) -> Vec<InstanceInfo> {
        self.implementation.warm_instances()
    }

    /// Its current effective grant: requested and granted.
    pub fn grant(&self) -> Arc<Grant> {
        self.authorizer.current_grant()
    }

    /// Whether a call could currently change or leak anything. Always true for a plugin that is
    /// compiled into the host, which needs no grant.
    pub fn may_act(&self) -> bool {
        self.kind() == PluginKind::Internal || self.grant().can_act()
    }

    /// Why none of its calls can run, regardless of rules: it is a native program without the
    /// permission to run one.
    pub fn unconditional_denial(&self) -> Option<Denial> {
        let grant = self.grant();
        let is_denied =
            self.kind() == PluginKind::Script && !grant.has_capability(Capability::Process);
        is_denied.then(|| script::native_run_denial(&grant))
    }

    /// Its pin, for the lock.
    pub fn pin(&self) -> PluginPin {
        PluginPin::from_plugin(self.manifest(), self.digest(), self.tools())
    }

    /// Its state.
    pub fn availability(&self) -> &PluginAvailability {
        &self.availability
    }

    /// True when it can be called.
    pub fn is_ready(&self) -> bool {
        self.availability == PluginAvailability::Ready
    }

    /// Checks arguments against the tool's schema.
    ///
    /// # Errors
    ///
    /// The mismatches, one sentence each.
    pub fn check_arguments(&self, id: &ToolId, arguments: &Value) -> Result<(), Vec<String>> {
        let Some((tool, schemas)) = self.tool_with_schemas(id) else { return Ok(()) };
        check_value(&schemas.arguments, &tool.parameters, arguments)
    }

    /// Checks a result against the tool's output schema, if it has one.
    pub(super) fn check_output(&self, id: &ToolId, data: &Value) -> Result<(), Vec<String>> {
        let Some((tool, schemas)) = self.tool_with_schemas(id) else { return Ok(()) };
        tool.output.as_ref().map_or(Ok(()), |schema| check_value(&schemas.output, schema, data))
    }

    fn tool_with_schemas(&self, id: &ToolId) -> Option<(&ToolDescriptor, &ToolSchemas)> {
        self.tools.iter().zip(&self.schemas).find(|(tool, _)| tool.id == *id)
    }

    /// Returns the plugin in the sandbox, and prepares it at the first call.
    ///
    /// # Errors
    ///
    /// The plugin cannot be prepared, or does not run in the sandbox.
    pub(crate) fn get_or_prepare(
        &self,
        sandbox: &Arc<Sandbox>,
    ) -> Result<Arc<Plugin>, CallFailure> {
        self.require_component()?.get_or_prepare(sandbox, &self.plugin_context())
    }

    /// Prepares the plugin from bytes that are already read and hashed.
    pub(super) fn prepare_from_file(
        &self,
        sandbox: &Arc<Sandbox>,
        file: &ComponentFile,
    ) -> Result<Arc<Plugin>, CallFailure> {
        self.require_component()?.prepare_from_file(sandbox, file, &self.plugin_context())
    }

    fn require_component(&self) -> Result<&LazyComponent, CallFailure> {
        self.implementation.component().ok_or_else(|| {
            let message = format!("{} does not run in the sandbox", self.name());
            CallFailure::new(FailureKind::Unavailable, message)
        })
    }

    fn plugin_context(&self) -> PluginContext<'_> {
        PluginContext { authorizer: &self.authorizer, settings: &self.settings }
    }

    /// Prepares as much as possible before a call.
    pub(super) fn warm_up(&self, sandbox: &Arc<Sandbox>) -> Result<(), CallFailure> {
        match self.implementation.component() {
            Some(_) => self.get_or_prepare(sandbox).map(drop),
            None => Ok(()),
        }
    }

    /// Runs a call that has passed the gate.
    pub(super) async fn run_call(&self, sandbox: &Arc<Sandbox>, call: AdmittedCall) -> CallReport {
        self.implementation.run_call(sandbox, &self.plugin_context(), call).await
    }

    /// Runs `teardown` if the plugin was ever prepared.
    pub(super) async fn teardown(&self) {
        if let Some(plugin) =
            self.implementation.component().and_then(LazyComponent::prepared_plugin)
        {
            plugin.run_teardown().await;
        }
    }
}

/// Checks a value. The schema was valid when the component was first inspected, so compiling it
/// fails only if the cached metadata was tampered with. Every value is rejected then.
fn check_value(
    prepared: &OnceLock<Result<CompiledSchema, String>>,
    schema: &Value,
    value: &Value,
) -> Result<(), Vec<String>> {
    match prepared.get_or_init(|| CompiledSchema::new(schema)) {
        Ok(schema) => schema.check_value(value),
        Err(reason) => Err(vec![format!("the tool's schema is broken: {reason}")]),
    }
}
