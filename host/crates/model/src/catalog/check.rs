//! Checks step by step whether a model can be used.

use std::time::Duration;

use sallyport_contract::text;
use serde::Serialize;
use serde_json::{Value, json};

use super::{CatalogError, Listed, models};
use crate::{
    chat::{ChatModel, Message, ModelError, Reply, Request, ToolDefinition, Usage},
    endpoint::{Endpoint, SettingsError, ToolCalling},
    without_retries,
};

/// Longest wait for one answer of a check. A local model may have to be loaded first.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(120);

/// Most characters of an answer that are shown.
const SHOWN_CHARS_MAX: usize = 60;

/// Least similarity (Jaro-Winkler, up to 1) at which a listed name is suggested for a mistyped one.
const LIKENESS_MIN: f64 = 0.8;

/// Most names that are suggested for a mistyped one.
const PROPOSALS_MAX: usize = 3;

/// The tool that the model is asked to call.
const TOOL: &str = "repeat";

/// One step of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// A stable id: `address`, `credentials`, `model`, `answer` or `tool-call`.
    pub id: &'static str,
    /// The result of the step.
    pub status: Status,
    /// What the step found, in human-readable form.
    pub detail: String,
    /// How the user can fix it, if the step failed.
    pub remedy: Option<String>,
}

/// The result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// The step succeeded.
    Ok,
    /// The step failed.
    Failed,
    /// The step was not tried, or its result could not be determined.
    Skipped,
}

/// The result of a request; `None` if the request was not made.
type Tried = Option<Result<Reply, ModelError>>;

/// Checks an endpoint in the order of a conversation.
///
/// The steps: the address is reachable, the credentials are accepted, the model is known, it
/// answers, it calls a tool. No request is retried. The answer and the call cost a few tokens.
pub async fn check(endpoint: &Endpoint) -> Vec<Step> {
    let time_max = endpoint.time_max.min(ANSWER_TIME_MAX);
    let model = match without_retries(Endpoint { time_max, ..endpoint.clone() }) {
        Ok(model) => model,
        Err(error) => return unusable(&error),
    };
    let listed = match models(endpoint).await {
        Ok(listed) => Ok(listed),
        Err(CatalogError::Settings(error)) => return unusable(&error),
        Err(CatalogError::Model(error)) => Err(error),
    };
    // Only an unreachable address ends the check here, because a key may be valid for answers and
    // not for the list.
    let answer = match listed {
        Err(ModelError::Unreachable { .. }) => None,
        _ => Some(ask(&*model, "Answer with the single word: ready", &[]).await),
    };
    let call = match answer {
        Some(Ok(_)) => Some(ask(&*model, CALL_WORDS, &[tool()]).await),
        _ => None,
    };
    vec![
        address(&listed, &answer),
        credentials(endpoint, &listed, &answer),
        known(endpoint, &listed, &answer),
        answered(&answer),
        called(endpoint, &call),
    ]
}

/// The prompt that asks the model for a call.
const CALL_WORDS: &str = "Call the tool `repeat` once, with the argument `text` set to `ready`.";

fn tool() -> ToolDefinition {
    ToolDefinition {
        name: TOOL.to_owned(),
        description: "Repeats a text.".to_owned(),
        parameters: json!({
            "type": "object",
            "properties": { "text": { "type": "string", "description": "The text." } },
            "required": ["text"],
        }),
    }
}

async fn ask(
    model: &dyn ChatModel,
    words: &str,
    tools: &[ToolDefinition],
) -> Result<Reply, ModelError> {
    let messages = [Message::user(words)];
    let request = Request { messages: &messages, tools, ..Request::default() };
    model.generate(request, &mut |_| {}).await
}

/// Returns the steps for settings that cannot work.
fn unusable(error: &SettingsError) -> Vec<Step> {
    let id = match error {
        SettingsError::Key => "credentials",
        SettingsError::Model => "model",
        SettingsError::Temperature => "answer",
        _ => "address",
    };
    let step = |step| match step == id {
        true => failed(step, error.to_string(), error.hint()),
        false => skipped(step, "the settings cannot work"),
    };
    ["address", "credentials", "model", "answer", "tool-call"].map(step).to_vec()
}

fn address(listed: &Result<Vec<Listed>, ModelError>, answer: &Tried) -> Step {
    match (listed, answer) {
        (Err(error @ ModelError::Unreachable { .. }), _)
        | (_, Some(Err(error @ ModelError::Unreachable { .. }))) => because("address", error),
        _ => ok("address", "the server answers"),
    }
}

fn credentials(
    endpoint: &Endpoint,
    listed: &Result<Vec<Listed>, ModelError>,
    answer: &Tried,
) -> Step {
    match (listed, answer) {
        (_, Some(Err(error @ ModelError::Credentials { .. }))) => because("credentials", error),
        (Ok(_), _) | (_, Some(Ok(_))) if endpoint.key.is_some() => {
            ok("credentials", "the key is accepted")
        }
        (Ok(_), _) | (_, Some(Ok(_))) => ok("credentials", "none are set, and none are asked for"),
        (Err(error @ ModelError::Credentials { .. }), _) => because("credentials", error),
        _ => skipped("credentials", "nothing was accepted that would show it"),
    }
}

