//! `sallyport:plugin@0.1.0`.

mod listener;
mod prompts;
mod provider;
mod resources;
mod tools;
mod ui;

use std::sync::Arc;

use sallyport_contract::{
    AdmittedCall, BoxFuture, LogLevel, PromptQuery, ResourceQuery, services::TimerFiring,
};
use wasmtime::{
    Store,
    component::{Instance, InstancePre},
};

use self::tools::{call_context, convert_tool_error, convert_unit_result, extract_error_message};
use super::{
    InterfaceMismatch, PluginAbi, PluginExport, ROLES, ToolList, ToolReturnValue,
    missing_export_body,
};
use crate::{
    bindings::v0_1::exports::sallyport::plugin as wit,
    capability::schedule::timer_to_guest,
    guest::Guest,
    role_data::{
        GenerationRequest, GuidePersona, ListenerReply, ListenerSignal, ProviderAnswer,
        ProviderFailure, UiEvent,
    },
    run_body::{RunBody, box_run_body},
};

/// The generated type of an interface that a component may export.
trait ExportIndices: Clone + Send + Sync + 'static {
    const EXPORT: PluginExport;

    /// The exported functions of one instance.
    type Functions: Send;

    fn load_functions(
        &self,
        store: &mut Store<Guest>,
        instance: &Instance,
    ) -> wasmtime::Result<Self::Functions>;
}

macro_rules! exports {
    ($($field:ident: $export:ident),*) => {
        /// The exports of a component that implements this version, looked up once.
        pub(super) struct PluginAbiV0_1 {
            $($field: Option<wit::$field::GuestIndices>,)*
        }

        impl PluginAbiV0_1 {
            fn find_exports(pre: &InstancePre<Guest>, exports: &[String]) -> wasmtime::Result<Self> {
                let has = |export| exports.iter().any(|name| name == interface_name(export));
                Ok(Self {
                    $($field: has(PluginExport::$export)
                        .then(|| wit::$field::GuestIndices::new(pre))
                        .transpose()?,)*
                })
            }

            fn is_exported(&self, export: PluginExport) -> bool {
                match export { $(PluginExport::$export => self.$field.is_some(),)* }
            }
        }

        /// The full name of an interface in this version.
        pub(super) fn interface_name(export: PluginExport) -> &'static str {
            match export {
                $(PluginExport::$export => {
                    concat!("sallyport:plugin/", stringify!($field), "@0.1.0")
                })*
            }
        }

        $(impl ExportIndices for wit::$field::GuestIndices {
            const EXPORT: PluginExport = PluginExport::$export;

            type Functions = wit::$field::Guest;

            fn load_functions(
                &self,
                store: &mut Store<Guest>,
                instance: &Instance,
            ) -> wasmtime::Result<Self::Functions> {
                self.load(store, instance)
            }
        })*
    };
}

exports! {
    tools: Tools,
    lifecycle: Lifecycle,
    timers: Timers,
    provider: Provider,
    listener: Listener,
    guide: Guide,
    ui: Ui,
    resources: Resources,
    prompts: Prompts
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
        let abi = Self::find_exports(pre, exports)?;
        Ok(ROLES.iter().any(|role| abi.has_export(PluginExport::from_role(*role))).then_some(abi))
    }
}

/// The call of an exported function.
fn call_export<I: ExportIndices, R: Send + 'static>(
    indices: &Option<I>,
    call: impl for<'a> FnOnce(&'a mut Store<Guest>, I::Functions) -> BoxFuture<'a, wasmtime::Result<R>>
    + Send
    + 'static,
) -> RunBody<R> {
    let Some(indices) = indices.clone() else { return missing_export_body(I::EXPORT) };
    box_run_body(move |store, instance| match indices.load_functions(store, &instance) {
        Ok(functions) => call(store, functions),
        Err(error) => Box::pin(std::future::ready(Err(InterfaceMismatch::wrap_error(error)))),
    })
}

impl PluginAbi for PluginAbiV0_1 {
    fn has_export(&self, export: PluginExport) -> bool {
        self.is_exported(export)
    }

