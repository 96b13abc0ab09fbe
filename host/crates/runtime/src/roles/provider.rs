//! A plugin that acts as a model: it receives a conversation, and streams an answer.
//!
//! The answer is trusted no more than one from a remote provider: unknown tools, duplicate ids and
//! broken arguments are handled where every answer is handled. The plugin's opaque form of an
//! answer is returned unchanged, only to the same plugin and model.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use sallyport_contract::{BoxFuture, CallReport, Outcome, text};
use sallyport_model::{
    self as model, AssistantMessage, ChatModel, FittedTools, ModelError, ModelReply, ModelRequest,
    OpaqueMessage, TokenPrice,
};
use sallyport_sandbox::roles::{
    GenerationRequest, GenerationSettings, MediaBlob, ProviderAnswer, ProviderAnswerMessage,
    ProviderDelta, ProviderFailure, ProviderFinishReason, ProviderMessage, ProviderToolCall,
    ProviderToolDefinition, ProviderToolResult, ProviderUsage, ProviderUserMessage,
};
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::timeout};

use super::RolePlugin;
use crate::{
    config::{PluginModelConfig, provider::PLUGIN_PREFIX},
    registry::RoleRunKind,
};

/// A plugin that acts as a model in one session.
pub struct PluginChatModel {
    role_plugin: RolePlugin,
    settings: PluginModelConfig,
    user: String,
    session_id: String,
    name: String,
    /// The remarks that the user has already seen.
    reported: Mutex<HashSet<String>>,
}

/// Returns a plugin as the model of one session of a user.
pub fn plugin_chat_model(
    role_plugin: RolePlugin,
    settings: PluginModelConfig,
    user: &str,
    session_id: &str,
) -> Arc<dyn ChatModel> {
    let plugin = format!("{PLUGIN_PREFIX}{}", settings.plugin);
    let name = match &settings.model {
        Some(model) => format!("{model} by {plugin}"),
        None => plugin,
    };
    let (tool_calling, time_max) = (settings.tool_calling, settings.time_max);
    let (user, session_id) = (user.to_owned(), session_id.to_owned());
    let reported = Mutex::default();
    let chat_model = PluginChatModel { role_plugin, settings, user, session_id, name, reported };
    model::wrap_model(Arc::new(chat_model), tool_calling, time_max)
}

impl ChatModel for PluginChatModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn price(&self) -> Option<TokenPrice> {
        self.settings.price
    }

    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(model::ReplyDelta) + Send),
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(async move {
            let time_max = self.settings.time_max;
            let answer = timeout(time_max, self.generate_answer(request, on_delta)).await;
            answer.unwrap_or_else(|_| Err(self.timeout_error(time_max)))
        })
    }
}

impl PluginChatModel {
    async fn generate_answer(
        &self,
        request: ModelRequest<'_>,
        on_delta: &mut (dyn FnMut(model::ReplyDelta) + Send),
    ) -> Result<ModelReply, ModelError> {
        let run_arguments = self.run_description(&request);
        let context = self.role_plugin.roles.new_call_context(&self.user, &self.session_id);
        let call = self.role_plugin.admit_run(RoleRunKind::Provider, context, &run_arguments).await;
        let call = call.map_err(|report| self.admission_error(*report))?;
        let role_run = self.role_plugin.start_run(&call);
        let (delta_sender, mut said) = mpsc::unbounded_channel();
        // The provider behind the plugin is unknown, so everything that any provider refuses is
        // left out.
        let fitted_tools = FittedTools::with_strictest_dialect(request.tools);
        self.report_left_out(&fitted_tools, on_delta);
        let messages = fitted_tools.fit_history(request.messages, &self.answer_origin());
        let fitted_request =
            ModelRequest { messages: &messages, tools: fitted_tools.tools(), ..request };
        let generation = self.build_generation(&fitted_request);
        let mut answer_future =
            std::pin::pin!(self.role_plugin.plugin.generate_answer(call, generation, delta_sender));
        let answered = loop {
            tokio::select! {
                biased;
                Some(delta) = said.recv() => self.forward_delta(delta, on_delta),
                answered = &mut answer_future => break answered,
            }
        };
        while let Ok(delta) = said.try_recv() {
            self.forward_delta(delta, on_delta);
        }
        role_run.finish(&answered.report);
        let generated = answered.answer.map_err(|failure| self.provider_error(failure))?;
        let mut reply = self.build_reply(generated);
        fitted_tools.restore_arguments(&mut reply.message.calls);
        Ok(reply)
    }

