//! What live services said, played again: every recorded exchange is answered by a server on the
//! loopback and read by the adapter, and the next recorded request is compared with ours.

use std::collections::{BTreeMap, HashSet};

use sallyport_model::{AssistantMessage, Delta, Finish, Message, ModelError, Reply};
use serde_json::{Value, json};

use crate::recorded::{self, Exchange};
use crate::server::{Seen, Server, plain};
use crate::{ask, settings};

/// How many recordings a run must at least cover where the folder is there; fewer means that the
/// reader of recordings has lost its way.
const COVERED_MIN: usize = 100;

#[tokio::test]
async fn every_recorded_exchange_is_understood() {
    let Some(folder) = recorded::folder() else {
        println!("SKIPPED: there are no recordings beside the repository");
        return;
    };
    let (exchanges, others) = recorded::exchanges(&folder);
    let mut left_out = BTreeMap::from([("another endpoint", others)]);
    let (mut covered, mut follow_ups, mut refused) = (0, 0, 0);
    let mut said: Vec<(String, AssistantMessage)> = Vec::new();
    for exchange in &exchanges {
        let mut messages = match recorded::messages(&exchange.request) {
            Ok(messages) => messages,
            Err(why) => {
                *left_out.entry(why).or_default() += 1;
                continue;
            }
        };
        follow_ups += put_own_answers(&mut messages, exchange, &said);
        let (seen, outcome) = play(exchange, &messages).await;
        check_request(exchange, &seen);
        match outcome {
            Ok((reply, deltas)) => {
                check_reply(exchange, &reply, &deltas);
                said.push((exchange.file.clone(), reply.message));
            }
            Err(error) => {
                check_refusal(exchange, &error);
                refused += 1;
            }
        }
        covered += 1;
    }
    println!(
        "{covered} exchanges covered, {refused} of them refusals, {follow_ups} answers of our own replayed"
    );
    println!("left out: {left_out:?}");
    assert!(covered >= COVERED_MIN, "only {covered}");
    assert!(follow_ups > 0);
}

async fn play(
    exchange: &Exchange,
    messages: &[Message],
) -> (Seen, Result<(Reply, Vec<Delta>), ModelError>) {
    let headers = format!("content-type: {}\r\n", exchange.content_type);
    let server = Server::start(plain(exchange.status, &headers, &exchange.body)).await;
    let stream = exchange.request["stream"] == json!(true);
    let tools = recorded::tools(&exchange.request);
    let outcome = ask(settings(server.base_url.clone(), stream), messages, &tools).await;
    (server.seen().remove(0), outcome)
}

/// Where a recorded request repeats an answer that we have read ourselves, takes ours, with its
/// opaque part. Returns how many were found.
fn put_own_answers(
    messages: &mut [Message],
    exchange: &Exchange,
    said: &[(String, AssistantMessage)],
) -> usize {
    let mut found = 0;
    for message in messages {
        let Message::Assistant(theirs) = message else { continue };
        let ids = |message: &AssistantMessage| -> Vec<String> {
            message.calls.iter().map(|call| call.id.clone()).collect()
        };
        let ours = said.iter().find(|(file, ours)| {
            *file == exchange.file && !ours.calls.is_empty() && ids(ours) == ids(theirs)
        });
        if let Some((_, ours)) = ours {
            *theirs = ours.clone();
            found += 1;
        }
    }
    found
}

/// The request that left us says what the recorded one said.
#[track_caller]
fn check_request(exchange: &Exchange, seen: &Seen) {
    let (ours, theirs) = (&seen.body, &exchange.request);
    let file = &exchange.file;
    let tools = |request: &Value| request.get("tools").filter(|t| *t != &json!([])).cloned();
    let without_strict = |tools: Option<Value>| {
        let mut tools = tools.unwrap_or_default();
        for tool in tools.as_array_mut().into_iter().flatten() {
            tool["function"].as_object_mut().unwrap().remove("strict");
        }
        tools
    };
    assert_eq!(without_strict(tools(ours)), without_strict(tools(theirs)), "{file}");
    let (ours, theirs) =
        (ours["messages"].as_array().unwrap(), theirs["messages"].as_array().unwrap());
    assert_eq!(ours.len(), theirs.len(), "{file}");
    for (ours, theirs) in ours.iter().zip(theirs) {
        for key in ["role", "tool_call_id"] {
            assert_eq!(ours.get(key), theirs.get(key), "{file}");
        }
        assert_eq!(recorded::text(&ours["content"]), recorded::text(&theirs["content"]), "{file}");
        assert_eq!(calls_in(ours), calls_in(theirs), "{file}");
        check_opaque(file, ours, theirs);
    }
}

