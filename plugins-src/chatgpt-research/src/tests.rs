//! A service that answers as the documentation of the Responses API describes.

use sallyport_sdk::{
    http::{HttpError, Response},
    testing,
};

use super::*;

fn set_up(answers: Vec<Response>) -> std::sync::Arc<std::sync::Mutex<Vec<Value>>> {
    testing::settings(json!({ "base_url": "https://ai.example/v1/", "model": "m" }));
    let bodies = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let (seen, mut answers) = (std::sync::Arc::clone(&bodies), answers.into_iter());
    testing::http(move |request| {
        assert_eq!(request.url, "https://ai.example/v1/responses");
        assert!(request.headers.iter().all(|(name, _)| name != "Authorization"));
        seen.lock().unwrap().push(serde_json(&request.body));
        answers.next().ok_or(HttpError::Invalid { reason: "one request too many".to_owned() })
    });
    bodies
}

fn serde_json(body: &[u8]) -> Value {
    Response::new(200, body).json().unwrap()
}

fn research(args: Value) -> Result<Value, ToolError> {
    testing::call::<research_topic>(args).map(|output| output.data)
}

/// An answer with a search, a thought and a message.
fn answer(text: &str, annotations: Value) -> Response {
    let part = json!({"type": "output_text", "text": text, "annotations": annotations});
    let body = json!({"id": "resp_1", "object": "response", "status": "completed", "error": null,
    "incomplete_details": null, "output": [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "web_search_call", "id": "ws_1", "status": "completed",
         "action": {"type": "search", "query": "q"}},
        {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
         "content": [part]},
    ]});
    Response::new(200, body.to_string())
}

fn citation(url: &str, title: Value) -> Value {
    json!({"type": "url_citation", "start_index": 0, "end_index": 4, "url": url, "title": title})
}

#[test]
fn a_depth_decides_how_much_is_searched_and_written() {
    for (depth, effort, size, calls, words) in [
        (json!("quick"), "low", "low", 3, "150 words"),
        (json!("standard"), "medium", "medium", 10, "400 words"),
        (json!("comprehensive"), "high", "high", 30, "1200 words"),
    ] {
        let bodies = set_up(vec![answer("x", json!([]))]);
        research(json!({"topic": "the Arctic", "depth": depth})).unwrap();
        let body = bodies.lock().unwrap()[0].clone();
        let tool = json!([{"type": "web_search", "search_context_size": size}]);
        assert_eq!((&body["tools"], &body["reasoning"]["effort"]), (&tool, &json!(effort)));
        assert_eq!(
            (&body["input"], &body["max_tool_calls"]),
            (&json!("the Arctic"), &json!(calls))
        );
        assert!(body["instructions"].as_str().unwrap().contains(words), "{body}");
        assert_eq!((&body["store"], &body["model"]), (&json!(false), &json!("m")));
    }
    let bodies = set_up(vec![answer("x", json!([]))]);
    research(json!({"topic": "the Arctic"})).unwrap();
    assert_eq!(bodies.lock().unwrap()[0]["reasoning"]["effort"], "medium");
    let error = research(json!({"topic": "the Arctic", "depth": "deep"})).unwrap_err();
    assert_eq!(error.kind(), "invalid-arguments", "{error}");
}

#[test]
fn each_cited_page_is_listed_once_with_its_title() {
    let cited = json!([
        citation("https://a.example/x?utm_source=openai", json!("Ä title")),
        citation("https://b.example/?q=1&utm_source=openai", json!(null)),
        citation("https://a.example/x", json!("again")),
        citation("javascript:alert(1)", json!("no page")),
        {"type": "file_citation", "file_id": "f", "index": 0},
    ]);
    set_up(vec![answer("Grüße 👋 [1]", cited)]);
    let want = json!({"summary": "Grüße 👋 [1]", "sources": [
        {"title": "Ä title", "url": "https://a.example/x"},
        {"title": "https://b.example/?q=1", "url": "https://b.example/?q=1"},
    ]});
    assert_eq!(research(json!({"topic": "abc"})).unwrap(), want);
}

