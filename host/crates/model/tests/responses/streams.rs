//! Streams in every form in which a network can deliver them, and every way in which they break.

use sallyport_model::{
    FinishReason, ModelCallRequest, ModelError, ModelReply, ReplyDelta, TokenUsage,
};
use serde_json::{Value, json};

use crate::server::{Server, Step, chunked, last_chunk, until_close};
use crate::{ask, hello, settings};

const EVENTS: &str = "text/event-stream; charset=utf-8";

/// An answer as the last event contains it: thoughts, text in two messages, a call.
fn output() -> Value {
    json!([
        {
            "type": "reasoning", "id": "rs_1", "encrypted_content": "sealed",
            "summary": [{ "type": "summary_text", "text": "hm" }, { "type": "summary_text", "text": "so" }],
        },
        {
            "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{ "type": "output_text", "text": "Grüße 東京", "annotations": [] }],
        },
        {
            "type": "message", "id": "msg_2", "role": "assistant", "status": "completed",
            "content": [{ "type": "refusal", "refusal": "no" }],
        },
        {
            "type": "function_call", "id": "fc_1", "call_id": "call_a", "name": "x",
            "arguments": "{\"k\":\"é\"}", "status": "completed",
        },
    ])
}

fn completed(output: &Value) -> Value {
    json!({ "type": "response.completed", "response": {
        "status": "completed", "output": output, "error": null,
        "usage": {
            "input_tokens": 7, "input_tokens_details": { "cached_tokens": 3, "cache_write_tokens": 2 },
            "output_tokens": 9, "output_tokens_details": { "reasoning_tokens": 4 },
        },
    } })
}

/// The events before the last one.
fn said() -> Vec<Value> {
    let thought = |summary: u64, delta: &str| {
        json!({
            "type": "response.reasoning_summary_text.delta", "item_id": "rs_1", "output_index": 0,
            "summary_index": summary, "delta": delta,
        })
    };
    let words = |index: u64, kind: &str, delta: &str| json!({ "type": kind, "output_index": index, "content_index": 0, "delta": delta });
    vec![
        json!({ "type": "response.created", "response": { "status": "in_progress", "output": [] } }),
        json!({ "type": "response.something.new", "output_index": 0 }),
        json!({ "type": "response.output_item.added", "output_index": 0, "item": { "type": "reasoning" } }),
        thought(0, "h"),
        thought(0, "m"),
        thought(1, "so"),
        words(1, "response.output_text.delta", "Grüße"),
        words(1, "response.output_text.delta", ""),
        words(1, "response.output_text.delta", " 東京"),
        words(2, "response.refusal.delta", "no"),
        json!({
            "type": "response.output_item.added", "output_index": 3,
            "item": { "type": "function_call", "name": "x", "call_id": "call_a", "arguments": "" },
        }),
        json!({ "type": "response.function_call_arguments.delta", "output_index": 3, "delta": "{" }),
    ]
}

fn written(events: &[Value]) -> Vec<u8> {
    let event = |data: &Value| {
        format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default())
    };
    events.iter().map(event).collect::<String>().into_bytes()
}

fn answer() -> Vec<u8> {
    written(&[said(), vec![completed(&output())]].concat())
}

async fn check(script: Vec<Step>) -> Result<(ModelReply, Vec<ReplyDelta>), ModelError> {
    let server = Server::start(script).await;
    ask(settings(server.base_url.clone(), true), &hello(), &[]).await
}

async fn told(events: &[Value]) -> Result<(ModelReply, Vec<ReplyDelta>), ModelError> {
    check(vec![chunked(EVENTS, &[&written(events)]), last_chunk()]).await
}

