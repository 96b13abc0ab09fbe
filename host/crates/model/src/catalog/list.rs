//! Fetches the list of models from a server.

use std::{collections::BTreeMap, time::Duration};

use sallyport_contract::text;
use serde::Serialize;
use serde_json::Value;

use super::ModelCatalogError;
use crate::{
    chat::ModelError,
    endpoint::ModelEndpoint,
    protocol::ProviderProtocol,
    wire::{self, ProviderConnection},
};

/// Longest wait for a list, or for one page of it. No model has to run for it.
const LIST_TIME_MAX: Duration = Duration::from_secs(30);

/// Most pages of a list. A page contains up to 1000 models, more than any provider has.
const PAGES_MAX: usize = 10;

/// Most models of a list. An aggregator lists a few hundred.
const MODELS_MAX: usize = 10_000;

/// Longest name that is shown, in characters. The longest known names are file paths.
const NAME_CHARS_MAX: usize = 200;

/// A model on a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CatalogModel {
    /// The model's name in requests.
    pub name: String,
    /// The provider's display name, if it differs from `name`.
    pub title: Option<String>,
    /// The longest conversation in tokens, if the server states it.
    pub context_tokens: Option<u64>,
    /// The longest answer in tokens, if the server states it.
    pub output_tokens: Option<u64>,
}

/// Returns the models of a server, sorted by name. The endpoint's own model is ignored and may be
/// empty.
///
/// # Errors
///
/// Returns an error if the settings cannot work, or if the server gives no list.
pub async fn list_models(endpoint: &ModelEndpoint) -> Result<Vec<CatalogModel>, ModelCatalogError> {
    let headers = wire::auth_headers(endpoint)?;
    let mut listed = BTreeMap::new();
    let mut after = None;
    for _ in 0..PAGES_MAX {
        let mut url = endpoint.server_url(list_path(endpoint.protocol))?;
        for (key, value) in list_query(endpoint.protocol, after.as_deref()) {
            url.query_pairs_mut().append_pair(key, value);
        }
        let page =
            fetch_page(&ProviderConnection::with_url(endpoint, url, headers.clone())).await?;
        let entries = list_entries(&page).into_iter().flatten();
        listed.extend(entries.filter_map(parse_model).map(|model| (model.name.clone(), model)));
        after = next_cursor(&page);
        if after.is_none() || listed.len() >= MODELS_MAX {
            break;
        }
    }
    Ok(listed.into_values().take(MODELS_MAX).collect())
}

async fn fetch_page(connection: &ProviderConnection) -> Result<Value, ModelError> {
    let provider = connection.provider();
    let answer = async { connection.read_json(connection.get().await?).await };
    let page = provider.run_with_timeout(LIST_TIME_MAX, answer).await?;
    match list_entries(&page) {
        Some(_) => Ok(page),
        None => Err(provider.protocol_error("there is no list of models in the answer")),
    }
}

fn list_path(protocol: ProviderProtocol) -> &'static str {
    match protocol {
        ProviderProtocol::Ollama => "api/tags",
        _ => "models",
    }
}

fn list_query(protocol: ProviderProtocol, after: Option<&str>) -> Vec<(&'static str, &str)> {
    let (size, token) = match protocol {
        ProviderProtocol::Anthropic => (("limit", "1000"), "after_id"),
        ProviderProtocol::Gemini => (("pageSize", "1000"), "pageToken"),
        ProviderProtocol::OpenAiChat
        | ProviderProtocol::OpenAiResponses
        | ProviderProtocol::Ollama => return Vec::new(),
    };
    [Some(size), after.map(|after| (token, after))].into_iter().flatten().collect()
}

/// Returns the cursor of the next page, if there is one.
fn next_cursor(page: &Value) -> Option<String> {
    let string_at =
        |key: &str| page.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let has_more = page.get("has_more") == Some(&Value::Bool(true));
    string_at("nextPageToken").or(string_at("last_id").filter(|_| has_more)).map(str::to_owned)
}

/// Returns the entries of a list: under `data` or `models`, or the whole answer. Some servers write
/// an empty list as null.
fn list_entries(page: &Value) -> Option<&[Value]> {
    match page.get("data").or_else(|| page.get("models")).unwrap_or(page) {
        Value::Array(entries) => Some(entries),
        Value::Null if page.is_object() => Some(&[]),
        _ => None,
    }
}

/// Reads an entry in any server's form; `None` if the model is not for conversations.
fn parse_model(entry: &Value) -> Option<CatalogModel> {
    let string_at = |key: &str| entry.get(key).and_then(Value::as_str);
    let name = string_at("id").or_else(|| string_at("name")).or_else(|| string_at("model"))?;
    let name = display_name(name.strip_prefix("models/").unwrap_or(name));
    let title = string_at("display_name").or_else(|| string_at("displayName")).map(display_name);
    let is_meant = !name.is_empty() && can_generate_content(entry);
    is_meant.then(|| CatalogModel {
        title: title.filter(|title| *title != name),
        context_tokens: positive_number(entry, &CONTEXT_POINTERS),
        output_tokens: positive_number(entry, &OUTPUT_POINTERS),
        name,
    })
}

/// JSON pointers to the longest conversation. The loaded context is read before the model's
/// possible one.
const CONTEXT_POINTERS: [&str; 8] = [
    "/meta/n_ctx",
    "/context_length",
    "/context_window",
    "/max_model_len",
    "/max_context_length",
    "/max_input_tokens",
    "/inputTokenLimit",
    "/meta/n_ctx_train",
];

/// JSON pointers to the longest answer.
const OUTPUT_POINTERS: [&str; 4] = [
    "/outputTokenLimit",
    "/top_provider/max_completion_tokens",
    "/max_completion_tokens",
    "/max_tokens",
];

fn positive_number(entry: &Value, pointers: &[&str]) -> Option<u64> {
    pointers.iter().find_map(|pointer| entry.pointer(pointer)?.as_u64()).filter(|&n| n > 0)
}

/// Returns true if the model generates content. Gemini also lists models that do not.
fn can_generate_content(entry: &Value) -> bool {
    let methods = entry.get("supportedGenerationMethods").and_then(Value::as_array);
    methods.is_none_or(|methods| methods.iter().any(|method| method == "generateContent"))
}

fn display_name(name: &str) -> String {
    text::escape_excerpt(name.trim(), NAME_CHARS_MAX)
}
