//! Recordings of live services, where they are at hand.

use std::path::{Path, PathBuf};

use sallyport_model::{AssistantMessage, CallRequest, Message, ToolDefinition, ToolResult};
use saphyr::{LoadableYamlNode, Yaml};
use serde_json::Value;

/// One request with the answer that a live service gave.
pub(crate) struct Exchange {
    pub(crate) file: String,
    pub(crate) request: Value,
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) body: String,
}

/// Returns the folder of recordings: beside the repository, not in it.
pub(crate) fn folder() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/cassettes");
    folder.is_dir().then_some(folder)
}

/// Returns all exchanges with `chat/completions`, and how many others there were.
pub(crate) fn exchanges(folder: &Path) -> (Vec<Exchange>, usize) {
    let mut files = Vec::new();
    collect(folder, &mut files);
    files.sort();
    let (mut exchanges, mut others) = (Vec::new(), 0);
    for path in &files {
        let text = std::fs::read_to_string(path).unwrap();
        let file = path.strip_prefix(folder).unwrap().display().to_string();
        for document in Yaml::load_from_str(&text).unwrap() {
            match exchange(&document, &file) {
                Some(exchange) => exchanges.push(exchange),
                None => others += 1,
            }
        }
    }
    (exchanges, others)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
}

fn exchange(document: &Yaml<'_>, file: &str) -> Option<Exchange> {
    let when = document.as_mapping_get("when")?;
    let then = document.as_mapping_get("then")?;
    let path = when.as_mapping_get("path")?.as_str()?;
    if !path.ends_with("/chat/completions") {
        return None;
    }
    let headers = then.as_mapping_get("header")?.as_sequence()?;
    let content_type = headers
        .iter()
        .find(|header| header.as_mapping_get("name").and_then(Yaml::as_str) == Some("content-type"))
        .and_then(|header| header.as_mapping_get("value")?.as_str());
    Some(Exchange {
        file: file.to_owned(),
        request: serde_json::from_str(when.as_mapping_get("body")?.as_str()?).unwrap(),
        status: then.as_mapping_get("status")?.as_integer()?.try_into().unwrap(),
        content_type: content_type.unwrap_or("").to_owned(),
        body: then.as_mapping_get("body")?.as_str()?.to_owned(),
    })
}

/// Reads a recorded conversation into our types; the error says what they cannot hold.
pub(crate) fn messages(request: &Value) -> Result<Vec<Message>, &'static str> {
    request["messages"].as_array().unwrap().iter().map(message).collect()
}

fn message(message: &Value) -> Result<Message, &'static str> {
    let text = text(&message["content"])?;
    Ok(match message["role"].as_str().unwrap() {
        "system" => Message::System { text },
        "user" => Message::user(text),
        "assistant" => {
            Message::Assistant(AssistantMessage { text, calls: calls(message), opaque: None })
        }
        "tool" => Message::Tool(ToolResult {
            call_id: message["tool_call_id"].as_str().unwrap().to_owned(),
            name: String::new(),
            content: text,
            failed: false,
        }),
        _ => return Err("a role that is not ours"),
    })
}

/// Text, or parts that are all text; pictures and documents are not in our types.
pub(crate) fn text(content: &Value) -> Result<String, &'static str> {
    match content {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => {
            let texts = parts.iter().map(|part| part["text"].as_str());
            texts.collect::<Option<String>>().ok_or("content that is not text")
        }
        _ => Err("content that is not text"),
    }
}

pub(crate) fn calls(message: &Value) -> Vec<CallRequest> {
    let string = |value: &Value| value.as_str().unwrap().to_owned();
    let call = |call: &Value| CallRequest {
        id: string(&call["id"]),
        name: string(&call["function"]["name"]),
        arguments: string(&call["function"]["arguments"]),
    };
    message["tool_calls"].as_array().into_iter().flatten().map(call).collect()
}

pub(crate) fn tools(request: &Value) -> Vec<ToolDefinition> {
    let tool = |tool: &Value| ToolDefinition {
        name: tool["function"]["name"].as_str().unwrap().to_owned(),
        description: tool["function"]["description"].as_str().unwrap().to_owned(),
        parameters: tool["function"]["parameters"].clone(),
    };
    request["tools"].as_array().into_iter().flatten().map(tool).collect()
}
