//! Checks of models against servers that fail at each step.

use sallyport_contract::Secret;
use sallyport_model::catalog::{ModelCheckStatus, ModelCheckStep, check_endpoint};
use sallyport_model::{ModelEndpoint, ProviderProtocol, ToolCallingMode};
use serde_json::{Value, json};

use crate::server::{Seen, Server, plain};
use crate::{JSON, KEY, endpoint};

/// The answers of a server: its list, plain text, and a tool call.
#[derive(Clone)]
struct Answers {
    list: (u16, Value),
    words: (u16, Value),
    call: (u16, Value),
}

fn message(message: Value) -> Value {
    json!({ "choices": [{ "message": message, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 5, "completion_tokens": 1 } })
}

fn call(arguments: &str) -> Value {
    let function = json!({ "name": "repeat", "arguments": arguments });
    message(json!({ "tool_calls": [{ "id": "a", "type": "function", "function": function }] }))
}

fn good() -> Answers {
    Answers {
        list: (200, json!({ "data": [{ "id": "test-model", "context_length": 8000 }] })),
        words: (200, message(json!({ "content": "ready" }))),
        call: (200, call(r#"{"text":"ready"}"#)),
    }
}

async fn serve(answers: Answers) -> Server {
    Server::directed(move |seen: &Seen| {
        let (status, body) = if seen.head.starts_with("GET ") {
            &answers.list
        } else if seen.body.get("tools").is_some() {
            &answers.call
        } else {
            &answers.words
        };
        plain(*status, JSON, &body.to_string())
    })
    .await
}

async fn checked(answers: Answers) -> Vec<ModelCheckStep> {
    let server = serve(answers).await;
    check_endpoint(&endpoint(ProviderProtocol::OpenAiChat, &server.base_url)).await
}

/// The results of the steps, one letter each.
#[track_caller]
fn assert_went(steps: &[ModelCheckStep], want: &str) {
    let ids: Vec<&str> = steps.iter().map(|step| step.id).collect();
    assert_eq!(ids, ["address", "credentials", "model", "answer", "tool-call"]);
    let letter = |step: &ModelCheckStep| match step.status {
        ModelCheckStatus::Ok => 'o',
        ModelCheckStatus::Failed => 'F',
        ModelCheckStatus::Skipped => '-',
    };
    assert_eq!(steps.iter().map(letter).collect::<String>(), want, "{steps:#?}");
    for step in steps {
        assert!(!step.detail.is_empty() && !step.detail.contains(KEY), "{step:?}");
        assert_eq!(step.remedy.is_some(), step.status == ModelCheckStatus::Failed, "{step:?}");
    }
}

#[tokio::test]
async fn a_good_server_passes_every_step() {
    let steps = checked(good()).await;
    assert_went(&steps, "ooooo");
    assert_eq!(steps[2].detail, "test-model is listed, with room for 8000 tokens");
    assert_eq!(steps[3].detail, "it says \"ready\" (5 tokens read, 1 written)");
}

#[tokio::test]
async fn a_check_says_at_which_step_it_ends() {
    let error = |message: &str| json!({ "error": { "message": message } });
    let other = json!({ "data": [{ "id": "test-modal" }, { "id": "zzz" }] });
    let g = good;
    let rows = [
        // A key that is valid for answers and not for the list, and one that is valid for nothing.
        (Answers { list: (403, error("no")), ..g() }, "ooooo"),
        (Answers { list: (401, error("no")), words: (401, error("no")), ..g() }, "oF-F-"),
        // A list that needs no key.
        (Answers { words: (401, error("no")), ..g() }, "oFoF-"),
        (Answers { list: (404, error("no")), ..g() }, "ooooo"),
        (Answers { list: (404, error("no")), words: (404, error("no")), ..g() }, "o--F-"),
        (Answers { list: (200, other.clone()), ..g() }, "ooooo"),
        (Answers { list: (200, other), words: (404, error("no")), ..g() }, "ooFF-"),
        (Answers { words: (500, error("no")), ..g() }, "oooF-"),
        (Answers { words: (200, json!({})), ..g() }, "oooF-"),
        (Answers { words: (200, message(json!({ "content": " " }))), ..g() }, "oooFo"),
        (Answers { call: (400, error("no tools")), ..g() }, "ooooF"),
        (Answers { call: (200, message(json!({ "content": "ready" }))), ..g() }, "ooooF"),
        (Answers { call: (200, call("ready")), ..g() }, "ooooF"),
        (Answers { call: (200, call("{}")), ..g() }, "ooooF"),
    ];
    for (answers, want) in rows {
        assert_went(&checked(answers).await, want);
    }
}

#[tokio::test]
async fn a_mistyped_name_and_a_model_without_tools_are_told_with_a_way_out() {
    let list = json!({ "data": [{ "id": "test-modal" }, { "id": "zzz" }] });
    let no = json!({ "error": { "message": "no" } });
    let answers = Answers { list: (200, list), words: (404, no), ..good() };
    let steps = checked(answers).await;
    assert_eq!(steps[2].remedy.as_deref(), Some("did you mean test-modal?"));
    let answers = Answers { call: (200, message(json!({ "content": "ready" }))), ..good() };
    let steps = checked(answers).await;
    assert!(steps[4].remedy.as_ref().unwrap().contains("tools = \"json\""), "{steps:?}");
}

#[tokio::test]
async fn nobody_there_and_settings_that_cannot_work_end_it_at_once() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let base = format!("http://{nobody}/v1");
    let set = |base: &str| endpoint(ProviderProtocol::OpenAiChat, base);
    let rows = [
        (set(&base), "F----"),
        (set("ftp://x"), "F----"),
        (ModelEndpoint { key: Some(Secret::new("a\nb")), ..set(&base) }, "-F---"),
        (ModelEndpoint { model: String::new(), ..set(&base) }, "--F--"),
        (ModelEndpoint { temperature: Some(-1.0), ..set(&base) }, "---F-"),
    ];
    for (endpoint, want) in rows {
        assert_went(&check_endpoint(&endpoint).await, want);
    }
}

#[tokio::test]
async fn the_newest_version_of_a_name_is_known() {
    let list = (200, json!({ "models": [{ "name": "test-model:latest" }] }));
    assert_went(&checked(Answers { list, ..good() }).await, "ooooo");
}

#[tokio::test]
async fn a_model_without_function_calling_is_checked_in_its_own_way() {
    let answer = r#"{"tool":"repeat","args":{"text":"ready"}}"#;
    let words = (200, message(json!({ "content": answer })));
    let server = serve(Answers { words, ..good() }).await;
    let json = endpoint(ProviderProtocol::OpenAiChat, &server.base_url);
    let json = ModelEndpoint { tool_calling: ToolCallingMode::Json, key: None, ..json };
    let steps = check_endpoint(&json).await;
    assert_eq!(steps[4].status, ModelCheckStatus::Ok, "{steps:#?}");
    assert_eq!(steps[1].detail, "none are set, and none are asked for");
}
