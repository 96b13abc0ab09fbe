//! The entry point: the adapter of the endpoint's protocol, with retries.

use std::sync::atomic::{AtomicUsize, Ordering};

use sallyport_model::{
    EndpointSettingsError, ModelEndpoint, ModelError, ModelRequest, ProviderProtocol, ReplyDelta,
    ToolCallingMode, connect_model,
};

use crate::server::{Server, chunked, last_chunk, plain};
use crate::{hello, settings};

const WHOLE: &str = r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}"#;

const PROTOCOLS: [(ProviderProtocol, &str); 5] = [
    (ProviderProtocol::OpenAiChat, "POST /v1/chat/completions "),
    (ProviderProtocol::OpenAiResponses, "POST /v1/responses "),
    (ProviderProtocol::Anthropic, "POST /v1/messages "),
    (ProviderProtocol::Gemini, "POST /v1/models/test-model:generateContent "),
    (ProviderProtocol::Ollama, "POST /v1/api/chat "),
];

#[tokio::test]
async fn each_protocol_has_its_adapter() {
    for (protocol, line) in PROTOCOLS {
        for tool_calling in [ToolCallingMode::Native, ToolCallingMode::Json] {
            let server = Server::start(plain(400, "", "{}")).await;
            let settings = settings(server.base_url.clone(), false);
            let model =
                connect_model(ModelEndpoint { protocol, tool_calling, ..settings }).unwrap();
            let messages = hello();
            let request = ModelRequest { messages: &messages, ..ModelRequest::default() };
            let got = model.generate(request, &mut |_| {}).await;
            assert!(matches!(got, Err(ModelError::Refused { status: 400, .. })), "{got:?}");
            let seen = server.seen();
            assert!(seen[0].head.starts_with(line), "{}", seen[0].head);
            assert_eq!(seen.len(), 1);
            assert!(model.name().starts_with("test-model"), "{}", model.name());
        }
    }
}

#[test]
fn settings_that_cannot_work_open_no_door() {
    for (protocol, _) in PROTOCOLS {
        let endpoint = ModelEndpoint { protocol, ..settings("ftp://x".to_owned(), true) };
        assert_eq!(connect_model(endpoint).err(), Some(EndpointSettingsError::Scheme));
    }
}

#[tokio::test]
async fn a_server_that_is_busy_for_a_moment_is_asked_again() {
    let asked = AtomicUsize::new(0);
    let server = Server::directed(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
        0 => plain(503, "retry-after: 0\r\n", "busy"),
        _ => plain(200, "content-type: application/json\r\n", WHOLE),
    })
    .await;
    let model = connect_model(settings(server.base_url.clone(), true)).unwrap();
    let messages = hello();
    let mut deltas = Vec::new();
    let mut on_delta = |delta| deltas.push(delta);
    let request = ModelRequest { messages: &messages, ..ModelRequest::default() };
    let reply = model.generate(request, &mut on_delta).await.unwrap();
    assert_eq!(reply.message.text, "hi");
    let [ReplyDelta::Retry { attempt: 2, reason, .. }, ReplyDelta::Text { text }] = &deltas[..]
    else {
        panic!("{deltas:?}");
    };
    assert!(reason.ends_with("answered with status 503: busy") && text == "hi", "{deltas:?}");
}

#[tokio::test]
async fn an_answer_that_had_begun_is_not_asked_for_again() {
    let begun = b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"error\":{\"code\":503,\"message\":\"m\"}}\n\n";
    let script = vec![chunked("text/event-stream", &[begun]), last_chunk()];
    let server = Server::start(script).await;
    let model = connect_model(settings(server.base_url.clone(), true)).unwrap();
    let messages = hello();
    let request = ModelRequest { messages: &messages, ..ModelRequest::default() };
    let got = model.generate(request, &mut |_| {}).await;
    assert!(matches!(got, Err(ModelError::Refused { status: 503, .. })), "{got:?}");
    assert_eq!(server.seen().len(), 1);
}
