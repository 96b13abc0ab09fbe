//! One answer in the form of each provider: a thought, text beyond ASCII, two calls, usage.

use sallyport_model::{
    FinishReason, ModelCallRequest, ModelReply, ProviderProtocol, ReplyDelta, TokenUsage,
};
use serde_json::{Value, json};

use crate::call;

/// The answer in one provider's wire format.
pub(crate) struct Wire {
    pub(crate) protocol: ProviderProtocol,
    pub(crate) content_type: &'static str,
    /// The pieces of the streamed answer, each JSON.
    pub(crate) pieces: Vec<Value>,
    /// The number of bytes at the end of the stream that the answer does not need.
    pub(crate) farewell_bytes: usize,
    /// The same answer in one piece.
    pub(crate) whole: Value,
    ids: [&'static str; 2],
    usage: TokenUsage,
    /// The provider's own form, as it must be sent back.
    pub(crate) own: Value,
}

pub(crate) fn all() -> [Wire; 3] {
    [anthropic(), gemini(), ollama()]
}

impl Wire {
    /// Returns the streamed answer as bytes.
    pub(crate) fn streamed(&self) -> Vec<u8> {
        written(self.protocol, &self.pieces)
    }

    pub(crate) fn calls(&self) -> [ModelCallRequest; 2] {
        [call(self.ids[0], "x", r#"{"k":"é"}"#), call(self.ids[1], "y", "{}")]
    }

    #[track_caller]
    pub(crate) fn assert_reply(&self, reply: ModelReply) {
        assert_eq!(reply.message.text, "Grüße 東京");
        assert_eq!(reply.message.calls, self.calls());
        assert_eq!(reply.message.opaque.unwrap().body, self.own);
        assert_eq!(reply.finish, FinishReason::ToolCalls);
        assert_eq!(reply.usage, Some(self.usage));
    }

    #[track_caller]
    pub(crate) fn assert_streamed(&self, (reply, deltas): (ModelReply, Vec<ReplyDelta>)) {
        self.assert_reply(reply);
        assert_eq!(deltas, says(&["Grüße", " 東京"]));
    }

    #[track_caller]
    pub(crate) fn assert_whole(&self, (reply, deltas): (ModelReply, Vec<ReplyDelta>)) {
        self.assert_reply(reply);
        assert_eq!(deltas, says(&["Grüße 東京"]));
    }
}

fn says(words: &[&str]) -> Vec<ReplyDelta> {
    let text = words.iter().map(|word| ReplyDelta::Text { text: (*word).to_owned() });
    let begun = ["x", "y"].map(|name| ReplyDelta::CallBegun { name: name.to_owned() });
    [ReplyDelta::Reasoning { text: "hm".to_owned() }].into_iter().chain(text).chain(begun).collect()
}

/// Returns pieces as a provider streams them.
pub(crate) fn written(protocol: ProviderProtocol, pieces: &[Value]) -> Vec<u8> {
    let write = |piece: &Value| match protocol {
        ProviderProtocol::Ollama => format!("{piece}\n"),
        ProviderProtocol::Anthropic => {
            format!("event: {}\ndata: {piece}\n\n", piece["type"].as_str().unwrap_or("odd"))
        }
        _ => format!("data: {piece}\r\n\r\n"),
    };
    pieces.iter().map(write).collect::<String>().into_bytes()
}

fn start(index: u32, block: Value) -> Value {
    json!({ "type": "content_block_start", "index": index, "content_block": block })
}

fn anthropic() -> Wire {
    let delta = |index: u32, kind: &str, key: &str, piece: &str| {
        let delta = json!({ "type": kind, key: piece });
        json!({ "type": "content_block_delta", "index": index, "delta": delta })
    };
    let stop = |index: u32| json!({ "type": "content_block_stop", "index": index });
    let tool = |id: &str, name: &str| {
        let caller = json!({ "type": "direct" });
        json!({ "type": "tool_use", "id": id, "name": name, "input": {}, "caller": caller })
    };
    let content = json!([
        { "type": "thinking", "thinking": "hm", "signature": "s" },
        { "type": "text", "text": "Grüße 東京" },
        { "type": "tool_use", "id": "a", "name": "x", "input": { "k": "é" } },
        { "type": "tool_use", "id": "b", "name": "y", "input": {} },
    ]);
    let farewell = json!({ "type": "message_stop" });
    let pieces = vec![
        json!({ "type": "message_start", "message": { "content": [], "stop_reason": null, "usage": {
            "input_tokens": 4, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 1,
            "output_tokens": 1,
        } } }),
        start(0, json!({ "type": "thinking", "thinking": "", "signature": "" })),
        json!({ "type": "ping" }),
        delta(0, "thinking_delta", "thinking", "hm"),
        delta(0, "signature_delta", "signature", "s"),
        stop(0),
        start(1, json!({ "type": "text", "text": "" })),
        delta(1, "text_delta", "text", "Grüße"),
        delta(1, "text_delta", "text", " 東京"),
        stop(1),
        start(2, tool("a", "x")),
        delta(2, "input_json_delta", "partial_json", ""),
        delta(2, "input_json_delta", "partial_json", "{\"k\":"),
        delta(2, "input_json_delta", "partial_json", "\"é\"}"),
        stop(2),
        start(3, tool("b", "y")),
        delta(3, "input_json_delta", "partial_json", ""),
        stop(3),
        json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" }, "usage": {
            "output_tokens": 9, "output_tokens_details": { "thinking_tokens": 5 },
        } }),
        farewell.clone(),
    ];
    Wire {
        protocol: ProviderProtocol::Anthropic,
        content_type: "text/event-stream; charset=utf-8",
        pieces,
        farewell_bytes: written(ProviderProtocol::Anthropic, &[farewell]).len(),
        whole: json!({ "type": "message", "content": content, "stop_reason": "tool_use", "usage": {
            "input_tokens": 4, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 1,
            "output_tokens": 9, "output_tokens_details": { "thinking_tokens": 5 },
        } }),
        ids: ["a", "b"],
        usage: TokenUsage {
            input_tokens: 7,
            output_tokens: 9,
            cached_input_tokens: 2,
            cache_write_tokens: 1,
            reasoning_tokens: 5,
        },
        own: json!({ "role": "assistant", "content": content }),
    }
}

