//! Versions of the plugin contract. Which one a component speaks is read off its exports once, at
//! load; from then on the rest of the crate talks to [`PluginAbi`] and never asks again.

pub(crate) mod command;
pub(crate) mod http;
mod v0_1;

use std::{future::ready, sync::Arc};

use sallyport_contract::{Admitted, BoxFuture, Failure, ToolOutput, services::Firing};
use sallyport_policy::{Limits, Role};
use serde::{Deserialize, Serialize};
use wasmtime::{
    Store,
    component::{Instance, InstancePre},
};

use crate::{
    error::NO_EXPORTS,
    guest::Guest,
    roles::{Generated, Generation, Persona, ProviderFailure, Reply, RoleLinks, Signal, UiEvent},
};

/// What a component exports for `sallyport:plugin`, before the version.
const PACKAGE: &str = "sallyport:plugin/";

/// A tool as the component describes it; nothing of it has been checked.
#[derive(Debug)]
pub(crate) struct RawTool {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: String,
    pub(crate) parameters: String,
    pub(crate) output: Option<String>,
    pub(crate) hints: sallyport_contract::Hints,
}

/// An interface that a component may export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Export {
    Tools,
    Lifecycle,
    Timers,
    Provider,
    Listener,
    Guide,
    Ui,
}

impl Export {
    /// All of them.
    pub(crate) const ALL: [Self; 7] = [
        Self::Tools,
        Self::Lifecycle,
        Self::Timers,
        Self::Provider,
        Self::Listener,
        Self::Guide,
        Self::Ui,
    ];

    /// The interface of a role.
    pub(crate) fn of(role: Role) -> Self {
        match role {
            Role::Tools => Self::Tools,
            Role::Provider => Self::Provider,
            Role::Listener => Self::Listener,
            Role::Guide => Self::Guide,
            Role::Ui => Self::Ui,
        }
    }

    /// What it is in an error.
    pub(crate) fn word(self) -> &'static str {
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

    /// The newest interface of this kind, named in errors.
    pub(crate) fn newest(self) -> &'static str {
        v0_1::interface(self)
    }
}

/// What an export answers. Errors are traps.
pub(crate) type Answer<'a, R> = BoxFuture<'a, wasmtime::Result<R>>;

/// How one version of the contract is spoken. What a component does not export answers with a
/// [`Mismatch`].
pub(crate) trait PluginAbi: Send + Sync {
    /// Whether the component has an export.
    fn exports(&self, export: Export) -> bool;

    /// What a call needs beside the host calls of every plugin.
    fn links(&self, _call: &Admitted, _limits: &Limits) -> RoleLinks {
        RoleLinks::default()
    }

    /// Asks for the tools; without the export there are none.
    fn list_tools<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: Instance,
    ) -> Answer<'a, Vec<RawTool>>;

    /// Runs a tool.
    fn call_tool<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: Instance,
        call: &'a Admitted,
    ) -> Answer<'a, ToolReturn>;

    /// Runs `setup`; the inner error is the reason why the plugin is unavailable.
    fn setup<'a>(
        &'a self,
        _store: &'a mut Store<Guest>,
        _instance: Instance,
    ) -> Answer<'a, Result<(), String>> {
        absent(Export::Lifecycle)
    }

    /// Runs `teardown`.
    fn teardown<'a>(&'a self, _store: &'a mut Store<Guest>, _instance: Instance) -> Answer<'a, ()> {
        absent(Export::Lifecycle)
    }

    /// Tells of a timer that fires.
    fn on_timer<'a>(
        &'a self,
        _store: &'a mut Store<Guest>,
        _instance: Instance,
        _call: &'a Admitted,
        _firing: Firing,
    ) -> Answer<'a, ToolReturn> {
        absent(Export::Timers)
    }

    /// Asks who the assistant is.
    fn describe<'a>(
        &'a self,
        _store: &'a mut Store<Guest>,
        _instance: Instance,
    ) -> Answer<'a, Persona> {
        absent(Export::Guide)
    }

    /// Asks for an answer to a conversation.
    fn generate<'a>(
        &'a self,
        _store: &'a mut Store<Guest>,
        _instance: Instance,
        _call: &'a Admitted,
        _generation: Generation,
    ) -> Answer<'a, Result<Generated, ProviderFailure>> {
        absent(Export::Provider)
    }

    /// Tells that the first signal will come.
    fn start<'a>(
        &'a self,
        _store: &'a mut Store<Guest>,
        _instance: Instance,
    ) -> Answer<'a, ToolReturn> {
        absent(Export::Listener)
    }

    /// Tells that the last signal has come.
    fn stop<'a>(&'a self, _store: &'a mut Store<Guest>, _instance: Instance) -> Answer<'a, ()> {
        absent(Export::Listener)
    }

    /// Tells of a signal; the inner error is the plugin's own.
    fn handle<'a>(
        &'a self,
        _store: &'a mut Store<Guest>,
        _instance: Instance,
        _connection: String,
        _signal: Signal,
    ) -> Answer<'a, Result<Vec<Reply>, ToolReturn>> {
        absent(Export::Listener)
    }

    /// Tells of an event.
    fn on_event<'a>(
        &'a self,
        _store: &'a mut Store<Guest>,
        _instance: Instance,
        _event: UiEvent,
    ) -> Answer<'a, ()> {
        absent(Export::Ui)
    }
}

/// The answer of what is not exported.
fn absent<'a, R: Send + 'a>(export: Export) -> Answer<'a, R> {
    let message = format!("it exports no {}", export.word());
    Box::pin(ready(Err(wasmtime::Error::new(Mismatch(message)))))
}

/// The exports have our names and other types.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Mismatch(pub(crate) String);

impl Mismatch {
    fn wrap(error: wasmtime::Error) -> wasmtime::Error {
        wasmtime::Error::new(Self(format!("{error:#}")))
    }
}

/// What a tool answered.
#[derive(Debug)]
pub(crate) enum ToolReturn {
    /// It completed.
    Output(ToolOutput),
    /// Its own error.
    Error(Failure),
    /// It says that something it needed was refused.
    Denied(String),
}

/// What makes a component a plugin: any of these.
pub(crate) const ROLES: [Role; 5] =
    [Role::Tools, Role::Provider, Role::Listener, Role::Guide, Role::Ui];

/// Finds the version that a component speaks.
///
/// # Errors
///
/// The exports are those of a known version but with other contents.
pub(crate) fn choose(pre: &InstancePre<Guest>) -> wasmtime::Result<Option<Arc<dyn PluginAbi>>> {
    let abi = v0_1::V0_1::new(pre, &export_names(pre))?;
    Ok(abi.map(|abi| Arc::new(abi) as Arc<dyn PluginAbi>))
}

/// What a component exports of our package, or of anything when it has nothing of ours.
pub(crate) fn found(pre: &InstancePre<Guest>) -> String {
    listed(&export_names(pre))
}

/// Whether the host calls what is exported under a name, in some version of it.
pub(crate) fn is_callable(export: &str) -> bool {
    export.starts_with(PACKAGE) || http::is_handler(export)
}

/// Exports in an error: those of our package, or all when there is nothing of ours.
pub(crate) fn listed(all: &[String]) -> String {
    let ours: Vec<&String> = all.iter().filter(|name| name.starts_with(PACKAGE)).collect();
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
