//! Requirements of Ollama's protocol alone.

use sallyport_model::{
    ChatMessage, FinishReason, ModelEndpoint, ProviderProtocol, ReasoningEffort, UserInputMessage,
};
use serde_json::{Value, json};

use crate::server::{chunked, last_chunk};
use crate::{call, file, hello, play, result, said, said_before, sent, system, tools};

async fn messages(messages: &[ChatMessage]) -> Value {
    sent(ProviderProtocol::Ollama, |endpoint| endpoint, messages, &[]).await.1["messages"].take()
}

fn uses(name: &str, arguments: Value) -> Value {
    json!({ "type": "function", "function": { "name": name, "arguments": arguments } })
}

#[tokio::test]
async fn a_conversation_is_written_as_the_protocol_wants_it() {
    let messages = [
        system("be brief"),
        ChatMessage::user("hello"),
        said("let me see", &[call("a", "x", r#"{"k":1}"#), call("b", "y", "")]),
        result("a", "x", "\"found\"", false),
        result("b", "y", "{}", true),
        said("done", &[]),
        ChatMessage::user("thanks"),
    ];
    let (head, body) =
        sent(ProviderProtocol::Ollama, |endpoint| endpoint, &messages, &tools()).await;
    assert!(head.starts_with("POST /v1/api/chat HTTP/1.1\r\n"), "{head}");
    let tool = |name: &str| {
        json!({ "type": "function", "function": {
            "name": name, "description": format!("Does {name}."),
            "parameters": { "type": "object", "properties": {} },
        } })
    };
    assert_eq!(
        body,
        json!({
            "model": "test-model", "stream": true, "tools": [tool("x"), tool("y")],
            "messages": [
                { "role": "system", "content": "be brief" },
                { "role": "user", "content": "hello" },
                { "role": "assistant", "content": "let me see", "tool_calls": [
                    uses("x", json!({ "k": 1 })), uses("y", json!({})),
                ] },
                { "role": "tool", "tool_name": "x", "content": "\"found\"" },
                { "role": "tool", "tool_name": "y", "content": "{}" },
                { "role": "assistant", "content": "done" },
                { "role": "user", "content": "thanks" },
            ],
        })
    );
}

#[tokio::test]
async fn a_request_says_what_was_set() {
    let rows = [
        ("qwen3:4b", Some(ReasoningEffort::Low), json!(true)),
        ("gpt-oss:20b", Some(ReasoningEffort::Low), json!("low")),
        ("gpt-oss:20b", None, Value::Null),
    ];
    for (model, effort, want) in rows {
        let set = |endpoint: ModelEndpoint| ModelEndpoint {
            model: model.to_owned(),
            stream: false,
            temperature: Some(0.5),
            output_tokens_max: Some(64),
            context_tokens: Some(8192),
            effort,
            ..endpoint
        };
        let (_, body) = sent(ProviderProtocol::Ollama, set, &hello(), &[]).await;
        assert_eq!(body.get("think").unwrap_or(&Value::Null), &want);
        assert_eq!(
            body["options"],
            json!({ "num_ctx": 8192, "num_predict": 64, "temperature": 0.5 })
        );
        assert_eq!((&body["stream"], body.get("tools")), (&json!(false), None));
    }
    let (_, body) = sent(ProviderProtocol::Ollama, |endpoint| endpoint, &hello(), &[]).await;
    assert_eq!(body.get("options"), None);
}

#[tokio::test]
async fn pictures_go_beside_the_words_and_files_into_them() {
    let said = UserInputMessage {
        text: "what is this?".to_owned(),
        attachments: vec![
            file("a.png", "image/png", b"P"),
            file("b.txt", "text/plain", b"words"),
            file("c.wav", "audio/wav", b"S"),
        ],
        ..UserInputMessage::default()
    };
    let message = messages(&[ChatMessage::User(said)]).await[0].take();
    assert_eq!(message["images"], json!(["UA=="]));
    let content = message["content"].as_str().unwrap();
    for part in ["b.txt", "words", "c.wav", "left out"] {
        assert!(content.contains(part), "{content}");
    }
    assert!(content.ends_with("\n\nwhat is this?"), "{content}");
}

#[tokio::test]
async fn only_a_form_of_the_same_calls_goes_back() {
    let own = |name: &str, arguments: Value| {
        json!({
            "role": "assistant", "content": "t", "thinking": "hm",
            "tool_calls": [{ "function": { "index": 0, "name": name, "arguments": arguments } }],
        })
    };
    let (origin, calls) = ("ollama/test-model", [call("a", "x", "{}")]);
    let same = own("x", json!({}));
    let anew = json!({ "role": "assistant", "content": "t", "tool_calls": [uses("x", json!({}))] });
    let rows = [
        (origin, same.clone(), same.clone()),
        ("ollama/other", same, anew.clone()),
        (origin, own("y", json!({})), anew.clone()),
        (origin, own("x", json!({ "k": 1 })), anew.clone()),
        (origin, json!({ "content": "t" }), anew.clone()),
        (origin, json!({ "tool_calls": "x" }), anew.clone()),
        (origin, json!(null), anew),
    ];
    for (origin, own, want) in rows {
        let said = said_before("t", &calls, origin, own.clone());
        let messages = messages(&[ChatMessage::user("hello"), said]).await;
        assert_eq!(messages[1], want, "{own}");
    }
}

#[tokio::test]
async fn ids_of_the_server_are_kept_and_text_is_taken_for_arguments() {
    let line = json!({
        "message": { "tool_calls": [
            { "id": "theirs", "function": { "name": "x", "arguments": "{\"k\": 1}" } },
            { "id": "theirs", "function": { "name": "x" } },
        ] },
        "done": true, "done_reason": "length",
    });
    let script =
        vec![chunked("application/x-ndjson", &[line.to_string().as_bytes()]), last_chunk()];
    let (reply, _) = play(ProviderProtocol::Ollama, script, true).await.unwrap();
    assert_eq!(reply.message.calls, [call("theirs", "x", "{\"k\": 1}"), call("call_1", "x", "{}")]);
    assert_eq!((reply.finish, reply.usage), (FinishReason::Length, None));
}
