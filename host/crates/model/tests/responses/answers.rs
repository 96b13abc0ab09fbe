//! Answers in one piece, and refusals.

use sallyport_model::{FinishReason, ModelError, ModelReply, ReplyDelta};
use serde_json::{Value, json};

use crate::server::{Server, Step, chunked, plain};
use crate::{KEY, ask, hello, settings};

const JSON: &str = "content-type: application/json\r\n";

async fn told(body: Value) -> Result<(ModelReply, Vec<ReplyDelta>), ModelError> {
    let server = Server::start(plain(200, JSON, &body.to_string())).await;
    ask(settings(server.base_url.clone(), false), &hello(), &[]).await
}

#[tokio::test]
async fn an_answer_in_one_piece_is_told_in_its_order() {
    let (reply, deltas) = told(json!({
        "status": "completed", "error": null,
        "output": [
            { "type": "reasoning", "summary": [{ "type": "summary_text", "text": "r" }] },
            { "type": "message", "content": [{ "type": "output_text", "text": "hi" }] },
            { "type": "function_call", "call_id": "c", "name": "n", "arguments": "" },
            { "type": "something_new", "x": 1 },
        ],
    }))
    .await
    .unwrap();
    assert_eq!((reply.message.text.as_str(), reply.finish), ("hi", FinishReason::ToolCalls));
    assert_eq!(reply.message.calls[0].arguments, "{}");
    assert_eq!(reply.usage, None);
    let want = [
        ReplyDelta::Reasoning { text: "r".to_owned() },
        ReplyDelta::Text { text: "hi".to_owned() },
        ReplyDelta::CallBegun { name: "n".to_owned() },
    ];
    assert_eq!(deltas, want);
}

#[tokio::test]
async fn ids_and_arguments_are_repaired_in_the_form_that_goes_back() {
    let call = |id: Value, arguments: Value| json!({ "type": "function_call", "call_id": id, "name": "n", "arguments": arguments });
    let output = [
        call(json!("a"), json!("{\"k\":1}")),
        call(json!("a"), json!("")),
        call(json!(null), json!({ "k": 2 })),
    ];
    let (reply, _) = told(json!({ "output": output })).await.unwrap();
    let calls: Vec<_> = reply
        .message
        .calls
        .iter()
        .map(|call| (call.id.as_str(), call.arguments.as_str()))
        .collect();
    let want = [("a", "{\"k\":1}"), ("call_1", "{}"), ("call_2", "{\"k\":2}")];
    assert_eq!(calls, want);
    let own = reply.message.opaque.unwrap().body;
    for (own, (id, arguments)) in own.as_array().unwrap().iter().zip(want) {
        assert_eq!((&own["call_id"], &own["arguments"]), (&json!(id), &json!(arguments)));
    }
}

#[tokio::test]
async fn answers_that_are_none_are_broken_or_refused() {
    for body in [json!({}), json!([]), json!({ "output": null }), json!({ "output": ["x"] })] {
        let got = told(body.clone()).await;
        assert!(matches!(got, Err(ModelError::Broken { .. })), "{body}: {got:?}");
    }
    let failed = json!({ "status": "failed", "error": { "code": "server_error", "message": "m" } });
    let got = told(failed).await;
    assert!(matches!(got, Err(ModelError::Refused { status: 500, .. })), "{got:?}");
}

#[tokio::test]
async fn refusals_are_told_by_their_status_and_without_the_key() {
    let body = format!(r#"{{"error":{{"message":"no {KEY}","code":"x"}}}}"#);
    for (status, retry_after) in [(400, None), (401, None), (429, Some(7)), (503, Some(7))] {
        let server = Server::start(plain(status, "retry-after: 7\r\n", &body)).await;
        let asked = ask(settings(server.base_url.clone(), true), &hello(), &[]).await;
        let error = asked.unwrap_err();
        assert!(!format!("{error} {error:?}").contains(KEY), "{error:?}");
        let told = match error {
            ModelError::Credentials { .. } if status == 401 => None,
            ModelError::RateLimited { retry_after, .. } if status == 429 => retry_after,
            ModelError::Refused { status: told, retry_after, .. } if told == status => {
                retry_after.filter(|_| status == 503)
            }
            other => panic!("{status}: {other:?}"),
        };
        assert_eq!(told.map(|wait| wait.as_secs()), retry_after, "{status}");
    }
}

#[tokio::test]
async fn a_stream_where_none_was_asked_for_is_understood() {
    let event = json!({ "type": "response.completed", "response": { "status": "completed", "output": [
        { "type": "message", "content": [{ "type": "output_text", "text": "hi" }] },
    ] } });
    let answer = format!("event: response.completed\ndata: {event}\n\n");
    let script = vec![chunked("text/event-stream", &[answer.as_bytes()]), Step::Hang];
    let server = Server::start(script).await;
    let (reply, _) = ask(settings(server.base_url.clone(), false), &hello(), &[]).await.unwrap();
    assert_eq!((reply.message.text.as_str(), reply.finish), ("hi", FinishReason::Stop));
}
