//! Requirements of Gemini's protocol alone.

use sallyport_model::{
    ChatMessage, FinishReason, ModelEndpoint, ProviderProtocol, ReasoningEffort, UserInputMessage,
};
use serde_json::{Value, json};

use crate::server::{chunked, last_chunk, plain};
use crate::wires::written;
use crate::{call, file, hello, play, result, said, said_before, sent, system, tools};

async fn contents(model: &str, messages: &[ChatMessage]) -> Value {
    let named = |endpoint| ModelEndpoint { model: model.to_owned(), ..endpoint };
    sent(ProviderProtocol::Gemini, named, messages, &[]).await.1["contents"].take()
}

fn text(text: &str) -> Value {
    json!({ "text": text })
}

fn inline(media_type: &str, data: &str) -> Value {
    json!({ "inlineData": { "mimeType": media_type, "data": data } })
}

fn uses(name: &str, args: Value) -> Value {
    json!({ "functionCall": { "name": name, "args": args } })
}

fn gave(name: &str, response: Value) -> Value {
    json!({ "functionResponse": { "name": name, "response": response } })
}

#[tokio::test]
async fn a_conversation_is_written_as_the_protocol_wants_it() {
    let messages = [
        system("be brief"),
        system("know this"),
        ChatMessage::user("hello"),
        said("let me see", &[call("a", "x", r#"{"k":1}"#), call("b", "x", ""), call("c", "y", "")]),
        result("a", "x", "\"found\"", false),
        result("b", "x", r#"{"k":1}"#, false),
        result("c", "y", "[1]", true),
        said("done", &[]),
        ChatMessage::user("thanks"),
    ];
    let old = |endpoint| ModelEndpoint { model: "gemini-2.5-flash".to_owned(), ..endpoint };
    let (head, body) = sent(ProviderProtocol::Gemini, old, &messages, &tools()).await;
    let path = "POST /v1/models/gemini-2.5-flash:streamGenerateContent?alt=sse HTTP/1.1\r\n";
    assert!(head.starts_with(path), "{head}");
    let tool = |name: &str| {
        json!({
            "name": name, "description": format!("Does {name}."),
            "parametersJsonSchema": { "type": "object", "properties": {} },
        })
    };
    assert_eq!(
        body,
        json!({
            "systemInstruction": { "parts": [text("be brief"), text("know this")] },
            "tools": [{ "functionDeclarations": [tool("x"), tool("y")] }],
            "contents": [
                { "role": "user", "parts": [text("hello")] },
                { "role": "model", "parts": [
                    text("let me see"), uses("x", json!({ "k": 1 })), uses("x", json!({})),
                    uses("y", json!({})),
                ] },
                { "role": "user", "parts": [
                    gave("x", json!({ "result": "found" })), gave("x", json!({ "k": 1 })),
                    gave("y", json!({ "error": [1] })),
                ] },
                { "role": "model", "parts": [text("done")] },
                { "role": "user", "parts": [text("thanks")] },
            ],
        })
    );
}

#[tokio::test]
async fn a_request_says_what_was_set() {
    let config = async |model: &str, effort: Option<ReasoningEffort>| {
        let set = |endpoint: ModelEndpoint| ModelEndpoint {
            model: model.to_owned(),
            stream: false,
            temperature: Some(0.5),
            output_tokens_max: Some(64),
            effort,
            ..endpoint
        };
        let (head, mut body) = sent(ProviderProtocol::Gemini, set, &hello(), &[]).await;
        assert!(head.starts_with(&format!("POST /v1/models/{model}:generateContent HTTP")));
        assert_eq!((body.get("tools"), body.get("systemInstruction")), (None, None));
        body["generationConfig"].take()
    };
    let rows = [
        (
            "gemini-2.5-flash",
            Some(ReasoningEffort::Low),
            json!({ "includeThoughts": true, "thinkingBudget": 1024 }),
        ),
        (
            "gemini-2.5-pro",
            Some(ReasoningEffort::High),
            json!({ "includeThoughts": true, "thinkingBudget": 24_576 }),
        ),
        (
            "gemini-3-flash-preview",
            Some(ReasoningEffort::Medium),
            json!({ "includeThoughts": true, "thinkingLevel": "medium" }),
        ),
        ("gemini-2.0-flash", None, Value::Null),
    ];
    for (model, effort, want) in rows {
        let config = config(model, effort).await;
        assert_eq!(config.get("thinkingConfig").unwrap_or(&Value::Null), &want);
        assert_eq!((&config["temperature"], &config["maxOutputTokens"]), (&json!(0.5), &json!(64)));
    }
    let (_, body) = sent(ProviderProtocol::Gemini, |endpoint| endpoint, &hello(), &[]).await;
    assert_eq!(body.get("generationConfig"), None);
}

#[tokio::test]
async fn files_come_before_the_words_about_them() {
    let said = UserInputMessage {
        text: "what is this?".to_owned(),
        attachments: vec![
            file("a.png", "image/png", b"P"),
            file("b.wav", "audio/wav", b"S"),
            file("c.pdf", "application/pdf", b"D"),
            file("d.txt", "text/plain", b"words"),
            file("e.zip", "application/zip", b"Z"),
        ],
        ..UserInputMessage::default()
    };
    let contents = contents("m", &[ChatMessage::User(said)]).await;
    let parts = &contents[0]["parts"];
    assert_eq!(parts[0], inline("image/png", "UA=="));
    assert_eq!(parts[1], inline("audio/wav", "Uw=="));
    assert_eq!(parts[2], inline("application/pdf", "RA=="));
    let words = |at: usize| parts[at]["text"].as_str().unwrap();
    assert!(words(3).contains("d.txt") && words(3).contains("words"), "{parts}");
    assert!(words(4).contains("e.zip") && words(4).contains("left out"), "{parts}");
    assert_eq!(parts[5], text("what is this?"));
}

#[tokio::test]
async fn a_call_of_another_model_has_a_stand_in_for_its_signature() {
    let messages = [
        ChatMessage::user("hello"),
        said("", &[call("a", "x", "{}"), call("b", "y", "{\"k\":")]),
        result("a", "x", "{}", false),
        result("b", "y", "{}", true),
    ];
    let mut first = uses("x", json!({}));
    let second = uses("y", json!({ "INVALID_JSON": "{\"k\":" }));
    let old = contents("gemini-2.5-pro", &messages).await;
    assert_eq!(old[1]["parts"], json!([first, second]));
    first["thoughtSignature"] = json!("skip_thought_signature_validator");
    let new = contents("gemini-3-flash-preview", &messages).await;
    assert_eq!(new[1]["parts"], json!([first, second]));
}

#[tokio::test]
async fn only_a_form_of_the_same_calls_goes_back_and_ids_with_it() {
    let signed = json!({
        "functionCall": { "name": "x", "args": {}, "id": "theirs" }, "thoughtSignature": "s",
    });
    let calls = [call("ours", "x", "{}")];
    let own = |parts: Value| json!({ "role": "model", "parts": parts });
    let (origin, anew) = ("gemini/gemini-2.5-pro", json!([text("t"), uses("x", json!({}))]));
    let rows = [
        (origin, own(json!([text("t"), signed])), json!([text("t"), signed]), json!("theirs")),
        ("gemini/other", own(json!([signed])), anew.clone(), Value::Null),
        (origin, own(json!([signed, signed])), anew.clone(), Value::Null),
        (origin, own(json!([uses("y", json!({}))])), anew.clone(), Value::Null),
        (origin, own(json!([uses("x", json!({ "k": 1 }))])), anew.clone(), Value::Null),
        (origin, json!({ "parts": "x" }), anew.clone(), Value::Null),
        (origin, json!(3), anew, Value::Null),
    ];
    for (origin, own, want, want_id) in rows {
        let messages = [
            ChatMessage::user("hello"),
            said_before("t", &calls, origin, own.clone()),
            result("ours", "x", "{}", false),
        ];
        let contents = contents("gemini-2.5-pro", &messages).await;
        assert_eq!(contents[1]["parts"], want, "{own}");
        let response = &contents[2]["parts"][0]["functionResponse"];
        assert_eq!(response.get("id").unwrap_or(&Value::Null), &want_id, "{own}");
    }
}

#[tokio::test]
async fn what_another_model_wrote_is_made_acceptable() {
    let calls = [call("a", "functions read", "{}")];
    let own = json!({ "role": "model", "parts": [uses("functions read", json!({}))] });
    for said in [said("", &calls), said_before("", &calls, "gemini/gemini-2.5-pro", own)] {
        let messages =
            [ChatMessage::user("hello"), said, result("a", "functions read", "{}", true)];
        let contents = contents("gemini-2.5-pro", &messages).await;
        assert_eq!(contents[1]["parts"], json!([uses("functions_read", json!({}))]));
        assert_eq!(contents[2]["parts"], json!([gave("functions_read", json!({}))]));
    }
}

#[tokio::test]
async fn what_says_nothing_is_not_sent() {
    let empty = json!({ "role": "model", "parts": [] });
    let messages =
        [ChatMessage::user("one"), said_before("", &[], "gemini/m", empty), ChatMessage::user("")];
    let want = json!([{ "role": "user", "parts": [text("one"), text("(no words)")] }]);
    assert_eq!(contents("m", &messages).await, want);
}

#[tokio::test]
async fn every_end_of_an_answer_is_told() {
    let ended = |reason: &str| json!({ "candidates": [{ "finishReason": reason }] });
    let rows = [
        (ended("MAX_TOKENS"), FinishReason::Length),
        (ended("SAFETY"), FinishReason::ContentFilter),
        (ended("RECITATION"), FinishReason::ContentFilter),
        (
            ended("MALFORMED_FUNCTION_CALL"),
            FinishReason::Other("MALFORMED_FUNCTION_CALL".to_owned()),
        ),
        (json!({ "promptFeedback": { "blockReason": "SAFETY" } }), FinishReason::ContentFilter),
    ];
    for (answer, want) in rows {
        let stream = written(ProviderProtocol::Gemini, std::slice::from_ref(&answer));
        let script = vec![chunked("text/event-stream", &[&stream]), last_chunk()];
        let (streamed, _) = play(ProviderProtocol::Gemini, script, true).await.unwrap();
        let script = plain(200, "content-type: application/json\r\n", &answer.to_string());
        let (whole, _) = play(ProviderProtocol::Gemini, script, false).await.unwrap();
        assert_eq!((&streamed.finish, &whole.finish), (&want, &want), "{answer}");
        assert_eq!((streamed.message.text.as_str(), whole.usage), ("", None));
    }
}
