//! One plugin in the registry: what is known of it, and the way to a running one.

use std::{
    path::Path,
    sync::{Arc, OnceLock},
};

use sallyport_contract::{
    Admitted, CallReport, Denial, Failure, FailureKind, PluginName, ToolId, ToolSpec,
};
use sallyport_policy::{Capability, Grant, Manifest};
use sallyport_sandbox::{ComponentFile, InstanceInfo, Plugin, Sandbox, Warden, schema::Schema};
use serde_json::{Map, Value};

use super::body::{Body, Component, Kind, Owner};
use crate::{gate::warden::PluginWarden, lock::Pin, script};

/// One plugin: its manifest, its tools, its effective grant.
pub struct Entry {
    pub(super) warden: Arc<PluginWarden>,
    pub(super) body: Body,
    pub(super) tools: Vec<ToolSpec>,
    /// Its own settings, defaults filled in.
    pub(super) settings: Map<String, Value>,
    pub(super) state: State,
    pub(super) schemas: Vec<ToolSchemas>,
    /// What its owner may want to know of its files.
    pub(super) remarks: Vec<String>,
}

/// The schemas of one tool, prepared at its first call.
#[derive(Debug, Default)]
pub(super) struct ToolSchemas {
    arguments: OnceLock<Result<Schema, String>>,
    output: OnceLock<Result<Schema, String>>,
}

/// Whether a plugin can be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It can.
    Ready,
    /// It is still being compiled, or asked for its tools; they are there at a later start.
    Compiling,
    /// It is not what the user agreed to any more.
    Changed {
        /// What is different, a sentence each.
        differences: Vec<String>,
    },
    /// It says, or its settings say, that it cannot for now.
    Disabled {
        /// Why.
        reason: String,
    },
}

impl State {
    /// Why a plugin cannot be called, to follow its name, and what can be done about it.
    pub fn trouble(&self, plugin: &PluginName) -> Option<(String, Option<String>)> {
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

impl Entry {
    /// The plugin's name.
    pub fn name(&self) -> &PluginName {
        &self.manifest().name
    }

    /// Its manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.warden.charge().manifest
    }

    /// What it is.
    pub fn kind(&self) -> Kind {
        self.body.kind()
    }

    /// The file that runs; what is compiled into the host has none.
    pub fn file(&self) -> Option<&Path> {
        self.body.file()
    }

    /// What it is known by, in hexadecimal: the digest of a component, of a script that of its
    /// definition and its program, of a part of the host that of its name and version.
    pub fn digest(&self) -> &str {
        &self.warden.charge().digest
    }

    /// Its tools, in its own order.
    pub fn tools(&self) -> &[ToolSpec] {
        &self.tools
    }

    /// What is odd about it, a sentence each: about its files, and about its grant.
    pub fn notes(&self) -> Vec<String> {
        [self.remarks.as_slice(), &self.grant().notes()].concat()
    }

    /// The warm instances that there are at this moment, by the names of their sessions.
    pub fn instances(&self) -> Vec<InstanceInfo> {
        self.body.instances()
    }

    /// What it may do at this moment: requested and granted.
    pub fn grant(&self) -> Arc<Grant> {
        self.warden.grant()
    }

    /// Whether a call could change or leak anything at this moment. What is compiled into the host has
    /// no grant, and does what it does.
    pub fn may_act(&self) -> bool {
        self.kind() == Kind::Internal || self.grant().may_act()
    }

    /// Why none of its calls can run, whatever rules say: it is a program of this machine, and may
    /// not be one.
    pub fn barrier(&self) -> Option<Denial> {
        let grant = self.grant();
        let is_barred = self.kind() == Kind::Script && !grant.holds(Capability::Process);
        is_barred.then(|| script::barred(&grant))
    }

    /// What there is to agree to about it.
    pub fn pin(&self) -> Pin {
        Pin::of(self.manifest(), self.digest(), self.tools())
    }

    /// Whether it can be called.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// True when it can be called.
    pub fn is_ready(&self) -> bool {
        self.state == State::Ready
    }

    /// Checks arguments against the tool's schema.
    ///
    /// # Errors
    ///
    /// They do not fit; why, a sentence each.
    pub fn check_arguments(&self, id: &ToolId, arguments: &Value) -> Result<(), Vec<String>> {
        let Some((tool, schemas)) = self.tool(id) else { return Ok(()) };
        check(&schemas.arguments, &tool.parameters, arguments)
    }

    /// Checks a result against what the tool promised, if it promised anything.
    pub(super) fn check_output(&self, id: &ToolId, data: &Value) -> Result<(), Vec<String>> {
        let Some((tool, schemas)) = self.tool(id) else { return Ok(()) };
        tool.output.as_ref().map_or(Ok(()), |schema| check(&schemas.output, schema, data))
    }

    fn tool(&self, id: &ToolId) -> Option<(&ToolSpec, &ToolSchemas)> {
        self.tools.iter().zip(&self.schemas).find(|(tool, _)| tool.id == *id)
    }

    /// Returns the plugin in the sandbox, made ready at the first call.
    ///
    /// # Errors
    ///
    /// It cannot be made ready, or runs somewhere else.
    pub(crate) fn plugin(&self, sandbox: &Arc<Sandbox>) -> Result<Arc<Plugin>, Failure> {
        self.component()?.plugin(sandbox, &self.owner())
    }

    /// Makes the plugin ready from bytes that have been read and hashed.
    pub(super) fn prepare(
        &self,
        sandbox: &Arc<Sandbox>,
        file: &ComponentFile,
    ) -> Result<Arc<Plugin>, Failure> {
        self.component()?.prepare(sandbox, file, &self.owner())
    }

    fn component(&self) -> Result<&Component, Failure> {
        self.body.component().ok_or_else(|| {
            let message = format!("{} does not run in the sandbox", self.name());
            Failure::new(FailureKind::Unavailable, message)
        })
    }

    fn owner(&self) -> Owner<'_> {
        Owner { warden: &self.warden, settings: &self.settings }
    }

    /// Makes ready what can be made ready before a call.
    pub(super) fn warm_up(&self, sandbox: &Arc<Sandbox>) -> Result<(), Failure> {
        match self.body.component() {
            Some(_) => self.plugin(sandbox).map(drop),
            None => Ok(()),
        }
    }

    /// Runs a call that has passed the gate.
    pub(super) async fn call(&self, sandbox: &Arc<Sandbox>, call: Admitted) -> CallReport {
        self.body.call(sandbox, &self.owner(), call).await
    }

    /// Runs `teardown` if the plugin was ever made ready.
    pub(super) async fn teardown(&self) {
        if let Some(plugin) = self.body.component().and_then(Component::made) {
            plugin.teardown().await;
        }
    }
}

/// The schema was found sound when the component was first inspected, so preparing it again can only
/// fail when the kept metadata was tampered with; then nothing passes.
fn check(
    prepared: &OnceLock<Result<Schema, String>>,
    schema: &Value,
    value: &Value,
) -> Result<(), Vec<String>> {
    match prepared.get_or_init(|| Schema::new(schema)) {
        Ok(schema) => schema.check(value),
        Err(reason) => Err(vec![format!("the tool's schema is broken: {reason}")]),
    }
}
