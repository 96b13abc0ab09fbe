//! Lists of models in the forms of real services.

use sallyport_model::catalog::{CatalogModel, ModelCatalogError, list_models};
use sallyport_model::{EndpointSettingsError, ModelEndpoint, ModelError, ProviderProtocol};
use serde_json::{Value, json};

use crate::server::{Server, plain};
use crate::{JSON, KEY, endpoint};

async fn listed(
    protocol: ProviderProtocol,
    body: Value,
) -> Result<Vec<CatalogModel>, ModelCatalogError> {
    let server = Server::start(plain(200, JSON, &body.to_string())).await;
    list_models(&endpoint(protocol, &server.base_url)).await
}

fn model(name: &str) -> CatalogModel {
    let name = name.to_owned();
    CatalogModel { name, title: None, context_tokens: None, output_tokens: None }
}

#[tokio::test]
async fn every_service_has_its_own_list() {
    let with =
        |name: &str, context: u64| CatalogModel { context_tokens: Some(context), ..model(name) };
    let rows = [
        (
            ProviderProtocol::OpenAiChat,
            json!({ "object": "list", "data": [{ "id": "b", "owned_by": "x" }, { "id": "a" }] }),
            vec![model("a"), model("b")],
        ),
        (
            ProviderProtocol::OpenAiChat,
            json!({ "data": [{ "id": "/m/q.gguf", "meta": { "n_ctx": 4096, "n_ctx_train": 40960 } }],
                "models": [{ "name": "/m/q.gguf" }] }),
            vec![with("/m/q.gguf", 4096)],
        ),
        (
            ProviderProtocol::OpenAiChat,
            json!({ "data": [{ "id": "v/m", "context_length": 8, "top_provider": { "max_completion_tokens": 4 } }] }),
            vec![CatalogModel { output_tokens: Some(4), ..with("v/m", 8) }],
        ),
        (
            ProviderProtocol::OpenAiResponses,
            json!([{ "id": "m", "max_model_len": 8 }]),
            vec![with("m", 8)],
        ),
        (
            ProviderProtocol::Anthropic,
            json!({ "data": [{ "type": "model", "id": "claude", "display_name": "Claude" }], "has_more": false }),
            vec![CatalogModel { title: Some("Claude".to_owned()), ..model("claude") }],
        ),
        (
            ProviderProtocol::Gemini,
            json!({ "models": [
                { "name": "models/g", "displayName": "G", "inputTokenLimit": 9, "outputTokenLimit": 3,
                  "supportedGenerationMethods": ["generateContent"] },
                { "name": "models/embedding", "supportedGenerationMethods": ["embedContent"] },
            ] }),
            vec![CatalogModel {
                title: Some("G".to_owned()),
                output_tokens: Some(3),
                ..with("g", 9)
            }],
        ),
        (
            ProviderProtocol::Ollama,
            json!({ "models": [{ "name": "qwen3:latest", "model": "qwen3:latest", "size": 1 }] }),
            vec![model("qwen3:latest")],
        ),
        (ProviderProtocol::Ollama, json!({ "models": [] }), vec![]),
        (ProviderProtocol::OpenAiChat, json!({ "object": "list", "data": null }), vec![]),
    ];
    for (protocol, body, want) in rows {
        assert_eq!(listed(protocol, body).await.unwrap(), want);
    }
}