fn known(endpoint: &Endpoint, listed: &Result<Vec<Listed>, ModelError>, answer: &Tried) -> Step {
    let name = text::escape_line(endpoint.model.trim());
    let Ok(listed) = listed else {
        return match answer {
            Some(Ok(_)) => ok("model", format!("{name} answers; the server gives no list")),
            _ => skipped("model", "the server gives no list of its models"),
        };
    };
    match (listed.iter().find(|model| is_named(model, &name)), answer) {
        (Some(model), _) => ok("model", described(model)),
        (None, Some(Ok(_))) => ok("model", format!("{name} answers, though it is not listed")),
        (None, _) => failed(
            "model",
            format!("{name} is not among the {} models of the server", listed.len()),
            proposal(&name, listed),
        ),
    }
}

/// Ollama lists the newest version with the tag `:latest`; Gemini puts `models/` before the name.
fn is_named(model: &Listed, name: &str) -> bool {
    let name = name.strip_prefix("models/").unwrap_or(name);
    model.name == name || model.name.strip_suffix(":latest") == Some(name)
}

fn described(model: &Listed) -> String {
    match model.context_tokens {
        Some(tokens) => format!("{} is listed, with room for {tokens} tokens", model.name),
        None => format!("{} is listed", model.name),
    }
}

fn proposal(name: &str, listed: &[Listed]) -> String {
    let likeness = |model: &Listed| strsim::jaro_winkler(name, &model.name);
    let mut alike: Vec<&Listed> = listed.iter().filter(|m| likeness(m) >= LIKENESS_MIN).collect();
    alike.sort_by(|a, b| likeness(b).total_cmp(&likeness(a)));
    let names: Vec<&str> = alike.iter().take(PROPOSALS_MAX).map(|m| m.name.as_str()).collect();
    match names.is_empty() {
        true => "give one of the names that `model list` shows".to_owned(),
        false => format!("did you mean {}?", names.join(" or ")),
    }
}

fn answered(answer: &Tried) -> Step {
    match answer {
        None => skipped("answer", "a step before it failed"),
        Some(Err(error)) => because("answer", error),
        Some(Ok(reply)) if reply.message.text.trim().is_empty() => failed(
            "answer",
            "the answer has no words",
            "allow more tokens for one answer, or choose another model",
        ),
        Some(Ok(reply)) => {
            let words = text::escape_excerpt(reply.message.text.trim(), SHOWN_CHARS_MAX);
            ok("answer", format!("it says \"{words}\"{}", counted(reply.usage.as_ref())))
        }
    }
}

fn counted(usage: Option<&Usage>) -> String {
    match usage {
        Some(Usage { input_tokens, output_tokens, .. }) => {
            format!(" ({input_tokens} tokens read, {output_tokens} written)")
        }
        None => String::new(),
    }
}

fn called(endpoint: &Endpoint, call: &Tried) -> Step {
    let remedy = match endpoint.tool_calling {
        ToolCalling::Native => "set tools = \"json\" for this model, or choose another one",
        ToolCalling::Json => "choose another model: this one does not keep to the JSON form",
    };
    match call {
        None => skipped("tool-call", "a step before it failed"),
        Some(Err(error @ ModelError::Refused { .. })) => {
            failed("tool-call", error.to_string(), remedy)
        }
        Some(Err(error)) => because("tool-call", error),
        Some(Ok(reply)) => match what_is_wrong(reply) {
            None => ok("tool-call", "it calls a tool with good arguments"),
            Some(problem) => failed("tool-call", problem, remedy),
        },
    }
}

fn what_is_wrong(reply: &Reply) -> Option<&'static str> {
    let Some(call) = reply.message.calls.iter().find(|call| call.name == TOOL) else {
        return Some("it answers in words where it should call a tool");
    };
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    let is_good = arguments.get("text").is_some_and(Value::is_string);
    (!is_good).then_some("it calls a tool, but its arguments do not fit the schema")
}

fn ok(id: &'static str, detail: impl Into<String>) -> Step {
    Step { id, status: Status::Ok, detail: detail.into(), remedy: None }
}

fn failed(id: &'static str, detail: impl Into<String>, remedy: impl Into<String>) -> Step {
    Step { id, status: Status::Failed, detail: detail.into(), remedy: Some(remedy.into()) }
}

fn skipped(id: &'static str, detail: &str) -> Step {
    Step { id, status: Status::Skipped, detail: detail.to_owned(), remedy: None }
}

fn because(id: &'static str, error: &ModelError) -> Step {
    failed(id, error.to_string(), error.hint())
}
