//! A system plugin researches with the operator's key, against a server that checks what it is sent
//! and answers as the service documents.

use serde_json::{Value, json};

use crate::support::{Home, Response, Server, home::repository};

const KEY: &str = "sk-the-key-of-the-operator-4711";

/// The plugin with its service at this server. Its address and its model come from the
/// environment.
fn home(server: &Server) -> Home {
    let (url, definition) = (server.url(), "plugins-src/chatgpt-research/chatgpt-research.json");
    Home::new()
        .plugins(&["chatgpt-research"])
        .file(
            "plugins/chatgpt-research/chatgpt-research.json",
            std::fs::read(repository().join(definition)).unwrap(),
        )
        .config(
            "[settings.chatgpt-research]\nbase_url = \"${RESEARCH_URL}\"\nmodel = \"${RESEARCH_MODEL}\"\n",
        )
        .policy(format!(
            "[secret.openai]\nenv = \"OPENAI_API_KEY\"\n[plugin.chatgpt-research]\n\
             net = [{{ allow = \"POST {url}/v1/responses\", to-private = true }}]\n\
             secrets = [{{ name = \"openai\", to = \"{url}\", header = \"Authorization\", \
             format = \"Bearer {{}}\" }}]\n\
             [[rule]]\ntool = \"chatgpt-research.*\"\ndecision = \"allow\"\n"
        ))
        .env("RESEARCH_URL", format!("{url}/v1"))
        .env("RESEARCH_MODEL", "the-model")
        .env("OPENAI_API_KEY", KEY)
}

/// A server that takes the operator's key alone, and answers with this.
fn server(status: u16, headers: &[(&str, &str)], body: &str) -> Server {
    let answer = Response::with(status, headers, body);
    Server::start(move |request| {
        let is_known = request.header("authorization") == Some(&format!("Bearer {KEY}"));
        let is_asked =
            (request.method.as_str(), request.target.as_str()) == ("POST", "/v1/responses");
        match is_known && is_asked {
            true => answer.clone(),
            false => Response::with(401, &[], r#"{"error": {"message": "Incorrect API key"}}"#),
        }
    })
}

fn research(home: &Home, topic: &str, depth: &str) -> (Value, i32) {
    home.call("chatgpt-research.research_topic", &json!({ "topic": topic, "depth": depth }))
}

/// What the service answers: a search, and a text that cites these pages.
fn answer(text: &str, pages: &[(&str, &str)]) -> String {
    let annotations: Vec<Value> = pages
        .iter()
        .map(|(url, title)| {
            json!({"type": "url_citation", "start_index": 0, "end_index": 3, "url": url, "title": title})
        })
        .collect();
    let part = json!({"type": "output_text", "text": text, "annotations": annotations});
    json!({"id": "resp_1", "object": "response", "status": "completed", "error": null, "output": [
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "message", "role": "assistant", "status": "completed", "content": [part]},
    ]})
    .to_string()
}

#[test]
fn a_topic_is_researched_and_its_sources_are_counted() {
    let pages = [("https://a.example/1", "Eis – Größe"), ("https://b.example/2", "B")];
    let server = server(200, &[], &answer("Das Eis schmilzt. 🧊", &pages));
    let home = home(&server);
    // 500 characters of several bytes each.
    let topic = "ü".repeat(500);
    let (report, code) = research(&home, &topic, "comprehensive");
    assert_eq!((&report["outcome"], code), (&json!("completed"), 0), "{report}");
    assert!(report.to_string().contains("Research completed with 2 sources"), "{report}");
    let data = &report["result"]["data"];
    assert_eq!(data["summary"], "Das Eis schmilzt. 🧊", "{report}");
    assert_eq!(data["sources"][0], json!({"title": "Eis – Größe", "url": "https://a.example/1"}));
    let sent: Value = serde_json::from_str(&server.seen()[0].body).unwrap();
    assert_eq!((&sent["model"], &sent["input"]), (&json!("the-model"), &json!(topic)), "{sent}");
    assert_eq!(sent["tools"][0]["type"], "web_search");
    assert_eq!(sent["reasoning"]["effort"], "high");
    home.run(&["audit", "show", "--output", "json"]).ended(0).hides(&["4711"]);
    // A system plugin needs no account.
    home.run(&["connection", "list"]).ended(0).remarks(&["No plugin has accounts."]);
    home.run(&["connection", "add", "chatgpt-research"]).ended(2).remarks(&["needs no account"]);
}

