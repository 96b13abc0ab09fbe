//! Researches a topic with a model that searches the web.
//!
//! `chatgpt-research.json` describes the action; this component runs it. The host adds the key to the
//! request, so the component never holds it.

mod answer;
mod request;

use std::time::Duration;

use sallyport_sdk::{http, prelude::*, settings};
use service_answers::FailedAnswer;

use answer::Findings;

/// Longest wait for an answer: a comprehensive search takes minutes. The host's limit on a call is
/// usually shorter.
const TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// A topic to research.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ResearchTopic {
    topic: String,
    #[serde(default)]
    depth: Depth,
}

/// How much is searched and written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Depth {
    Quick,
    #[default]
    Standard,
    Comprehensive,
}

/// Researches a topic using web search.
#[tool(read_only, idempotent = false, open_world)]
fn research_topic(args: ResearchTopic) -> Result<Findings, ToolError> {
    let model: String = settings::get("model")?;
    let base: String = settings::get("base_url")?;
    let url = format!("{}/responses", base.trim_end_matches('/'));
    let mut body = request::build_body(&model, &args);
    let send = |body: &Value| http::post(url.clone()).json(body.clone()).timeout(TIMEOUT).send();
    let mut response = send(&body)?;
    // A model that does not think refuses to be told how much.
    if response.status == 400 && FailedAnswer::read(&response).is_about("reasoning") {
        request::leave_out_reasoning(&mut body);
        response = send(&body)?;
    }
    answer::read_answer(&response, &model)
}

sallyport_sdk::export_plugin!(tools = [research_topic]);

#[cfg(test)]
mod tests;
