//! `chat/completions`.

use std::collections::BTreeMap;

use sallyport_model::{
    ChatMessage, FileAttachment, FinishReason, ModelCallRequest, ModelToolDefinition,
    ProviderProtocol,
};
use serde_json::{Value, json};

use super::{
    Heard, Wire, assistant, call, data_url, finish, items, result, string, system, tokens, tool,
    user, values,
};
use crate::normal::canonical;

pub(super) struct Chat;

/// Fields that a provider adds to a message and expects back.
const SEALED: [&str; 5] = ["type", "text", "signature", "data", "index"];

impl Wire for Chat {
    fn protocol(&self) -> ProviderProtocol {
        ProviderProtocol::OpenAiChat
    }

    fn method(&self) -> &'static str {
        "/chat/completions"
    }

    fn conversation(&self, request: &Value) -> Result<Vec<ChatMessage>, &'static str> {
        items(&request["messages"]).map(message).collect()
    }

    fn tools(&self, request: &Value) -> Vec<ModelToolDefinition> {
        items(&request["tools"]).map(|t| tool(&t["function"], "parameters")).collect()
    }

    fn kept(&self, request: &Value) -> Vec<Value> {
        items(&request["messages"]).flat_map(sealed).collect()
    }

    fn is_well_formed(&self, request: &Value) -> bool {
        request["stream"] != json!(true)
            || request["stream_options"]["include_usage"] == json!(true)
    }

    fn heard(&self, body: &str) -> Heard {
        let chunks = values(body);
        let is_first = |choice: &&Value| choice["index"].as_u64().unwrap_or(0) == 0;
        let of_chunk = |chunk: &Value| items(&chunk["choices"]).find(is_first).cloned();
        let choices: Vec<Value> = chunks.iter().filter_map(of_chunk).collect();
        let text: String = choices.iter().map(|choice| words(choice, "content")).collect();
        let refusal: String = choices.iter().map(|choice| words(choice, "refusal")).collect();
        let calls = calls_of(&choices);
        let word = choices.iter().filter_map(|choice| choice["finish_reason"].as_str()).next_back();
        let finish = finish(
            word.unwrap_or("stop"),
            !calls.is_empty(),
            &[
                ("stop", FinishReason::Stop),
                ("tool_calls", FinishReason::ToolCalls),
                ("length", FinishReason::Length),
                ("content_filter", FinishReason::ContentFilter),
            ],
        );
        let usage =
            chunks.iter().rev().map(|chunk| &chunk["usage"]).find(|usage| usage.is_object());
        let usage = usage
            .map(|usage| (tokens(usage, ["prompt_tokens"]), tokens(usage, ["completion_tokens"])));
        Heard { text: if text.is_empty() { refusal } else { text }, calls, finish, usage }
    }
}

fn message(message: &Value) -> Result<ChatMessage, &'static str> {
    let (text, files) = content(&message["content"])?;
    Ok(match message["role"].as_str().unwrap_or_default() {
        "system" | "developer" => system(text),
        "user" => user(text, files),
        "assistant" => assistant(text, calls(message)),
        "tool" if files.is_empty() => result(string(&message["tool_call_id"]), String::new(), text),
        "tool" => return Err("a picture as the result of a tool"),
        _ => return Err("a role that is not ours"),
    })
}

fn content(content: &Value) -> Result<(String, Vec<FileAttachment>), &'static str> {
    let (mut text, mut files) = (string(content), Vec::new());
    for part in items(content) {
        match part["type"].as_str() {
            Some("text") => text.push_str(&string(&part["text"])),
            Some("image_url") => files.push(
                data_url(&string(&part["image_url"]["url"]))
                    .ok_or("a picture that is elsewhere")?,
            ),
            Some("document_url") => return Err("a document of Mistral's own kind"),
            _ => return Err("a part that is not ours"),
        }
    }
    Ok((text, files))
}

fn calls(message: &Value) -> Vec<ModelCallRequest> {
    let read = |item: &Value| {
        let function = &item["function"];
        call(&item["id"], &function["name"], string(&function["arguments"]))
    };
    items(&message["tool_calls"]).map(read).collect()
}

fn sealed(message: &Value) -> Vec<Value> {
    let reasoning = message.get("reasoning_content").filter(|text| text.is_string()).cloned();
    let detail = |item: &Value| {
        let told = |key: &&str| item.get(*key).filter(|value| !value.is_null()).cloned();
        json!(SEALED.iter().map(told).collect::<Vec<_>>())
    };
    reasoning.into_iter().chain(items(&message["reasoning_details"]).map(detail)).collect()
}

fn words(choice: &Value, key: &str) -> String {
    let said = [&choice["delta"][key], &choice["message"][key]];
    let text = |said: &&Value| {
        let parts: String = items(said).map(|part| string(&part["text"])).collect();
        string(said) + &parts
    };
    said.iter().map(text).collect()
}

fn calls_of(choices: &[Value]) -> Vec<(String, String)> {
    let mut calls: BTreeMap<u64, (String, String)> = BTreeMap::new();
    for choice in choices {
        let fragments = [&choice["delta"]["tool_calls"], &choice["message"]["tool_calls"]];
        for (n, fragment) in fragments.into_iter().flat_map(items).enumerate() {
            let index = fragment["index"].as_u64().unwrap_or(n as u64);
            let (name, arguments) = calls.entry(index).or_default();
            name.push_str(&string(&fragment["function"]["name"]));
            arguments.push_str(&string(&fragment["function"]["arguments"]));
        }
    }
    calls.into_values().map(|(name, arguments)| (name, canonical(&arguments))).collect()
}
