//! The part of a plugin that runs when a tool is called.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};

use sallyport_contract::{
    AdmittedCall, CallFailure, CallReport, FailureKind, Outcome, PluginName, ToolDescriptor,
};
use sallyport_sandbox::{
    ComponentFile, HostCallAuthorizer, InstanceInfo, LoadError, Plugin, PluginParts, Sandbox,
};
use serde_json::{Map, Value};

use crate::{gate::authorizer::PluginAuthorizer, internal::InternalTool, script::NativeScript};

/// The kind of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PluginKind {
    /// A component that exports tools.
    Component,
    /// A component that is a program: each call runs it once.
    Command,
    /// A native program of this machine.
    Script,
    /// A plugin that is compiled into the host.
    Internal,
}

impl PluginKind {
    /// The name of the kind.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Component => "component",
            Self::Command => "command",
            Self::Script => "script",
            Self::Internal => "internal",
        }
    }
}

/// The part of a plugin that runs when a tool is called.
pub(super) enum PluginImplementation {
    /// A component, in the sandbox.
    Component(LazyComponent),
    /// A native program of this machine, confined by the host.
    Script { native_script: NativeScript, file: PathBuf },
    /// A plugin that is compiled into the host.
    Internal(Arc<dyn InternalTool>),
}

/// A component that is prepared when it is first needed.
pub(super) struct LazyComponent {
    file: PathBuf,
    /// The expected digest of its bytes.
    digest: String,
    /// For a component that is a program: its one tool, and the timeout of a run.
    command: Option<(ToolDescriptor, Duration)>,
    plugin: OnceLock<Arc<Plugin>>,
}

impl LazyComponent {
    /// A component that exports its tools.
    pub(super) fn new(file: &ComponentFile) -> Self {
        Self::with_command(file, None)
    }

    /// A component that is a program.
    pub(super) fn new_command(
        file: &ComponentFile,
        tool: ToolDescriptor,
        time_max: Duration,
    ) -> Self {
        Self::with_command(file, Some((tool, time_max)))
    }

    fn with_command(file: &ComponentFile, command: Option<(ToolDescriptor, Duration)>) -> Self {
        let (digest, plugin) = (file.digest().to_owned(), OnceLock::new());
        Self { file: file.path().to_owned(), digest, command, plugin }
    }

    /// Returns the plugin, and prepares it at the first call.
    ///
    /// The component is read again and must be the one whose tools are known, so that the component
    /// that was listed and accepted is the one that runs.
    pub(super) fn get_or_prepare(
        &self,
        sandbox: &Arc<Sandbox>,
        plugin_context: &PluginContext<'_>,
    ) -> Result<Arc<Plugin>, CallFailure> {
        if let Some(plugin) = self.plugin.get() {
            return Ok(Arc::clone(plugin));
        }
        let file =
            ComponentFile::read(&self.file).map_err(|error| plugin_context.load_failure(&error))?;
        if file.digest() != self.digest {
            let message =
                format!("{} has changed on disk since it was loaded", plugin_context.name());
            let failure = CallFailure::new(FailureKind::Unavailable, message);
            return Err(failure.with_detail("restart to load the new component"));
        }
        self.prepare_from_file(sandbox, &file, plugin_context)
    }

    /// Prepares the plugin from bytes that are already read and hashed.
    pub(super) fn prepare_from_file(
        &self,
        sandbox: &Arc<Sandbox>,
        file: &ComponentFile,
        plugin_context: &PluginContext<'_>,
    ) -> Result<Arc<Plugin>, CallFailure> {
        let parts = plugin_context.plugin_parts(file);
        let plugin = match &self.command {
            None => sandbox.load_plugin(parts),
            Some((tool, time_max)) => sandbox.load_command(parts, tool.clone(), *time_max),
        };
        let plugin = Arc::new(plugin.map_err(|error| plugin_context.load_failure(&error))?);
        Ok(Arc::clone(self.plugin.get_or_init(|| plugin)))
    }

    /// The prepared plugin, if any.
    pub(super) fn prepared_plugin(&self) -> Option<&Arc<Plugin>> {
        self.plugin.get()
    }
}

impl PluginImplementation {
    pub(super) fn kind(&self) -> PluginKind {
        match self {
            Self::Component(LazyComponent { command: None, .. }) => PluginKind::Component,
            Self::Component(LazyComponent { command: Some(_), .. }) => PluginKind::Command,
            Self::Script { .. } => PluginKind::Script,
            Self::Internal(_) => PluginKind::Internal,
        }
    }

    /// The file that runs, if any.
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Self::Component(component) => Some(&component.file),
            Self::Script { file, .. } => Some(file),
            Self::Internal(_) => None,
        }
    }

    pub(super) fn component(&self) -> Option<&LazyComponent> {
        match self {
            Self::Component(component) => Some(component),
            Self::Script { .. } | Self::Internal(_) => None,
        }
    }

    /// Runs a call that has passed the gate.
    pub(super) async fn run_call(
        &self,
        sandbox: &Arc<Sandbox>,
        plugin_context: &PluginContext<'_>,
        call: AdmittedCall,
    ) -> CallReport {
        match self {
            Self::Component(component) => match component.get_or_prepare(sandbox, plugin_context) {
                Ok(plugin) => plugin.call(call).await,
                Err(failure) => Outcome::Failed(failure).into(),
            },
            Self::Script { native_script, .. } => {
                native_script.run_call(&**plugin_context.authorizer, &call).await
            }
            Self::Internal(tool) => {
                crate::internal::run_tool_call(tool, plugin_context.authorizer, call).await
            }
        }
    }

    /// The current warm instances.
    pub(super) fn warm_instances(&self) -> Vec<InstanceInfo> {
        let prepared = self.component().and_then(LazyComponent::prepared_plugin);
        prepared.map_or_else(Vec::new, |plugin| plugin.instances())
    }
}

/// The owner of a body.
pub(super) struct PluginContext<'a> {
    pub(super) authorizer: &'a Arc<PluginAuthorizer>,
    /// Its settings, with defaults.
    pub(super) settings: &'a Map<String, Value>,
}

impl PluginContext<'_> {
    fn name(&self) -> &PluginName {
        &self.authorizer.plugin_info().manifest.name
    }

    fn plugin_parts<'p>(&'p self, file: &'p ComponentFile) -> PluginParts<'p> {
        PluginParts {
            manifest: &self.authorizer.plugin_info().manifest,
            file,
            authorizer: Arc::clone(self.authorizer) as Arc<dyn HostCallAuthorizer>,
            settings: self.settings.clone(),
        }
    }

    /// The failure of a plugin that cannot be loaded. The model reads only that; the user also
    /// reads why.
    fn load_failure(&self, error: &LoadError) -> CallFailure {
        let message = format!("{} cannot be loaded", self.name());
        CallFailure::new(FailureKind::Unavailable, message).with_detail(error.to_string())
    }
}
