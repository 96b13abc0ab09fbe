//! One plugin in the registry: its metadata, and access to the running plugin.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, OnceLock},
};

use sallyport_connections::{AccountService, Action, Definition};
use sallyport_contract::{
    CallFailure, Denial, FailureKind, PluginName, ToolCallContext, ToolDescriptor, ToolId,
};
use sallyport_policy::{Grant, Manifest};
use sallyport_sandbox::{
    ComponentFile, ComponentMetadata, HostCallAuthorizer, InstanceInfo, Plugin,
    schema::CompiledSchema,
};
use serde_json::Value;

use super::{PluginLookupError, nearest_name};
use crate::{
    actions::no_way_to_run,
    executor::{LazyComponent, PluginExecutor, PluginKind},
    gate::authorizer::PluginAuthorizer,
    lock::{AcceptedPlugin, PluginPin, PluginSnapshot, manifest_requests},
};

/// One plugin: its manifest, its tools, its effective grant.
pub struct RegisteredPlugin {
    pub(super) authorizer: Arc<PluginAuthorizer>,
    pub(super) executor: Box<dyn PluginExecutor>,
    pub(super) tools: Vec<ToolDescriptor>,
    pub(super) availability: PluginAvailability,
    pub(super) schemas: Vec<ToolSchemas>,
    /// Remarks on its files, for its owner.
    pub(super) remarks: Vec<String>,
    /// What is known of its component, if it is one and compiled.
    pub(super) component: Option<ComponentFacts>,
}

/// What is known of a component before any call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComponentFacts {
    /// The length of its file in bytes.
    pub size_bytes: u64,
    /// The interfaces that it imports, with their versions.
    pub imports: Vec<String>,
    /// The imports that reach nothing because its manifest does not request them, one sentence
    /// each.
    pub unrequested_imports: Vec<String>,
}

impl ComponentFacts {
    pub(super) fn new(
        file: &ComponentFile,
        metadata: &ComponentMetadata,
        manifest: &Manifest,
    ) -> Self {
        Self {
            size_bytes: file.size_bytes(),
            imports: metadata.imports().to_vec(),
            unrequested_imports: metadata.unrequested_imports(manifest),
        }
    }
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

    /// Whether it is not set up yet: settings or environment variables that it needs are missing.
    pub fn lacks_configuration(&self) -> bool {
        let plugin_info = self.authorizer.plugin_info();
        let lacks_variables =
            self.definition().is_some_and(|own| !own.missing_variables.is_empty());
        let settings = &plugin_info.manifest.settings;
        lacks_variables || !settings.missing_settings(&plugin_info.settings).is_empty()
    }

    /// The kind of the plugin.
    pub fn kind(&self) -> PluginKind {
        self.executor.kind()
    }

