//! The requests, except for their text.

use sallyport_model::{
    ChatMessage, FileAttachment, ModelEndpoint, ModelRequest, ModelToolDefinition, ReasoningEffort,
    TokenUsage, UserInputMessage,
};
use sallyport_model::{ChatModel as _, ModelAdapter};
use serde_json::{Value, json};

use crate::server::{Server, plain};
use crate::{ask, hello, settings};

async fn sent(change: impl FnOnce(&mut ModelEndpoint), messages: &[ChatMessage]) -> Value {
    let server = Server::start(plain(200, "", "{}")).await;
    let mut settings = settings(server.base_url.clone(), false);
    change(&mut settings);
    let _ = ask(settings, messages, &[]).await;
    server.seen().remove(0).body
}

#[tokio::test]
async fn limits_and_effort_go_along() {
    let body = sent(
        |settings| {
            settings.output_tokens_max = Some(99);
            settings.effort = Some(ReasoningEffort::Low);
        },
        &hello(),
    )
    .await;
    let want = json!({
        "model": "test-model", "stream": false, "max_tokens": 99, "reasoning_effort": "low",
        "messages": [{ "role": "user", "content": "hello" }],
    });
    assert_eq!(body, want);
}

#[tokio::test]
async fn sounds_and_pictures_go_along() {
    let attachments = vec![FileAttachment {
        name: "a.wav".to_owned(),
        media_type: "audio/wav".to_owned(),
        data: b"RIFF"[..].into(),
    }];
    let said = ChatMessage::User(UserInputMessage {
        text: String::new(),
        attachments,
        ..UserInputMessage::default()
    });
    let body = sent(|_| {}, &[said]).await;
    let want =
        json!([{ "type": "input_audio", "input_audio": { "data": "UklGRg==", "format": "wav" } }]);
    assert_eq!(body["messages"][0]["content"], want);
}

#[tokio::test]
async fn tools_are_those_of_each_request() {
    let tool = |name: &str| ModelToolDefinition {
        name: name.to_owned(),
        description: "d".to_owned(),
        parameters: json!({ "type": "object", "properties": {} }),
    };
    let lists = [vec![tool("a")], vec![tool("a")], vec![tool("a"), tool("b")], vec![]];
    let server = Server::start(plain(200, "", "{}")).await;
    let model = ModelAdapter::new(settings(server.base_url.clone(), true)).unwrap();
    let messages = hello();
    for tools in &lists {
        let _ = model
            .generate(
                ModelRequest { messages: &messages, tools, ..ModelRequest::default() },
                &mut |_| {},
            )
            .await;
    }
    for (seen, tools) in server.seen().iter().zip(&lists) {
        let function = |tool: &ModelToolDefinition| {
            json!({ "type": "function", "function": {
                "name": tool.name, "description": "d", "parameters": { "type": "object", "properties": {} },
            } })
        };
        let want: Vec<Value> = tools.iter().map(function).collect();
        assert_eq!(seen.body.get("tools").cloned().unwrap_or(json!([])), Value::from(want));
    }
}

#[tokio::test]
async fn usage_is_read_with_its_parts() {
    let rows = [
        (
            json!({
                "prompt_tokens": 9, "completion_tokens": 5,
                "prompt_tokens_details": { "cached_tokens": 4, "cache_write_tokens": 3 },
                "completion_tokens_details": { "reasoning_tokens": 2 },
            }),
            TokenUsage {
                input_tokens: 9,
                output_tokens: 5,
                cached_input_tokens: 4,
                cache_write_tokens: 3,
                reasoning_tokens: 2,
            },
        ),
        (
            json!({ "prompt_tokens": 9, "completion_tokens": 5, "prompt_cache_hit_tokens": 6 }),
            TokenUsage {
                input_tokens: 9,
                output_tokens: 5,
                cached_input_tokens: 6,
                ..TokenUsage::default()
            },
        ),
        (json!({ "prompt_tokens": "9", "completion_tokens": -1 }), TokenUsage::default()),
    ];
    for (usage, want) in rows {
        let answer = json!({ "choices": [{ "message": { "content": "a" } }], "usage": usage });
        let script = plain(200, "content-type: application/json\r\n", &answer.to_string());
        let server = Server::start(script).await;
        let (reply, _) =
            ask(settings(server.base_url.clone(), false), &hello(), &[]).await.unwrap();
        assert_eq!(reply.usage, Some(want));
    }
}
