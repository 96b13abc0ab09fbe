//! Tests of conversations with a simulated service.

use std::cell::RefCell;

use sallyport_sdk::{
    http::{HttpError, Response},
    prelude::{Value, json},
    provider::{
        AnswerMessage, Attachment, Delta, Finish, Generation, Message, ToolCall, ToolDefinition,
        ToolResult, UserMessage,
    },
    testing,
};

use super::*;

thread_local! {
    static SENT: RefCell<Vec<(String, Value)>> = RefCell::default();
}

/// Answers every request with a status and a body, and stores the request.
pub(crate) fn service(status: u16, body: impl Into<String>) {
    let body = body.into();
    testing::settings(
        json!({ "base_url": "https://gemini.example/", "model": "gemini-2.5-flash" }),
    );
    testing::http(move |request| {
        let sent = serde_json::from_slice(&request.body).unwrap();
        SENT.with_borrow_mut(|all| all.push((request.url.clone(), sent)));
        Ok(Response::new(status, body.as_str()))
    });
}

pub(crate) fn sent() -> (String, Value) {
    SENT.take().remove(0)
}

fn events(pieces: &[Value]) -> String {
    pieces.iter().map(|piece| format!("data: {piece}\r\n\r\n")).collect()
}

fn parts(parts: Value) -> Value {
    json!({ "candidates": [{ "content": { "role": "model", "parts": parts }, "index": 0 }] })
}

fn ended(reason: &str, last: Value) -> Value {
    json!({ "candidates": [{ "content": { "parts": last }, "finishReason": reason }],
            "usageMetadata": { "promptTokenCount": 10, "toolUsePromptTokenCount": 1,
                               "candidatesTokenCount": 2, "thoughtsTokenCount": 3 } })
}

fn ask(history: Vec<Message>) -> Result<Answer, ProviderError> {
    generate(Request { history, ..Request::default() })
}

fn hello() -> Vec<Message> {
    vec![Message::user("Hello")]
}

#[test]
fn words_arrive_as_they_are_said() {
    let pieces = [
        parts(json!([{ "text": "They greet.", "thought": true }])),
        parts(json!([{ "text": "Good " }])),
        ended("STOP", json!([{ "text": "mornïng." }])),
    ];
    service(200, events(&pieces));
    let answer = ask(hello()).unwrap();
    assert_eq!(answer.message.text, "Good mornïng.");
    assert_eq!((&answer.finish, answer.is_final()), (&Finish::Stop, true));
    let usage = answer.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (11, 5));
    let said = |text: &str| Delta::Text(text.to_owned());
    assert_eq!(
        testing::deltas(),
        [Delta::Reasoning("They greet.".to_owned()), said("Good "), said("mornïng.")]
    );
}

#[test]
fn the_request_says_what_was_asked() {
    service(200, events(&[ended("STOP", json!([]))]));
    let file = |media_type: &str, data: &[u8]| Attachment {
        media_type: media_type.to_owned(),
        data: data.to_vec(),
        name: None,
    };
    let picture = file("image/PNG; x=1", &[1, 2, 3]);
    let (note, blob) = (file("text/csv", b"a,b"), file("font/ttf", &[0xff]));
    let user = UserMessage { text: "Look".to_owned(), attachments: vec![picture, note, blob] };
    let tool = ToolDefinition {
        name: "clock__get_time".to_owned(),
        description: "Tells the time.".to_owned(),
        parameters: json!({ "type": "object" }),
    };
    let settings = Generation {
        model: Some("gemini-3-pro".to_owned()),
        temperature: Some(0.4),
        tokens_max: Some(100),
    };
    let history =
        vec![Message::System("Be kind.".to_owned()), Message::User(user), Message::user("")];
    generate(Request { history, tools: vec![tool], settings, ..Request::default() }).unwrap();
    let (url, body) = sent();
    let path = "v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse";
    assert_eq!(url, format!("https://gemini.example/{path}"));
    assert_eq!(
        body,
        json!({
            "systemInstruction": { "parts": [{ "text": "Be kind." }] },
            "contents": [{ "role": "user", "parts": [
                { "inlineData": { "mimeType": "image/png", "data": "AQID" } },
                { "text": "a,b" },
                { "text": "(a file of the type \"font/ttf\")" },
                { "text": "Look" },
                { "text": "(no words)" },
            ] }],
            "generationConfig": { "temperature": 0.4, "maxOutputTokens": 100 },
            "tools": [{ "functionDeclarations": [{
                "name": "clock__get_time",
                "description": "Tells the time.",
                "parametersJsonSchema": { "type": "object" },
            }] }],
        })
    );
}

