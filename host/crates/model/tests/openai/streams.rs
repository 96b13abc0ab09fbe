//! Streams in every form in which a network can deliver them.

use sallyport_model::{
    FinishReason, ModelCallRequest, ModelError, ModelReply, ReplyDelta, TokenUsage,
};
use serde_json::json;

use crate::server::{Server, Step, chunked, last_chunk, plain, until_close};
use crate::{ask, hello, settings};

const EVENTS: &str = "text/event-stream; charset=utf-8";

/// The events of one answer: thinking, text beyond ASCII, two calls interleaved, usage.
const ANSWER: &[&str] = &[
    r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":null,"reasoning_content":"hm"}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"Grüße"},"finish_reason":""}],"unknown":1}"#,
    r#"{"choices":[{"index":0,"delta":{"content":" 東京","tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"x","arguments":""}},{"index":1,"id":"b","function":{"name":"y"}}]}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"k\":\"é\"}"}}]}}]}"#,
    r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
    r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":9}}"#,
    "[DONE]",
];

fn written(events: &[&str], line_end: &str) -> Vec<u8> {
    let event = |data: &&str| format!("data: {data}{line_end}{line_end}");
    format!(": comment{line_end}{}", events.iter().map(event).collect::<String>()).into_bytes()
}

/// The position of the event with the finish reason.
fn said_all_at(answer: &[u8]) -> usize {
    let text = std::str::from_utf8(answer).unwrap();
    let finish = text.rfind("finish_reason").unwrap();
    finish + text[finish..].find("\n\n").unwrap() + 2
}

async fn check(script: Vec<Step>) -> Result<(ModelReply, Vec<ReplyDelta>), ModelError> {
    let server = Server::start(script).await;
    ask(settings(server.base_url.clone(), true), &hello(), &[]).await
}

