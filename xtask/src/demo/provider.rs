//! A provider on the loopback with canned responses. Its model asks for the time, writes it to a
//! file and reports that.
//!
//! It speaks `chat/completions` and streams one word at a time.

use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
};

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// The provider. It serves requests until the process ends.
pub(super) struct DemoProvider {
    address: SocketAddr,
}

impl DemoProvider {
    pub(super) fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("no port for the provider")?;
        let address = listener.local_addr()?;
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                // Ignore a broken connection: the program under test reports it.
                thread::spawn(move || serve_connection(stream));
            }
        });
        Ok(Self { address })
    }

    pub(super) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }
}

fn serve_connection(stream: TcpStream) -> Result<()> {
    let mut answer = stream.try_clone()?;
    let mut requests = BufReader::new(stream);
    while let Some(body) = read_request_body(&mut requests)? {
        let events: String = answer_events(&serde_json::from_slice(&body)?);
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length:";
        answer.write_all(format!("{head} {}\r\n\r\n{events}", events.len()).as_bytes())?;
    }
    Ok(())
}

/// Reads the body of a request. Returns `None` at the end of the connection.
fn read_request_body(requests: &mut impl BufRead) -> Result<Option<Vec<u8>>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if requests.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().context("a length")?;
        }
    }
    let mut body = vec![0; length];
    requests.read_exact(&mut body)?;
    Ok(Some(body))
}

/// The answer to a conversation, as server-sent events.
fn answer_events(request: &Value) -> String {
    let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let results: Vec<&Value> = messages.iter().filter(|told| told["role"] == "tool").collect();
    let deltas = match results.as_slice() {
        [] => vec![tool_call_delta(0, "clock__get_time", &json!({ "timezone": "Lisbon" }))],
        [time] => vec![write_note_delta(&time_from_result(time))],
        [time, ..] => text_deltas(&format!(
            "It is **{}** in Lisbon, and I have written it down:\n\n- file: `/notes/lisbon.md`\n\
             - by: `files.write`, which you allowed once\n",
            time_from_result(time),
        )),
    };
    let chunk = |delta: &Value| json!({ "choices": [{ "index": 0, "delta": delta }] });
    let finish = if results.len() < 2 { "tool_calls" } else { "stop" };
    let mut chunks: Vec<Value> = deltas.iter().map(chunk).collect();
    chunks.push(json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": finish }] }));
    // A provider counts tokens. Four bytes of the request are about one token.
    let read = request.to_string().len() / 4;
    let usage = json!({ "prompt_tokens": read, "completion_tokens": 24 });
    chunks.push(json!({ "choices": [], "usage": usage }));
    let event = |chunk: &Value| format!("data: {chunk}\n\n");
    chunks.iter().map(event).chain(["data: [DONE]\n\n".to_owned()]).collect()
}

fn write_note_delta(hour: &str) -> Value {
    let text = format!("In Lisbon it was {hour}.\n");
    tool_call_delta(1, "files__write", &json!({ "path": "/notes/lisbon.md", "text": text }))
}

fn tool_call_delta(number: usize, name: &str, arguments: &Value) -> Value {
    let function = json!({ "name": name, "arguments": arguments.to_string() });
    let id = format!("call_{number}");
    json!({ "tool_calls": [{ "index": 0, "id": id, "type": "function", "function": function }] })
}

fn text_deltas(text: &str) -> Vec<Value> {
    text.split_inclusive(' ').map(|word| json!({ "content": word })).collect()
}

/// The hour and minute of the time that the clock returned, such as `2026-11-22T09:05:00+00:00`.
fn time_from_result(result: &Value) -> String {
    let content = result["content"].as_str().unwrap_or_default();
    let time = content.split('T').nth(1).and_then(|rest| rest.get(..5));
    time.unwrap_or("an unknown time").to_owned()
}
