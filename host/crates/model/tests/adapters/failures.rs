//! The refusals of each provider, and the errors that the user sees.

use std::time::Duration;

use sallyport_contract::Secret;
use sallyport_model::{
    EndpointSettingsError, ModelAdapter, ModelEndpoint, ModelError, ProviderProtocol,
};
use serde_json::json;

use crate::server::{Server, Step, chunked, last_chunk, plain};
use crate::wires::{self, written};
use crate::{KEY, PROTOCOLS, ask, connect, hello, play, settings};

type IsRight = fn(&ModelError) -> bool;

async fn check(protocol: ProviderProtocol, status: u16, body: &str, is_right: IsRight) {
    for stream in [true, false] {
        let error = play(protocol, plain(status, "", body), stream).await.unwrap_err();
        assert!(is_right(&error), "{protocol:?} {status}: {error:?}");
    }
}

#[tokio::test]
async fn a_refusal_is_told_in_the_providers_words() {
    use ModelError as E;
    let anthropic = r#"{"error":{"message":"no","type":"invalid_request_error"},"type":"error"}"#;
    let gemini = r#"{"error":{"code":429,"message":"no","status":"RESOURCE_EXHAUSTED"}}"#;
    let no_key = r#"{"error":{"code":400,"message":"API key not valid. Please pass one."}}"#;
    let old_key = r#"{"error":{"code":400,"message":"API key expired. Please renew it."}}"#;
    let rows: [(ProviderProtocol, u16, &str, IsRight); 9] = [
        (
            ProviderProtocol::Anthropic,
            400,
            anthropic,
            |e| matches!(e, E::Refused { status: 400, message, .. } if message == "no"),
        ),
        (ProviderProtocol::Anthropic, 401, anthropic, |e| matches!(e, E::Credentials { .. })),
        (ProviderProtocol::Anthropic, 429, anthropic, |e| matches!(e, E::RateLimited { .. })),
        (ProviderProtocol::Anthropic, 529, anthropic, |e| {
            matches!(e, E::Refused { status: 529, .. })
        }),
        (
            ProviderProtocol::Gemini,
            429,
            gemini,
            |e| matches!(e, E::RateLimited { message, .. } if message == "no"),
        ),
        (ProviderProtocol::Gemini, 400, no_key, |e| matches!(e, E::Credentials { .. })),
        (ProviderProtocol::Gemini, 400, old_key, |e| matches!(e, E::Credentials { .. })),
        (ProviderProtocol::Gemini, 400, gemini, |e| matches!(e, E::Refused { status: 400, .. })),
        (
            ProviderProtocol::Ollama,
            404,
            r#"{"error":"no model 'x'"}"#,
            |e| matches!(e, E::Refused { status: 404, message, .. } if message == "no model 'x'"),
        ),
    ];
    for (protocol, status, body, is_right) in rows {
        check(protocol, status, body, is_right).await;
    }
}

#[tokio::test]
async fn a_wait_that_is_asked_for_is_passed_on() {
    let body = r#"{"error":{"code":429,"message":"no","details":[{"retryDelay":"7s"}]}}"#;
    let seven: IsRight = |error| {
        let ModelError::RateLimited { retry_after, .. } = error else { return false };
        *retry_after == Some(Duration::from_secs(7))
    };
    check(ProviderProtocol::Gemini, 429, body, seven).await;
    let script = plain(429, "retry-after: 7\r\n", "");
    assert!(seven(&play(ProviderProtocol::Anthropic, script, true).await.unwrap_err()));
}

