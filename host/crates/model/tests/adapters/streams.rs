//! Answers in every form in which a network can deliver them.

use std::collections::BTreeSet;

use sallyport_model::{
    ChatMessage, ModelEndpoint, ModelError, ModelReply, ModelRequest, ProviderProtocol, ReplyDelta,
};
use serde_json::{Value, json};

use crate::server::{Server, Step, chunked, last_chunk, plain, until_close};
use crate::wires::{self, written};
use crate::{PROTOCOLS, ask, connect, hello, play, result, settings};

const JSON: &str = "content-type: application/json; charset=UTF-8\r\n";

fn content_type(protocol: ProviderProtocol) -> &'static str {
    if protocol == ProviderProtocol::Ollama { "application/x-ndjson" } else { "text/event-stream" }
}

fn in_chunks(protocol: ProviderProtocol, pieces: &[&[u8]]) -> Vec<Step> {
    vec![chunked(content_type(protocol), pieces), last_chunk()]
}

#[tokio::test]
async fn an_answer_reads_the_same_however_it_is_split() {
    for wire in wires::all() {
        let answer = wire.streamed();
        let bytes: Vec<&[u8]> = answer.chunks(1).collect();
        let script = vec![chunked(wire.content_type, &bytes), last_chunk()];
        wire.assert_streamed(play(wire.protocol, script, true).await.unwrap());
        for at in (0..answer.len()).step_by(3) {
            let (head, tail) = answer.split_at(at);
            let script = in_chunks(wire.protocol, &[head, tail]);
            wire.assert_streamed(play(wire.protocol, script, true).await.unwrap());
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_cut_is_broken_until_all_is_said() {
    for wire in wires::all() {
        let answer = wire.streamed();
        let all_said = answer.len() - wire.farewell_bytes;
        for at in (0..=answer.len()).filter(|at| at % 3 == 0 || *at >= all_said - 4) {
            let cut = &answer[..at];
            let by_close = vec![until_close(wire.content_type), Step::Send(cut.to_vec())];
            let in_chunks = vec![chunked(wire.content_type, &[cut])];
            // Without an end event, only the end of the stream marks the end of the answer.
            let wants_end = wire.protocol == ProviderProtocol::Gemini;
            for (script, is_ended) in [(in_chunks, false), (by_close, true)] {
                match play(wire.protocol, script, true).await {
                    Err(ModelError::Broken { .. }) if at < answer.len() => {}
                    Err(ModelError::Broken { .. }) if wants_end && !is_ended => {}
                    Ok(got) if at >= all_said => wire.assert_streamed(got),
                    other => panic!("cut at {at} of {}: {other:?}", answer.len()),
                }
            }
        }
    }
}

#[tokio::test]
async fn two_reasons_to_finish_with_a_cut_between_them_are_no_whole_answer() {
    let piece = |text: &str| {
        let part = json!({ "parts": [{ "text": text }] });
        format!(
            "data: {}\n\n",
            json!({ "candidates": [{ "content": part, "finishReason": "STOP" }] })
        )
    };
    let [first, second] = ["It is ", "noon."].map(piece);
    let cut = vec![chunked("text/event-stream", &[first.as_bytes()])];
    let got = play(ProviderProtocol::Gemini, cut, true).await;
    assert!(matches!(got, Err(ModelError::Broken { .. })), "{got:?}");
    let whole =
        vec![chunked("text/event-stream", &[first.as_bytes(), second.as_bytes()]), last_chunk()];
    let (reply, _) = play(ProviderProtocol::Gemini, whole, true).await.unwrap();
    assert_eq!(reply.message.text, "It is noon.");
}

#[tokio::test]
async fn an_answer_is_whole_once_all_is_said() {
    for wire in wires::all() {
        let answer = wire.streamed();
        let script = in_chunks(wire.protocol, &[&answer[..answer.len() - wire.farewell_bytes]]);
        wire.assert_streamed(play(wire.protocol, script, true).await.unwrap());
    }
}

#[tokio::test]
async fn an_answer_in_one_piece_is_the_same_answer() {
    for wire in wires::all() {
        for stream in [false, true] {
            let script = plain(200, JSON, &wire.whole.to_string());
            wire.assert_whole(play(wire.protocol, script, stream).await.unwrap());
        }
        let script = in_chunks(wire.protocol, &[&wire.streamed()]);
        wire.assert_streamed(play(wire.protocol, script, false).await.unwrap());
    }
}

#[tokio::test]
async fn lines_are_read_under_any_name() {
    let [.., ollama] = wires::all();
    for content_type in ["application/json", "text/plain", ""] {
        let script = vec![chunked(content_type, &[&ollama.streamed()]), last_chunk()];
        ollama.assert_streamed(play(ProviderProtocol::Ollama, script, true).await.unwrap());
    }
}

#[tokio::test]
async fn what_is_not_known_does_no_harm() {
    let rows = [
        (
            ProviderProtocol::Anthropic,
            json!({ "type": "new_event", "index": 9, "delta": { "text": "x" } }),
        ),
        (ProviderProtocol::Anthropic, json!({ "type": "ping" })),
        (ProviderProtocol::Anthropic, json!({})),
        (ProviderProtocol::Gemini, json!({})),
        (
            ProviderProtocol::Gemini,
            json!({ "candidates": null, "usageMetadata": null, "error": null }),
        ),
        (ProviderProtocol::Gemini, json!({ "candidates": [null, 3], "promptFeedback": {} })),
        (
            ProviderProtocol::Gemini,
            json!({ "candidates": [{
                "index": 1, "content": { "parts": [{ "text": "another" }] }, "finishReason": "STOP",
            }] }),
        ),
        (ProviderProtocol::Ollama, json!({})),
        (ProviderProtocol::Ollama, json!({ "message": null, "error": null, "new": 1 })),
        (ProviderProtocol::Ollama, json!({ "message": { "tool_calls": null, "content": null } })),
    ];
    for (protocol, odd) in rows {
        let wire = wires::all().into_iter().find(|wire| wire.protocol == protocol).unwrap();
        for at in 0..wire.pieces.len() {
            let mut pieces = wire.pieces.clone();
            pieces.insert(at, odd.clone());
            let script = in_chunks(protocol, &[&written(protocol, &pieces)]);
            wire.assert_streamed(play(protocol, script, true).await.unwrap());
        }
    }
}

#[tokio::test]
async fn odd_lines_between_events_are_skipped() {
    let odd = "\u{feff}: comment\n\nevent: x\n\ndata:\n\nid: 1\nretry: 5\n\n:\n\n";
    for wire in wires::all() {
        let before = if wire.protocol == ProviderProtocol::Ollama { "\n\r\n \n" } else { odd };
        let after =
            if wire.protocol == ProviderProtocol::Ollama { "\n" } else { "data: [DONE]\n\n" };
        let answer = [before.as_bytes(), &wire.streamed(), after.as_bytes()].concat();
        let script = in_chunks(wire.protocol, &[&answer]);
        wire.assert_streamed(play(wire.protocol, script, true).await.unwrap());
    }
}

#[tokio::test]
async fn nonsense_in_a_stream_breaks_the_answer() {
    let rows = [
        (
            ProviderProtocol::Anthropic,
            r#"{"type":"content_block_start","index":0,"content_block":"x"}"#,
        ),
        (
            ProviderProtocol::Anthropic,
            r#"{"type":"content_block_delta","index":7,"delta":{"type":"text_delta","text":"x"}}"#,
        ),
        (ProviderProtocol::Gemini, r#"{"candidates":[{"content":{"parts":["x"]}}]}"#),
        (ProviderProtocol::Ollama, r#"{"message":{"tool_calls":["x"]}}"#),
    ];
    let everywhere = ["nonsense", "[]", "null", "3", "{\"a\":["];
    let everywhere =
        PROTOCOLS.into_iter().flat_map(|protocol| everywhere.map(|data| (protocol, data)));
    for (protocol, data) in rows.into_iter().chain(everywhere) {
        let line = match protocol {
            ProviderProtocol::Ollama => format!("{data}\n"),
            _ => format!("data: {data}\n\n"),
        };
        let got = play(protocol, in_chunks(protocol, &[line.as_bytes()]), true).await;
        assert!(matches!(got, Err(ModelError::Broken { .. })), "{data}: {got:?}");
    }
}

/// Replaces every value of every piece, one at a time. The answer may differ or be refused, but
/// nothing worse may happen.
#[tokio::test]
async fn no_changed_value_does_more_than_break_the_answer() {
    let odd = [json!(null), json!(-1), json!("x"), json!([1]), json!({ "type": "text" })];
    for wire in wires::all() {
        for (at, piece) in wire.pieces.iter().enumerate() {
            for pointer in pointers(piece) {
                let mut pieces = wire.pieces.clone();
                for odd in &odd {
                    *pieces[at].pointer_mut(&pointer).unwrap() = odd.clone();
                    let script = in_chunks(wire.protocol, &[&written(wire.protocol, &pieces)]);
                    check_harmless(play(wire.protocol, script, true).await);
                    pieces[at] = piece.clone();
                }
            }
        }
    }
}

#[track_caller]
fn check_harmless(got: Result<(ModelReply, Vec<ReplyDelta>), ModelError>) {
    match got {
        Ok(_) | Err(ModelError::Broken { .. } | ModelError::Refused { .. }) => {}
        Err(other) => panic!("{other:?}"),
    }
}

/// Returns a pointer to every value inside a value.
fn pointers(value: &Value) -> Vec<String> {
    let inside: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(n, v)| (n.to_string(), v)).collect(),
        _ => Vec::new(),
    };
    let below = inside.into_iter().flat_map(|(key, value)| {
        pointers(value).into_iter().map(move |pointer| format!("/{key}{pointer}"))
    });
    std::iter::once(String::new()).chain(below).collect()
}

#[tokio::test]
async fn an_endless_answer_is_ended() {
    let name = r#"{"type":"tool_use","id":"a","name":"x"}"#;
    let block = format!(r#"{{"type":"content_block_start","index":0,"content_block":{name}}}"#);
    let part = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"x"}}]}}]}"#;
    let tool_call = r#"{"message":{"tool_calls":[{"function":{"name":"x"}}]}}"#;
    let rows = [
        (ProviderProtocol::Anthropic, vec![b'x'; 64 << 10]),
        (ProviderProtocol::Gemini, vec![b'x'; 64 << 10]),
        (ProviderProtocol::Ollama, vec![b'x'; 64 << 10]),
        (ProviderProtocol::Anthropic, format!("data: {block}\n\n").into_bytes()),
        (ProviderProtocol::Gemini, format!("data: {part}\n\n").into_bytes()),
        (ProviderProtocol::Ollama, format!("{tool_call}\n").into_bytes()),
    ];
    for (protocol, flood) in rows {
        let script = vec![until_close(content_type(protocol)), Step::Flood(flood)];
        let got = play(protocol, script, true).await;
        assert!(matches!(got, Err(ModelError::Broken { .. })), "{protocol:?}: {got:?}");
    }
}