#[test]
fn arguments_beyond_the_definition_reach_no_service() {
    let server = server(200, &[], &answer("x", &[]));
    let home = home(&server);
    for (topic, depth, want) in [
        ("ab", "quick", "topic"),
        (&*"x".repeat(501), "quick", "topic"),
        ("abc", "deep", "depth"),
        ("", "quick", "topic"),
    ] {
        let (report, _) = research(&home, topic, depth);
        assert_eq!(report["outcome"], "invalid-arguments", "{report}");
        assert!(report.to_string().contains(want), "{report}");
    }
    assert!(server.seen().is_empty());
    let (report, code) = research(&home, "abc", "quick");
    assert_eq!(code, 0, "{report}");
    assert!(report.to_string().contains("Research completed with 0 sources"), "{report}");
    assert!(report.to_string().contains("cites no source"), "{report}");
}

#[test]
fn each_failure_of_the_service_is_said_plainly() {
    let error = |message: &str, code: &str, param: &str| {
        json!({"error": {"message": message, "code": code, "param": param}}).to_string()
    };
    let unknown = error("Invalid value: 'web_search'.", "invalid_value", "tools[0].type");
    let slow = error("Slow down", "rate_limit_exceeded", "");
    for (status, headers, body, own, raw) in [
        (
            401,
            [].as_slice(),
            &*error("Wrong key", "invalid_api_key", ""),
            "refuses the key",
            "Wrong key",
        ),
        (429, &[("retry-after", "20")], &slow, "Try again later", "try again in 20 seconds"),
        (400, &[], &unknown, "it has no web search", "the-model has no web search"),
        (404, &[], "<html>Not Found</html>", "change model or base_url", "status 404"),
        (503, &[], "<html>Down</html>", "Web search failed. Try again.", "status 503"),
        (200, &[], "<html>Sign in</html>", "Web search failed. Try again.", "unexpected answer"),
    ] {
        let server = server(status, headers, body);
        let home = home(&server);
        let text = json!({ "topic": "abc" }).to_string();
        // The definition's words are for the model, and the raw ones for the user.
        home.run(&["call", "chatgpt-research.research_topic", &text, "-v"])
            .ended(7)
            .remarks(&[own, raw])
            .hides(&["4711"]);
        assert_eq!(server.seen().len(), 1, "{status}");
    }
}

/// The key was sent without the word that the service expects before it.
#[test]
fn what_is_requested_is_granted_in_the_form_that_the_service_expects() {
    for (plugin, format) in [("chatgpt-research", "Bearer {}"), ("calendar", "Basic {}")] {
        let url = "[settings.calendar]\ncalendar_url = \"https://cal.example/ann\"\n";
        let home = Home::new().plugins(&[plugin]).config(url);
        home.run(&["policy", "grant", plugin, "--requested", "--yes"]).ended(0);
        let policy = std::fs::read_to_string(home.path("policy.toml")).unwrap();
        assert!(policy.contains(&format!("format = \"{format}\"")), "{policy}");
    }
}

/// The definition is the one that other software uses, with more messages about failures.
#[test]
fn the_definition_differs_from_the_ancestors_in_messages_alone() {
    let read = |path: &str| {
        let text = std::fs::read_to_string(repository().join(path)).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let mut own = read("plugins-src/chatgpt-research/chatgpt-research.json");
    let theirs = read("host/crates/connections/testdata/chatgpt-research.json");
    let errors = "/actions/research_topic/output_guidance/common_errors";
    let messages = theirs.pointer(errors).unwrap().as_object().unwrap();
    let found = own.pointer_mut(errors).unwrap();
    assert!(messages.iter().all(|(key, text)| &found[key] == text), "{found}");
    *found = json!(messages);
    assert_eq!(own, theirs);
}