#[test]
fn a_summary_without_sources_or_without_its_end_says_so() {
    set_up(vec![answer("From memory.", json!([]))]);
    let found = research(json!({"topic": "abc"})).unwrap();
    assert_eq!((&found["sources"], found["note"].is_string()), (&json!([]), true), "{found}");
    let mut cut: Value =
        answer("Half a", json!([citation("https://a.example", json!("A"))])).json().unwrap();
    cut["status"] = json!("incomplete");
    cut["incomplete_details"] = json!({"reason": "max_output_tokens"});
    set_up(vec![Response::new(200, cut.to_string())]);
    let found = research(json!({"topic": "abc"})).unwrap();
    assert!(found["note"].to_string().contains("cut off"), "{found}");
}

#[test]
fn each_failure_says_what_to_do() {
    let error = |status: u16, code: &str, param: Value, message: &str| {
        let error = json!({"message": message, "type": "invalid_request_error", "param": param, "code": code});
        Response::new(status, json!({ "error": error }).to_string())
    };
    let hosted = "Hosted tool 'web_search' is not supported with m.";
    let unknown = "Invalid value: 'web_search'. Supported values are: 'function'.";
    let refusal = json!({"status": "completed", "output": [{"type": "message",
        "content": [{"type": "refusal", "refusal": "I cannot help with that."}]}]});
    let failed = json!({"status": "failed", "output": [],
        "error": {"code": "server_error", "message": "Something broke."}});
    let empty = json!({"status": "incomplete", "output": [],
        "incomplete_details": {"reason": "max_output_tokens"}});
    for (answer, kind, want) in [
        (
            error(401, "invalid_api_key", json!(null), "Incorrect API key"),
            "auth-required",
            "check the secret openai",
        ),
        (
            error(429, "rate_limit_exceeded", json!(null), "Slow down").header("Retry-After", "20"),
            "unavailable",
            "try again in 20 seconds",
        ),
        (
            error(429, "insufficient_quota", json!(null), "Check your plan"),
            "failed",
            "no credit left",
        ),
        (error(400, "invalid_value", json!("tools[0].type"), unknown), "failed", "no web search"),
        (error(400, "", json!("tools"), hosted), "failed", "no web search"),
        (
            Response::new(400, r#"{"error": {"message": "unsupported tool type: web_search"}}"#),
            "failed",
            "no web search",
        ),
        (
            error(404, "model_not_found", json!(null), "The model does not exist"),
            "failed",
            "refuses the request for m",
        ),
        (Response::new(404, "<html>Not Found</html>"), "failed", "status 404"),
        (Response::new(502, "<html>Bad Gateway</html>"), "unavailable", "status 502"),
        (Response::new(200, "<html>Sign in</html>"), "failed", "unexpected answer"),
        (Response::new(200, "{}"), "failed", "no text"),
        (
            Response::new(200, r#"{"output": [{"type": "message", "content": "x"}]}"#),
            "failed",
            "no text",
        ),
        (Response::new(200, refusal.to_string()), "failed", "I cannot help with that."),
        (Response::new(200, failed.to_string()), "unavailable", "Something broke."),
        (Response::new(200, empty.to_string()), "failed", "max_output_tokens"),
    ] {
        set_up(vec![answer]);
        let error = research(json!({"topic": "abc"})).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(want), "{error}");
    }
}

/// Models that do not think refused each request.
#[test]
fn a_model_that_does_not_think_is_asked_again_without_it() {
    let refused =
        json!({"error": {"message": "Unsupported parameter", "param": "reasoning.effort"}});
    let refused = || Response::new(400, refused.to_string());
    let bodies = set_up(vec![refused(), answer("x", json!([]))]);
    research(json!({"topic": "abc"})).unwrap();
    let bodies = bodies.lock().unwrap().clone();
    assert!(bodies[0]["reasoning"].is_object() && bodies[1].get("reasoning").is_none());
    set_up(vec![refused(), refused()]);
    assert_eq!(research(json!({"topic": "abc"})).unwrap_err().kind(), "failed");
}
