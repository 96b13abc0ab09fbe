//! One answer in every protocol: the text "Grüße 東京" and two calls, `x` with an argument and `y`
//! without.

use sallyport_model::{
    FinishReason, ModelReply, ProviderProtocol, ReplyDelta, TokenUsage, ToolCallingMode,
};

/// An answer as one protocol writes it.
pub(crate) struct Script {
    pub(crate) protocol: ProviderProtocol,
    pub(crate) tool_calling: ToolCallingMode,
    pub(crate) content_type: &'static str,
    /// Each event, with what the user sees of it: text, or the name of a call in brackets.
    pub(crate) events: Vec<(String, &'static str)>,
    /// The first event after which the answer may count as whole if the rest is lost.
    pub(crate) whole_from: usize,
    /// The first event after which it must count as whole.
    pub(crate) must_from: usize,
    pub(crate) usage: TokenUsage,
}

const EVENTS: &str = "text/event-stream; charset=utf-8";

const LINES: &str = "application/x-ndjson";

const USAGE: TokenUsage = TokenUsage {
    input_tokens: 7,
    output_tokens: 9,
    cached_input_tokens: 0,
    cache_write_tokens: 0,
    reasoning_tokens: 0,
};

impl Script {
    /// All bytes of the answer.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.events.iter().flat_map(|(event, _)| event.bytes()).collect()
    }

    /// The position at which an event begins.
    pub(crate) fn start_of(&self, event: usize) -> usize {
        self.events[..event].iter().map(|(event, _)| event.len()).sum()
    }

    /// What the user has seen after some events.
    pub(crate) fn shown(&self, events: usize) -> (String, Vec<String>) {
        let (mut text, mut calls) = (String::new(), Vec::new());
        for (_, seen) in &self.events[..events] {
            match seen.strip_prefix('[') {
                Some(names) => {
                    let names = names.trim_end_matches(']').split(' ');
                    calls.extend(names.map(str::to_owned));
                }
                None => text.push_str(seen),
            }
        }
        (text, calls)
    }

    /// Checks that a reply is complete.
    #[track_caller]
    pub(crate) fn check(&self, reply: &ModelReply, deltas: &[ReplyDelta]) {
        assert_eq!(reply.message.text, "Grüße 東京");
        let calls = reply.message.calls.iter().map(|call| (&*call.name, &*call.arguments));
        assert_eq!(calls.collect::<Vec<_>>(), [("x", r#"{"k":"é"}"#), ("y", "{}")]);
        assert_eq!(reply.finish, FinishReason::ToolCalls);
        assert_eq!(reply.usage, Some(self.usage));
        assert_eq!(crate::shown(deltas), self.shown(self.events.len()));
        assert_eq!(crate::shown(deltas).0, reply.message.text);
    }
}

/// Returns the answer in every protocol, and in plain JSON for a model without function calling.
pub(crate) fn all() -> Vec<Script> {
    vec![chat(), responses(), anthropic(), gemini(), ollama(), json()]
}

/// One event for each pair; the last event is required.
fn native(
    protocol: ProviderProtocol,
    content_type: &'static str,
    events: &[(&str, &'static str)],
    written: fn(&str) -> String,
) -> Script {
    Script {
        protocol,
        tool_calling: ToolCallingMode::Native,
        content_type,
        events: events.iter().map(|(event, seen)| (written(event), *seen)).collect(),
        whole_from: events.len() - 1,
        must_from: events.len() - 1,
        usage: USAGE,
    }
}

fn data(event: &str) -> String {
    format!("data: {event}\n\n")
}

/// An event with its type as its name.
fn named(event: &str) -> String {
    let kind: serde_json::Value = serde_json::from_str(event).unwrap();
    format!("event: {}\ndata: {event}\n\n", kind["type"].as_str().unwrap())
}

/// The finish reason ends the answer; usage and the end event may follow.
fn chat() -> Script {
    let events = [
        (r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#, ""),
        (r#"{"choices":[{"index":0,"delta":{"content":"Grüße"}}]}"#, "Grüße"),
        (r#"{"choices":[{"index":0,"delta":{"content":" 東京"}}]}"#, " 東京"),
        (
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"x","arguments":""}}]}}]}"#,
            "[x]",
        ),
        (
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"k\":\"é\"}"}}]}}]}"#,
            "",
        ),
        (
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"y","arguments":""}}]}}]}"#,
            "[y]",
        ),
        (r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#, ""),
        (r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":9}}"#, ""),
        ("[DONE]", ""),
    ];
    let script = native(ProviderProtocol::OpenAiChat, EVENTS, &events, data);
    Script { whole_from: 6, must_from: 8, ..script }
}

