//! `responses` of OpenAI.

use sallyport_model::{ChatMessage, FinishReason, ModelToolDefinition, ProviderProtocol};
use serde_json::{Value, json};

use super::{
    Heard, Wire, assistant, call, finish, items, result, string, system, tokens, tool, user, values,
};
use crate::normal::canonical;

pub(super) struct Responses;

impl Wire for Responses {
    fn protocol(&self) -> ProviderProtocol {
        ProviderProtocol::OpenAiResponses
    }

    fn method(&self) -> &'static str {
        "/responses"
    }

    fn conversation(&self, request: &Value) -> Result<Vec<ChatMessage>, &'static str> {
        if request.get("previous_response_id").is_some_and(Value::is_string) {
            return Err("a conversation that the service keeps");
        }
        let instructions = request["instructions"].as_str().map(|text| Ok(system(text.to_owned())));
        let said = items(&request["input"]).filter_map(|item| message(item).transpose());
        instructions.into_iter().chain(said).collect()
    }

    fn tools(&self, request: &Value) -> Vec<ModelToolDefinition> {
        items(&request["tools"]).map(|item| tool(item, "parameters")).collect()
    }

    fn kept(&self, request: &Value) -> Vec<Value> {
        let reasoning = items(&request["input"]).filter(|item| item["type"] == "reasoning");
        // Every event encrypts the same thoughts again; `own_form` chooses the right ones.
        let is_sealed = |item: &Value| item["encrypted_content"].is_string();
        reasoning.map(|item| json!([item["id"], is_sealed(item), item["summary"]])).collect()
    }

    /// Without `strict`, every parameter would become required.
    fn is_well_formed(&self, request: &Value) -> bool {
        request["store"] == json!(false)
            && items(&request["tools"]).all(|t| t["strict"] == json!(false))
    }

    fn own_form(&self, body: &str) -> Option<Value> {
        let last = values(body).pop()?;
        Some(last.get("response").unwrap_or(&last)["output"].clone())
    }

    fn heard(&self, body: &str) -> Heard {
        let events = values(body);
        let last = events.last().unwrap_or(&Value::Null);
        let response = last.get("response").unwrap_or(last);
        let is_said = |event: &&Value| {
            matches!(
                event["type"].as_str(),
                Some("response.output_text.delta" | "response.refusal.delta")
            )
        };
        let streamed: String =
            events.iter().filter(is_said).map(|event| string(&event["delta"])).collect();
        let text = if events.len() > 1 { streamed } else { text_of(&response["output"]) };
        let done = events.iter().filter(|event| event["type"] == "response.output_item.done");
        let done: Vec<&Value> = match events.len() {
            1 => items(&response["output"]).collect(),
            _ => done.map(|event| &event["item"]).collect(),
        };
        let calls: Vec<(String, String)> = done
            .into_iter()
            .filter(|item| item["type"] == "function_call")
            .map(|item| (string(&item["name"]), canonical(&string(&item["arguments"]))))
            .collect();
        let word = response.pointer("/incomplete_details/reason").unwrap_or(&response["status"]);
        let words =
            [("completed", FinishReason::Stop), ("max_output_tokens", FinishReason::Length)];
        let finish = finish(&string(word), !calls.is_empty(), &words);
        let usage = &response["usage"];
        let usage = (tokens(usage, ["input_tokens"]), tokens(usage, ["output_tokens"]));
        Heard { text, calls, finish, usage: Some(usage) }
    }
}

fn text_of(output: &Value) -> String {
    let messages = items(output).filter(|item| item["type"] == "message");
    let parts = messages.flat_map(|item| items(&item["content"]));
    parts.map(|part| string(&part["text"]) + &string(&part["refusal"])).collect()
}

fn message(item: &Value) -> Result<Option<ChatMessage>, &'static str> {
    let texts =
        || -> String { items(&item["content"]).map(|part| string(&part["text"])).collect() };
    let text = || string(&item["content"]) + &texts();
    Ok(Some(match (item["type"].as_str(), item["role"].as_str()) {
        (Some("message"), Some("system" | "developer")) => system(text()),
        (Some("message"), Some("user")) => user(text(), Vec::new()),
        (Some("message"), Some("assistant")) => assistant(text(), Vec::new()),
        (Some("function_call"), _) => {
            let asked = call(&item["call_id"], &item["name"], string(&item["arguments"]));
            assistant(String::new(), vec![asked])
        }
        (Some("function_call_output"), _) => {
            result(string(&item["call_id"]), String::new(), string(&item["output"]))
        }
        (Some("reasoning"), _) => return Ok(None),
        _ => return Err("an item that is not ours"),
    }))
}