    fn list_tools(&self) -> ToolList<'_> {
        if self.tools.is_none() {
            let nothing = box_run_body(|_, _| Box::pin(std::future::ready(Ok(Vec::new()))));
            return ToolList::Listed(nothing);
        }
        ToolList::Listed(call_export(&self.tools, |store, tools| {
            Box::pin(async move {
                let tools = tools.call_list_tools(store).await?;
                Ok(tools.into_iter().map(tools::tool_from_wit).collect())
            })
        }))
    }

    fn call_tool(&self, call: Arc<AdmittedCall>) -> RunBody<ToolReturnValue> {
        call_export(&self.tools, move |store, tools| {
            Box::pin(async move {
                let context = call_context(&call, &store.data().run_context);
                let bytes_max = store.data().output_bytes_max();
                let name = call.tool().tool.as_str();
                let arguments = call.arguments_text().to_owned();
                Ok(match tools.call_call_tool(store, &context, name, &arguments).await? {
                    Ok(output) => tools::convert_tool_output(output, bytes_max),
                    Err(error) => convert_tool_error(error, bytes_max),
                })
            })
        })
    }

    fn run_setup(&self) -> RunBody<Result<(), String>> {
        call_export(&self.lifecycle, |store, lifecycle| {
            Box::pin(async move {
                Ok(lifecycle.call_setup(store).await?.map_err(|error| match error {
                    wit::lifecycle::SetupError::MissingSettings(names) => {
                        format!("these settings are missing: {}", names.join(", "))
                    }
                    wit::lifecycle::SetupError::Unavailable(text) => text,
                    wit::lifecycle::SetupError::Other(text) => extract_error_message(text),
                }))
            })
        })
    }

    fn run_teardown(&self) -> RunBody<()> {
        call_export(&self.lifecycle, |store, lifecycle| {
            Box::pin(async move { lifecycle.call_teardown(store).await })
        })
    }

    fn handle_timer(
        &self,
        call: Arc<AdmittedCall>,
        firing: TimerFiring,
    ) -> RunBody<ToolReturnValue> {
        call_export(&self.timers, move |store, timers| {
            Box::pin(async move {
                let context = call_context(&call, &store.data().run_context);
                let bytes_max = store.data().output_bytes_max();
                let firing = wit::timers::Firing {
                    timer: timer_to_guest(firing.timer),
                    due_ms: firing.due_ms,
                    late: firing.late,
                    missed: firing.missed,
                    again: firing.will_repeat,
                    extra: None,
                };
                let result = timers.call_on_timer(store, &context, &firing).await?;
                Ok(convert_unit_result(result, bytes_max))
            })
        })
    }

    fn describe_assistant(&self) -> RunBody<GuidePersona> {
        call_export(&self.guide, |store, guide| {
            Box::pin(async move {
                let persona = guide.call_describe(store).await?;
                Ok(GuidePersona {
                    system_prompt: persona.system_prompt,
                    temperature: persona.temperature,
                    memory_policy: persona.memory_policy,
                    initial_memories: persona.initial_memories,
                })
            })
        })
    }

    fn generate_answer(
        &self,
        call: Arc<AdmittedCall>,
        generation: GenerationRequest,
    ) -> RunBody<Result<ProviderAnswer, ProviderFailure>> {
        call_export(&self.provider, move |store, provider| {
            Box::pin(async move {
                let GenerationRequest { history, tools, settings } = generation;
                let history: Vec<_> = history.into_iter().map(provider::message_to_wit).collect();
                let tools: Vec<_> = tools.into_iter().map(provider::tool_to_wit).collect();
                let settings = provider::settings_to_wit(settings);
                let context = call_context(&call, &store.data().run_context);
                let result =
                    provider.call_generate(store, &context, &history, &tools, &settings).await?;
                Ok(result.map(provider::answer_from_wit).map_err(provider::failure_from_wit))
            })
        })
    }

    fn start_listener(&self) -> RunBody<ToolReturnValue> {
        call_export(&self.listener, |store, listener| {
            Box::pin(async move {
                let bytes_max = store.data().output_bytes_max();
                Ok(convert_unit_result(listener.call_start(store).await?, bytes_max))
            })
        })
    }

    fn stop_listener(&self) -> RunBody<()> {
        call_export(&self.listener, |store, listener| {
            Box::pin(async move { listener.call_stop(store).await })
        })
    }

    fn handle_signal(
        &self,
        connection: String,
        signal: ListenerSignal,
    ) -> RunBody<Result<Vec<ListenerReply>, ToolReturnValue>> {
        call_export(&self.listener, move |store, listener| {
            Box::pin(async move {
                let bytes_max = store.data().output_bytes_max();
                let signal = listener::signal_to_wit(signal);
                let result = listener.call_handle(&mut *store, &connection, &signal).await?;
                let effect_log = &store.data().run_context.effect_log;
                let known = |reply| {
                    let known = listener::reply_from_wit(reply);
                    if known.is_none() {
                        let text = "a reply of an unknown kind was left out";
                        effect_log.log_line(LogLevel::Warn, text);
                    }
                    known
                };
                Ok(match result {
                    Ok(replies) => Ok(replies.into_iter().filter_map(known).collect()),
                    Err(error) => Err(convert_tool_error(error, bytes_max)),
                })
            })
        })
    }

    fn answer_resource_query(
        &self,
        call: Arc<AdmittedCall>,
        query: ResourceQuery,
    ) -> RunBody<ToolReturnValue> {
        call_export(&self.resources, move |store, functions| {
            Box::pin(resources::answer_query(store, functions, call, query))
        })
    }

    fn answer_prompt_query(
        &self,
        call: Arc<AdmittedCall>,
        query: PromptQuery,
    ) -> RunBody<ToolReturnValue> {
        call_export(&self.prompts, move |store, functions| {
            Box::pin(prompts::answer_query(store, functions, call, query))
        })
    }

    fn handle_ui_event(&self, event: UiEvent) -> RunBody<()> {
        call_export(&self.ui, move |store, ui| {
            Box::pin(async move { ui.call_on_event(store, &ui::ui_event_to_wit(event)).await })
        })
    }
}
