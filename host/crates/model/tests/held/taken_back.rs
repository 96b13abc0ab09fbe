//! Broken calls of a model, sent back to a server that checks them strictly.

use std::collections::HashSet;

use sallyport_model::{
    ChatMessage, ModelCallRequest, ModelEndpoint, ModelReply, ModelRequest, ProviderProtocol,
    ToolResultMessage, connect_model,
};
use serde_json::{Value, json};

use crate::{PATIENCE, server::Server};

const PROTOCOLS: [ProviderProtocol; 5] = [
    ProviderProtocol::OpenAiChat,
    ProviderProtocol::OpenAiResponses,
    ProviderProtocol::Anthropic,
    ProviderProtocol::Gemini,
    ProviderProtocol::Ollama,
];

/// One call as a model wrote it: id, name, arguments.
type Wrote<'a> = (&'a str, &'a str, Value);

/// Asks for one answer with this content, and returns the request and the reply.
async fn exchange(
    protocol: ProviderProtocol,
    messages: &[ChatMessage],
    answer: &Value,
) -> (Value, ModelReply) {
    let server = Server::start().await;
    let endpoint = ModelEndpoint {
        stream: false,
        time_max: PATIENCE,
        ..ModelEndpoint::new(protocol, server.base_url.clone(), "m")
    };
    let model = connect_model(endpoint).unwrap();
    let serve = async {
        let mut caller = server.accept().await;
        let body = answer.to_string();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";
        caller.send(format!("{head}{body}").as_bytes()).await;
        let asked = std::mem::take(&mut caller.body);
        caller.hang_up().await;
        asked
    };
    let request = ModelRequest { messages, ..ModelRequest::default() };
    let mut unheard = |_| {};
    let (reply, asked) = tokio::join!(model.generate(request, &mut unheard), serve);
    (serde_json::from_slice(&asked).unwrap(), reply.unwrap())
}

/// Returns an answer with calls in a provider's form.
fn answer(protocol: ProviderProtocol, calls: &[Wrote<'_>]) -> Value {
    let each = |write: &dyn Fn(&Wrote<'_>) -> Value| -> Value { calls.iter().map(write).collect() };
    match protocol {
        ProviderProtocol::OpenAiChat => {
            let calls = each(
                &|(id, name, arguments)| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } }),
            );
            json!({ "choices": [{ "message": { "role": "assistant", "content": null, "tool_calls": calls } }] })
        }
        ProviderProtocol::OpenAiResponses => {
            json!({ "status": "completed", "output": each(&|(id, name, arguments)| {
            json!({ "type": "function_call", "id": "f", "call_id": id, "name": name, "arguments": arguments })
        }) })
        }
        ProviderProtocol::Anthropic => json!({ "content": each(&|(id, name, arguments)| {
            json!({ "type": "tool_use", "id": id, "name": name, "input": arguments })
        }) }),
        ProviderProtocol::Gemini => {
            let parts = each(
                &|(id, name, arguments)| json!({ "functionCall": { "id": id, "name": name, "args": arguments }, "thoughtSignature": "s" }),
            );
            json!({ "candidates": [{ "content": { "parts": parts }, "finishReason": "STOP" }] })
        }
        ProviderProtocol::Ollama => {
            let calls = each(
                &|(_, name, arguments)| json!({ "function": { "name": name, "arguments": arguments } }),
            );
            json!({ "message": { "role": "assistant", "content": "", "tool_calls": calls }, "done": true })
        }
    }
}

fn items<'a>(value: &'a Value, place: &str) -> Vec<&'a Value> {
    value.pointer(place).and_then(Value::as_array).into_iter().flatten().collect()
}

/// A call or a result in a request: an id if the protocol has one, and the name or the arguments.
#[derive(Debug, Default)]
struct Sent {
    calls: Vec<(String, String, Value)>,
    results: Vec<String>,
}

/// Reads a request as a strict server does. Arguments that are text must be JSON.
fn read(protocol: ProviderProtocol, request: &Value) -> Sent {
    let text =
        |value: &Value| value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned();
    let parsed = |value: &Value| serde_json::from_str::<Value>(&text(value)).unwrap();
    let mut sent = Sent::default();
    match protocol {
        ProviderProtocol::OpenAiChat => {
            for message in items(request, "/messages") {
                for call in items(message, "/tool_calls") {
                    let function = &call["function"];
                    sent.calls.push((
                        text(&call["id"]),
                        text(&function["name"]),
                        parsed(&function["arguments"]),
                    ));
                }
                sent.results.extend(message.get("tool_call_id").map(text));
            }
        }
        ProviderProtocol::OpenAiResponses => {
            for item in items(request, "/input") {
                match item["type"].as_str() {
                    Some("function_call") => {
                        sent.calls.push((
                            text(&item["call_id"]),
                            text(&item["name"]),
                            parsed(&item["arguments"]),
                        ));
                    }
                    Some("function_call_output") => sent.results.push(text(&item["call_id"])),
                    _ => {}
                }
            }
        }
        ProviderProtocol::Anthropic => {
            for block in items(request, "/messages").iter().flat_map(|turn| items(turn, "/content"))
            {
                match block["type"].as_str() {
                    Some("tool_use") => {
                        sent.calls.push((
                            text(&block["id"]),
                            text(&block["name"]),
                            block["input"].clone(),
                        ));
                    }
                    Some("tool_result") => sent.results.push(text(&block["tool_use_id"])),
                    _ => {}
                }
            }
        }
        ProviderProtocol::Gemini | ProviderProtocol::Ollama => {
            return read_by_name(protocol, request);
        }
    }
    sent
}

