//! `sallyport:plugin@0.1.0`.

mod guide;
mod lifecycle;
mod listener;
mod provider;
mod timers;
mod tools;
mod ui;

use std::future::ready;

use sallyport_contract::{AdmittedCall, services::TimerFiring};
use wasmtime::{
    Store,
    component::{Instance, InstancePre},
};

use super::{Answer, Export, PluginAbi, ROLES, RawTool, ToolReturn, absent};
use crate::{
    bindings::v0_1::exports::sallyport::plugin as wit,
    guest::Guest,
    roles::{Generated, Generation, Persona, ProviderFailure, Reply, Signal, UiEvent},
};

const TOOLS: &str = "sallyport:plugin/tools@0.1.0";
const LIFECYCLE: &str = "sallyport:plugin/lifecycle@0.1.0";
const TIMERS: &str = "sallyport:plugin/timers@0.1.0";
const PROVIDER: &str = "sallyport:plugin/provider@0.1.0";
const LISTENER: &str = "sallyport:plugin/listener@0.1.0";
const GUIDE: &str = "sallyport:plugin/guide@0.1.0";
const UI: &str = "sallyport:plugin/ui@0.1.0";

/// The exports of a component that implements this version, looked up once.
pub(super) struct V0_1 {
    tools: Option<wit::tools::GuestIndices>,
    lifecycle: Option<wit::lifecycle::GuestIndices>,
    timers: Option<wit::timers::GuestIndices>,
    provider: Option<wit::provider::GuestIndices>,
    listener: Option<wit::listener::GuestIndices>,
    guide: Option<wit::guide::GuestIndices>,
    ui: Option<wit::ui::GuestIndices>,
}

impl V0_1 {
    /// Looks up the exports of this version, if the component has any.
    ///
    /// # Errors
    ///
    /// A component exports one of our interfaces with other types.
    pub(super) fn new(
        pre: &InstancePre<Guest>,
        exports: &[String],
    ) -> wasmtime::Result<Option<Self>> {
        let has = |name: &str| exports.iter().any(|export| export == name);
        let abi = Self {
            tools: has(TOOLS).then(|| wit::tools::GuestIndices::new(pre)).transpose()?,
            lifecycle: has(LIFECYCLE)
                .then(|| wit::lifecycle::GuestIndices::new(pre))
                .transpose()?,
            timers: has(TIMERS).then(|| wit::timers::GuestIndices::new(pre)).transpose()?,
            provider: has(PROVIDER).then(|| wit::provider::GuestIndices::new(pre)).transpose()?,
            listener: has(LISTENER).then(|| wit::listener::GuestIndices::new(pre)).transpose()?,
            guide: has(GUIDE).then(|| wit::guide::GuestIndices::new(pre)).transpose()?,
            ui: has(UI).then(|| wit::ui::GuestIndices::new(pre)).transpose()?,
        };
        Ok(ROLES.iter().any(|role| abi.exports(Export::of(*role))).then_some(abi))
    }
}

/// The full name of an interface in this version.
pub(super) fn interface(export: Export) -> &'static str {
    match export {
        Export::Tools => TOOLS,
        Export::Lifecycle => LIFECYCLE,
        Export::Timers => TIMERS,
        Export::Provider => PROVIDER,
        Export::Listener => LISTENER,
        Export::Guide => GUIDE,
        Export::Ui => UI,
    }
}

impl PluginAbi for V0_1 {
    fn exports(&self, export: Export) -> bool {
        match export {
            Export::Tools => self.tools.is_some(),
            Export::Lifecycle => self.lifecycle.is_some(),
            Export::Timers => self.timers.is_some(),
            Export::Provider => self.provider.is_some(),
            Export::Listener => self.listener.is_some(),
            Export::Guide => self.guide.is_some(),
            Export::Ui => self.ui.is_some(),
        }
    }

    fn list_tools<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: Instance,
    ) -> Answer<'a, Vec<RawTool>> {
        let Some(tools) = &self.tools else { return Box::pin(ready(Ok(Vec::new()))) };
        Box::pin(tools::list(tools, store, instance))
    }

    fn call_tool<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: Instance,
        call: &'a AdmittedCall,
    ) -> Answer<'a, ToolReturn> {
        let Some(tools) = &self.tools else { return absent(Export::Tools) };
        Box::pin(tools::call(tools, store, instance, call))
    }

    fn setup<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: Instance,
    ) -> Answer<'a, Result<(), String>> {
        let Some(lifecycle) = &self.lifecycle else { return absent(Export::Lifecycle) };
        Box::pin(lifecycle::setup(lifecycle, store, instance))
    }

    fn teardown<'a>(&'a self, store: &'a mut Store<Guest>, instance: Instance) -> Answer<'a, ()> {
        let Some(lifecycle) = &self.lifecycle else { return absent(Export::Lifecycle) };
        Box::pin(lifecycle::teardown(lifecycle, store, instance))
    }

    fn on_timer<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: Instance,
        call: &'a AdmittedCall,
        firing: TimerFiring,
    ) -> Answer<'a, ToolReturn> {
        let Some(timers) = &self.timers else { return absent(Export::Timers) };
        Box::pin(timers::fire(timers, store, instance, call, firing))
    }

    fn describe<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: Instance,
    ) -> Answer<'a, Persona> {
        let Some(guide) = &self.guide else { return absent(Export::Guide) };
        Box::pin(guide::describe(guide, store, instance))
    }

    fn generate<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: Instance,
        call: &'a AdmittedCall,
        generation: Generation,
    ) -> Answer<'a, Result<Generated, ProviderFailure>> {
        let Some(provider) = &self.provider else { return absent(Export::Provider) };
        Box::pin(provider::generate(provider, store, instance, call, generation))
    }

    fn start<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: Instance,
    ) -> Answer<'a, ToolReturn> {
        let Some(listener) = &self.listener else { return absent(Export::Listener) };
        Box::pin(listener::start(listener, store, instance))
    }

    fn stop<'a>(&'a self, store: &'a mut Store<Guest>, instance: Instance) -> Answer<'a, ()> {
        let Some(listener) = &self.listener else { return absent(Export::Listener) };
        Box::pin(listener::stop(listener, store, instance))
    }

    fn handle<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: Instance,
        connection: String,
        signal: Signal,
    ) -> Answer<'a, Result<Vec<Reply>, ToolReturn>> {
        let Some(listener) = &self.listener else { return absent(Export::Listener) };
        Box::pin(listener::handle(listener, store, instance, connection, signal))
    }

    fn on_event<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: Instance,
        event: UiEvent,
    ) -> Answer<'a, ()> {
        let Some(ui) = &self.ui else { return absent(Export::Ui) };
        Box::pin(ui::on_event(ui, store, instance, event))
    }
}
