//! A provider that answers with a Gemini model, over HTTP to one address.
//!
//! The plugin never receives the API key. The host adds it to a header of every allowed request.
//!
//! Suggested reading order: `request`, `parts`, `answer`, `failure`.

mod answer;
mod failure;
mod halves;
mod parts;
mod request;

use std::time::Duration;

use sallyport_sdk::{
    http,
    provider::{Answer, ProviderError, Request},
    settings,
};

use answer::Progress;

/// Maximum duration of a request. Long thinking takes minutes; the host's limit on the run is
/// usually shorter.
const TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// Maximum size of an answer, including its JSON, in bytes.
const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Answers the last message of the conversation, and shows the text as it arrives.
fn generate(request: Request) -> Result<Answer, ProviderError> {
    let model = match request.settings.model.as_deref().map(str::trim) {
        None | Some("") => settings::get("model")?,
        Some(model) => model.to_owned(),
    };
    let base_url: String = settings::get("base_url")?;
    let shows_thoughts = settings::get::<Option<bool>>("show_thoughts")?.unwrap_or(false);
    let url = format!("{}/v1beta/{}", base_url.trim_end_matches('/'), request::path(&model)?);
    let answer = http::post(url)
        .header("Accept", "text/event-stream")
        .json(request::body(&request, &model, shows_thoughts))
        .timeout(TIMEOUT)
        .body_bytes_max(ANSWER_BYTES_MAX)
        .open()?;
    match answer.status {
        200..=299 => read(answer.events()),
        _ => Err(failure::of(&answer.whole()?)),
    }
}

/// Reads an answer to its end. No event is marked as the last, and a finish reason may come more
/// than once with text in between. So the answer is complete if a reason was received and the
/// stream ended.
fn read(events: http::Events) -> Result<Answer, ProviderError> {
    let mut progress = Progress::default();
    for event in events {
        progress.take(&event?.data)?;
    }
    progress.finish()
}

sallyport_sdk::export_plugin!(provider = generate);

#[cfg(test)]
mod recordings;
#[cfg(test)]
mod tests;