#[track_caller]
fn assert_is_the_answer((reply, deltas): (ModelReply, Vec<ReplyDelta>)) {
    let call = ModelCallRequest {
        id: "call_a".to_owned(),
        name: "x".to_owned(),
        arguments: r#"{"k":"é"}"#.to_owned(),
    };
    assert_eq!(reply.message.text, "Grüße 東京\n\nno");
    assert_eq!(reply.message.calls, [call]);
    let opaque = reply.message.opaque.unwrap();
    assert_eq!((opaque.origin.as_str(), opaque.body), ("openai-responses/test-model", output()));
    assert_eq!(reply.finish, FinishReason::ToolCalls);
    let usage = TokenUsage {
        input_tokens: 7,
        output_tokens: 9,
        cached_input_tokens: 3,
        cache_write_tokens: 2,
        reasoning_tokens: 4,
    };
    assert_eq!(reply.usage, Some(usage));
    let thought = |text: &str| ReplyDelta::Reasoning { text: text.to_owned() };
    let text = |text: &str| ReplyDelta::Text { text: text.to_owned() };
    let want = [
        thought("h"),
        thought("m"),
        thought("\n\n"),
        thought("so"),
        text("Grüße"),
        text(" 東京"),
        text("\n\n"),
        text("no"),
        ReplyDelta::CallBegun { name: "x".to_owned() },
    ];
    assert_eq!(deltas, want);
}

#[tokio::test]
async fn an_answer_reads_the_same_however_it_is_split() {
    let answer = answer();
    let bytes: Vec<&[u8]> = answer.chunks(1).collect();
    assert_is_the_answer(check(vec![chunked(EVENTS, &bytes), last_chunk()]).await.unwrap());
    for at in (0..answer.len()).step_by(7) {
        let (head, tail) = answer.split_at(at);
        let script = vec![chunked(EVENTS, &[head, tail]), last_chunk()];
        assert_is_the_answer(check(script).await.unwrap());
    }
}

#[tokio::test]
async fn an_answer_that_is_cut_before_its_last_event_is_broken() {
    let answer = answer();
    for at in 0..answer.len() {
        let cut = &answer[..at];
        // The connection ends inside a chunk, or a body without a length ends with it.
        let script = match at % 2 {
            0 => vec![chunked(EVENTS, &[cut])],
            _ => vec![until_close(EVENTS), Step::Send(cut.to_vec())],
        };
        let got = check(script).await;
        let is_broken = matches!(got, Err(ModelError::Broken { .. }));
        assert!(is_broken, "cut at {at} of {}: {got:?}", answer.len());
    }
}

#[tokio::test]
async fn what_comes_after_the_end_is_not_read() {
    let answer = [answer().as_slice(), b"data: nonsense\n\n"].concat();
    assert_is_the_answer(check(vec![chunked(EVENTS, &[&answer]), Step::Hang]).await.unwrap());
}

#[tokio::test]
async fn events_that_say_nothing_are_ignored_and_may_be_named_beside_their_data() {
    let odd = b": ping\n\nevent: ping\ndata:\n\ndata: [DONE]\n\ndata: {}\n\n";
    let text = String::from_utf8(answer()).unwrap();
    let beside: String = text
        .lines()
        .map(|line| match line.strip_prefix("data: ") {
            Some(data) => {
                let mut data: Value = serde_json::from_str(data).unwrap();
                data.as_object_mut().unwrap().remove("type");
                format!("data: {data}\n")
            }
            None => format!("{line}\n"),
        })
        .collect();
    for answer in [text, beside] {
        let answer = [odd.as_slice(), answer.as_bytes()].concat();
        let script = vec![chunked(EVENTS, &[&answer]), last_chunk()];
        assert_is_the_answer(check(script).await.unwrap());
    }
}

#[tokio::test]
async fn items_that_the_last_event_leaves_out_are_taken_from_the_way() {
    let mut events = said();
    for (index, item) in output().as_array().unwrap().iter().enumerate().rev() {
        let kind = "response.output_item.done";
        events.push(json!({ "type": kind, "output_index": index, "item": item }));
    }
    for output in [json!([]), Value::Null] {
        let all = [events.clone(), vec![completed(&output)]].concat();
        assert_is_the_answer(told(&all).await.unwrap());
    }
}

#[tokio::test]
async fn words_that_were_not_streamed_are_told_at_the_end() {
    let (reply, deltas) = told(&[completed(&output())]).await.unwrap();
    assert_eq!(deltas, [ReplyDelta::Text { text: reply.message.text }]);
}

