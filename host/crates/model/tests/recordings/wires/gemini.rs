//! `generateContent` of Gemini.

use sallyport_model::{ChatMessage, FinishReason, ModelToolDefinition, ProviderProtocol};
use serde_json::{Value, json};

use super::{
    Heard, Wire, assistant, call, finish, items, result, string, system, tokens, tool, user, values,
};

pub(super) struct Gemini;

impl Wire for Gemini {
    fn protocol(&self) -> ProviderProtocol {
        ProviderProtocol::Gemini
    }

    fn method(&self) -> &'static str {
        "/models/"
    }

    fn conversation(&self, request: &Value) -> Result<Vec<ChatMessage>, &'static str> {
        if request.get("cachedContent").is_some_and(Value::is_string) {
            return Err("a conversation that the service keeps");
        }
        let instructions = texts(&request["systemInstruction"]["parts"]);
        let mut messages = Vec::new();
        if !instructions.is_empty() {
            messages.push(system(instructions));
        }
        for content in items(&request["contents"]) {
            turn(content, &mut messages);
        }
        Ok(messages)
    }

    fn tools(&self, request: &Value) -> Vec<ModelToolDefinition> {
        let declared = items(&request["tools"]).flat_map(|t| items(&t["functionDeclarations"]));
        let schema = |item: &Value| match item.get("parametersJsonSchema") {
            Some(_) => "parametersJsonSchema",
            None => "parameters",
        };
        declared.map(|item| tool(item, schema(item))).collect()
    }

    fn kept(&self, request: &Value) -> Vec<Value> {
        let parts = items(&request["contents"]).flat_map(|content| items(&content["parts"]));
        let signed = parts.filter(|part| part["thoughtSignature"].is_string());
        signed.map(|part| json!([part["thoughtSignature"], part["functionCall"]["name"]])).collect()
    }

    /// Roles alternate.
    fn is_well_formed(&self, request: &Value) -> bool {
        let contents: Vec<&Value> = items(&request["contents"]).collect();
        contents.windows(2).all(|pair| pair[0]["role"] != pair[1]["role"])
    }

    fn heard(&self, body: &str) -> Heard {
        let chunks = values(body);
        let candidates: Vec<&Value> = chunks.iter().map(|chunk| &chunk["candidates"][0]).collect();
        let parts = || candidates.iter().flat_map(|one| items(&one["content"]["parts"]));
        let spoken = parts().filter(|part| part["thought"] != json!(true));
        let text = spoken.map(|part| string(&part["text"])).collect();
        let calls: Vec<(String, String)> = parts()
            .filter_map(|part| part.get("functionCall"))
            .map(|call| (string(&call["name"]), arguments(call)))
            .collect();
        let word = candidates.iter().filter_map(|one| one["finishReason"].as_str()).next_back();
        let words = [("STOP", FinishReason::Stop), ("MAX_TOKENS", FinishReason::Length)];
        let finish = finish(word.unwrap_or(""), !calls.is_empty(), &words);
        let usage =
            chunks.iter().rev().map(|chunk| &chunk["usageMetadata"]).find(|u| u.is_object());
        let usage = usage.map(|usage| {
            let written = tokens(usage, ["candidatesTokenCount", "thoughtsTokenCount"]);
            (tokens(usage, ["promptTokenCount"]), written)
        });
        Heard { text, calls, finish, usage }
    }
}

fn arguments(call: &Value) -> String {
    if call["args"].is_object() { call["args"].to_string() } else { "{}".to_owned() }
}

fn turn(content: &Value, messages: &mut Vec<ChatMessage>) {
    let parts = &content["parts"];
    let calls: Vec<_> = items(parts)
        .filter_map(|part| part.get("functionCall"))
        .map(|asked| call(&Value::Null, &asked["name"], arguments(asked)))
        .collect();
    let results: Vec<ChatMessage> =
        items(parts).filter_map(|part| part.get("functionResponse")).map(returned).collect();
    let text = texts(parts);
    if content["role"] == "model" {
        messages.push(assistant(text, calls));
        return;
    }
    let is_silent = text.is_empty() && !results.is_empty();
    messages.extend(results);
    if !is_silent {
        messages.push(user(text, Vec::new()));
    }
}

/// Reads a tool result, which is an object there; a single value is under `result`.
fn returned(response: &Value) -> ChatMessage {
    let given = &response["response"];
    let is_single = given.as_object().is_some_and(|given| given.len() == 1);
    let content = given.get("result").filter(|_| is_single).unwrap_or(given);
    result(String::new(), string(&response["name"]), content.to_string())
}

fn texts(parts: &Value) -> String {
    let spoken = items(parts).filter(|part| part["thought"] != json!(true));
    spoken.map(|part| string(&part["text"])).collect()
}
