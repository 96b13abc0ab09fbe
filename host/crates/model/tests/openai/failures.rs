//! Every way in which a provider can fail.

use std::time::Duration;

use sallyport_model::{ChatModel, EndpointSettingsError, ModelAdapter, ModelEndpoint, ModelError};

use crate::server::{Server, Step, chunked, plain, until_close};
use crate::{KEY, ask, hello, settings};

async fn fail(script: Vec<Step>, stream: bool) -> ModelError {
    let server = Server::start(script).await;
    let error = ask(settings(server.base_url.clone(), stream), &hello(), &[]).await.unwrap_err();
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains(KEY) && !shown.contains('\x1b'), "{shown}");
    error
}

async fn check(status: u16, headers: &str, body: &str, is_right: fn(&ModelError) -> bool) {
    for stream in [true, false] {
        let error = fail(plain(status, headers, body), stream).await;
        assert!(is_right(&error), "{status}: {error:?}");
    }
}

#[tokio::test]
async fn a_refusal_is_told_by_its_status() {
    use ModelError as E;
    let body = r#"{"error":{"message":"no","code":"x"}}"#;
    let retry = "retry-after: 7\r\n";
    check(401, "", body, |e| matches!(e, E::Credentials { message, .. } if message == "no")).await;
    check(403, "", body, |e| matches!(e, E::Credentials { .. })).await;
    check(429, "", body, |e| matches!(e, E::RateLimited { retry_after: None, .. })).await;
    check(
        429,
        retry,
        body,
        |e| matches!(e, E::RateLimited { retry_after: Some(wait), .. } if wait.as_secs() == 7),
    )
    .await;
    let spent = r#"{"error":{"message":"no","type":"insufficient_quota"}}"#;
    check(429, retry, spent, |e| matches!(e, E::Spent { .. })).await;
    let wrong = r#"{"error":{"message":"Incorrect API key provided"}}"#;
    check(400, "", wrong, |e| matches!(e, E::Credentials { .. })).await;
    let long = r#"{"error":{"message":"no","code":"context_length_exceeded"}}"#;
    check(400, "", long, |e| matches!(e, E::TooLong { .. })).await;
    check(400, "", body, |e| matches!(e, E::Refused { status: 400, .. })).await;
    check(
        503,
        retry,
        body,
        |e| matches!(e, E::Refused { status: 503, retry_after: Some(wait), .. } if wait.as_secs() == 7),
    )
    .await;
    check(500, "", "", |e| {
        matches!(e, E::Refused { status: 500, message, .. } if message == "Internal Server Error")
    })
    .await;
    check(
        502,
        "",
        "<html>bad</html>",
        |e| matches!(e, E::Refused { status: 502, message, .. } if message == "<html>bad</html>"),
    )
    .await;
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Server::start(plain(200, "", "{}")).await;
    let headers = format!("location: {}\r\n", elsewhere.base_url);
    for status in [301, 302, 303, 307, 308] {
        let error = fail(plain(status, &headers, ""), true).await;
        assert!(error.to_string().contains(&elsewhere.base_url), "{error}");
        assert!(matches!(error, ModelError::Refused { status: s, .. } if s == status), "{error}");
    }
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn what_a_server_says_is_bounded_and_shows_neither_key_nor_escapes() {
    let long = "x".repeat(10_000);
    for message in [format!("bad key {KEY}\\u001b[2J{long}"), format!("{long}{KEY}")] {
        let body = format!(r#"{{"error":{{"message":"{message}"}}}}"#);
        for status in [400, 401, 429, 500] {
            let error = fail(plain(status, "", &body), true).await;
            assert!(error.to_string().chars().count() < 700, "{error}");
        }
        fail(plain(307, &format!("location: http://x/{KEY}\r\n"), ""), true).await;
        let inside = plain(200, "content-type: application/json\r\n", &body);
        assert!(matches!(fail(inside, false).await, ModelError::Refused { status: 200, .. }));
    }
}

#[tokio::test]
async fn an_answer_that_is_none_is_broken() {
    let rows = [
        ("text/html", "<html></html>"),
        ("application/json", "<html></html>"),
        ("application/json", "{\"choices\":[{\"message\":"),
        ("application/json", "{}"),
        ("application/json", "null"),
        ("application/json", r#"{"choices":[]}"#),
        ("application/json", r#"{"choices":[{"message":"x"}]}"#),
        ("application/json", r#"{"choices":[{"message":{"tool_calls":[3]}}]}"#),
        ("text/event-stream", ""),
        ("text/event-stream", "data: {}\n\n"),
    ];
    for (content_type, body) in rows {
        for stream in [true, false] {
            let script = plain(200, &format!("content-type: {content_type}\r\n"), body);
            let error = fail(script, stream).await;
            assert!(matches!(error, ModelError::Broken { .. }), "{body}: {error:?}");
        }
    }
}

#[tokio::test]
async fn an_endless_answer_is_ended() {
    let comment = [b": ".as_slice(), &[b'x'; 64 << 10], b"\n"].concat();
    let rows = [
        (until_close("text/event-stream"), comment),
        (until_close("text/event-stream"), vec![b'x'; 64 << 10]),
        (until_close("application/json"), vec![b' '; 64 << 10]),
        (chunked("text/event-stream", &[]), b"10000\r\n".to_vec()),
    ];
    for (head, flood) in rows {
        let error = fail(vec![head, Step::Flood(flood)], true).await;
        assert!(matches!(error, ModelError::Broken { .. }), "{error:?}");
    }
    let refusal = Step::Send(b"HTTP/1.1 500 X\r\nconnection: close\r\n\r\n".to_vec());
    let error = fail(vec![refusal, Step::Flood(vec![b'x'; 64 << 10])], true).await;
    assert!(matches!(error, ModelError::Refused { status: 500, .. }), "{error:?}");
}

#[tokio::test]
async fn silence_ends_with_the_time_that_was_given() {
    let head = chunked("text/event-stream", &[b"data: {}\n\n"]);
    for script in [vec![Step::Hang], vec![head, Step::Hang]] {
        let server = Server::start(script).await;
        let time_max = Duration::from_millis(50);
        let settings = ModelEndpoint { time_max, ..settings(server.base_url.clone(), true) };
        let error = ask(settings, &hello(), &[]).await.unwrap_err();
        assert!(matches!(error, ModelError::TimedOut { .. }), "{error:?}");
        assert!(error.to_string().contains("50ms"), "{error}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_or_hangs_up_is_unreachable() {
    let port_of_nobody = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let nobody = ask(settings(format!("http://{port_of_nobody}/v1"), true), &hello(), &[]).await;
    assert!(matches!(nobody, Err(ModelError::Unreachable { .. })), "{nobody:?}");
    assert!(nobody.unwrap_err().to_string().to_lowercase().contains("refused"));
    let hung_up = fail(vec![], true).await;
    assert!(matches!(hung_up, ModelError::Unreachable { .. }), "{hung_up:?}");
    let not_tls = Server::start(plain(200, "", "{}")).await.base_url.replace("http:", "https:");
    let not_tls = ask(settings(not_tls, true), &hello(), &[]).await;
    assert!(matches!(not_tls, Err(ModelError::Unreachable { .. })), "{not_tls:?}");
}

#[tokio::test]
async fn the_request_carries_what_was_set_and_nothing_of_the_environment() {
    let server = Server::start(plain(200, "", "{}")).await;
    let settings = settings(format!("{}/", server.base_url), true);
    let _ = ask(ModelEndpoint { temperature: Some(0.5), ..settings.clone() }, &hello(), &[]).await;
    let _ = ask(ModelEndpoint { key: None, stream: false, ..settings }, &hello(), &[]).await;
    let seen = server.seen();
    assert!(seen[0].head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{}", seen[0].head);
    assert!(seen[0].head.contains(&format!("authorization: Bearer {KEY}\r\n")));
    let messages = serde_json::json!([{ "role": "user", "content": "hello" }]);
    assert_eq!(
        seen[0].body,
        serde_json::json!({
            "model": "test-model", "messages": messages, "temperature": 0.5,
            "stream": true, "stream_options": { "include_usage": true },
        })
    );
    assert!(!seen[1].head.contains("authorization"));
    assert_eq!(
        seen[1].body,
        serde_json::json!({ "model": "test-model", "messages": messages, "stream": false })
    );
}

#[test]
fn a_model_says_who_it_is_and_never_its_key() {
    let model = ModelAdapter::new(settings("https://api.openai.com/v1/".to_owned(), true)).unwrap();
    assert_eq!(model.name(), "test-model at https://api.openai.com/v1");
    assert!(!format!("{model:?}").contains(KEY));
    let error = ModelAdapter::new(settings("ftp://x".to_owned(), true)).unwrap_err();
    assert_eq!(error, EndpointSettingsError::Scheme);
}
