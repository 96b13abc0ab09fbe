//! Services on the loopback with canned responses: a provider whose model calls tools and reports
//! what they returned, and the service that the weather plugin asks.
//!
//! The provider speaks `chat/completions` and streams one word at a time.

use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
};

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// The services. They answer requests until the process ends.
pub(super) struct DemoServices {
    address: SocketAddr,
}

impl DemoServices {
    pub(super) fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("no port for the services")?;
        let address = listener.local_addr()?;
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                // Ignore a broken connection: the program under test reports it.
                thread::spawn(move || serve_connection(stream));
            }
        });
        Ok(Self { address })
    }

    /// Address of the service that the weather plugin asks.
    pub(super) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Address of the provider.
    pub(super) fn base_url(&self) -> String {
        format!("{}/v1", self.origin())
    }
}

fn serve_connection(stream: TcpStream) -> Result<()> {
    let mut answer = stream.try_clone()?;
    let mut requests = BufReader::new(stream);
    while let Some((target, body)) = read_request(&mut requests)? {
        let (kind, body) = answer_request(&target, &body)?;
        let length = body.len();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}");
        answer.write_all(format!("{head}\r\n\r\n{body}").as_bytes())?;
    }
    Ok(())
}

/// Reads a request's target and body. Returns `None` at the end of the connection.
fn read_request(requests: &mut impl BufRead) -> Result<Option<(String, Vec<u8>)>> {
    let mut first = String::new();
    requests.read_line(&mut first)?;
    let Some(target) = first.split(' ').nth(1) else { return Ok(None) };
    let mut length = 0;
    loop {
        let mut line = String::new();
        requests.read_line(&mut line)?;
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
    Ok(Some((target.to_owned(), body)))
}

/// The media type and the text of an answer.
fn answer_request(target: &str, body: &[u8]) -> Result<(&'static str, String)> {
    const JSON: &str = "application/json";
    let path = target.split('?').next().unwrap_or_default();
    let value = match path {
        "/v1/models" => json!({ "data": [{ "id": "demo" }] }),
        "/v1/search" => json!({ "results": [{
            "name": "Paris", "latitude": 48.85, "longitude": 2.35,
            "country": "France", "country_code": "FR",
        }] }),
        "/v1/forecast" => json!({ "latitude": 48.85, "longitude": 2.35, "current": {
            "time": "2026-11-22T10:15", "temperature_2m": 17.6, "weather_code": 61,
        } }),
        _ => return Ok(("text/event-stream", answer_events(&serde_json::from_slice(body)?))),
    };
    Ok((JSON, value.to_string()))
}

/// The answer to a conversation, as server-sent events.
fn answer_events(request: &Value) -> String {
    let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let deltas = next_deltas(messages);
    let is_call = deltas.iter().any(|delta| delta.get("tool_calls").is_some());
    let chunk = |delta: &Value| json!({ "choices": [{ "index": 0, "delta": delta }] });
    let finish = if is_call { "tool_calls" } else { "stop" };
    let mut chunks: Vec<Value> = deltas.iter().map(chunk).collect();
    chunks.push(json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": finish }] }));
    // A provider counts tokens. Four bytes of the request are about one token.
    let read = request.to_string().len() / 4;
    let usage = json!({ "prompt_tokens": read, "completion_tokens": 24 });
    chunks.push(json!({ "choices": [], "usage": usage }));
    let event = |chunk: &Value| format!("data: {chunk}\n\n");
    chunks.iter().map(event).chain(["data: [DONE]\n\n".to_owned()]).collect()
}

/// The next answer of the model: a call of a tool, or words.
fn next_deltas(messages: &[Value]) -> Vec<Value> {
    let of_role = |role: &'static str| messages.iter().filter(move |one| one["role"] == role);
    let question = of_role("user").next_back().map(|one| one["content"].to_string());
    let question = question.unwrap_or_default();
    let results: Vec<&Value> = of_role("tool").collect();
    match results.as_slice() {
        [] if question.contains("`repeat`") => {
            vec![tool_call_delta(0, "repeat", &json!({ "text": "ready" }))]
        }
        [] if question.contains("Lisbon") => {
            vec![tool_call_delta(0, "clock__get_time", &json!({ "timezone": "Lisbon" }))]
        }
        [] if question.contains("weather") => {
            vec![tool_call_delta(0, "weather__get_weather", &json!({ "location": "Paris" }))]
        }
        [] => text_deltas("ready"),
        _ if question.contains("weather") => {
            text_deltas("It is **18 °C** in Paris, with light rain. Take an umbrella.\n")
        }
        [time] => vec![write_note_delta(&time_from_result(time))],
        [time, ..] => text_deltas(&format!(
            "It is **{}** in Lisbon, and I have written it down:\n\n- file: `/notes/lisbon.md`\n\
             - by: `files.write`, which you allowed once\n",
            time_from_result(time),
        )),
    }
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