#[test]
fn calls_go_back_on_the_parts_that_brought_them() {
    let call =
        json!({ "functionCall": { "name": "t", "args": { "n": 1 } }, "thoughtSignature": "s1" });
    let second = json!({ "functionCall": { "name": "t", "id": "x" } });
    service(200, events(&[parts(json!([call])), ended("STOP", json!([second]))]));
    let answer = ask(hello()).unwrap();
    assert_eq!(answer.finish, Finish::ToolCalls);
    let made: Vec<_> =
        answer.message.calls.iter().map(|c| (c.id.as_str(), c.arguments.as_str())).collect();
    assert_eq!(made, [("gemini-1", r#"{"n":1}"#), ("x", "{}")]);
    sent();

    let result = |id: &str, content: Value, failed| {
        let (call_id, name) = (id.to_owned(), "t".to_owned());
        Message::Tool(ToolResult { call_id, name, content, attachments: vec![], failed })
    };
    let mut history = hello();
    history.push(Message::Assistant(answer.message));
    history.push(result("gemini-1", json!({ "sum": 2 }), false));
    history.push(result("x", json!("broken"), true));
    ask(history).unwrap();
    let (_, body) = sent();
    assert_eq!(body["contents"][1], json!({ "role": "model", "parts": [call, second] }));
    assert_eq!(
        body["contents"][2]["parts"],
        json!([
            { "functionResponse": { "name": "t", "response": { "sum": 2 } } },
            { "functionResponse": { "name": "t", "id": "x", "response": { "error": "broken" } } },
        ])
    );
}

#[test]
fn what_another_model_said_is_written_anew() {
    service(200, events(&[ended("STOP", json!([]))]));
    let call = |arguments: &str| ToolCall {
        id: "1".to_owned(),
        name: "t".to_owned(),
        arguments: arguments.to_owned(),
    };
    let said = |opaque| {
        let calls = vec![call(r#"{"a":1}"#), call("no JSON")];
        Message::Assistant(AnswerMessage { text: "I look.".to_owned(), calls, opaque })
    };
    let stale = json!({ "parts": [{ "functionCall": { "name": "other" } }] });
    for (model, opaque, signature) in [
        ("gemini-3-pro", None, true),
        ("gemini-2.5-flash", Some(stale), false),
        ("gemini-2.5-flash", Some(json!("odd")), false),
    ] {
        let settings = Generation { model: Some(model.to_owned()), ..Generation::default() };
        let history = vec![Message::user("x"), said(opaque)];
        generate(Request { history, settings, ..Request::default() }).unwrap();
        let mut first = json!({ "functionCall": { "name": "t", "args": { "a": 1 } } });
        if signature {
            first["thoughtSignature"] = json!("skip_thought_signature_validator");
        }
        let second = json!({ "functionCall": { "name": "t", "args": {} } });
        let parts = json!([{ "text": "I look." }, first, second]);
        assert_eq!(sent().1["contents"][1]["parts"], parts);
    }
}

#[test]
fn the_reason_for_the_end_is_told() {
    let call = json!([{ "functionCall": { "name": "t" } }]);
    for (piece, finish) in [
        (ended("STOP", json!([{ "text": "a" }])), Finish::Stop),
        (ended("STOP", call.clone()), Finish::ToolCalls),
        (ended("MAX_TOKENS", call), Finish::Length),
        (ended("SAFETY", json!([])), Finish::Withheld),
        (json!({ "promptFeedback": { "blockReason": "OTHER" } }), Finish::Withheld),
        (
            ended("MALFORMED_FUNCTION_CALL", json!(null)),
            Finish::Other("MALFORMED_FUNCTION_CALL".to_owned()),
        ),
    ] {
        service(200, events(&[piece]));
        assert_eq!(ask(hello()).unwrap().finish, finish);
    }
}

#[test]
fn failures_are_told_in_their_kind() {
    let told = |code: u16, message: &str| {
        json!({ "error": { "code": code, "message": message } }).to_string()
    };
    for (status, body, kind, words) in [
        (400, told(400, "API key not valid."), "Credentials", "says: API key not valid."),
        (400, told(400, "No such field"), "Refused", "No such field"),
        (401, told(401, "no"), "Credentials", "no"),
        (403, String::new(), "Credentials", "status 403"),
        (404, format!("[{}]", told(404, "no such model")), "Refused", "no such model"),
        (429, told(429, &"x".repeat(9_999)), "Busy", "xxx"),
        (500, "<html>".to_owned(), "Unreachable", "status 500"),
        (503, told(503, "overloaded"), "Busy", "overloaded"),
        (200, events(&[parts(json!([{ "text": "a" }]))]), "Unreachable", "in the middle"),
        (200, String::new(), "Unreachable", "in the middle"),
        (200, "data: {\n\n".to_owned(), "Refused", "no JSON"),
        (200, events(&[parts(json!(["odd"]))]), "Refused", "a part that is none"),
        (200, format!("data: {}\n\n", told(503, "later")), "Busy", "later"),
    ] {
        service(status, body);
        let error = ask(hello()).unwrap_err();
        let found = format!("{error:?}");
        assert!(found.starts_with(kind) && found.contains(words), "{found} is not {kind} {words}");
        assert!(found.len() < 1_000);
    }
}

#[test]
fn a_stream_that_breaks_after_a_reason_to_finish_may_have_lost_words() {
    let whole = events(&[ended("STOP", json!([{ "text": "done" }]))]);
    service(200, format!("{whole}data: \u{1}"));
    assert_eq!(ask(hello()).unwrap().message.text, "done");
    let long = format!("{whole}: {}", "x".repeat(sallyport_sdk::http::EVENT_BYTES_MAX + 1));
    service(200, long);
    assert!(ask(hello()).is_err());
}

#[test]
fn without_a_grant_nothing_is_sent() {
    service(200, "");
    testing::http(|_| Err(HttpError::Denied { origin: "https://gemini.example".to_owned() }));
    let error = ask(hello()).unwrap_err();
    assert!(matches!(&error, ProviderError::Refused(text) if text.contains("does not grant")));
}

#[test]
fn a_name_leads_to_its_method_and_nowhere_else() {
    for (model, want) in [
        ("gemini-2.5-flash", Some("models/gemini-2.5-flash")),
        ("models/gemini-2.5-flash", Some("models/gemini-2.5-flash")),
        ("tunedModels/mine", Some("tunedModels/mine")),
        ("a?key=b#c", Some("models/a%3Fkey%3Db%23c")),
        ("a:delete", Some("models/a%3Adelete")),
        ("../files", None),
        ("a//b", None),
        ("", None),
    ] {
        let want = want.map(|path| format!("{path}:streamGenerateContent?alt=sse"));
        assert_eq!(request::path(model).ok(), want, "{model:?}");
    }
}

#[test]
fn half_a_character_does_not_end_an_answer() {
    let piece = ended("STOP", json!([{ "text": "Hm" }]));
    let body = events(&[piece]).replace("Hm", r"H\ud83dm");
    service(200, body);
    assert_eq!(ask(hello()).unwrap().message.text, "H\u{fffd}m");
}