    fn report_left_out(
        &self,
        fitted_tools: &FittedTools,
        on_delta: &mut (dyn FnMut(model::ReplyDelta) + Send),
    ) {
        let mut told = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let new = fitted_tools.omitted_tools().iter().filter(|one| told.insert(one.to_string()));
        new.cloned().map(model::ReplyDelta::LeftOut).for_each(on_delta);
    }

    /// The description of a run for the user and the record. The session stores the conversation
    /// itself.
    fn run_description(&self, request: &ModelRequest<'_>) -> Value {
        let (messages, tools) = (request.messages.len(), request.tools.len());
        json!({ "model": self.settings.model, "messages": messages, "tools": tools })
    }

    fn forward_delta(
        &self,
        delta: ProviderDelta,
        on_delta: &mut (dyn FnMut(model::ReplyDelta) + Send),
    ) {
        if self.settings.stream {
            on_delta(match delta {
                ProviderDelta::Text(text) => model::ReplyDelta::Text { text },
                ProviderDelta::Reasoning(text) => model::ReplyDelta::Reasoning { text },
            });
        }
    }

    fn build_generation(&self, request: &ModelRequest<'_>) -> GenerationRequest {
        let PluginModelConfig { model, temperature, output_tokens_max, .. } = &self.settings;
        let settings = GenerationSettings {
            model: model.clone(),
            temperature: request.temperature.or(*temperature),
            tokens_max: output_tokens_max.map(u64::from),
        };
        let history =
            request.messages.iter().map(|message| self.convert_message(message)).collect();
        GenerationRequest {
            history,
            tools: request.tools.iter().map(convert_tool).collect(),
            settings,
        }
    }

    /// Converts a message into the form that the plugin receives.
    fn convert_message(&self, message: &model::ChatMessage) -> ProviderMessage {
        match message {
            model::ChatMessage::System { text } => ProviderMessage::System(text.clone()),
            model::ChatMessage::User(said) => ProviderMessage::User(ProviderUserMessage {
                text: text_with_attachments(said),
                attachments: said.attachments.iter().map(convert_attachment).collect(),
            }),
            model::ChatMessage::Assistant(answer) => {
                ProviderMessage::Assistant(ProviderAnswerMessage {
                    text: answer.text.clone(),
                    calls: answer.calls.iter().map(convert_call).collect(),
                    opaque: answer.opaque.as_ref().and_then(|opaque| self.own_opaque_body(opaque)),
                })
            }
            model::ChatMessage::Tool(result) => ProviderMessage::Tool(ProviderToolResult {
                call_id: result.call_id.clone(),
                name: result.name.clone(),
                content: result.content.clone(),
                failed: result.failed,
            }),
        }
    }

    /// The origin of an answer: the plugin and its model.
    fn answer_origin(&self) -> String {
        let PluginModelConfig { plugin, model, .. } = &self.settings;
        format!("{PLUGIN_PREFIX}{plugin}/{}", model.as_deref().unwrap_or_default())
    }

    /// The opaque form of an answer, if this plugin and model produced it.
    fn own_opaque_body(&self, opaque: &OpaqueMessage) -> Option<String> {
        let body = opaque.body.as_str().filter(|_| opaque.origin == self.answer_origin());
        body.map(str::to_owned)
    }

    fn build_reply(&self, generated: ProviderAnswer) -> ModelReply {
        let ProviderAnswer { message, finish, usage, .. } = generated;
        let opaque = message
            .opaque
            .map(|body| OpaqueMessage { origin: self.answer_origin(), body: body.into() });
        let calls = message.calls.into_iter().map(convert_tool_request).collect();
        ModelReply {
            message: AssistantMessage { text: message.text, calls, opaque },
            finish: convert_finish(finish),
            usage: usage.map(convert_usage),
        }
    }