/// Every adapter keeps its own form, sends it back to the same model and never repeats an id.
#[tokio::test]
async fn an_answer_goes_back_as_it_came_to_the_model_that_gave_it() {
    for wire in wires::all() {
        let server = Server::start(in_chunks(wire.protocol, &[&wire.streamed()])).await;
        let endpoint = settings(wire.protocol, &server, true);
        let mut messages = hello();
        for round in 0..3 {
            let (reply, _) = ask(endpoint.clone(), &messages, &[]).await.unwrap();
            let results = reply.message.calls.clone();
            messages.push(ChatMessage::Assistant(reply.message));
            messages.extend(results.iter().map(|c| result(&c.id, &c.name, "{}", false)));
            let ids = ids(&messages);
            assert_eq!(ids.len(), 2 * (round + 1), "{ids:?}");
        }
        let seen = server.seen();
        assert_eq!(history(&seen[1].body)[1], wire.own);
        let other = ModelEndpoint { model: "another".to_owned(), ..endpoint };
        let _ = ask(other, &messages, &[]).await;
        assert_ne!(history(&server.seen()[3].body)[1], wire.own);
    }
}

fn ids(messages: &[ChatMessage]) -> BTreeSet<&str> {
    let said = messages.iter().filter_map(|message| match message {
        ChatMessage::Assistant(said) => Some(&said.calls),
        _ => None,
    });
    said.flatten().map(|call| call.id.as_str()).collect()
}

fn history(body: &Value) -> Vec<Value> {
    let messages = body.get("messages").or_else(|| body.get("contents")).unwrap();
    messages.as_array().unwrap().clone()
}

#[tokio::test]
async fn nothing_is_said_of_an_answer_that_breaks_as_a_whole() {
    let rows = [
        (ProviderProtocol::Anthropic, json!({ "content": [{ "type": "text", "text": "a" }, 3] })),
        (
            ProviderProtocol::Gemini,
            json!({ "candidates": [{ "content": { "parts": [{ "text": "a" }, 3] } }] }),
        ),
        (ProviderProtocol::Ollama, json!({ "message": { "content": "a", "tool_calls": [3] } })),
    ];
    for (protocol, answer) in rows {
        let server = Server::start(plain(200, JSON, &answer.to_string())).await;
        let model = connect(settings(protocol, &server, false));
        let mut said: Vec<ReplyDelta> = Vec::new();
        let request = ModelRequest { messages: &hello(), ..ModelRequest::default() };
        let got = model.generate(request, &mut |delta| said.push(delta)).await;
        assert!(matches!(got, Err(ModelError::Broken { .. })), "{got:?}");
        assert_eq!(said, []);
    }
}