/// Reads a request in which results refer to their calls by name.
fn read_by_name(protocol: ProviderProtocol, request: &Value) -> Sent {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut sent = Sent::default();
    if protocol == ProviderProtocol::Ollama {
        for message in items(request, "/messages") {
            for call in items(message, "/tool_calls") {
                let name = text(&call["function"]["name"]);
                sent.calls.push((name.clone(), name, call["function"]["arguments"].clone()));
            }
            sent.results.extend(message.get("tool_name").map(text));
        }
        return sent;
    }
    for part in items(request, "/contents").iter().flat_map(|turn| items(turn, "/parts")) {
        if let Some(call) = part.get("functionCall") {
            let name = text(&call["name"]);
            sent.calls.push((name.clone(), name, call["args"].clone()));
        }
        if let Some(result) = part.get("functionResponse") {
            assert!(result["response"].is_object(), "{result}");
            sent.results.push(text(&result["name"]));
        }
    }
    sent
}

/// Fails if a strict server would refuse the request.
#[track_caller]
fn assert_is_taken(protocol: ProviderProtocol, request: &Value, calls: usize) {
    let sent = read(protocol, request);
    assert_eq!((sent.calls.len(), sent.results.len()), (calls, calls), "{protocol:?}");
    let has_ids = !matches!(protocol, ProviderProtocol::Gemini | ProviderProtocol::Ollama);
    let mut seen = HashSet::new();
    for ((id, name, arguments), result) in sent.calls.iter().zip(&sent.results) {
        assert_eq!(id, result, "{protocol:?}");
        assert!(!has_ids || seen.insert(id), "{protocol:?}: {id} stands twice");
        let is_safe = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
        let fits = (1..=64).contains(&name.len()) && name.starts_with(is_first);
        assert!(fits && name.chars().all(is_safe), "{protocol:?}: {name}");
        assert!(arguments.is_object(), "{protocol:?}: {arguments}");
    }
    assert!(
        request.to_string().len() < 100_000,
        "{protocol:?}: {} bytes",
        request.to_string().len()
    );
}

/// Lets a model of each protocol write these calls, and sends them to each protocol.
async fn check(calls: &[Wrote<'_>]) {
    for from in PROTOCOLS {
        let mut messages = vec![ChatMessage::user("hello")];
        let (_, reply) = exchange(from, &messages, &answer(from, calls)).await;
        let said = reply.message;
        assert_eq!(said.calls.len(), calls.len(), "{from:?}");
        let result = |call: &ModelCallRequest| {
            ChatMessage::Tool(ToolResultMessage {
                call_id: call.id.clone(),
                name: call.name.clone(),
                content: "{\"error\":\"no\"}".to_owned(),
                failed: true,
            })
        };
        let results: Vec<ChatMessage> = said.calls.iter().map(result).collect();
        messages.push(ChatMessage::Assistant(said));
        messages.extend(results);
        for to in PROTOCOLS {
            let (request, _) = exchange(to, &messages, &answer(to, &[])).await;
            assert_is_taken(to, &request, calls.len());
        }
    }
}

#[tokio::test]
async fn h83_whatever_a_model_wrote_into_a_call_the_next_request_is_taken() {
    let long = "x".repeat(10 << 20);
    let deep = "{\"a\":".repeat(120) + "1" + &"}".repeat(120);
    let arguments = [
        json!("{\"cut\": [1, "),
        json!("{\"half\": \"\\ud83d\"}"),
        json!("{\"k\": NaN}"),
        json!("{\"k\": 1, \"k\": 2}"),
        json!("{\"line\": \"a\nb\"}"),
        json!("[1]"),
        json!("\"text\""),
        json!("7"),
        json!("null"),
        json!(""),
        json!("{} {}"),
        json!([1]),
        json!(7),
        json!(null),
        json!(deep),
        json!(long),
    ];
    for arguments in arguments {
        check(&[("call_a", "x", arguments)]).await;
    }
}

#[tokio::test]
async fn h83_whatever_a_model_calls_a_tool_or_a_call_the_next_request_is_taken() {
    let long = "functions.read_file".repeat(20);
    let ids: [[&str; 2]; 5] =
        [["a", "a"], ["", ""], ["x:1", "x.1"], [&long, &long], ["ü", "\u{0}"]];
    for [first, second] in ids {
        check(&[(first, "x", json!({})), (second, "y", json!({}))]).await;
    }
    for name in ["7zip", "functions.read file", "ü", &long, "a\u{0}b", "<tool>"] {
        check(&[("a", name, json!({ "k": 1 }))]).await;
    }
}