    fn timeout_error(&self, time_max: Duration) -> ModelError {
        let message = format!("it did not answer within {time_max:?} (time_max of the model)");
        ModelError::Stopped { provider: self.name.clone(), message }
    }

    /// The error of a run that was not admitted.
    fn admission_error(&self, report: CallReport) -> ModelError {
        match report.outcome {
            Outcome::Denied(denial) => self.provider_error(ProviderFailure::Denied(denial)),
            Outcome::Failed(failure) => {
                let message = failure.detail.unwrap_or(failure.message);
                ModelError::Stopped { provider: self.name.clone(), message }
            }
            other => {
                let message = format!("its run was {}", other.as_str());
                ModelError::Stopped { provider: self.name.clone(), message }
            }
        }
    }

    fn provider_error(&self, failure: ProviderFailure) -> ModelError {
        let provider = self.name.clone();
        match failure {
            ProviderFailure::Credentials(message) => ModelError::Credentials { provider, message },
            ProviderFailure::Unreachable(message) => ModelError::Unreachable { provider, message },
            ProviderFailure::Busy { message, retry_after } => {
                ModelError::RateLimited { provider, message, retry_after }
            }
            ProviderFailure::Refused(message) => ModelError::Declined { provider, message },
            ProviderFailure::Broken(message) => ModelError::Stopped { provider, message },
            ProviderFailure::Denied(denial) => ModelError::Denied {
                provider,
                message: denial.to_string(),
                fix: denial.fix,
                nobody_to_ask: denial.nobody_to_ask,
            },
        }
    }
}

/// The text of an input, followed by the names of its attachments. The model needs the names in the
/// text because users refer to files by name.
fn text_with_attachments(said: &model::UserInputMessage) -> String {
    let told = said.text_for_model();
    if said.attachments.is_empty() {
        return told.into_owned();
    }
    let named = |file: &model::FileAttachment| {
        format!("{:?} ({})", text::escape_line(&file.name), text::escape_line(&file.media_type))
    };
    let names: Vec<String> = said.attachments.iter().map(named).collect();
    let names = format!("[attached: {}]", names.join(", "));
    if told.is_empty() { names } else { format!("{told}\n\n{names}") }
}

fn convert_attachment(file: &model::FileAttachment) -> MediaBlob {
    let name = Some(file.name.clone()).filter(|name| !name.is_empty());
    MediaBlob { media_type: file.media_type.clone(), data: file.data.to_vec(), name }
}

fn convert_tool(tool: &model::ModelToolDefinition) -> ProviderToolDefinition {
    ProviderToolDefinition {
        name: tool.name.clone(),
        description: tool.description.clone(),
        parameters: tool.parameters.to_string(),
    }
}

fn convert_call(call: &model::ModelCallRequest) -> ProviderToolCall {
    let model::ModelCallRequest { id, name, arguments } = call.clone();
    ProviderToolCall { id, name, arguments }
}

/// An empty or duplicate id is left for the session to fix.
fn convert_tool_request(call: ProviderToolCall) -> model::ModelCallRequest {
    let ProviderToolCall { id, name, arguments } = call;
    model::ModelCallRequest { id, name, arguments }
}

fn convert_finish(finish: ProviderFinishReason) -> model::FinishReason {
    match finish {
        ProviderFinishReason::Stop => model::FinishReason::Stop,
        ProviderFinishReason::ToolCalls => model::FinishReason::ToolCalls,
        ProviderFinishReason::Length => model::FinishReason::Length,
        ProviderFinishReason::Withheld => model::FinishReason::ContentFilter,
        ProviderFinishReason::Other(word) => model::FinishReason::Other(word),
    }
}

fn convert_usage(usage: ProviderUsage) -> model::TokenUsage {
    let ProviderUsage { input_tokens, output_tokens } = usage;
    model::TokenUsage { input_tokens, output_tokens, ..model::TokenUsage::default() }
}
