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

use super::{
    ExportFuture, PluginAbi, PluginExport, ROLES, ToolReturnValue, UncheckedTool,
    missing_export_answer,
};
use crate::{
    bindings::v0_1::exports::sallyport::plugin as wit,
    guest::Guest,
    roles::{
        GenerationRequest, GuidePersona, ListenerReply, ListenerSignal, ProviderAnswer,
        ProviderFailure, UiEvent,
    },
};

const TOOLS: &str = "sallyport:plugin/tools@0.1.0";
const LIFECYCLE: &str = "sallyport:plugin/lifecycle@0.1.0";
const TIMERS: &str = "sallyport:plugin/timers@0.1.0";
const PROVIDER: &str = "sallyport:plugin/provider@0.1.0";
const LISTENER: &str = "sallyport:plugin/listener@0.1.0";
const GUIDE: &str = "sallyport:plugin/guide@0.1.0";
const UI: &str = "sallyport:plugin/ui@0.1.0";

/// The exports of a component that implements this version, looked up once.
pub(super) struct PluginAbiV0_1 {
    tools: Option<wit::tools::GuestIndices>,
    lifecycle: Option<wit::lifecycle::GuestIndices>,
    timers: Option<wit::timers::GuestIndices>,
    provider: Option<wit::provider::GuestIndices>,
    listener: Option<wit::listener::GuestIndices>,
    guide: Option<wit::guide::GuestIndices>,
    ui: Option<wit::ui::GuestIndices>,
}

impl PluginAbiV0_1 {
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
        Ok(ROLES.iter().any(|role| abi.has_export(PluginExport::from_role(*role))).then_some(abi))
    }
}

/// The full name of an interface in this version.
pub(super) fn interface_name(export: PluginExport) -> &'static str {
    match export {
        PluginExport::Tools => TOOLS,
        PluginExport::Lifecycle => LIFECYCLE,
        PluginExport::Timers => TIMERS,
        PluginExport::Provider => PROVIDER,
        PluginExport::Listener => LISTENER,
        PluginExport::Guide => GUIDE,
        PluginExport::Ui => UI,
    }
}

impl PluginAbi for PluginAbiV0_1 {
    fn has_export(&self, export: PluginExport) -> bool {
        match export {
            PluginExport::Tools => self.tools.is_some(),
            PluginExport::Lifecycle => self.lifecycle.is_some(),
            PluginExport::Timers => self.timers.is_some(),
            PluginExport::Provider => self.provider.is_some(),
            PluginExport::Listener => self.listener.is_some(),
            PluginExport::Guide => self.guide.is_some(),
            PluginExport::Ui => self.ui.is_some(),
        }
    }

    fn list_tools<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: Instance,
    ) -> ExportFuture<'a, Vec<UncheckedTool>> {
        let Some(tools) = &self.tools else { return Box::pin(ready(Ok(Vec::new()))) };
        Box::pin(tools::list_tools(tools, store, instance))
    }

    fn call_tool<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: Instance,
        call: &'a AdmittedCall,
    ) -> ExportFuture<'a, ToolReturnValue> {
        let Some(tools) = &self.tools else { return missing_export_answer(PluginExport::Tools) };
        Box::pin(tools::call_tool(tools, store, instance, call))
    }

    fn run_setup<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: Instance,
    ) -> ExportFuture<'a, Result<(), String>> {
        let Some(lifecycle) = &self.lifecycle else {
            return missing_export_answer(PluginExport::Lifecycle);
        };
        Box::pin(lifecycle::run_setup(lifecycle, store, instance))
    }

    fn run_teardown<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: Instance,
    ) -> ExportFuture<'a, ()> {
        let Some(lifecycle) = &self.lifecycle else {
            return missing_export_answer(PluginExport::Lifecycle);
        };
        Box::pin(lifecycle::run_teardown(lifecycle, store, instance))
    }

    fn handle_timer<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: Instance,
        call: &'a AdmittedCall,
        firing: TimerFiring,
    ) -> ExportFuture<'a, ToolReturnValue> {
        let Some(timers) = &self.timers else { return missing_export_answer(PluginExport::Timers) };
        Box::pin(timers::fire_timer(timers, store, instance, call, firing))
    }

    fn describe_assistant<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: Instance,
    ) -> ExportFuture<'a, GuidePersona> {
        let Some(guide) = &self.guide else { return missing_export_answer(PluginExport::Guide) };
        Box::pin(guide::describe_assistant(guide, store, instance))
    }

    fn generate_answer<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: Instance,
        call: &'a AdmittedCall,
        generation: GenerationRequest,
    ) -> ExportFuture<'a, Result<ProviderAnswer, ProviderFailure>> {
        let Some(provider) = &self.provider else {
            return missing_export_answer(PluginExport::Provider);
        };
        Box::pin(provider::generate_answer(provider, store, instance, call, generation))
    }

    fn start_listener<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: Instance,
    ) -> ExportFuture<'a, ToolReturnValue> {
        let Some(listener) = &self.listener else {
            return missing_export_answer(PluginExport::Listener);
        };
        Box::pin(listener::start_listener(listener, store, instance))
    }

    fn stop_listener<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: Instance,
    ) -> ExportFuture<'a, ()> {
        let Some(listener) = &self.listener else {
            return missing_export_answer(PluginExport::Listener);
        };
        Box::pin(listener::stop_listener(listener, store, instance))
    }

    fn handle_signal<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: Instance,
        connection: String,
        signal: ListenerSignal,
    ) -> ExportFuture<'a, Result<Vec<ListenerReply>, ToolReturnValue>> {
        let Some(listener) = &self.listener else {
            return missing_export_answer(PluginExport::Listener);
        };
        Box::pin(listener::handle_signal(listener, store, instance, connection, signal))
    }

    fn handle_ui_event<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: Instance,
        event: UiEvent,
    ) -> ExportFuture<'a, ()> {
        let Some(ui) = &self.ui else { return missing_export_answer(PluginExport::Ui) };
        Box::pin(ui::handle_ui_event(ui, store, instance, event))
    }
}