#[tokio::test]
async fn an_error_in_a_stream_is_told_as_the_providers() {
    use ModelError as E;
    let anthropic = |kind: &str| {
        let error = json!({ "type": "error", "error": { "type": kind, "message": "no" } });
        format!("event: error\ndata: {error}\n\n")
    };
    let gemini =
        |code: u16| format!("data: {{\"error\":{{\"code\":{code},\"message\":\"no\"}}}}\r\n\r\n");
    let rows: [(ProviderProtocol, String, IsRight); 7] = [
        (
            ProviderProtocol::Anthropic,
            anthropic("overloaded_error"),
            |e| matches!(e, E::Refused { status: 529, message, .. } if message == "no"),
        ),
        (ProviderProtocol::Anthropic, anthropic("rate_limit_error"), |e| {
            matches!(e, E::RateLimited { .. })
        }),
        (ProviderProtocol::Anthropic, anthropic("authentication_error"), |e| {
            matches!(e, E::Credentials { .. })
        }),
        (ProviderProtocol::Anthropic, anthropic("api_error"), |e| {
            matches!(e, E::Refused { status: 500, .. })
        }),
        (
            ProviderProtocol::Gemini,
            gemini(503),
            |e| matches!(e, E::Refused { status: 503, message, .. } if message == "no"),
        ),
        (ProviderProtocol::Gemini, gemini(429), |e| matches!(e, E::RateLimited { .. })),
        (
            ProviderProtocol::Ollama,
            "{\"error\":\"no\"}\n".to_owned(),
            |e| matches!(e, E::Refused { message, .. } if message == "no"),
        ),
    ];
    for (protocol, error, is_right) in rows {
        let wire = wires::all().into_iter().find(|wire| wire.protocol == protocol).unwrap();
        let begun = written(protocol, &wire.pieces[..2]);
        for before in [begun.as_slice(), b""] {
            let script =
                vec![chunked(wire.content_type, &[before, error.as_bytes()]), last_chunk()];
            let got = play(protocol, script, true).await.unwrap_err();
            assert!(is_right(&got), "{error}: {got:?}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_none_is_broken() {
    let everywhere = ["<html></html>", "{}", "null", "[]", "3", "\"x\"", "{\"a\":"];
    for protocol in PROTOCOLS {
        for body in everywhere {
            let script = plain(200, "content-type: application/json\r\n", body);
            let error = play(protocol, script, false).await.unwrap_err();
            assert!(matches!(error, ModelError::Broken { .. }), "{body}: {error:?}");
        }
        let error = play(protocol, plain(200, "", ""), true).await.unwrap_err();
        assert!(matches!(error, ModelError::Broken { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn no_error_shows_the_key_and_no_address_holds_it() {
    for protocol in PROTOCOLS {
        let body = format!(r#"{{"error":{{"message":"bad key {KEY}\u001b[2J"}}}}"#);
        for status in [400, 401, 429, 500] {
            let server = Server::start(plain(status, "", &body)).await;
            let error = ask(settings(protocol, &server, true), &hello(), &[]).await.unwrap_err();
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains(KEY) && !shown.contains('\x1b'), "{shown}");
            let head = server.seen().remove(0).head;
            assert!(!head.lines().next().unwrap().contains(KEY), "{head}");
            assert!(head.contains(KEY), "{head}");
        }
    }
}

#[test]
fn a_model_says_who_it_is_and_never_its_key() {
    for protocol in PROTOCOLS {
        let endpoint = ModelEndpoint {
            key: Some(Secret::new(KEY)),
            ..ModelEndpoint::new(protocol, "https://a.example/v1/", "test-model")
        };
        assert_eq!(connect(endpoint.clone()).name(), "test-model at https://a.example/v1");
        let shown = format!("{:?}", ModelAdapter::new(endpoint).unwrap());
        assert!(!shown.contains(KEY), "{shown}");
        let nowhere = ModelEndpoint::new(protocol, "ftp://a.example", "m");
        assert_eq!(ModelAdapter::new(nowhere).unwrap_err(), EndpointSettingsError::Scheme);
    }
}

#[tokio::test]
async fn silence_ends_with_the_time_that_was_given() {
    for wire in wires::all() {
        let begun = written(wire.protocol, &wire.pieces[..2]);
        let server = Server::start(vec![chunked(wire.content_type, &[&begun]), Step::Hang]).await;
        let mut endpoint = settings(wire.protocol, &server, true);
        endpoint.time_max = Duration::from_millis(50);
        let error = ask(endpoint, &hello(), &[]).await.unwrap_err();
        assert!(matches!(error, ModelError::TimedOut { .. }), "{error:?}");
    }
}
