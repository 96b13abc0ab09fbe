//! Our conversation, written as the JSON that `chat/completions` takes.

use serde_json::{Map, Value, json};

use crate::{
    chat::{AssistantMessage, CallRequest, Message, Request, ToolDefinition},
    endpoint::Endpoint,
};

/// Arguments of a call that was made without any.
pub(super) const NO_ARGUMENTS: &str = "{}";

/// Returns the body of a request.
pub(super) fn body(endpoint: &Endpoint, request: Request<'_>) -> Value {
    let messages: Vec<Value> = request.messages.iter().map(message).collect();
    let mut body = json!({
        "model": endpoint.model,
        "messages": messages,
        "stream": endpoint.stream,
    });
    if endpoint.stream {
        body["stream_options"] = json!({ "include_usage": true });
    }
    if let Some(temperature) = endpoint.temperature {
        body["temperature"] = json!(temperature);
    }
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(definition).collect();
    }
    body
}

fn message(message: &Message) -> Value {
    match message {
        Message::System { text } => json!({ "role": "system", "content": text }),
        Message::User(said) => json!({ "role": "user", "content": said.text }),
        Message::Assistant(said) => own_form(said).cloned().unwrap_or_else(|| assistant(said)),
        Message::Tool(result) => json!({
            "role": "tool",
            "tool_call_id": result.call_id,
            "content": result.content,
        }),
    }
}

/// Returns the provider's own form of a message, if it is one of this protocol and still tells of
/// the same calls. A session that began with another provider holds other forms.
fn own_form(said: &AssistantMessage) -> Option<&Value> {
    let own = &said.opaque.as_ref()?.body;
    let calls = match own.get("tool_calls") {
        None | Some(Value::Null) => &[],
        Some(calls) => calls.as_array()?.as_slice(),
    };
    let same_ids = calls.len() == said.calls.len()
        && calls.iter().zip(&said.calls).all(|(own, call)| own.get("id") == Some(&json!(call.id)));
    (own.get("role") == Some(&json!("assistant")) && same_ids).then_some(own)
}

fn assistant(said: &AssistantMessage) -> Value {
    let content =
        if said.text.is_empty() && !said.calls.is_empty() { Value::Null } else { json!(said.text) };
    let mut message =
        Map::from_iter([("role".to_owned(), json!("assistant")), ("content".to_owned(), content)]);
    if !said.calls.is_empty() {
        message.insert("tool_calls".to_owned(), said.calls.iter().map(call).collect());
    }
    Value::Object(message)
}

fn call(call: &CallRequest) -> Value {
    let given = call.arguments.trim();
    let arguments = if given.is_empty() { NO_ARGUMENTS } else { &call.arguments };
    json!({
        "id": call.id,
        "type": "function",
        "function": { "name": call.name, "arguments": arguments },
    })
}

/// Returns a tool as a function definition of this protocol.
pub fn definition(tool: &ToolDefinition) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(opaque: Value) -> AssistantMessage {
        AssistantMessage {
            text: "t".to_owned(),
            calls: vec![CallRequest {
                id: "a".to_owned(),
                name: "n".to_owned(),
                arguments: String::new(),
            }],
            opaque: Some(crate::chat::Opaque { origin: "openai/m".to_owned(), body: opaque }),
        }
    }

    #[test]
    fn the_own_form_goes_back_untouched() {
        let own = json!({
            "role": "assistant", "content": "t", "reasoning_content": "r",
            "tool_calls": [{ "id": "a", "x": 1 }],
        });
        assert_eq!(message(&Message::Assistant(said(own.clone()))), own);
    }

    #[test]
    fn a_form_of_another_protocol_or_of_other_calls_is_built_anew() {
        let rebuilt = json!({
            "role": "assistant", "content": "t",
            "tool_calls": [{
                "id": "a", "type": "function", "function": { "name": "n", "arguments": "{}" },
            }],
        });
        let foreign = [
            json!({ "role": "assistant", "content": [{ "type": "tool_use", "id": "a" }] }),
            json!({ "role": "assistant", "tool_calls": [{ "id": "b" }] }),
            json!({ "role": "assistant", "tool_calls": [{ "id": "a" }, { "id": "b" }] }),
            json!({ "role": "model", "tool_calls": [{ "id": "a" }] }),
            json!("text"),
        ];
        for own in foreign {
            assert_eq!(message(&Message::Assistant(said(own))), rebuilt);
        }
    }
}
