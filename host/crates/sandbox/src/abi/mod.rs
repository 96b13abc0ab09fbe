//! Versions of the plugin contract.
//!
//! The version of a component is read from its exports once, when the component is loaded. The rest
//! of the crate uses [`PluginAbi`] and does not depend on the version.

pub(crate) mod command;
pub(crate) mod http;
mod v0_1;

use std::{future::ready, sync::Arc};

use sallyport_contract::{AdmittedCall, BoxFuture, CallFailure, ToolOutput, services::TimerFiring};
use sallyport_policy::{PluginLimits, PluginRole};
use serde::{Deserialize, Serialize};
use wasmtime::{
    Store,
    component::{Instance, InstancePre},
};

use crate::{
    error::NO_EXPORTS,
    guest::Guest,
    roles::{
        GenerationRequest, GuidePersona, ListenerReply, ListenerSignal, ProviderAnswer,
        ProviderFailure, RoleLinks, UiEvent,
    },
};

/// The prefix of every `sallyport:plugin` export, before the interface and its version.
const PACKAGE_PREFIX: &str = "sallyport:plugin/";

/// A tool as the component describes it. Nothing in it has been validated.
#[derive(Debug)]
pub(crate) struct UncheckedTool {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: String,
    pub(crate) parameters: String,
    pub(crate) output: Option<String>,
    pub(crate) hints: sallyport_contract::ToolHints,
}

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
}

impl PluginExport {
    /// Every export.
    pub(crate) const ALL: [Self; 7] = [
        Self::Tools,
        Self::Lifecycle,
        Self::Timers,
        Self::Provider,
        Self::Listener,
        Self::Guide,
        Self::Ui,
    ];

    /// The interface that implements a role.
    pub(crate) fn from_role(role: PluginRole) -> Self {
        match role {
            PluginRole::Tools => Self::Tools,
            PluginRole::Provider => Self::Provider,
            PluginRole::Listener => Self::Listener,
            PluginRole::Guide => Self::Guide,
            PluginRole::Ui => Self::Ui,
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
        }
    }

    /// The full name of the newest version of this interface, for error messages.
    pub(crate) fn newest_interface_name(self) -> &'static str {
        v0_1::interface_name(self)
    }
}

/// The future of a call into an export. An error is a trap.
pub(crate) type ExportFuture<'a, R> = BoxFuture<'a, wasmtime::Result<R>>;

/// One version of the contract. Calling an interface that the component does not export returns a
/// [`InterfaceMismatch`].
pub(crate) trait PluginAbi: Send + Sync {
    /// Whether the component exports this interface.
    fn has_export(&self, export: PluginExport) -> bool;

    /// The role-specific links of a call, in addition to the host calls that every plugin has.
    fn role_links(&self, _call: &AdmittedCall, _limits: &PluginLimits) -> RoleLinks {
        RoleLinks::default()
    }