fn gemini() -> Wire {
    let calls = json!([
        { "functionCall": { "name": "x", "args": { "k": "é" } }, "thoughtSignature": "s" },
        { "functionCall": { "name": "y", "args": {} } },
    ]);
    let usage = json!({
        "promptTokenCount": 7, "candidatesTokenCount": 4, "thoughtsTokenCount": 5,
        "cachedContentTokenCount": 2,
    });
    let parts = json!([
        { "text": "hm", "thought": true }, { "text": "Grüße 東京" }, calls[0], calls[1],
    ]);
    let piece = |parts: Value| {
        json!({
            "candidates": [{ "content": { "parts": parts, "role": "model" }, "index": 0 }],
            "usageMetadata": { "promptTokenCount": 7 },
        })
    };
    let end = |parts: &Value| {
        let content = json!({ "parts": parts, "role": "model" });
        json!({
            "candidates": [{ "content": content, "finishReason": "STOP", "index": 0 }],
            "usageMetadata": usage,
        })
    };
    Wire {
        protocol: ProviderProtocol::Gemini,
        content_type: "text/event-stream",
        pieces: vec![
            piece(json!([{ "text": "hm", "thought": true }])),
            piece(json!([{ "text": "Grüße" }])),
            piece(json!([{ "text": " 東京" }])),
            end(&calls),
        ],
        farewell_bytes: 1,
        whole: end(&parts),
        ids: ["call_1", "call_2"],
        usage: TokenUsage {
            input_tokens: 7,
            output_tokens: 9,
            cached_input_tokens: 2,
            cache_write_tokens: 0,
            reasoning_tokens: 5,
        },
        own: json!({ "role": "model", "parts": parts }),
    }
}

fn ollama() -> Wire {
    let calls = json!([
        { "function": { "index": 0, "name": "x", "arguments": { "k": "é" } } },
        { "function": { "index": 1, "name": "y", "arguments": {} } },
    ]);
    let piece = |message: Value| json!({ "model": "m", "message": message, "done": false });
    let message = json!({
        "role": "assistant", "content": "Grüße 東京", "thinking": "hm", "tool_calls": calls,
    });
    let end = |message: Value| {
        json!({
            "model": "m", "message": message, "done": true, "done_reason": "stop",
            "prompt_eval_count": 7, "eval_count": 9,
        })
    };
    Wire {
        protocol: ProviderProtocol::Ollama,
        content_type: "application/x-ndjson",
        pieces: vec![
            piece(json!({ "role": "assistant", "content": "", "thinking": "hm" })),
            piece(json!({ "role": "assistant", "content": "Grüße" })),
            piece(json!({ "role": "assistant", "content": " 東京" })),
            piece(json!({ "role": "assistant", "content": "", "tool_calls": [calls[0]] })),
            piece(json!({ "role": "assistant", "content": "", "tool_calls": [calls[1]] })),
            end(json!({ "role": "assistant", "content": "" })),
        ],
        farewell_bytes: 1,
        whole: end(message.clone()),
        ids: ["call_1", "call_2"],
        usage: TokenUsage { input_tokens: 7, output_tokens: 9, ..TokenUsage::default() },
        own: message,
    }
}
