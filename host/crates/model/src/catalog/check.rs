//! Checks step by step whether a model can be used.

use std::time::Duration;

use sallyport_contract::text;
use serde::Serialize;
use serde_json::{Value, json};

use super::{CatalogModel, ModelCatalogError, list_models};
use crate::{
    chat::{ChatMessage, ModelError, ModelReply, ModelToolDefinition, TokenUsage},
    chat_model::{ChatModel, ModelRequest},
    connect_without_retries,
    endpoint::{EndpointSettingsError, ModelEndpoint, ToolCallingMode},
};

/// Longest wait for one answer of a check. A local model may have to be loaded first.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(120);

/// Most characters of an answer that are shown.
const SHOWN_CHARS_MAX: usize = 60;

/// Least similarity (Jaro-Winkler, up to 1) at which a listed name is suggested for a mistyped one.
const SIMILARITY_MIN: f64 = 0.8;

/// Most names that are suggested for a mistyped one.
const SUGGESTIONS_MAX: usize = 3;

/// The tool that the model is asked to call.
const PROBE_TOOL: &str = "repeat";

/// One step of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelCheckStep {
    /// A stable id: `address`, `credentials`, `model`, `answer` or `tool-call`.
    pub id: &'static str,
    /// The result of the step.
    pub status: ModelCheckStatus,
    /// What the step found, in human-readable form.
    pub detail: String,
    /// How the user can fix it, if the step failed.
    pub remedy: Option<String>,
}

/// The result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelCheckStatus {
    /// The step succeeded.
    Ok,
    /// The step failed.
    Failed,
    /// The step was not tried, or its result could not be determined.
    Skipped,
}

/// The ids of the steps, in their order.
const STEPS: [&str; 5] = ["address", "credentials", "model", "answer", "tool-call"];

/// The result of a step: its status, what it found, and how the user can fix it.
type StepResult = (ModelCheckStatus, String, Option<String>);

/// The result of a request; `None` if the request was not made.
type CallAttempt = Option<Result<ModelReply, ModelError>>;

/// Checks an endpoint in the order of a conversation.
///
/// The steps: the address is reachable, the credentials are accepted, the model is known, it
/// answers, it calls a tool. No request is retried. The answer and the call cost a few tokens.
pub async fn check_endpoint(endpoint: &ModelEndpoint) -> Vec<ModelCheckStep> {
    let time_max = endpoint.time_max.min(ANSWER_TIME_MAX);
    let model = match connect_without_retries(ModelEndpoint { time_max, ..endpoint.clone() }) {
        Ok(model) => model,
        Err(error) => return unusable_settings_steps(&error),
    };
    let listed = match list_models(endpoint).await {
        Ok(listed) => Ok(listed),
        Err(ModelCatalogError::Settings(error)) => return unusable_settings_steps(&error),
        Err(ModelCatalogError::Model(error)) => Err(error),
    };
    // Only an unreachable address ends the check here, because a key may be valid for answers and
    // not for the list.
    let answer = match listed {
        Err(ModelError::Unreachable { .. }) => None,
        _ => Some(ask_model(&*model, "Answer with the single word: ready", &[]).await),
    };
    let call = match answer {
        Some(Ok(_)) => Some(ask_model(&*model, CALL_PROMPT, &[probe_tool()]).await),
        _ => None,
    };
    name_steps([
        check_address(&listed, &answer),
        check_credentials(endpoint, &listed, &answer),
        check_model_name(endpoint, &listed, &answer),
        check_answer(&answer),
        check_tool_call(endpoint, &call),
    ])
}

fn name_steps(results: [StepResult; STEPS.len()]) -> Vec<ModelCheckStep> {
    let step = |(id, (status, detail, remedy))| ModelCheckStep { id, status, detail, remedy };
    STEPS.into_iter().zip(results).map(step).collect()
}

/// The prompt that asks the model for a call.
const CALL_PROMPT: &str = "Call the tool `repeat` once, with the argument `text` set to `ready`.";

fn probe_tool() -> ModelToolDefinition {
    ModelToolDefinition {
        name: PROBE_TOOL.to_owned(),
        description: "Repeats a text.".to_owned(),
        parameters: json!({
            "type": "object",
            "properties": { "text": { "type": "string", "description": "The text." } },
            "required": ["text"],
        }),
    }
}

async fn ask_model(
    model: &dyn ChatModel,
    words: &str,
    tools: &[ModelToolDefinition],
) -> Result<ModelReply, ModelError> {
    let messages = [ChatMessage::user(words)];
    let request = ModelRequest { messages: &messages, tools, ..ModelRequest::default() };
    model.generate(request, &mut |_| {}).await
}

/// Returns the steps for settings that cannot work.
fn unusable_settings_steps(error: &EndpointSettingsError) -> Vec<ModelCheckStep> {
    let id = match error {
        EndpointSettingsError::Key => "credentials",
        EndpointSettingsError::Model => "model",
        EndpointSettingsError::Temperature => "answer",
        _ => "address",
    };
    name_steps(STEPS.map(|step| match step == id {
        true => failed_step(error.to_string(), error.hint()),
        false => skipped_step("the settings cannot work"),
    }))
}

fn check_address(
    listed: &Result<Vec<CatalogModel>, ModelError>,
    answer: &CallAttempt,
) -> StepResult {
    match (listed, answer) {
        (Err(error @ ModelError::Unreachable { .. }), _)
        | (_, Some(Err(error @ ModelError::Unreachable { .. }))) => error_step(error),
        _ => ok_step("the server answers"),
    }
}

