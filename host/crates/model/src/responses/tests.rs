//! Any output of a server gives an answer or an error, and an answer can be sent back.

use std::collections::HashSet;

use proptest::{collection, prelude::*, sample};
use serde_json::{Value, json};
use sse_stream::Sse;

use super::ResponsesFormat;
use crate::{
    chat::ChatMessage,
    chat_model::ModelRequest,
    endpoint::ModelEndpoint,
    protocol::ProviderProtocol,
    wire::{AnswerContext, ProviderIdentity, ServerEvents, WireFormat},
};

/// Keys that the adapter reads.
const KEYS: [&str; 18] = [
    "arguments",
    "call_id",
    "code",
    "content",
    "delta",
    "encrypted_content",
    "error",
    "incomplete_details",
    "item",
    "message",
    "name",
    "output",
    "output_index",
    "response",
    "status",
    "summary",
    "type",
    "usage",
];

/// Values that the adapter reads.
const WORDS: [&str; 16] = [
    "",
    "a",
    "completed",
    "error",
    "function_call",
    "incomplete",
    "message",
    "output_text",
    "reasoning",
    "response.completed",
    "response.failed",
    "response.incomplete",
    "response.output_item.added",
    "response.output_item.done",
    "response.output_text.delta",
    "response.reasoning_text.delta",
];

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => sample::select(&WORDS[..]).prop_map(|word| json!(word)),
        1 => any::<i64>().prop_map(|number| json!(number)),
        1 => Just(Value::Null),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        let entry = (sample::select(&KEYS[..]), inner.clone());
        prop_oneof![
            1 => collection::vec(inner, 0..4).prop_map(Value::from),
            3 => collection::vec(entry, 0..6).prop_map(|entries| {
                entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            }),
        ]
    })
}

/// An answer that contains calls more often than at random.
fn answer() -> impl Strategy<Value = Value> {
    let call = (json(), json(), json()).prop_map(|(id, name, arguments)| {
        json!({ "type": "function_call", "call_id": id, "name": name, "arguments": arguments })
    });
    let output = collection::vec(prop_oneof![call, json()], 0..6);
    (output, json()).prop_map(|(output, mut answer)| {
        if let Some(fields) = answer.as_object_mut() {
            fields.insert("output".to_owned(), Value::from(output));
        }
        answer
    })
}

/// The provider refused every further request of the session.
#[test]
fn thoughts_at_the_end_of_an_answer_were_sent_back_alone() {
    let endpoint = ModelEndpoint::new(ProviderProtocol::OpenAiResponses, "http://x", "m");
    let provider = ProviderIdentity { name: "p".to_owned(), key: None };
    let context = AnswerContext { provider: &provider, messages: &[], origin: endpoint.origin() };
    let thought = json!({ "type": "reasoning", "id": "r", "encrypted_content": "sealed" });
    let text = json!({ "type": "message", "role": "assistant",
        "content": [{ "type": "output_text", "text": "hello" }] });
    let answer = json!({ "status": "incomplete", "output": [thought, text, thought, thought] });
    let reply = context.read_whole(ResponsesFormat.begin_answer(), answer, &mut |_| {});
    let messages = [ChatMessage::Assistant(reply.unwrap().message)];
    let request = ModelRequest { messages: &messages, ..ModelRequest::default() };
    let body = ResponsesFormat.request_body(&endpoint, request, None);
    let body: Value = serde_json::from_slice(&body).unwrap();
    let sent = body["input"].as_array().unwrap().iter();
    let kinds: Vec<&str> = sent.filter_map(|item| item["type"].as_str()).collect();
    assert_eq!(kinds, ["reasoning", "message"]);
}

proptest! {
    #[test]
    fn an_answer_goes_back_as_it_was_read(answer in answer()) {
        let endpoint = ModelEndpoint::new(ProviderProtocol::OpenAiResponses, "http://x", "m");
        let provider = ProviderIdentity { name: "p".to_owned(), key: None };
        let context =
            AnswerContext { provider: &provider, messages: &[], origin: endpoint.origin() };
        let reply = context.read_whole(ResponsesFormat.begin_answer(), answer, &mut |_| {});
        let Ok(reply) = reply else { return Ok(()) };
        let calls = reply.message.calls.clone();
        let ids: HashSet<&str> = calls.iter().map(|call| call.id.as_str()).collect();
        prop_assert!(ids.len() == calls.len() && !ids.contains(""));
        let messages = [ChatMessage::Assistant(reply.message)];
        let request = ModelRequest { messages: &messages, ..ModelRequest::default() };
        let body = ResponsesFormat.request_body(&endpoint, request, None);
        let body: Value = serde_json::from_slice(&body).unwrap();
        let sent = body["input"].as_array().unwrap().iter();
        let sent = sent.filter(|item| item["type"] == "function_call");
        let sent: Vec<&str> = sent.filter_map(|call| call["call_id"].as_str()).collect();
        let told: Vec<&str> = calls.iter().map(|call| call.id.as_str()).collect();
        prop_assert_eq!(sent, told);
    }

    #[test]
    fn no_stream_makes_the_reader_panic(events in collection::vec(json(), 0..8)) {
        let provider = ProviderIdentity { name: "p".to_owned(), key: None };
        let events = events.into_iter().map(|event| Ok(Sse::default().data(event.to_string())));
        let events: ServerEvents<'_> = Box::pin(futures::stream::iter(events));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let context = AnswerContext { provider: &provider, messages: &[], origin: String::new() };
        let answer = ResponsesFormat.begin_answer();
        let _ = runtime.block_on(context.read_stream(answer, events, &mut |_| {}));
    }
}
