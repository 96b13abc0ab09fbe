//! A component that is prepared when it is first needed.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};

use sallyport_contract::{
    AdmittedCall, BoxFuture, CallFailure, CallReport, FailureKind, Outcome, ToolDescriptor,
};
use sallyport_sandbox::{
    ComponentFile, HostCallAuthorizer, LoadError, Plugin, PluginParts, Sandbox,
};
use serde_json::{Map, Value};

use super::{PluginExecutor, PluginKind};
use crate::gate::authorizer::PluginAuthorizer;

/// A component in the sandbox, prepared when it is first needed.
pub(crate) struct LazyComponent {
    sandbox: Arc<Sandbox>,
    file: PathBuf,
    /// The expected digest of its bytes.
    digest: String,
    /// Its settings, with defaults.
    settings: Map<String, Value>,
    /// For a component that is a program: its one tool, and the timeout of a run.
    command: Option<(ToolDescriptor, Duration)>,
    plugin: OnceLock<Arc<Plugin>>,
}

impl LazyComponent {
    /// A component that exports its tools, or, with a `command`, one that is a program.
    pub(crate) fn new(
        sandbox: &Arc<Sandbox>,
        file: &ComponentFile,
        settings: Map<String, Value>,
        command: Option<(ToolDescriptor, Duration)>,
    ) -> Self {
        Self {
            sandbox: Arc::clone(sandbox),
            file: file.path().to_owned(),
            digest: file.digest().to_owned(),
            settings,
            command,
            plugin: OnceLock::new(),
        }
    }

    /// Returns the plugin, and prepares it at the first call.
    ///
    /// The component is opened again and must be the one whose tools are known, so that the component
    /// that was listed and accepted is the one that runs.
    pub(crate) fn get_or_prepare(
        &self,
        authorizer: &Arc<PluginAuthorizer>,
    ) -> Result<Arc<Plugin>, CallFailure> {
        if let Some(plugin) = self.plugin.get() {
            return Ok(Arc::clone(plugin));
        }
        let opened = self.sandbox.open_component(&self.file);
        let file = opened.map_err(|error| load_failure(authorizer, &error))?;
        if file.digest() != self.digest {
            let name = &authorizer.plugin_info().manifest.name;
            let message = format!("{name} has changed on disk since it was loaded");
            let failure = CallFailure::new(FailureKind::Unavailable, message);
            let detail = "restart, or load the plugins again, to use the new component";
            return Err(failure.with_detail(detail));
        }
        self.prepare_from_file(&file, authorizer)
    }

    /// Prepares the plugin from bytes that are already read and hashed.
    pub(crate) fn prepare_from_file(
        &self,
        file: &ComponentFile,
        authorizer: &Arc<PluginAuthorizer>,
    ) -> Result<Arc<Plugin>, CallFailure> {
        let parts = PluginParts {
            manifest: &authorizer.plugin_info().manifest,
            file,
            authorizer: Arc::clone(authorizer) as Arc<dyn HostCallAuthorizer>,
            settings: self.settings.clone(),
        };
        let plugin = match &self.command {
            None => self.sandbox.load_plugin(parts),
            Some((tool, time_max)) => self.sandbox.load_command(parts, tool.clone(), *time_max),
        };
        let plugin = Arc::new(plugin.map_err(|error| load_failure(authorizer, &error))?);
        Ok(Arc::clone(self.plugin.get_or_init(|| plugin)))
    }

    /// The prepared plugin, if any.
    pub(crate) fn prepared_plugin(&self) -> Option<&Arc<Plugin>> {
        self.plugin.get()
    }
}

impl PluginExecutor for LazyComponent {
    fn kind(&self) -> PluginKind {
        if self.command.is_some() { PluginKind::Command } else { PluginKind::Component }
    }

    fn file(&self) -> Option<&Path> {
        Some(&self.file)
    }

    fn run_call<'a>(
        &'a self,
        authorizer: &'a Arc<PluginAuthorizer>,
        call: Arc<AdmittedCall>,
    ) -> BoxFuture<'a, CallReport> {
        Box::pin(async move {
            if self.plugin.get().is_none() {
                // It may have to be compiled, so a caller whose thread has other work goes on.
                tokio::task::yield_now().await;
            }
            match self.get_or_prepare(authorizer) {
                Ok(plugin) => plugin.call(call).await,
                Err(failure) => Outcome::Failed(failure).into(),
            }
        })
    }

    fn component(&self) -> Option<&LazyComponent> {
        Some(self)
    }
}

/// The failure of a plugin that cannot be loaded. The model reads only that; the user also reads
/// why.
fn load_failure(authorizer: &PluginAuthorizer, error: &LoadError) -> CallFailure {
    let message = format!("{} cannot be loaded", authorizer.plugin_info().manifest.name);
    CallFailure::new(FailureKind::Unavailable, message).with_detail(error.to_string())
}
