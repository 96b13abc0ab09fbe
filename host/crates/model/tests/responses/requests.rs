//! The requests: the conversation in the provider's form, with its own items unchanged.

use sallyport_model::{
    AssistantMessage, ChatMessage, FileAttachment, ModelCallRequest, ModelEndpoint,
    ModelToolDefinition, OpaqueMessage, ReasoningEffort, ToolResultMessage, UserInputMessage,
};
use serde_json::{Value, json};

use crate::server::{Server, plain};
use crate::{KEY, ask, hello, settings};

const ORIGIN: &str = "openai-responses/test-model";

/// Sends a request and returns it as it arrived.
async fn sent(
    change: impl FnOnce(&mut ModelEndpoint),
    messages: &[ChatMessage],
    tools: &[ModelToolDefinition],
) -> (String, Value) {
    let server = Server::start(plain(200, "", "{}")).await;
    let mut settings = settings(server.base_url.clone(), true);
    change(&mut settings);
    let _ = ask(settings, messages, tools).await;
    let seen = server.seen().remove(0);
    (seen.head, seen.body)
}

async fn input(messages: &[ChatMessage]) -> Value {
    sent(|_| {}, messages, &[]).await.1["input"].take()
}

fn said(text: &str, calls: &[&str], opaque: Option<Value>) -> ChatMessage {
    let call = |id: &&str| ModelCallRequest {
        id: (*id).to_owned(),
        name: "n".to_owned(),
        arguments: String::new(),
    };
    let opaque = opaque.map(|body| OpaqueMessage { origin: ORIGIN.to_owned(), body });
    let calls = calls.iter().map(call).collect();
    ChatMessage::Assistant(AssistantMessage { text: text.to_owned(), calls, opaque })
}

#[tokio::test]
async fn the_request_carries_what_was_set() {
    let tool = ModelToolDefinition {
        name: "n".to_owned(),
        description: "d".to_owned(),
        parameters: json!({ "type": "object", "properties": {} }),
    };
    let system = |text: &str| ChatMessage::System { text: text.to_owned() };
    let messages = [system("a"), system("b"), ChatMessage::user("hello"), system("c")];
    let change = |settings: &mut ModelEndpoint| {
        settings.temperature = Some(0.5);
        settings.output_tokens_max = Some(99);
        settings.effort = Some(ReasoningEffort::High);
    };
    let (head, body) = sent(change, &messages, &[tool]).await;
    assert!(head.starts_with("POST /v1/responses HTTP/1.1\r\n"), "{head}");
    assert!(head.contains(&format!("authorization: Bearer {KEY}\r\n")), "{head}");
    let spoken = |role: &str, text: &str| json!({ "type": "message", "role": role, "content": [{ "type": "input_text", "text": text }] });
    let want = json!({
        "model": "test-model", "stream": true, "store": false,
        "include": ["reasoning.encrypted_content"],
        "instructions": "a\n\nb",
        "input": [spoken("user", "hello"), spoken("system", "c")],
        "temperature": 0.5, "max_output_tokens": 99, "reasoning": { "effort": "high" },
        "tools": [{
            "type": "function", "name": "n", "description": "d",
            "parameters": { "type": "object", "properties": {} }, "strict": false,
        }],
    });
    assert_eq!(body, want);
}

#[tokio::test]
async fn models_that_do_not_think_are_not_asked_for_thoughts() {
    let rows = [
        ("gpt-5-mini", true),
        ("o3", true),
        ("some/model", true),
        ("gpt-4o", false),
        ("openai/gpt-4.1-mini", false),
        ("gpt-5-chat-latest", false),
    ];
    for (model, thinks) in rows {
        let change = |settings: &mut ModelEndpoint| settings.model = model.to_owned();
        let (_, body) = sent(change, &hello(), &[]).await;
        assert_eq!(body.get("include").is_some(), thinks, "{model}");
    }
}

#[tokio::test]
async fn own_items_go_back_untouched_and_thoughts_without_content_do_not() {
    let call = json!({
        "type": "function_call", "id": "fc_1", "call_id": "a", "name": "n", "arguments": "{}",
        "status": "completed",
    });
    let sealed =
        json!({ "type": "reasoning", "id": "r1", "summary": [], "encrypted_content": "s" });
    let told =
        json!({ "type": "reasoning", "id": "r2", "content": [{ "type": "reasoning_text" }] });
    let bare = json!({ "type": "reasoning", "id": "r3", "summary": [], "encrypted_content": null });
    let result = ToolResultMessage {
        call_id: "a".to_owned(),
        name: "n".to_owned(),
        content: "{}".to_owned(),
        failed: false,
    };
    let own = json!([sealed, told, bare, call]);
    let sent = input(&[
        ChatMessage::user("hello"),
        said("", &["a"], Some(own)),
        ChatMessage::Tool(result),
    ])
    .await;
    let output = json!({ "type": "function_call_output", "call_id": "a", "output": "{}" });
    assert_eq!(sent.as_array().unwrap()[1..], [sealed, told, call, output]);
}

#[tokio::test]
async fn items_of_another_model_or_of_other_calls_are_built_anew() {
    let rebuilt = json!([
        { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "t" }] },
        { "type": "function_call", "call_id": "a", "name": "n", "arguments": "{}" },
    ]);
    let call = |id: &str| json!({ "type": "function_call", "call_id": id });
    let foreign = ChatMessage::Assistant(AssistantMessage {
        opaque: Some(OpaqueMessage {
            origin: "openai-responses/other".to_owned(),
            body: json!([call("a")]),
        }),
        ..match said("t", &["a"], None) {
            ChatMessage::Assistant(said) => said,
            _ => unreachable!("an assistant said it"),
        }
    });
    let rows = [
        foreign,
        said("t", &["a"], None),
        said("t", &["a"], Some(json!({}))),
        said("t", &["a"], Some(json!([]))),
        said("t", &["a"], Some(json!([call("b")]))),
        said("t", &["a"], Some(json!([call("a"), call("a")]))),
    ];
    for message in rows {
        assert_eq!(input(&[message]).await, rebuilt);
    }
    let words = input(&[said("", &[], None)]).await;
    assert_eq!(words[0]["content"], json!([{ "type": "output_text", "text": "" }]));
}

#[tokio::test]
async fn files_go_along_in_the_form_that_fits() {
    let file = |media_type: &str, data: &[u8]| FileAttachment {
        name: "f".to_owned(),
        media_type: media_type.to_owned(),
        data: data.into(),
    };
    let attachments = vec![
        file("image/png", b"\x89P"),
        file("audio/wav", b"RIFF"),
        file("text/plain", b"words"),
        file("application/pdf", b"%PDF"),
    ];
    let sent = input(&[ChatMessage::User(UserInputMessage {
        text: "look".to_owned(),
        attachments,
        ..UserInputMessage::default()
    })])
    .await;
    let parts = sent[0]["content"].as_array().unwrap();
    let text = |text: &str| json!({ "type": "input_text", "text": text });
    let want = [
        text("look"),
        json!({ "type": "input_image", "image_url": "data:image/png;base64,iVA=" }),
        json!({ "type": "input_audio", "input_audio": { "data": "UklGRg==", "format": "wav" } }),
        text("<file name=\"f\">\nwords\n</file>"),
    ];
    assert_eq!(parts[..4], want);
    assert!(parts[4]["text"].as_str().unwrap().contains("left out"), "{}", parts[4]);
}
