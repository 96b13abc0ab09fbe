//! Reads the model's answer: the summary, and the sources that it cites.

use sallyport_sdk::{
    SignIn, ToolError,
    http::{HttpError, Response},
    prelude::*,
};
use serde::Serialize;
use service_answers::FailedAnswer;

/// What the service adds to the addresses of sources.
const TRACKING: &str = "utm_source=openai";

/// What was found.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Findings {
    /// The summary.
    summary: String,
    /// The pages that the summary cites, in their order, each once.
    sources: Vec<CitedSource>,
    /// What to know about the summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

/// A page that the summary cites.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct CitedSource {
    title: String,
    url: String,
}

/// The answer, as the service writes it.
#[derive(Deserialize)]
struct ServiceAnswer {
    status: Option<String>,
    #[serde(default)]
    output: Vec<OutputItem>,
    error: Option<AnswerError>,
    incomplete_details: Option<IncompleteDetails>,
}

#[derive(Deserialize)]
struct AnswerError {
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
struct IncompleteDetails {
    #[serde(default)]
    reason: String,
}

/// A search, a thought or a message. Only messages have content that is a list of parts.
#[derive(Deserialize)]
struct OutputItem {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    content: Value,
}

#[derive(Deserialize)]
struct ContentPart {
    text: Option<String>,
    refusal: Option<String>,
    #[serde(default)]
    annotations: Vec<Annotation>,
}

#[derive(Deserialize)]
struct Annotation {
    url: Option<String>,
    title: Option<String>,
}

/// Returns what was found.
pub(crate) fn read_answer(response: &Response, model: &str) -> Result<Findings, ToolError> {
    if !(200..=299).contains(&response.status) {
        return Err(read_error(&FailedAnswer::read(response), model));
    }
    let answer: ServiceAnswer = response.json()?;
    if let Some(error) = answer.error {
        return Err(ToolError::Unavailable(format!("the model failed: {}", error.message)));
    }
    let (mut texts, mut sources) = (Vec::new(), Vec::new());
    for part in answer.output.into_iter().filter(|item| item.kind == "message").flat_map(parts) {
        if let Some(refusal) = part.refusal {
            return Err(ToolError::Failed(format!("the model refuses the topic: {refusal}")));
        }
        texts.extend(part.text);
        part.annotations.into_iter().filter_map(read_source).for_each(|source| {
            if !sources.iter().any(|known: &CitedSource| known.url == source.url) {
                sources.push(source);
            }
        });
    }
    let summary = texts.join("\n\n");
    let reason = answer.incomplete_details.map(|details| details.reason).unwrap_or_default();
    if summary.trim().is_empty() {
        return Err(no_text(answer.status.as_deref().unwrap_or("unknown"), &reason));
    }
    let note = match (reason.is_empty(), sources.is_empty()) {
        (false, _) => Some("The summary is cut off: the model reached its limit."),
        (true, true) => Some("The model cites no source, so nothing of this is confirmed."),
        (true, false) => None,
    };
    Ok(Findings { summary, sources, note })
}

fn parts(message: OutputItem) -> Vec<ContentPart> {
    Vec::deserialize(message.content).unwrap_or_default()
}

fn no_text(status: &str, reason: &str) -> ToolError {
    let separator = if reason.is_empty() { "" } else { ": " };
    let body = format!("there is no text in it, and its status is {status}{separator}{reason}");
    HttpError::Body { reason: body }.into()
}

/// The cited page of an annotation; `None` if it is something else.
fn read_source(annotation: Annotation) -> Option<CitedSource> {
    let url =
        annotation.url.filter(|url| url.starts_with("https://") || url.starts_with("http://"))?;
    let url = [format!("?{TRACKING}"), format!("&{TRACKING}")]
        .iter()
        .find_map(|end| url.strip_suffix(end))
        .unwrap_or(&url)
        .to_owned();
    let title = annotation.title.filter(|title| !title.trim().is_empty());
    Some(CitedSource { title: title.unwrap_or_else(|| url.clone()), url })
}

fn read_error(failed: &FailedAnswer, model: &str) -> ToolError {
    let said = &failed.said;
    match failed.status {
        401 => ToolError::AuthRequired(SignIn::new(format!(
            "the service refuses the key; check the secret openai: {said}"
        ))),
        429 if failed.is_about("quota") => {
            ToolError::Failed(format!("the account has no credit left: {said}"))
        }
        429 => ToolError::Unavailable(format!("{said}{}", failed.retry_text)),
        400 | 404 | 422 if failed.is_about("tool") || says_search(said) => {
            ToolError::Failed(format!(
                "{model} has no web search at this endpoint; set model or base_url of \
                 chatgpt-research to one that has it: {said}"
            ))
        }
        408 | 500.. => ToolError::Unavailable(format!("{said}{}", failed.retry_text)),
        _ => ToolError::Failed(format!("the service refuses the request for {model}: {said}")),
    }
}

/// Whether a refusal is about the search. Servers that have no such tool name it in their own ways.
fn says_search(said: &str) -> bool {
    let said = said.to_ascii_lowercase();
    said.contains("web_search") || said.contains("tool")
}