    /// Lists the tools. The list is empty if the component does not export them.
    fn list_tools<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: Instance,
    ) -> ExportFuture<'a, Vec<UncheckedTool>>;

    /// Runs a tool.
    fn call_tool<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: Instance,
        call: &'a AdmittedCall,
    ) -> ExportFuture<'a, ToolReturnValue>;

    /// Runs `setup`. The inner error is the reason why the plugin is unavailable.
    fn run_setup<'a>(
        &'a self,
        _store: &'a mut Store<Guest>,
        _instance: Instance,
    ) -> ExportFuture<'a, Result<(), String>> {
        missing_export_answer(PluginExport::Lifecycle)
    }

    /// Runs `teardown`.
    fn run_teardown<'a>(
        &'a self,
        _store: &'a mut Store<Guest>,
        _instance: Instance,
    ) -> ExportFuture<'a, ()> {
        missing_export_answer(PluginExport::Lifecycle)
    }

    /// Notifies the plugin that a timer has fired.
    fn handle_timer<'a>(
        &'a self,
        _store: &'a mut Store<Guest>,
        _instance: Instance,
        _call: &'a AdmittedCall,
        _firing: TimerFiring,
    ) -> ExportFuture<'a, ToolReturnValue> {
        missing_export_answer(PluginExport::Timers)
    }

    /// Asks a guide to describe the assistant.
    fn describe_assistant<'a>(
        &'a self,
        _store: &'a mut Store<Guest>,
        _instance: Instance,
    ) -> ExportFuture<'a, GuidePersona> {
        missing_export_answer(PluginExport::Guide)
    }

    /// Asks a provider to continue a conversation.
    fn generate_answer<'a>(
        &'a self,
        _store: &'a mut Store<Guest>,
        _instance: Instance,
        _call: &'a AdmittedCall,
        _generation: GenerationRequest,
    ) -> ExportFuture<'a, Result<ProviderAnswer, ProviderFailure>> {
        missing_export_answer(PluginExport::Provider)
    }

    /// Notifies a listener that signals are about to arrive.
    fn start_listener<'a>(
        &'a self,
        _store: &'a mut Store<Guest>,
        _instance: Instance,
    ) -> ExportFuture<'a, ToolReturnValue> {
        missing_export_answer(PluginExport::Listener)
    }

    /// Notifies a listener that no more signals will arrive.
    fn stop_listener<'a>(
        &'a self,
        _store: &'a mut Store<Guest>,
        _instance: Instance,
    ) -> ExportFuture<'a, ()> {
        missing_export_answer(PluginExport::Listener)
    }

    /// Passes a signal to a listener. The inner error is the plugin's own.
    fn handle_signal<'a>(
        &'a self,
        _store: &'a mut Store<Guest>,
        _instance: Instance,
        _connection: String,
        _signal: ListenerSignal,
    ) -> ExportFuture<'a, Result<Vec<ListenerReply>, ToolReturnValue>> {
        missing_export_answer(PluginExport::Listener)
    }

    /// Passes an event to a UI.
    fn handle_ui_event<'a>(
        &'a self,
        _store: &'a mut Store<Guest>,
        _instance: Instance,
        _event: UiEvent,
    ) -> ExportFuture<'a, ()> {
        missing_export_answer(PluginExport::Ui)
    }
}

/// The result of a call to an interface that the component does not export.
fn missing_export_answer<'a, R: Send + 'a>(export: PluginExport) -> ExportFuture<'a, R> {
    let message = format!("it exports no {}", export.display_name());
    Box::pin(ready(Err(wasmtime::Error::new(InterfaceMismatch(message)))))
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
pub(crate) const ROLES: [PluginRole; 5] = [
    PluginRole::Tools,
    PluginRole::Provider,
    PluginRole::Listener,
    PluginRole::Guide,
    PluginRole::Ui,
];

/// Finds the version of the contract that a component implements.
///
/// # Errors
///
/// The exports have the names of a known version and other types.
pub(crate) fn find_plugin_abi(
    pre: &InstancePre<Guest>,
) -> wasmtime::Result<Option<Arc<dyn PluginAbi>>> {
    let abi = v0_1::PluginAbiV0_1::new(pre, &export_names(pre))?;
    Ok(abi.map(|abi| Arc::new(abi) as Arc<dyn PluginAbi>))
}

/// The exports of a component as a list for error messages; see [`format_exports`].
pub(crate) fn describe_exports(pre: &InstancePre<Guest>) -> String {
    format_exports(&export_names(pre))
}

/// Whether the host calls this export, in any version of it.
pub(crate) fn is_callable(export: &str) -> bool {
    export.starts_with(PACKAGE_PREFIX) || http::is_http_handler(export)
}

/// Lists exports for an error message: those of our package, or all of them if the component has
/// none of ours.
pub(crate) fn format_exports(all: &[String]) -> String {
    let ours: Vec<&String> = all.iter().filter(|name| name.starts_with(PACKAGE_PREFIX)).collect();
    let names: Vec<&str> = if ours.is_empty() {
        all.iter().map(String::as_str).collect()
    } else {
        ours.into_iter().map(String::as_str).collect()
    };
    if names.is_empty() { NO_EXPORTS.to_owned() } else { names.join(", ") }
}

fn export_names(pre: &InstancePre<Guest>) -> Vec<String> {
    let component = pre.component();
    let ty = component.component_type();
    ty.exports(component.engine()).map(|(name, _)| name.to_owned()).collect()
}