#[tokio::test]
async fn each_service_is_asked_in_its_way_and_no_key_stands_in_an_address() {
    let rows = [
        (ProviderProtocol::OpenAiChat, "GET /v1/models HTTP/1.1", "authorization: Bearer "),
        (ProviderProtocol::Anthropic, "GET /v1/models?limit=1000 HTTP/1.1", "x-api-key: "),
        (ProviderProtocol::Gemini, "GET /v1/models?pageSize=1000 HTTP/1.1", "x-goog-api-key: "),
        (ProviderProtocol::Ollama, "GET /v1/api/tags HTTP/1.1", "authorization: Bearer "),
    ];
    for (protocol, line, header) in rows {
        let server = Server::start(plain(200, JSON, r#"{"models":[]}"#)).await;
        let nameless =
            ModelEndpoint { model: String::new(), ..endpoint(protocol, &server.base_url) };
        assert_eq!(list_models(&nameless).await, Ok(Vec::new()));
        let head = server.seen().remove(0).head;
        assert!(head.starts_with(line), "{head}");
        assert!(head.contains(&format!("{header}{KEY}\r\n")), "{head}");
        assert_eq!(head.contains("anthropic-version: "), protocol == ProviderProtocol::Anthropic);
    }
}

#[tokio::test]
async fn pages_are_put_together() {
    let rows = [
        (
            ProviderProtocol::Anthropic,
            json!({ "data": [{ "id": "b" }], "has_more": true, "last_id": "x&y" }),
            "after_id=x%26y",
        ),
        (
            ProviderProtocol::Gemini,
            json!({ "models": [{ "name": "models/b" }], "nextPageToken": "x&y" }),
            "pageToken=x%26y",
        ),
    ];
    for (protocol, first, token) in rows {
        let server = Server::directed(move |seen| {
            let last = json!({ "data": [{ "id": "a" }], "has_more": false, "last_id": "a" });
            let page = if seen.head.contains(token) { &last } else { &first };
            plain(200, JSON, &page.to_string())
        })
        .await;
        let listed = list_models(&endpoint(protocol, &server.base_url)).await.unwrap();
        assert_eq!(listed, [model("a"), model("b")]);
    }
}

#[tokio::test]
async fn a_list_without_end_and_odd_entries_do_no_harm() {
    let endless = json!({ "data": [{ "id": "a" }], "has_more": true, "last_id": "a" });
    let server = Server::start(plain(200, JSON, &endless.to_string())).await;
    let got = list_models(&endpoint(ProviderProtocol::Anthropic, &server.base_url)).await;
    assert_eq!((got, server.seen().len()), (Ok(vec![model("a")]), 10));

    let odd = json!({ "data": [
        1, null, "x", {}, { "id": 3 }, { "id": "" }, { "id": " " }, { "id": "a", "context_length": -1 },
        { "id": "a" }, { "id": "\u{1b}[2J", "context_length": 0 }, { "id": "x".repeat(9999) },
    ] });
    let got = listed(ProviderProtocol::OpenAiChat, odd).await.unwrap();
    let names: Vec<&str> = got.iter().map(|model| model.name.as_str()).collect();
    assert_eq!(names[..2], ["\\u{1b}[2J", "a"]);
    assert!(names.len() == 3 && names[2].chars().count() < 300, "{names:?}");
    assert!(got.iter().all(|model| model.context_tokens.is_none()));
}

#[tokio::test]
async fn what_is_no_list_is_an_error_with_a_hint() {
    for body in ["{}", "null", "x", r#"{"data":{}}"#, r#"{"models":3}"#] {
        let server = Server::start(plain(200, JSON, body)).await;
        let got = list_models(&endpoint(ProviderProtocol::OpenAiChat, &server.base_url)).await;
        let Err(error @ ModelCatalogError::Model(ModelError::Broken { .. })) = got else {
            panic!("{body}: {got:?}");
        };
        assert!(!error.hint().is_empty());
    }
    let server = Server::start(plain(401, JSON, "{}")).await;
    let got = list_models(&endpoint(ProviderProtocol::OpenAiChat, &server.base_url)).await;
    assert!(
        matches!(got, Err(ModelCatalogError::Model(ModelError::Credentials { .. }))),
        "{got:?}"
    );
    let got = list_models(&endpoint(ProviderProtocol::OpenAiChat, "ftp://x")).await;
    assert_eq!(got, Err(ModelCatalogError::Settings(EndpointSettingsError::Scheme)));
}