#[tokio::test]
async fn an_answer_can_end_early() {
    let rows = [
        (json!({ "reason": "max_output_tokens" }), FinishReason::Length),
        (json!({ "reason": "content_filter" }), FinishReason::ContentFilter),
        (json!({ "reason": "x\u{1b}" }), FinishReason::Other("x\\u{1b}".to_owned())),
        (Value::Null, FinishReason::Other("incomplete".to_owned())),
    ];
    for (details, want) in rows {
        let event = json!({ "type": "response.incomplete", "response": {
            "status": "incomplete", "incomplete_details": details, "output": output(),
        } });
        assert_eq!(told(&[event]).await.unwrap().0.finish, want);
    }
}

#[tokio::test]
async fn failures_in_a_stream_are_told_as_the_providers() {
    use ModelError as E;
    let failed = |error: Value| json!({ "type": "response.failed", "response": { "status": "failed", "error": error } });
    type IsRight = fn(&ModelError) -> bool;
    let rows: [(Value, IsRight); 6] = [
        (
            failed(json!({ "code": "server_error", "message": "m" })),
            |e| matches!(e, E::Refused { status: 500, message, .. } if message == "m"),
        ),
        (failed(json!({ "code": "rate_limit_exceeded", "message": "m" })), |e| {
            matches!(e, E::RateLimited { .. })
        }),
        (failed(json!({ "code": "odd", "message": "m" })), |e| {
            matches!(e, E::Refused { status: 200, .. })
        }),
        (failed(Value::Null), |e| matches!(e, E::Refused { .. })),
        (
            json!({ "type": "error", "code": "server_error", "message": "m", "param": null }),
            |e| matches!(e, E::Refused { status: 500, message, .. } if message == "m"),
        ),
        (
            json!({ "type": "error", "error": { "type": "invalid_request_error", "message": "m" } }),
            |e| matches!(e, E::Refused { status: 400, message, .. } if message == "m"),
        ),
    ];
    for (event, is_right) in rows {
        let error = told(&[said(), vec![event.clone()]].concat()).await.unwrap_err();
        assert!(is_right(&error), "{event}: {error:?}");
    }
}

#[tokio::test]
async fn nonsense_breaks_the_answer() {
    let response = |response: Value| {
        format!("{}", json!({ "type": "response.completed", "response": response }))
    };
    let rows = [
        "nonsense".to_owned(),
        "[]".to_owned(),
        "null".to_owned(),
        "{\"type\":".to_owned(),
        response(Value::Null),
        response(json!("x")),
        response(json!({})),
        response(json!({ "output": "x" })),
        response(json!({ "output": [1] })),
        response(json!({ "output": [null] })),
        response(json!({ "output": [], "status": "queued" })),
        response(json!({ "output": [], "status": "cancelled" })),
    ];
    for data in rows {
        let answer = format!("data: {data}\n\n");
        let got = check(vec![chunked(EVENTS, &[answer.as_bytes()]), last_chunk()]).await;
        assert!(matches!(got, Err(ModelError::Broken { .. })), "{data}: {got:?}");
    }
}

#[tokio::test]
async fn events_of_an_odd_shape_do_no_harm() {
    let kinds =
        ["output_text.delta", "reasoning_text.delta", "output_item.added", "output_item.done"];
    let odd = kinds.iter().flat_map(|kind| {
        let kind = format!("response.{kind}");
        let full = json!({ "type": kind, "delta": 1, "item": 2, "output_index": -1 });
        [json!({ "type": kind }), full]
    });
    let all: Vec<Value> = odd.chain([completed(&output())]).collect();
    assert_eq!(told(&all).await.unwrap().0.message.text, "Grüße 東京\n\nno");
}

#[tokio::test]
async fn an_endless_answer_is_ended() {
    let rows = [
        (EVENTS, [b": ".as_slice(), &[b'x'; 64 << 10], b"\n"].concat()),
        ("application/json", vec![b' '; 64 << 10]),
    ];
    for (content_type, flood) in rows {
        let got = check(vec![until_close(content_type), Step::Flood(flood)]).await;
        assert!(matches!(got, Err(ModelError::Broken { .. })), "{got:?}");
    }
}

#[tokio::test]
async fn more_calls_than_any_session_runs_are_refused() {
    let call = json!({ "type": "function_call", "call_id": "a", "name": "n", "arguments": "{}" });
    let output = Value::from(vec![call; 4097]);
    let got = told(&[completed(&output)]).await;
    assert!(matches!(got, Err(ModelError::Broken { .. })), "{got:?}");
}
