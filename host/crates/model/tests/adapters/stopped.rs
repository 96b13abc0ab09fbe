//! A conversation in which the user stopped answers, in every format.

use serde_json::Value;

use crate::{ChatMessage, ProviderProtocol, call, result, said, sent};

const ALL_PROTOCOLS: [ProviderProtocol; 5] = [
    ProviderProtocol::OpenAiChat,
    ProviderProtocol::OpenAiResponses,
    ProviderProtocol::Anthropic,
    ProviderProtocol::Gemini,
    ProviderProtocol::Ollama,
];

/// One answer was stopped while it arrived, one while its call ran, and one before anything came.
fn conversation() -> Vec<ChatMessage> {
    vec![
        ChatMessage::user("first"),
        said("It is\n[stopped by the user]", &[]),
        ChatMessage::user("second"),
        said("", &[call("a", "x", "{}")]),
        result("a", "x", "{\"outcome\":\"cancelled\"}", true),
        said("[stopped by the user]", &[]),
        ChatMessage::user("third"),
    ]
}

/// Returns every message or item of a request.
fn messages(body: &Value) -> Vec<Value> {
    let list = ["messages", "contents", "input"].iter().find_map(|name| body[*name].as_array());
    list.unwrap().clone()
}

#[tokio::test]
async fn the_model_is_told_and_no_message_is_empty() {
    for protocol in ALL_PROTOCOLS {
        let (_, body) = sent(protocol, |endpoint| endpoint, &conversation(), &[]).await;
        let messages = messages(&body);
        let texts = messages.iter().map(Value::to_string).collect::<Vec<_>>();
        let count = |part: &str| texts.iter().filter(|text| text.contains(part)).count();
        assert_eq!(count("[stopped by the user]"), 2, "{protocol:?} {body}");
        assert_eq!(count("It is"), 1, "{protocol:?} {body}");
        assert_eq!(count("cancelled"), 1, "{protocol:?} {body}");
        for message in &messages {
            let parts = message.get("content").or_else(|| message.get("parts"));
            let calls = message.get("tool_calls").or_else(|| message.get("call_id"));
            let is_empty = parts.is_none_or(|parts| {
                parts.is_null() || *parts == "" || parts.as_array().is_some_and(Vec::is_empty)
            });
            assert!(!is_empty || calls.is_some(), "{protocol:?} {message}");
        }
        let last = texts.last().unwrap();
        assert!(last.contains("third"), "{protocol:?} {last}");
    }
}