fn check_credentials(
    endpoint: &ModelEndpoint,
    listed: &Result<Vec<CatalogModel>, ModelError>,
    answer: &CallAttempt,
) -> StepResult {
    match (listed, answer) {
        (_, Some(Err(error @ ModelError::Credentials { .. }))) => error_step(error),
        (Ok(_), _) | (_, Some(Ok(_))) if endpoint.key.is_some() => ok_step("the key is accepted"),
        (Ok(_), _) | (_, Some(Ok(_))) => ok_step("none are set, and none are asked for"),
        (Err(error @ ModelError::Credentials { .. }), _) => error_step(error),
        _ => skipped_step("nothing was accepted that would show it"),
    }
}

fn check_model_name(
    endpoint: &ModelEndpoint,
    listed: &Result<Vec<CatalogModel>, ModelError>,
    answer: &CallAttempt,
) -> StepResult {
    let name = text::escape_line(endpoint.model.trim());
    let Ok(listed) = listed else {
        return match answer {
            Some(Ok(_)) => ok_step(format!("{name} answers; the server gives no list")),
            _ => skipped_step("the server gives no list of its models"),
        };
    };
    match (listed.iter().find(|model| is_model_named(model, &name)), answer) {
        (Some(model), _) => ok_step(describe_model(model)),
        (None, Some(Ok(_))) => ok_step(format!("{name} answers, though it is not listed")),
        (None, _) => failed_step(
            format!("{name} is not among the {} models of the server", listed.len()),
            suggest_names(&name, listed),
        ),
    }
}

/// Ollama lists the newest version with the tag `:latest`; Gemini puts `models/` before the name.
fn is_model_named(model: &CatalogModel, name: &str) -> bool {
    let name = name.strip_prefix("models/").unwrap_or(name);
    model.name == name || model.name.strip_suffix(":latest") == Some(name)
}

fn describe_model(model: &CatalogModel) -> String {
    match model.context_tokens {
        Some(tokens) => format!("{} is listed, with room for {tokens} tokens", model.name),
        None => format!("{} is listed", model.name),
    }
}

fn suggest_names(name: &str, listed: &[CatalogModel]) -> String {
    let similarity = |model: &CatalogModel| strsim::jaro_winkler(name, &model.name);
    let mut alike: Vec<&CatalogModel> =
        listed.iter().filter(|m| similarity(m) >= SIMILARITY_MIN).collect();
    alike.sort_by(|a, b| similarity(b).total_cmp(&similarity(a)));
    let names: Vec<&str> = alike.iter().take(SUGGESTIONS_MAX).map(|m| m.name.as_str()).collect();
    match names.is_empty() {
        true => "give one of the names that `model list` shows".to_owned(),
        false => format!("did you mean {}?", names.join(" or ")),
    }
}

fn check_answer(answer: &CallAttempt) -> StepResult {
    match answer {
        None => skipped_step("a step before it failed"),
        Some(Err(error)) => error_step(error),
        Some(Ok(reply)) if reply.message.text.trim().is_empty() => failed_step(
            "the answer has no words",
            "allow more tokens for one answer, or choose another model",
        ),
        Some(Ok(reply)) => {
            let words = text::escape_excerpt(reply.message.text.trim(), SHOWN_CHARS_MAX);
            ok_step(format!("it says \"{words}\"{}", describe_usage(reply.usage.as_ref())))
        }
    }
}

fn describe_usage(usage: Option<&TokenUsage>) -> String {
    match usage {
        Some(TokenUsage { input_tokens, output_tokens, .. }) => {
            format!(" ({input_tokens} tokens read, {output_tokens} written)")
        }
        None => String::new(),
    }
}

fn check_tool_call(endpoint: &ModelEndpoint, call: &CallAttempt) -> StepResult {
    let remedy = match endpoint.tool_calling {
        ToolCallingMode::Native => "set tools = \"json\" for this model, or choose another one",
        ToolCallingMode::Json => "choose another model: this one does not keep to the JSON form",
    };
    match call {
        None => skipped_step("a step before it failed"),
        Some(Err(error @ ModelError::Refused { .. })) => failed_step(error.to_string(), remedy),
        Some(Err(error)) => error_step(error),
        Some(Ok(reply)) => match find_call_problem(reply) {
            None => ok_step("it calls a tool with good arguments"),
            Some(problem) => failed_step(problem, remedy),
        },
    }
}

fn find_call_problem(reply: &ModelReply) -> Option<&'static str> {
    let Some(call) = reply.message.calls.iter().find(|call| call.name == PROBE_TOOL) else {
        return Some("it answers in words where it should call a tool");
    };
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    let is_good = arguments.get("text").is_some_and(Value::is_string);
    (!is_good).then_some("it calls a tool, but its arguments do not fit the schema")
}

fn ok_step(detail: impl Into<String>) -> StepResult {
    (ModelCheckStatus::Ok, detail.into(), None)
}

fn failed_step(detail: impl Into<String>, remedy: impl Into<String>) -> StepResult {
    (ModelCheckStatus::Failed, detail.into(), Some(remedy.into()))
}

fn skipped_step(detail: &str) -> StepResult {
    (ModelCheckStatus::Skipped, detail.to_owned(), None)
}

fn error_step(error: &ModelError) -> StepResult {
    failed_step(error.to_string(), error.hint())
}
