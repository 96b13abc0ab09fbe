//! `/api/chat` of Ollama.

use sallyport_model::{
    ChatMessage, FinishReason, ModelCallRequest, ModelToolDefinition, ProviderProtocol,
};
use serde_json::Value;

use super::{
    Heard, Wire, assistant, call, finish, items, result, string, system, tokens, tool, user, values,
};

pub(super) struct Ollama;

impl Wire for Ollama {
    fn protocol(&self) -> ProviderProtocol {
        ProviderProtocol::Ollama
    }

    fn method(&self) -> &'static str {
        "/api/chat"
    }

    fn conversation(&self, request: &Value) -> Result<Vec<ChatMessage>, &'static str> {
        items(&request["messages"]).map(message).collect()
    }

    fn tools(&self, request: &Value) -> Vec<ModelToolDefinition> {
        items(&request["tools"]).map(|item| tool(&item["function"], "parameters")).collect()
    }

    fn kept(&self, request: &Value) -> Vec<Value> {
        items(&request["messages"]).filter_map(|message| message.get("thinking")).cloned().collect()
    }

    fn is_well_formed(&self, request: &Value) -> bool {
        request["stream"].is_boolean()
    }

    fn heard(&self, body: &str) -> Heard {
        let chunks = values(body);
        let last = chunks.last().unwrap_or(&Value::Null);
        let text = chunks.iter().map(|chunk| string(&chunk["message"]["content"])).collect();
        let calls: Vec<(String, String)> = chunks
            .iter()
            .flat_map(|chunk| calls(&chunk["message"]))
            .map(|call| (call.name, call.arguments))
            .collect();
        let words = [("stop", FinishReason::Stop), ("length", FinishReason::Length)];
        let finish = finish(&string(&last["done_reason"]), !calls.is_empty(), &words);
        let usage = (tokens(last, ["prompt_eval_count"]), tokens(last, ["eval_count"]));
        Heard { text, calls, finish, usage: Some(usage) }
    }
}

fn message(message: &Value) -> Result<ChatMessage, &'static str> {
    let text = string(&message["content"]);
    Ok(match message["role"].as_str().unwrap_or_default() {
        "system" => system(text),
        "user" => user(text, Vec::new()),
        "assistant" => assistant(text, calls(message)),
        "tool" => result(String::new(), string(&message["tool_name"]), text),
        _ => return Err("a role that is not ours"),
    })
}

fn calls(message: &Value) -> Vec<ModelCallRequest> {
    let read = |item: &Value| {
        let function = &item["function"];
        call(&Value::Null, &function["name"], function["arguments"].to_string())
    };
    items(&message["tool_calls"]).map(read).collect()
}
