//! Versions of the plugin contract.
//!
//! The version of a component is read from its exports once, when the component is loaded. The rest
//! of the crate uses [`PluginAbi`] and does not depend on the version.

pub(crate) mod command;
pub(crate) mod dynamic;
mod export_errors;
pub(crate) mod http;
mod tool_list;
mod v0_1;

use std::{future::ready, sync::Arc};

use sallyport_contract::{
    AdmittedCall, CallFailure, PromptQuery, ResourceQuery, ToolOutput, services::TimerFiring,
};
use sallyport_policy::{PluginLimits, PluginRole};
use serde::{Deserialize, Serialize};
use wasmtime::component::InstancePre;

use self::dynamic::DynamicAbi;
pub(crate) use self::{
    dynamic::RefusedFunction,
    tool_list::{TOOLS_MAX, ToolList, UncheckedTool, shorten_description},
};

use crate::{
    ComponentFile, LoadError,
    dynamic::docs::PackageDocs,
    guest::Guest,
    role_data::{
        GenerationRequest, GuidePersona, ListenerReply, ListenerSignal, ProviderAnswer,
        ProviderFailure, UiEvent,
    },
    role_links::RoleLinks,
    run_body::{RunBody, box_run_body},
};

/// The prefix of every `sallyport:plugin` export, before the interface and its version.
const PACKAGE_PREFIX: &str = "sallyport:plugin/";

/// The namespace of interfaces that the host calls in ways of its own, or not at all.
const WASI_PREFIX: &str = "wasi:";

/// An interface that a component may export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PluginExport {
    Tools,
    Lifecycle,
    Timers,
    Provider,
    Listener,
    Guide,
    Ui,
    Resources,
    Prompts,
}

impl PluginExport {
    /// Every export.
    pub(crate) const ALL: [Self; 9] = [
        Self::Tools,
        Self::Lifecycle,
        Self::Timers,
        Self::Provider,
        Self::Listener,
        Self::Guide,
        Self::Ui,
        Self::Resources,
        Self::Prompts,
    ];

    /// The interface that implements a role.
    pub(crate) fn from_role(role: PluginRole) -> Self {
        match role {
            PluginRole::Tools => Self::Tools,
            PluginRole::Provider => Self::Provider,
            PluginRole::Listener => Self::Listener,
            PluginRole::Guide => Self::Guide,
            PluginRole::Ui => Self::Ui,
            PluginRole::Resources => Self::Resources,
            PluginRole::Prompts => Self::Prompts,
        }
    }

    /// The name of the interface in error messages.
    pub(crate) fn display_name(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Lifecycle => "lifecycle",
            Self::Timers => "timers",
            Self::Provider => "provider",
            Self::Listener => "listener",
            Self::Guide => "guide",
            Self::Ui => "ui",
            Self::Resources => "resources",
            Self::Prompts => "prompts",
        }
    }

    /// The full name of the newest version of this interface, for error messages.
    pub(crate) fn newest_interface_name(self) -> &'static str {
        v0_1::interface_name(self)
    }
}

/// One version of the contract: how to call each export. Calling an interface that the component
/// does not export returns an [`InterfaceMismatch`].
pub(crate) trait PluginAbi: Send + Sync {
    /// Whether the component exports this interface.
    fn has_export(&self, export: PluginExport) -> bool;

    /// The role-specific links of a call, in addition to the host calls that every plugin has.
    fn role_links(&self, _call: &AdmittedCall, _limits: &PluginLimits) -> RoleLinks {
        RoleLinks::default()
    }

    /// Lists the tools. The list is empty if the component does not export them.
    fn list_tools(&self) -> ToolList<'_>;

    /// Runs a tool.
    fn call_tool(&self, call: Arc<AdmittedCall>) -> RunBody<ToolReturnValue>;

    /// Runs `setup`. The inner error is the reason why the plugin is unavailable.
    fn run_setup(&self) -> RunBody<Result<(), String>> {
        missing_export_body(PluginExport::Lifecycle)
    }

    /// Runs `teardown`.
    fn run_teardown(&self) -> RunBody<()> {
        missing_export_body(PluginExport::Lifecycle)
    }

    /// Notifies the plugin that a timer has fired.
    fn handle_timer(
        &self,
        _call: Arc<AdmittedCall>,
        _firing: TimerFiring,
    ) -> RunBody<ToolReturnValue> {
        missing_export_body(PluginExport::Timers)
    }

    /// Asks a guide to describe the assistant.
    fn describe_assistant(&self) -> RunBody<GuidePersona> {
        missing_export_body(PluginExport::Guide)
    }

    /// Asks a provider to continue a conversation.
    fn generate_answer(
        &self,
        _call: Arc<AdmittedCall>,
        _generation: GenerationRequest,
    ) -> RunBody<Result<ProviderAnswer, ProviderFailure>> {
        missing_export_body(PluginExport::Provider)
    }

