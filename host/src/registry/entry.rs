//! One plugin in the registry: what is known of it, and the way to a running one.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use sallyport_contract::{Failure, FailureKind, PluginName, ToolId, ToolSpec};
use sallyport_policy::{Grant, Manifest};
use sallyport_sandbox::{
    ComponentFile, LoadError, Metadata, Plugin, PluginParts, Sandbox, Warden, schema::Schema,
};
use serde_json::{Map, Value};

use crate::{gate::warden::PluginWarden, lock::Pin};

/// One plugin: its manifest, its tools, its effective grant.
pub struct Entry {
    pub(super) warden: Arc<PluginWarden>,
    pub(super) component: PathBuf,
    pub(super) metadata: Metadata,
    /// Its own settings, defaults filled in.
    pub(super) settings: Map<String, Value>,
    pub(super) state: State,
    pub(super) plugin: OnceLock<Arc<Plugin>>,
    pub(super) schemas: Vec<ToolSchemas>,
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
            Self::Changed { differences } => {
                let reason =
                    format!("has changed since it was agreed to: {}", differences.join("; "));
                let hint = format!("`sallyport plugin accept {plugin}` agrees to it");
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

    /// The file of its component.
    pub fn component(&self) -> &std::path::Path {
        &self.component
    }

    /// Digest of the component, in hexadecimal.
    pub fn digest(&self) -> &str {
        &self.metadata.digest
    }

    /// Its tools, in its own order.
    pub fn tools(&self) -> &[ToolSpec] {
        &self.metadata.tools
    }

    /// What it may do at this moment: requested and granted.
    pub fn grant(&self) -> Arc<Grant> {
        self.warden.grant()
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
        self.metadata.tools.iter().zip(&self.schemas).find(|(tool, _)| tool.id == *id)
    }

    /// Returns the plugin, made ready at the first call.
    ///
    /// The component is read again and has to be the one whose tools are known: what was listed and
    /// agreed to is what runs.
    pub(super) fn plugin(&self, sandbox: &Arc<Sandbox>) -> Result<Arc<Plugin>, Failure> {
        if let Some(plugin) = self.plugin.get() {
            return Ok(Arc::clone(plugin));
        }
        let file = ComponentFile::read(&self.component).map_err(|error| self.broken(&error))?;
        if file.digest() != self.metadata.digest {
            let message = format!("{} has changed on disk since it was loaded", self.name());
            let failure = Failure::new(FailureKind::Unavailable, message);
            return Err(failure.with_detail("start again to load the new component"));
        }
        self.prepare(sandbox, &file)
    }

    /// Makes the plugin ready from bytes that have been read and hashed.
    pub(super) fn prepare(
        &self,
        sandbox: &Arc<Sandbox>,
        file: &ComponentFile,
    ) -> Result<Arc<Plugin>, Failure> {
        let plugin = sandbox.load(PluginParts {
            manifest: self.manifest(),
            file,
            warden: Arc::clone(&self.warden) as Arc<dyn Warden>,
            settings: self.settings.clone(),
        });
        let plugin = Arc::new(plugin.map_err(|error| self.broken(&error))?);
        Ok(Arc::clone(self.plugin.get_or_init(|| plugin)))
    }

    /// The model is told that the plugin cannot be used; the person also why.
    fn broken(&self, error: &LoadError) -> Failure {
        let message = format!("{} cannot be loaded", self.name());
        Failure::new(FailureKind::Unavailable, message).with_detail(error.to_string())
    }

    /// Runs `teardown` if the plugin was ever made ready.
    pub(super) async fn teardown(&self) {
        if let Some(plugin) = self.plugin.get() {
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