#[track_caller]
fn assert_is_the_answer((reply, deltas): (ModelReply, Vec<ReplyDelta>), usage: Option<TokenUsage>) {
    let call = |id: &str, name: &str, arguments: &str| ModelCallRequest {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    };
    assert_eq!(reply.message.text, "Grüße 東京");
    assert_eq!(reply.message.calls, [call("a", "x", r#"{"k":"é"}"#), call("b", "y", "{}")]);
    assert_eq!(
        reply.message.opaque.unwrap().body,
        json!({
            "role": "assistant", "content": "Grüße 東京", "reasoning_content": "hm",
            "tool_calls": [
                { "id": "a", "type": "function", "function": { "name": "x", "arguments": "{\"k\":\"é\"}" } },
                { "id": "b", "type": "function", "function": { "name": "y", "arguments": "{}" } },
            ],
        })
    );
    assert_eq!(reply.finish, FinishReason::ToolCalls);
    assert_eq!(reply.usage, usage);
    let text = |text: &str| ReplyDelta::Text { text: text.to_owned() };
    let begun = |name: &str| ReplyDelta::CallBegun { name: name.to_owned() };
    let said = [ReplyDelta::Reasoning { text: "hm".to_owned() }, text("Grüße"), text(" 東京")];
    assert_eq!(deltas, [&said[..], &[begun("x"), begun("y")]].concat());
}

const USAGE: Option<TokenUsage> = Some(TokenUsage {
    input_tokens: 7,
    output_tokens: 9,
    cached_input_tokens: 0,
    cache_write_tokens: 0,
    reasoning_tokens: 0,
});

#[tokio::test]
async fn an_answer_reads_the_same_however_it_is_split() {
    for line_end in ["\n", "\r\n"] {
        let answer = written(ANSWER, line_end);
        let bytes: Vec<&[u8]> = answer.chunks(1).collect();
        assert_is_the_answer(
            check(vec![chunked(EVENTS, &bytes), last_chunk()]).await.unwrap(),
            USAGE,
        );
        for at in 0..answer.len() {
            let (head, tail) = answer.split_at(at);
            let script = vec![chunked(EVENTS, &[head, tail]), last_chunk()];
            assert_is_the_answer(check(script).await.unwrap(), USAGE);
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_cut_is_broken_until_all_is_said() {
    let answer = written(ANSWER, "\n");
    let (all_said, usage_said) = (said_all_at(&answer), answer.len() - "data: [DONE]\n\n".len());
    for at in 0..answer.len() {
        let cut = &answer[..at];
        let by_close = vec![until_close(EVENTS), Step::Send(cut.to_vec())];
        for script in [vec![chunked(EVENTS, &[cut])], by_close] {
            match check(script).await {
                Err(ModelError::Broken { .. }) if at < all_said => {}
                Ok(got) if at >= all_said => {
                    assert_is_the_answer(got, USAGE.filter(|_| at >= usage_said));
                }
                other => panic!("cut at {at} of {}: {other:?}", answer.len()),
            }
        }
    }
}

#[tokio::test]
async fn a_byte_order_mark_and_odd_events_do_no_harm() {
    let odd = "event: ping\ndata:\n\nid: 1\nretry: 5\n\nevent: x\n\n:\n\n";
    let answer = [b"\xef\xbb\xbf".as_slice(), odd.as_bytes(), &written(ANSWER, "\n")].concat();
    let bytes: Vec<&[u8]> = answer.chunks(1).collect();
    for pieces in [vec![answer.as_slice()], bytes] {
        let script = vec![chunked(EVENTS, &pieces), last_chunk()];
        assert_is_the_answer(check(script).await.unwrap(), USAGE);
    }
}

#[tokio::test]
async fn what_comes_after_the_end_is_not_read() {
    let answer = [written(ANSWER, "\n").as_slice(), b"data: nonsense\n\n"].concat();
    let script = vec![chunked(EVENTS, &[&answer]), Step::Hang];
    assert_is_the_answer(check(script).await.unwrap(), USAGE);
}

#[tokio::test]
async fn nonsense_in_a_stream_breaks_the_answer() {
    let rows = [
        "nonsense",
        "[]",
        r#"[[{"delta":{},"finish_reason":"stop"}],null,null]"#,
        "null",
        "{\"choices\":[",
        r#"{"choices":[{"delta":{"tool_calls":["x"]}}]}"#,
    ];
    for data in rows {
        let answer = written(&[ANSWER[0], data, "[DONE]"], "\n");
        let got = check(vec![chunked(EVENTS, &[&answer]), last_chunk()]).await;
        assert!(matches!(got, Err(ModelError::Broken { .. })), "{data}: {got:?}");
    }
    let bad_utf8 = vec![chunked(EVENTS, &[b"data: \xff\xff\n\n"]), last_chunk()];
    assert!(matches!(check(bad_utf8).await, Err(ModelError::Broken { .. })));
}

#[tokio::test]
async fn events_that_say_nothing_are_ignored() {
    let nothing = [
        "{}",
        r#"{"choices":null}"#,
        r#"{"choices":[]}"#,
        r#"{"choices":[null]}"#,
        r#"{"choices":[{"delta":null,"finish_reason":null}],"usage":null,"error":null}"#,
        r#"{"choices":[{"index":1,"delta":{"content":"another choice"},"finish_reason":"stop"}]}"#,
    ];
    let answer = written(&[&nothing[..], ANSWER].concat(), "\n");
    let got = check(vec![chunked(EVENTS, &[&answer]), last_chunk()]).await.unwrap();
    assert_is_the_answer(got, USAGE);
}

#[tokio::test]
async fn an_error_in_a_stream_is_told_as_the_providers() {
    let error = r#"{"error":{"code":502,"message":"upstream is gone"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}"#;
    let answer = written(&[ANSWER[0], error], "\n");
    match check(vec![chunked(EVENTS, &[&answer]), last_chunk()]).await {
        Err(ModelError::Refused { status: 502, message, .. }) => {
            assert_eq!(message, "upstream is gone");
        }
        other => panic!("{other:?}"),
    }
    let named = b"event: error\ndata: {\"message\":\"overloaded\"}\n\n";
    let got = check(vec![chunked(EVENTS, &[named]), last_chunk()]).await;
    assert!(matches!(got, Err(ModelError::Refused { status: 200, .. })), "{got:?}");
}

#[tokio::test]
async fn a_server_that_answers_in_one_piece_is_understood_and_the_other_way_round() {
    let whole = r#"{"choices":[{"message":{"role":"assistant","content":"hi","reasoning":"r"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;
    let (reply, deltas) =
        check(plain(200, "content-type: application/json\r\n", whole)).await.unwrap();
    assert_eq!((reply.message.text.as_str(), reply.finish), ("hi", FinishReason::Stop));
    assert_eq!(
        reply.usage,
        Some(TokenUsage { input_tokens: 1, output_tokens: 2, ..TokenUsage::default() })
    );
    assert_eq!(
        deltas,
        [
            ReplyDelta::Reasoning { text: "r".to_owned() },
            ReplyDelta::Text { text: "hi".to_owned() }
        ]
    );

    let server =
        Server::start(vec![chunked(EVENTS, &[&written(ANSWER, "\n")]), last_chunk()]).await;
    let got = ask(settings(server.base_url.clone(), false), &hello(), &[]).await.unwrap();
    assert_is_the_answer(got, USAGE);
}

#[tokio::test]
async fn parts_and_plain_text_may_alternate() {
    let events = [
        r#"{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[]}]}}]}"#,
        r#"{"choices":[{"delta":{"content":"a"}}]}"#,
        r#"{"choices":[{"delta":{"content":[{"type":"text","text":"b"}]},"finish_reason":"stop"}]}"#,
    ];
    let answer = written(&events, "\n");
    let (reply, _) = check(vec![chunked(EVENTS, &[&answer]), last_chunk()]).await.unwrap();
    assert_eq!(reply.message.text, "ab");
    let parts = &reply.message.opaque.unwrap().body["content"];
    assert_eq!(parts[2], json!({ "type": "text", "text": "b" }));
}
