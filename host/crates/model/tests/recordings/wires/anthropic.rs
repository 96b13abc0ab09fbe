//! `messages` of Anthropic.

use std::collections::BTreeMap;

use sallyport_model::{
    ChatMessage, FinishReason, ModelCallRequest, ModelToolDefinition, ProviderProtocol,
};
use serde_json::{Value, json};

use super::{
    Heard, Wire, assistant, call, finish, items, result, string, system, tokens, tool, user, values,
};
use crate::normal::canonical;

pub(super) struct Anthropic;

/// The counts that together are the tokens read.
const READ: [&str; 3] = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];

impl Wire for Anthropic {
    fn protocol(&self) -> ProviderProtocol {
        ProviderProtocol::Anthropic
    }

    fn method(&self) -> &'static str {
        "/messages"
    }

    fn conversation(&self, request: &Value) -> Result<Vec<ChatMessage>, &'static str> {
        let instructions = string(&request["system"]) + &texts(&request["system"]);
        let mut messages = Vec::new();
        if !instructions.is_empty() {
            messages.push(system(instructions));
        }
        for message in items(&request["messages"]) {
            turn(message, &mut messages)?;
        }
        Ok(messages)
    }

    fn tools(&self, request: &Value) -> Vec<ModelToolDefinition> {
        items(&request["tools"]).map(|item| tool(item, "input_schema")).collect()
    }

    fn kept(&self, request: &Value) -> Vec<Value> {
        let blocks = items(&request["messages"]).flat_map(|message| items(&message["content"]));
        blocks.filter(|block| string(&block["type"]).contains("thinking")).cloned().collect()
    }

    /// Roles alternate, results come first, and there is a limit.
    fn is_well_formed(&self, request: &Value) -> bool {
        let messages: Vec<&Value> = items(&request["messages"]).collect();
        let alternate = messages.windows(2).all(|pair| pair[0]["role"] != pair[1]["role"]);
        let results_first = messages.iter().all(|message| {
            items(&message["content"]).map(|b| b["type"] != "tool_result").is_sorted()
        });
        alternate && results_first && request["max_tokens"].as_u64().is_some_and(|n| n > 0)
    }

    fn heard(&self, body: &str) -> Heard {
        let events = values(body);
        let blocks = blocks(&events);
        let calls: Vec<(String, String)> = blocks
            .iter()
            .filter(|(block, _)| block["type"] == "tool_use")
            .map(|(block, input)| (string(&block["name"]), canonical(input)))
            .collect();
        let text = blocks.iter().filter(|(block, _)| block["type"] == "text");
        let text = text.map(|(_, text)| text.as_str()).collect();
        let told = |key: &str| {
            let said = |event: &Value| {
                let places = [&event["delta"][key], &event["message"][key], &event[key]];
                places.into_iter().find(|value| !value.is_null()).cloned()
            };
            events.iter().filter_map(said).collect::<Vec<Value>>()
        };
        let finish = finish(
            &told("stop_reason").last().map(string).unwrap_or_default(),
            !calls.is_empty(),
            &[
                ("end_turn", FinishReason::Stop),
                ("stop_sequence", FinishReason::Stop),
                ("tool_use", FinishReason::ToolCalls),
                ("max_tokens", FinishReason::Length),
                ("refusal", FinishReason::ContentFilter),
            ],
        );
        let usage = told("usage");
        let nothing = &Value::Null;
        let (first, last) = (usage.first().unwrap_or(nothing), usage.last().unwrap_or(nothing));
        let usage = Some((tokens(first, READ), tokens(last, ["output_tokens"])));
        Heard { text, calls, finish, usage }
    }
}

/// Returns the blocks of an answer, each with its text or its input.
fn blocks(events: &[Value]) -> Vec<(Value, String)> {
    let mut blocks: BTreeMap<u64, (Value, String)> = BTreeMap::new();
    for event in events {
        for (n, block) in items(&event["content"]).enumerate() {
            blocks.insert(n as u64, (block.clone(), said(block)));
        }
        let index = event["index"].as_u64().unwrap_or(0);
        if let Some(block) = event.get("content_block") {
            blocks.insert(index, (block.clone(), string(&block["text"])));
        }
        if let Some((_, said)) = blocks.get_mut(&index).filter(|_| event["delta"].is_object()) {
            said.push_str(&string(&event["delta"]["text"]));
            said.push_str(&string(&event["delta"]["partial_json"]));
        }
    }
    blocks.into_values().collect()
}

fn said(block: &Value) -> String {
    if block["input"].is_object() { block["input"].to_string() } else { string(&block["text"]) }
}

fn turn(message: &Value, messages: &mut Vec<ChatMessage>) -> Result<(), &'static str> {
    let content = &message["content"];
    let blocks = |kind: &'static str| items(content).filter(move |block| block["type"] == kind);
    if blocks("document").next().is_some() {
        return Err("a document that the service keeps");
    }
    let text = string(content) + &texts(content);
    if message["role"] == "assistant" {
        let read = |block: &Value| call(&block["id"], &block["name"], block["input"].to_string());
        let calls: Vec<ModelCallRequest> = blocks("tool_use").map(read).collect();
        messages.push(assistant(text, calls));
        return Ok(());
    }
    let results: Vec<&Value> = blocks("tool_result").collect();
    messages.extend(results.iter().map(|block| {
        let content = &block["content"];
        result(string(&block["tool_use_id"]), String::new(), string(content) + &texts(content))
    }));
    if results.is_empty() || !text.is_empty() {
        messages.push(user(text, Vec::new()));
    }
    Ok(())
}

fn texts(blocks: &Value) -> String {
    let texts = items(blocks).filter(|block| block["type"] == json!("text"));
    texts.map(|block| string(&block["text"])).collect()
}
