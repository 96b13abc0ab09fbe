//! Requirements of Anthropic's protocol alone.

use sallyport_model::{
    ChatMessage, FinishReason, ModelEndpoint, ProviderProtocol, ReasoningEffort, UserInputMessage,
};
use serde_json::{Value, json};

use crate::server::{chunked, last_chunk, plain};
use crate::wires::written;
use crate::{call, file, hello, play, result, said, said_before, sent, system, tools};

const ORIGIN: &str = "anthropic/test-model";

async fn body(messages: &[ChatMessage]) -> Value {
    sent(ProviderProtocol::Anthropic, |endpoint| endpoint, messages, &[]).await.1
}

/// The content of one message of a body, without cache marks.
fn content(body: &Value, at: usize) -> Value {
    let mut content = body["messages"][at]["content"].clone();
    for block in content.as_array_mut().unwrap() {
        block.as_object_mut().unwrap().remove("cache_control");
    }
    content
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn uses(id: &str, name: &str, input: Value) -> Value {
    json!({ "type": "tool_use", "id": id, "name": name, "input": input })
}

fn gave(id: &str, words: &str) -> Value {
    json!({ "type": "tool_result", "tool_use_id": id, "content": [text(words)] })
}

fn inline(kind: &str, media_type: &str, data: &str) -> Value {
    let source = json!({ "type": "base64", "media_type": media_type, "data": data });
    json!({ "type": kind, "source": source })
}

fn marked(mut block: Value) -> Value {
    block["cache_control"] = json!({ "type": "ephemeral" });
    block
}

#[tokio::test]
async fn a_conversation_is_written_as_the_protocol_wants_it() {
    let messages = [
        system("be brief"),
        system("know this"),
        ChatMessage::user("hello"),
        said("let me see", &[call("a", "x", r#"{"k":1}"#), call("b", "y", "")]),
        result("a", "x", "\"found\"", false),
        result("b", "y", r#"{"outcome":"failed"}"#, true),
        said("done", &[]),
        ChatMessage::user("thanks"),
    ];
    let (head, body) =
        sent(ProviderProtocol::Anthropic, |endpoint| endpoint, &messages, &tools()).await;
    assert!(head.starts_with("POST /v1/messages HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("anthropic-version: 2023-06-01\r\n"), "{head}");
    let tool = |name: &str| {
        json!({
            "name": name, "description": format!("Does {name}."),
            "input_schema": { "type": "object", "properties": {} },
        })
    };
    let mut failed = gave("b", r#"{"outcome":"failed"}"#);
    failed["is_error"] = json!(true);
    assert_eq!(
        body,
        json!({
            "model": "test-model", "max_tokens": 32_000, "stream": true,
            "system": [text("be brief"), marked(text("know this"))],
            "tools": [tool("x"), marked(tool("y"))],
            "messages": [
                { "role": "user", "content": [text("hello")] },
                { "role": "assistant", "content": [
                    text("let me see"), uses("a", "x", json!({ "k": 1 })),
                    uses("b", "y", json!({})),
                ] },
                { "role": "user", "content": [gave("a", "\"found\""), marked(failed)] },
                { "role": "assistant", "content": [text("done")] },
                { "role": "user", "content": [marked(text("thanks"))] },
            ],
        })
    );
}

#[tokio::test]
async fn a_request_says_what_was_set() {
    let set = |endpoint: ModelEndpoint| ModelEndpoint {
        stream: false,
        temperature: Some(0.5),
        output_tokens_max: Some(64),
        model: "claude-haiku-4-5".to_owned(),
        ..endpoint
    };
    let (_, body) = sent(ProviderProtocol::Anthropic, set, &hello(), &[]).await;
    assert_eq!((&body["stream"], &body["max_tokens"]), (&json!(false), &json!(64)));
    assert_eq!(body["temperature"], json!(0.5));
    assert_eq!((body.get("tools"), body.get("system")), (None, None));
    let set = |endpoint| ModelEndpoint { effort: Some(ReasoningEffort::High), ..endpoint };
    let (_, body) = sent(ProviderProtocol::Anthropic, set, &hello(), &[]).await;
    assert_eq!(body["output_config"], json!({ "effort": "high" }));
}

#[tokio::test]
async fn roles_alternate_and_results_come_first() {
    let called = said("", &[call("a", "x", "{}")]);
    let messages = [
        ChatMessage::user("one"),
        ChatMessage::user("two"),
        called,
        result("a", "x", "{}", false),
        ChatMessage::user("three"),
    ];
    let body = body(&messages).await;
    let roles: Vec<&Value> =
        body["messages"].as_array().unwrap().iter().map(|m| &m["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    assert_eq!(content(&body, 0), json!([text("one"), text("two")]));
    assert_eq!(content(&body, 2)[0]["type"], "tool_result");
    assert_eq!(content(&body, 2)[1], text("three"));
}

#[tokio::test]
async fn files_come_before_the_words_about_them() {
    let said = UserInputMessage {
        text: "what is this?".to_owned(),
        attachments: vec![
            file("a.png", "image/png", b"P"),
            file("b.pdf", "application/pdf", b"D"),
            file("c.txt", "text/plain", b"words"),
            file("d.wav", "audio/wav", b"S"),
            file("e.bmp", "image/bmp", b"B"),
        ],
        ..UserInputMessage::default()
    };
    let body = body(&[ChatMessage::User(said)]).await;
    let content = content(&body, 0);
    assert_eq!(content[0], inline("image", "image/png", "UA=="));
    assert_eq!(content[1], inline("document", "application/pdf", "RA=="));
    let words = |at: usize| content[at]["text"].as_str().unwrap();
    assert!(words(2).contains("c.txt") && words(2).contains("words"), "{content}");
    assert!(words(3).contains("d.wav") && words(3).contains("left out"), "{content}");
    assert!(words(4).contains("e.bmp") && words(4).contains("left out"), "{content}");
    assert_eq!(content[5], text("what is this?"));
}

#[tokio::test]
async fn only_a_form_that_can_go_back_goes_back() {
    let thinking = json!({ "type": "thinking", "thinking": "hm", "signature": "s" });
    let redacted = json!({ "type": "redacted_thinking", "data": "x" });
    let used = json!({ "type": "tool_use", "id": "a", "name": "x", "input": {} });
    let renamed = json!({ "type": "tool_use", "id": "a", "name": "y", "input": {} });
    let calls = [call("a", "x", "{}")];
    let anew = json!([text("t"), used]);
    let own = |blocks: Value| json!({ "role": "assistant", "content": blocks });
    let rows = [
        (ORIGIN, own(json!([thinking, redacted, used])), json!([thinking, redacted, used])),
        // A blank text, and thinking at the end of a message.
        (ORIGIN, own(json!([text("\n\n"), used, thinking])), json!([used])),
        // Another model, other calls, and no form.
        ("anthropic/other", own(json!([thinking, used])), anew.clone()),
        (ORIGIN, own(json!([thinking])), anew.clone()),
        (ORIGIN, own(json!([used, used])), anew.clone()),
        (ORIGIN, own(json!([thinking, renamed])), anew.clone()),
        (ORIGIN, json!({ "role": "assistant", "content": "text" }), anew.clone()),
        (ORIGIN, json!([1]), anew),
    ];
    for (origin, own, want) in rows {
        let messages = [
            ChatMessage::user("hello"),
            said_before("t", &calls, origin, own.clone()),
            result("a", "x", "{}", false),
        ];
        assert_eq!(content(&body(&messages).await, 1), want, "{own}");
    }
}

#[tokio::test]
async fn what_says_nothing_is_not_sent() {
    let thinking = json!({ "role": "assistant", "content": [{ "type": "thinking" }] });
    let messages = [
        system(" "),
        ChatMessage::user("one"),
        said_before("", &[], ORIGIN, thinking),
        ChatMessage::user(" "),
        said("", &[]),
    ];
    let body = body(&messages).await;
    assert_eq!(body.get("system"), None);
    assert_eq!(body["messages"].as_array().unwrap().len(), 1);
    assert_eq!(content(&body, 0), json!([text("one"), text("(no words)")]));
}

#[tokio::test]
async fn broken_arguments_stay_visible() {
    let messages = [
        ChatMessage::user("hello"),
        said("", &[call("a", "x", "{\"k\":")]),
        result("a", "x", "{}", true),
    ];
    let body = body(&messages).await;
    assert_eq!(content(&body, 1)[0]["input"], json!({ "INVALID_JSON": "{\"k\":" }));
}

#[tokio::test]
async fn what_another_model_wrote_is_made_acceptable() {
    let calls = [call("functions.read:0", "functions.read", "{}")];
    let block = json!({
        "type": "tool_use", "id": calls[0].id, "name": calls[0].name, "input": {},
    });
    let own = json!({ "role": "assistant", "content": [block] });
    for said in [said("", &calls), said_before("", &calls, ORIGIN, own)] {
        let messages = [ChatMessage::user("hello"), said, result(&calls[0].id, "x", "{}", true)];
        let body = body(&messages).await;
        let (used, gave) = (content(&body, 1)[0].clone(), content(&body, 2)[0].clone());
        assert_eq!(used["id"], "id_66756e6374696f6e732e726561643a30");
        assert_eq!((&used["id"], &used["name"]), (&gave["tool_use_id"], &json!("functions_read")));
    }
}

#[tokio::test]
async fn an_answer_may_say_nothing() {
    let events = [
        json!({ "type": "message_start", "message": {} }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "refusal" } }),
        json!({ "type": "message_stop" }),
    ];
    let stream = written(ProviderProtocol::Anthropic, &events);
    let script = vec![chunked("text/event-stream", &[&stream]), last_chunk()];
    let (reply, deltas) = play(ProviderProtocol::Anthropic, script, true).await.unwrap();
    assert_eq!((reply.finish, reply.usage), (FinishReason::ContentFilter, None));
    assert_eq!((reply.message.text.as_str(), deltas), ("", vec![]));
    let empty = r#"{"content":[],"stop_reason":"end_turn"}"#;
    let script = plain(200, "content-type: application/json\r\n", empty);
    let (reply, _) = play(ProviderProtocol::Anthropic, script, false).await.unwrap();
    assert_eq!(reply.finish, FinishReason::Stop);
}