    /// Notifies a listener that signals are about to arrive.
    fn start_listener(&self) -> RunBody<ToolReturnValue> {
        missing_export_body(PluginExport::Listener)
    }

    /// Notifies a listener that no more signals will arrive.
    fn stop_listener(&self) -> RunBody<()> {
        missing_export_body(PluginExport::Listener)
    }

    /// Passes a signal of a connection to a listener. The inner error is the plugin's own.
    fn handle_signal(
        &self,
        _connection: String,
        _signal: ListenerSignal,
    ) -> RunBody<Result<Vec<ListenerReply>, ToolReturnValue>> {
        missing_export_body(PluginExport::Listener)
    }

    /// Asks for the resources of the plugin, or for the contents of one.
    fn answer_resource_query(
        &self,
        _call: Arc<AdmittedCall>,
        _query: ResourceQuery,
    ) -> RunBody<ToolReturnValue> {
        missing_export_body(PluginExport::Resources)
    }

    /// Asks for the prompts of the plugin, or for one that is filled in.
    fn answer_prompt_query(
        &self,
        _call: Arc<AdmittedCall>,
        _query: PromptQuery,
    ) -> RunBody<ToolReturnValue> {
        missing_export_body(PluginExport::Prompts)
    }

    /// Passes an event to a UI.
    fn handle_ui_event(&self, _event: UiEvent) -> RunBody<()> {
        missing_export_body(PluginExport::Ui)
    }
}

/// The call of an interface that the component does not export.
fn missing_export_body<R: Send + 'static>(export: PluginExport) -> RunBody<R> {
    let message = format!("it exports no {}", export.display_name());
    let error = wasmtime::Error::new(InterfaceMismatch(message));
    box_run_body(move |_, _| Box::pin(ready(Err(error))))
}

/// The component exports one of our interfaces with other types.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct InterfaceMismatch(pub(crate) String);

impl InterfaceMismatch {
    fn wrap_error(error: wasmtime::Error) -> wasmtime::Error {
        wasmtime::Error::new(Self(format!("{error:#}")))
    }
}

/// The result of a tool call.
#[derive(Debug)]
pub(crate) enum ToolReturnValue {
    /// The tool completed.
    Output(ToolOutput),
    /// The tool returned an error of its own.
    Error(CallFailure),
    /// The tool reports that it was denied something that it needed.
    Denied(String),
}

/// The roles that make a component a plugin. Any one of them is enough.
pub(crate) const ROLES: [PluginRole; 7] = [
    PluginRole::Tools,
    PluginRole::Provider,
    PluginRole::Listener,
    PluginRole::Guide,
    PluginRole::Ui,
    PluginRole::Resources,
    PluginRole::Prompts,
];

/// Finds the version of the contract that a component implements, or the functions of its own
/// interface if it implements none. `package_docs` describes the latter.
///
/// # Errors
///
/// The exports have the names of a known version and other types, or there are too many.
pub(crate) fn find_plugin_abi(
    pre: &InstancePre<Guest>,
    file: &ComponentFile,
    package_docs: &PackageDocs,
) -> Result<Option<Box<dyn PluginAbi>>, LoadError> {
    let exports = export_names(pre);
    let abi = v0_1::PluginAbiV0_1::new(pre, &exports);
    if let Some(abi) = abi.map_err(|error| LoadError::mismatch(file, &error))? {
        return Ok(Some(Box::new(abi)));
    }
    if !has_own_interface(&exports) {
        return Ok(None);
    }
    let abi = DynamicAbi::new(pre, package_docs).map_err(|error| LoadError::InvalidTools {
        path: file.path().to_owned(),
        message: error.to_string(),
    })?;
    Ok((!abi.is_empty()).then(|| Box::new(abi) as Box<dyn PluginAbi>))
}

/// Whether a component with these exports may have functions of its own interface. One that exports
/// an interface of ours is a plugin by that, and what else it exports is not called.
pub(crate) fn has_own_interface(exports: &[String]) -> bool {
    let is_ours = |name: &String| name.starts_with(PACKAGE_PREFIX);
    !exports.iter().any(is_ours) && exports.iter().any(|name| dynamic::is_own(name))
}

/// Whether the host calls this export, in any version of it.
fn is_callable(export: &str) -> bool {
    export.starts_with(PACKAGE_PREFIX) || http::is_http_handler(export)
}

/// Whether a component with these exports may be a plugin.
pub(crate) fn may_be_plugin(exports: &[String]) -> bool {
    has_own_interface(exports) || exports.iter().any(|name| is_callable(name))
}

/// Cuts an error's text to the output limit. A text that is too long is not an error.
fn truncate_text(mut text: String, bytes_max: u64) -> String {
    let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    text.truncate(text.floor_char_boundary(bytes_max));
    text
}

/// The names of a component's exports.
pub(crate) fn export_names(pre: &InstancePre<Guest>) -> Vec<String> {
    let component = pre.component();
    let ty = component.component_type();
    ty.exports(component.engine()).map(|(name, _)| name.to_owned()).collect()
}
