//! Versions of the plugin contract. Which one a component speaks is read off its exports once, at
//! load; from then on the rest of the crate talks to [`PluginAbi`] and never asks again.

mod v0_1;

use sallyport_contract::{Admitted, BoxFuture, Failure, ToolOutput};
use wasmtime::{
    Store,
    component::{Instance, InstancePre},
};

use crate::guest::Guest;

/// What a component exports for `sallyport:plugin`, before the version.
const PACKAGE: &str = "sallyport:plugin/";

/// The newest version, named in errors.
pub(crate) const NEWEST: &str = v0_1::TOOLS;

/// A tool as the component describes it; nothing of it has been checked.
#[derive(Debug)]
pub(crate) struct RawTool {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) parameters: String,
    pub(crate) output: Option<String>,
    pub(crate) hints: sallyport_contract::Hints,
}

/// How one version of the contract is spoken. Errors of the outer `Result` are traps.
pub(crate) trait PluginAbi: Send + Sync {
    /// Asks for the tools.
    fn list_tools<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: Instance,
    ) -> BoxFuture<'a, wasmtime::Result<Vec<RawTool>>>;

    /// Runs a tool.
    fn call_tool<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: Instance,
        call: &'a Admitted,
    ) -> BoxFuture<'a, wasmtime::Result<ToolReturn>>;

    /// Whether the component takes part in loading and shutting down.
    fn is_managed(&self) -> bool;

    /// Runs `setup`; the inner error is the reason why the plugin is unavailable.
    fn setup<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: Instance,
    ) -> BoxFuture<'a, wasmtime::Result<Result<(), String>>>;

    /// Runs `teardown`.
    fn teardown<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: Instance,
    ) -> BoxFuture<'a, wasmtime::Result<()>>;
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

/// Finds the version that a component speaks.
///
/// # Errors
///
/// The exports are those of a known version but with other contents.
pub(crate) fn choose(pre: &InstancePre<Guest>) -> wasmtime::Result<Option<Box<dyn PluginAbi>>> {
    let exports = export_names(pre);
    if exports.iter().any(|name| name == v0_1::TOOLS) {
        return Ok(Some(Box::new(v0_1::V0_1::new(pre, &exports)?)));
    }
    Ok(None)
}

/// What a component exports of our package, or of anything when it has nothing of ours.
pub(crate) fn found(pre: &InstancePre<Guest>) -> String {
    let all = export_names(pre);
    let ours: Vec<&String> = all.iter().filter(|name| name.starts_with(PACKAGE)).collect();
    let names: Vec<&str> = if ours.is_empty() {
        all.iter().map(String::as_str).collect()
    } else {
        ours.into_iter().map(String::as_str).collect()
    };
    if names.is_empty() { "no exports at all".to_owned() } else { names.join(", ") }
}

fn export_names(pre: &InstancePre<Guest>) -> Vec<String> {
    let component = pre.component();
    let ty = component.component_type();
    ty.exports(component.engine()).map(|(name, _)| name.to_owned()).collect()
}