/// Arguments are compared as values: the recorded requests were written by a client that had parsed
/// them.
fn calls_in(message: &Value) -> Vec<(String, String, Value)> {
    let value = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| json!(text));
    recorded::calls(message)
        .into_iter()
        .map(|call| (call.id, call.name, value(&call.arguments)))
        .collect()
}

/// What only the provider understands comes back with the words it came with.
#[track_caller]
fn check_opaque(file: &str, ours: &Value, theirs: &Value) {
    if ours.get("reasoning_content").is_some() {
        assert_eq!(ours.get("reasoning_content"), theirs.get("reasoning_content"), "{file}");
    }
    for (ours, theirs) in details(ours).zip(details(theirs)) {
        for key in ["type", "text", "signature", "data", "index"] {
            let given = |item: &Value| item.get(key).filter(|value| !value.is_null()).cloned();
            assert_eq!(given(ours), given(theirs), "{file} {key}");
        }
    }
}

fn details(message: &Value) -> impl Iterator<Item = &Value> {
    message.get("reasoning_details").and_then(Value::as_array).into_iter().flatten()
}

#[track_caller]
fn check_reply(exchange: &Exchange, reply: &Reply, deltas: &[Delta]) {
    let file = &exchange.file;
    assert_eq!(exchange.status, 200, "{file}");
    let message = &reply.message;
    let ids: HashSet<&str> = message.calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids.len(), message.calls.len(), "{file}");
    assert!(
        message.calls.iter().all(|call| !call.name.is_empty() && !call.id.is_empty()),
        "{file}"
    );
    assert_eq!(
        reply.finish == Finish::ToolCalls,
        !message.calls.is_empty() && !is_cut(reply),
        "{file}"
    );
    assert!(reply.usage.is_some_and(|usage| usage.input_tokens > 0), "{file}");
    let streamed: String = deltas
        .iter()
        .filter_map(|delta| match delta {
            Delta::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(streamed, message.text, "{file}");
    assert_eq!(arguments_of(reply), recorded_arguments(exchange), "{file}");
}

fn is_cut(reply: &Reply) -> bool {
    reply.finish == Finish::Length
}

fn arguments_of(reply: &Reply) -> Vec<String> {
    reply.message.calls.iter().map(|call| call.arguments.clone()).collect()
}

/// The arguments as they stand in the recording, read in another way than the adapter does.
fn recorded_arguments(exchange: &Exchange) -> Vec<String> {
    let events = exchange.body.lines().filter_map(|line| line.strip_prefix("data: "));
    let mut chunks: Vec<Value> =
        events.filter_map(|data| serde_json::from_str(data).ok()).collect();
    if chunks.is_empty() {
        chunks.push(serde_json::from_str(&exchange.body).unwrap());
    }
    let mut arguments: BTreeMap<u64, String> = BTreeMap::new();
    for chunk in &chunks {
        let Some(choice) = chunk["choices"].get(0) else { continue };
        let fragments = [&choice["delta"], &choice["message"]].map(|m| m["tool_calls"].as_array());
        for (n, call) in fragments.into_iter().flatten().flatten().enumerate() {
            let index = call["index"].as_u64().unwrap_or(n as u64);
            let piece = call["function"]["arguments"].as_str().unwrap_or("");
            arguments.entry(index).or_default().push_str(piece);
        }
    }
    let or_none = |text: String| if text.is_empty() { "{}".to_owned() } else { text };
    arguments.into_values().map(or_none).collect()
}

#[track_caller]
fn check_refusal(exchange: &Exchange, error: &ModelError) {
    let is_right = match error {
        ModelError::Credentials { .. } => exchange.status == 401,
        ModelError::Refused { status, .. } => *status == exchange.status && *status != 200,
        _ => false,
    };
    assert!(is_right, "{}: {error:?}", exchange.file);
    let body: Value = serde_json::from_str(&exchange.body).unwrap();
    let message = body.pointer("/error/message").unwrap_or(&body["message"]).as_str().unwrap();
    assert!(error.to_string().contains(message), "{}: {error}", exchange.file);
}