/// The same answer from a model without function calling, over the same protocol.
fn json() -> Script {
    let events = [
        (r#"{"choices":[{"index":0,"delta":{"content":"```json\n{\"rep"}}]}"#, ""),
        (r#"{"choices":[{"index":0,"delta":{"content":"ly\": \"Gr\\u00"}}]}"#, "Gr"),
        (r#"{"choices":[{"index":0,"delta":{"content":"fcße"}}]}"#, "üße"),
        (r#"{"choices":[{"index":0,"delta":{"content":" 東京\", \"too"}}]}"#, " 東京"),
        (
            r#"{"choices":[{"index":0,"delta":{"content":"ls\": [{\"tool\":\"x\",\"args\":{\"k\":\"é\"}},"}}]}"#,
            "",
        ),
        (r#"{"choices":[{"index":0,"delta":{"content":"{\"tool\":\"y\"}]}\n```"}}]}"#, ""),
        (r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#, ""),
        (r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":9}}"#, ""),
        ("[DONE]", "[x y]"),
    ];
    let script = native(ProviderProtocol::OpenAiChat, EVENTS, &events, data);
    Script { tool_calling: ToolCallingMode::Json, whole_from: 6, must_from: 8, ..script }
}

fn responses() -> Script {
    let events = [
        (
            r#"{"type":"response.created","response":{"id":"r","status":"in_progress","output":[]}}"#,
            "",
        ),
        (
            r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m","role":"assistant","status":"in_progress","content":[]}}"#,
            "",
        ),
        (
            r#"{"type":"response.content_part.added","item_id":"m","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}"#,
            "",
        ),
        (
            r#"{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"Grüße"}"#,
            "Grüße",
        ),
        (
            r#"{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":" 東京"}"#,
            " 東京",
        ),
        (
            r#"{"type":"response.output_text.done","item_id":"m","output_index":0,"content_index":0,"text":"Grüße 東京"}"#,
            "",
        ),
        (
            r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Grüße 東京","annotations":[]}]}}"#,
            "",
        ),
        (
            r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"f","call_id":"a","name":"x","arguments":"","status":"in_progress"}}"#,
            "[x]",
        ),
        (
            r#"{"type":"response.function_call_arguments.delta","item_id":"f","output_index":1,"delta":"{\"k\":\"é\"}"}"#,
            "",
        ),
        (
            r#"{"type":"response.function_call_arguments.done","item_id":"f","output_index":1,"arguments":"{\"k\":\"é\"}"}"#,
            "",
        ),
        (
            r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","id":"f","call_id":"a","name":"x","arguments":"{\"k\":\"é\"}","status":"completed"}}"#,
            "",
        ),
        (
            r#"{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","id":"g","call_id":"b","name":"y","arguments":"","status":"in_progress"}}"#,
            "[y]",
        ),
        (
            r#"{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","id":"g","call_id":"b","name":"y","arguments":"{}","status":"completed"}}"#,
            "",
        ),
        (
            r#"{"type":"response.completed","response":{"id":"r","status":"completed","output":[{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Grüße 東京","annotations":[]}]},{"type":"function_call","id":"f","call_id":"a","name":"x","arguments":"{\"k\":\"é\"}","status":"completed"},{"type":"function_call","id":"g","call_id":"b","name":"y","arguments":"{}","status":"completed"}],"usage":{"input_tokens":7,"output_tokens":9}}}"#,
            "",
        ),
    ];
    native(ProviderProtocol::OpenAiResponses, EVENTS, &events, named)
}

/// The stop reason comes after the end of every block; only the end event follows.
fn anthropic() -> Script {
    let events = [
        (
            r#"{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"test-model","stop_reason":null,"usage":{"input_tokens":7,"output_tokens":1}}}"#,
            "",
        ),
        (
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
            "",
        ),
        (r#"{"type":"ping"}"#, ""),
        (
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Grüße"}}"#,
            "Grüße",
        ),
        (
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" 東京"}}"#,
            " 東京",
        ),
        (r#"{"type":"content_block_stop","index":0}"#, ""),
        (
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","name":"x","input":{}}}"#,
            "[x]",
        ),
        (
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"k\":"}}"#,
            "",
        ),
        (
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"\"é\"}"}}"#,
            "",
        ),
        (r#"{"type":"content_block_stop","index":1}"#, ""),
        (
            r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"b","name":"y","input":{}}}"#,
            "[y]",
        ),
        (
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}"#,
            "",
        ),
        (r#"{"type":"content_block_stop","index":2}"#, ""),
        (
            r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":9}}"#,
            "",
        ),
        (r#"{"type":"message_stop"}"#, ""),
    ];
    let script = native(ProviderProtocol::Anthropic, EVENTS, &events, named);
    Script { whole_from: 13, ..script }
}

fn gemini() -> Script {
    let events = [
        (
            r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Grüße"}]},"index":0}],"usageMetadata":{"promptTokenCount":7}}"#,
            "Grüße",
        ),
        (
            r#"{"candidates":[{"content":{"role":"model","parts":[{"text":" 東京"}]},"index":0}]}"#,
            " 東京",
        ),
        (
            r#"{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"x","args":{"k":"é"}},"thoughtSignature":"s"}]},"index":0}]}"#,
            "[x]",
        ),
        (
            r#"{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"y","args":{}}}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":9}}"#,
            "[y]",
        ),
    ];
    native(ProviderProtocol::Gemini, "text/event-stream", &events, |event| {
        format!("data: {event}\r\n\r\n")
    })
}

fn ollama() -> Script {
    let events = [
        (r#"{"model":"m","message":{"role":"assistant","content":"Grüße"},"done":false}"#, "Grüße"),
        (r#"{"model":"m","message":{"role":"assistant","content":" 東京"},"done":false}"#, " 東京"),
        (
            r#"{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"x","arguments":{"k":"é"}}},{"function":{"name":"y","arguments":{}}}]},"done":false}"#,
            "[x y]",
        ),
        (
            r#"{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":7,"eval_count":9}"#,
            "",
        ),
    ];
    native(ProviderProtocol::Ollama, LINES, &events, |event| format!("{event}\n"))
}
