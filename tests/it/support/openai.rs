//! A scripted model: a server that speaks `chat/completions`, streamed when it is asked for a
//! stream, and remembers every request.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::server::{Response, Server};

/// Longest wait for a request that comes unless a test has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often it is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// One answer of the script.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// The model says something.
    Text(&'static str),
    /// The model calls tools: id, name, arguments as it writes them.
    Calls(Vec<(&'static str, &'static str, String)>),
    /// The provider refuses.
    Status(u16),
    /// The connection ends in the middle of an answer.
    Cut,
    /// The model thinks aloud, then says something.
    Thoughts(&'static str, &'static str),
    /// The provider never answers.
    Silence,
    /// The model begins to say something and never goes on.
    Stalls(&'static str),
}

/// A scripted model. Its last reply is given again when it is asked more often.
pub(crate) struct OpenAi {
    server: Server,
}

impl OpenAi {
    /// Starts the server.
    pub(crate) fn start(script: Vec<Reply>) -> Self {
        let next = AtomicUsize::new(0);
        let server = Server::start(move |request| {
            let turn = next.fetch_add(1, Ordering::SeqCst).min(script.len() - 1);
            let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
            script[turn].render(body["stream"] == true)
        });
        Self { server }
    }

    /// What has to stand in `OPENAI_BASE_URL`.
    pub(crate) fn base_url(&self) -> String {
        format!("{}/v1", self.server.url())
    }

    /// Waits until it was asked so often.
    #[track_caller]
    pub(crate) fn is_asked(&self, count: usize) {
        let begin = Instant::now();
        while self.bodies().len() < count {
            assert!(begin.elapsed() < PATIENCE, "asked less than {count} times");
            thread::sleep(LOOK_EVERY);
        }
    }

    /// The bodies of all requests that came whole.
    pub(crate) fn bodies(&self) -> Vec<Value> {
        let mut seen = self.server.seen();
        seen.retain(|request| request.trailers.is_some());
        seen.iter().map(|request| serde_json::from_str(&request.body).unwrap()).collect()
    }

    /// The values of one header, a line each request.
    pub(crate) fn headers(&self, name: &str) -> Vec<String> {
        let seen = self.server.seen();
        seen.iter().map(|request| request.header(name).unwrap_or_default().to_owned()).collect()
    }
}

impl Reply {
    /// One call with its arguments.
    pub(crate) fn call(id: &'static str, name: &'static str, arguments: &Value) -> Self {
        Self::Calls(vec![(id, name, arguments.to_string())])
    }

    /// The answer as the provider sends it, in pieces or whole.
    pub(crate) fn render(&self, streamed: bool) -> Response {
        match self {
            Self::Status(status) => {
                let body = json!({ "error": { "message": "the provider says no" } });
                let headers = [("content-type", "application/json"), ("retry-after", "0")];
                Response::with(*status, &headers, &body.to_string())
            }
            Self::Thoughts(thoughts, text) => sse(
                &[json!({ "reasoning_content": thoughts }), json!({ "content": text })],
                Some("stop"),
            ),
            Self::Silence => Response::Silence,
            Self::Stalls(text) => {
                let Response::Bytes(begun) = sse(&[json!({ "content": text })], None) else {
                    unreachable!("a stream is bytes")
                };
                Response::Stall(begun)
            }
            Self::Cut if streamed => sse(&[json!({ "content": "It is" })], None),
            Self::Cut => Response::Bytes(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{\"cho"
                    .to_vec(),
            ),
            Self::Text(text) if streamed => {
                let deltas: Vec<Value> =
                    text.split_inclusive(' ').map(|word| json!({ "content": word })).collect();
                sse(&deltas, Some("stop"))
            }
            Self::Calls(calls) if streamed => sse(&call_deltas(calls), Some("tool_calls")),
            Self::Text(text) => whole(&json!({ "role": "assistant", "content": text }), "stop"),
            Self::Calls(calls) => {
                let calls: Vec<Value> =
                    calls.iter().map(|(id, name, arguments)| call(id, name, arguments)).collect();
                let message = json!({ "role": "assistant", "content": null, "tool_calls": calls });
                whole(&message, "tool_calls")
            }
        }
    }
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })
}

fn whole(message: &Value, finish: &str) -> Response {
    let choice = json!({ "index": 0, "message": message, "finish_reason": finish });
    Response::ok(
        &json!({ "id": "x", "object": "chat.completion", "choices": [choice] }).to_string(),
    )
}

/// Each call begins with its id and name; its arguments follow in two pieces.
fn call_deltas(calls: &[(&str, &str, String)]) -> Vec<Value> {
    let mut deltas = Vec::new();
    for (index, (id, name, arguments)) in calls.iter().enumerate() {
        let mut first = call(id, name, "");
        first["index"] = json!(index);
        deltas.push(json!({ "tool_calls": [first] }));
        let middle = arguments.char_indices().nth(arguments.chars().count() / 2);
        let (head, tail) = arguments.split_at(middle.map_or(0, |(at, _)| at));
        for piece in [head, tail] {
            let piece = json!({ "index": index, "function": { "arguments": piece } });
            deltas.push(json!({ "tool_calls": [piece] }));
        }
    }
    deltas
}

/// Without a reason to finish, the stream ends in the middle.
fn sse(deltas: &[Value], finish: Option<&str>) -> Response {
    let mut body = String::from(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
    );
    let mut event = |delta: &Value, finish: Option<&str>| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        let chunk = json!({ "id": "x", "object": "chat.completion.chunk", "choices": [choice] });
        body.push_str(&format!("data: {chunk}\n\n"));
    };
    event(&json!({ "role": "assistant" }), None);
    deltas.iter().for_each(|delta| event(delta, None));
    if finish.is_some() {
        event(&json!({}), finish);
        body.push_str("data: [DONE]\n\n");
    }
    Response::Bytes(body.into_bytes())
}
