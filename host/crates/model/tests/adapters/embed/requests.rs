//! The requests of embedders, and their number.

use std::sync::atomic::{AtomicUsize, Ordering};

use sallyport_model::{EndpointSettingsError, ModelEndpoint};

use super::*;

/// The number of texts in a request.
fn count(body: &Value) -> usize {
    let list = body.get("input").or_else(|| body.get("requests"));
    list.and_then(Value::as_array).unwrap().len()
}

#[tokio::test]
async fn each_protocol_is_asked_in_its_form_with_its_key() {
    let content = |text: &str| json!({ "parts": [{ "text": text }] });
    let part = |text: &str| json!({ "model": "models/test-model", "content": content(text) });
    let plain = json!({ "model": "test-model", "input": ["text 0", "text 1"] });
    let rows = [
        (ProviderProtocol::OpenAiChat, "/v1/embeddings", "authorization: Bearer ", plain.clone()),
        (
            ProviderProtocol::OpenAiResponses,
            "/v1/embeddings",
            "authorization: Bearer ",
            plain.clone(),
        ),
        (
            ProviderProtocol::Gemini,
            "/v1/models/test-model:batchEmbedContents",
            "x-goog-api-key: ",
            json!({ "requests": [part("text 0"), part("text 1")] }),
        ),
        (ProviderProtocol::Ollama, "/v1/api/embed", "authorization: Bearer ", plain),
    ];
    for (protocol, path, header, body) in rows {
        let vectors = [json!([1, 2.5]), json!([-3, 0])];
        let server = Server::start(sends(&answer(protocol, &vectors))).await;
        let vectors = embedder(protocol, &server).embed(&texts(2)).await.unwrap();
        assert_eq!(vectors, [[1.0, 2.5], [-3.0, 0.0]]);
        let seen = server.seen().remove(0);
        assert!(seen.head.starts_with(&format!("POST {path} HTTP/1.1\r\n")), "{}", seen.head);
        assert!(seen.head.contains(&format!("{header}{KEY}\r\n")), "{}", seen.head);
        assert_eq!(seen.body, body);
    }
}

#[tokio::test]
async fn many_texts_go_in_batches_and_come_back_in_order() {
    for protocol in PROTOCOLS {
        let given = AtomicUsize::new(0);
        let server = Server::directed(move |seen| {
            let count = count(&seen.body);
            let first = given.fetch_add(count, Ordering::SeqCst);
            let vectors: Vec<Value> = (first..first + count).map(|n| json!([n, 1])).collect();
            sends(&answer(protocol, &vectors))
        })
        .await;
        let vectors = embedder(protocol, &server).embed(&texts(150)).await.unwrap();
        assert_eq!(server.seen().len(), 3);
        assert!(vectors.iter().enumerate().all(|(n, vector)| *vector == [n as f32, 1.0]));
    }
}

#[tokio::test]
async fn nothing_is_asked_about_nothing() {
    let server = Server::start(plain(500, "", "")).await;
    let vectors = embedder(ProviderProtocol::OpenAiChat, &server).embed(&[]).await.unwrap();
    assert_eq!((vectors.len(), server.seen().len()), (0, 0));
}

#[tokio::test]
async fn a_server_that_is_busy_is_asked_again() {
    let asked = AtomicUsize::new(0);
    let server = Server::directed(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => plain(503, "retry-after: 0\r\n", ""),
        1 => plain(429, "retry-after: 0\r\n", ""),
        _ => sends(&answer(ProviderProtocol::OpenAiChat, &[json!([1]), json!([2])])),
    })
    .await;
    let vectors = embedder(ProviderProtocol::OpenAiChat, &server).embed(&texts(2)).await.unwrap();
    assert_eq!((vectors.len(), server.seen().len()), (2, 3));
}

#[tokio::test]
async fn a_refusal_is_told_at_once_and_without_the_key() {
    let body = json!({ "error": { "message": format!("no model for {KEY}") } }).to_string();
    for (status, is_credentials) in [(404, false), (401, true), (400, false)] {
        let server = Server::start(plain(status, "", &body)).await;
        let error =
            embedder(ProviderProtocol::OpenAiChat, &server).embed(&texts(1)).await.unwrap_err();
        assert_eq!(matches!(error, ModelError::Credentials { .. }), is_credentials, "{error}");
        assert!(error.to_string().contains("no model for"), "{error}");
        assert!(!error.to_string().contains(KEY) && server.seen().len() == 1, "{error}");
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_is_not_waited_for() {
    let server = Server::start(vec![Step::Hang]).await;
    let endpoint = EmbeddingEndpoint {
        time_max: Duration::from_millis(200),
        ..EmbeddingEndpoint::new(ProviderProtocol::Ollama, server.base_url.clone(), "m")
    };
    let error = connect_embedder(&endpoint).unwrap().embed(&texts(1)).await.unwrap_err();
    assert!(error.to_string().contains("no complete answer within 200ms"), "{error}");
}

#[test]
fn settings_that_cannot_work_are_refused_with_a_hint() {
    let rows = [
        (ProviderProtocol::Anthropic, "https://x", "m", EndpointSettingsError::NoEmbeddings),
        (ProviderProtocol::Gemini, "https://x", " ", EndpointSettingsError::Model),
        (ProviderProtocol::Ollama, "ftp://x", "m", EndpointSettingsError::Scheme),
    ];
    for (protocol, base_url, model, want) in rows {
        let error = connect_embedder(&EmbeddingEndpoint::new(protocol, base_url, model)).err();
        assert_eq!(error.as_ref(), Some(&want));
        assert!(!want.hint().is_empty());
    }
}

#[test]
fn a_model_beside_another_is_reached_the_same_way() {
    let key = Some(Secret::new(KEY));
    let chat = ModelEndpoint {
        key,
        ..ModelEndpoint::new(ProviderProtocol::Gemini, "https://x/v1beta", "gemini")
    };
    let beside = EmbeddingEndpoint::from_chat_endpoint(&chat, "embedder");
    assert_eq!((&beside.base_url, beside.protocol), (&chat.base_url, chat.protocol));
    assert_eq!((beside.key, beside.model.as_str()), (chat.key, "embedder"));
    let embedder = connect_embedder(&EmbeddingEndpoint::from_chat_endpoint(
        &ModelEndpoint::new(ProviderProtocol::Ollama, "http://localhost:1/", "chat"),
        "embedder",
    ));
    assert_eq!(embedder.unwrap().name(), "embedder at http://localhost:1");
}