    /// The file that runs; `None` for a plugin that is compiled into the host.
    pub fn file(&self) -> Option<&Path> {
        self.executor.file()
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

    /// What is known of its component, if it is one and compiled.
    pub fn component_facts(&self) -> Option<&ComponentFacts> {
        self.component.as_ref()
    }

    /// Remarks on its files and its grant, one sentence each.
    pub fn notes(&self) -> Vec<String> {
        let idle: Vec<String> = self.idle_actions_remark().into_iter().collect();
        [idle.as_slice(), &self.remarks, &self.grant().notes()].concat()
    }

    /// Its current warm instances, with the names of their sessions.
    pub fn warm_instances(&self) -> Vec<InstanceInfo> {
        self.prepared_plugin().map_or_else(Vec::new, |plugin| plugin.instances())
    }

    /// Its current effective grant: requested and granted.
    pub fn grant(&self) -> Arc<Grant> {
        self.authorizer.current_grant()
    }

    /// The grant of a call before it runs: with what the user has granted to its session.
    pub(crate) fn session_grant(&self, context: &ToolCallContext) -> Arc<Grant> {
        self.authorizer.session_grant(context)
    }

    /// Whether a call could currently change or leak anything. Always true for a plugin that is
    /// compiled into the host, which needs no grant.
    pub(crate) fn may_act(&self, context: &ToolCallContext) -> bool {
        self.kind() == PluginKind::Internal || self.session_grant(context).can_act()
    }

    /// Why none of its calls can run, regardless of rules: it is a native program without the
    /// permission to run one, or a server that it may not reach.
    pub fn unconditional_denial(&self) -> Option<Denial> {
        self.unconditional_denial_under(&self.grant())
    }

    /// The same under a certain grant.
    pub(crate) fn unconditional_denial_under(&self, grant: &Grant) -> Option<Denial> {
        self.executor.unconditional_denial(grant)
    }

    /// Its definition, if it is one JSON file.
    pub fn definition(&self) -> Option<&Arc<Definition>> {
        self.executor.definition()
    }

    /// The service at which a user has to connect an account, if there is one.
    pub fn account_service(&self) -> Option<&Arc<AccountService>> {
        let account = self.authorizer.plugin_info().account.as_ref();
        account.filter(|service| service.needs_connection())
    }

    /// Which actions of its definition nothing runs, and what would run them. They are no tools. A
    /// disabled plugin has its reason instead.
    pub fn idle_actions_remark(&self) -> Option<String> {
        let is_disabled = matches!(self.availability, PluginAvailability::Disabled { .. });
        let definition = self.definition().filter(|_| !is_disabled)?;
        let has_tool = |action: &&Action| self.tools.iter().any(|t| t.id.tool == action.name);
        let idle: Vec<&Action> = definition.actions.iter().filter(|a| !has_tool(a)).collect();
        (!idle.is_empty()).then(|| no_way_to_run(&idle))
    }

    /// Its pin, for the lock.
    pub fn pin(&self) -> PluginPin {
        PluginPin::from_plugin(self.manifest(), self.digest(), self.tools())
    }

    /// The plugin as it is now, to be compared with another version.
    pub fn snapshot(&self) -> PluginSnapshot {
        let facts = self.component.as_ref();
        let requests = manifest_requests(self.manifest()).into_iter().map(|(what, _)| what);
        PluginSnapshot {
            name: self.name().to_string(),
            version: self.manifest().version.clone(),
            digest: self.digest().to_owned(),
            size_bytes: facts.map(|facts| facts.size_bytes),
            imports: facts.map(|facts| facts.imports.iter().cloned().collect()).unwrap_or_default(),
            requests: requests.collect(),
            permissions: self.grant().permission_lines().into_iter().collect(),
            tools: self.tools.clone(),
        }
    }

    /// The plugin as it is now, to be accepted.
    pub fn as_accepted(&self) -> AcceptedPlugin {
        AcceptedPlugin { name: self.name().clone(), pin: self.pin(), snapshot: self.snapshot() }
    }

    /// Its state.
    pub fn availability(&self) -> &PluginAvailability {
        &self.availability
    }

    /// Blocks the plugin if it is among those that differ from their accepted version.
    pub(super) fn block_if_changed(&mut self, changed: &BTreeMap<PluginName, Vec<String>>) {
        if let Some(differences) = changed.get(self.name()).cloned() {
            self.availability = PluginAvailability::Changed { differences };
        }
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
        self.find_tool(id).map_or(Ok(()), |tool| self.check_tool_arguments(tool, arguments))
    }

    fn find_tool(&self, id: &ToolId) -> Option<usize> {
        self.tools.iter().position(|tool| tool.id == *id)
    }

    /// Finds a callable tool as an index into the plugin's tools.
    pub(super) fn find_usable_tool(&self, id: &ToolId) -> Result<usize, PluginLookupError> {
        self.require_usable()?;
        self.find_tool(id).ok_or_else(|| {
            let names: Vec<String> = self.tools.iter().map(|tool| tool.id.to_string()).collect();
            PluginLookupError::Unknown {
                message: format!("{} has no tool {:?}", id.plugin, id.tool.as_str()),
                suggestion: nearest_name(&id.to_string(), &names)
                    .or_else(|| names.first().cloned()),
            }
        })
    }

    pub(super) fn require_usable(&self) -> Result<(), PluginLookupError> {
        match self.availability.problem_and_hint(self.name()) {
            None => Ok(()),
            Some((reason, hint)) => {
                let message = format!("the plugin {} {reason}", self.name());
                Err(PluginLookupError::Unusable { message, hint, rejected: false })
            }
        }
    }

    /// Checks arguments against the schema of the tool with an index.
    pub(super) fn check_tool_arguments(
        &self,
        tool: usize,
        arguments: &Value,
    ) -> Result<(), Vec<String>> {
        check_value(&self.schemas[tool].arguments, &self.tools[tool].parameters, arguments)
    }

    /// Checks a result against the output schema of the tool with an index, if it has one.
    pub(super) fn check_output(&self, tool: usize, data: &Value) -> Result<(), Vec<String>> {
        let schema = self.tools[tool].output.as_ref();
        schema.map_or(Ok(()), |schema| check_value(&self.schemas[tool].output, schema, data))
    }

    /// Returns the plugin in the sandbox, and prepares it at the first call.
    ///
    /// # Errors
    ///
    /// The plugin cannot be prepared, or does not run in the sandbox.
    pub(crate) fn get_or_prepare(&self) -> Result<Arc<Plugin>, CallFailure> {
        self.require_component()?.get_or_prepare(&self.authorizer)
    }

    /// Prepares the plugin from bytes that are already read and hashed.
    pub(super) fn prepare_from_file(
        &self,
        file: &ComponentFile,
    ) -> Result<Arc<Plugin>, CallFailure> {
        self.require_component()?.prepare_from_file(file, &self.authorizer)
    }

    fn require_component(&self) -> Result<&LazyComponent, CallFailure> {
        self.executor.component().ok_or_else(|| {
            let message = format!("{} does not run in the sandbox", self.name());
            CallFailure::new(FailureKind::Unavailable, message)
        })
    }

    fn prepared_plugin(&self) -> Option<&Arc<Plugin>> {
        self.executor.component()?.prepared_plugin()
    }

    /// Ends what the plugin keeps running, and runs `teardown` if it was ever prepared.
    pub(crate) async fn teardown(&self) {
        self.executor.stop().await;
        if let Some(plugin) = self.prepared_plugin() {
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
