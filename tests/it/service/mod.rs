//! `sallyport serve`: what each user gets over HTTP, and what nobody gets.

mod accounts;
mod approvals;
mod cluster;
mod command_line;
mod connecting;
mod console;
mod groups;
mod hostile;
mod keys;
mod machines;
mod outages;
mod routes;
mod sessions;
mod sign_on;
mod sign_on_servers;
mod sockets;
mod stopping;
mod telemetry;
mod tls;

use std::{
    io::{self, Read, Write},
    net::TcpStream,
};

use serde_json::{Value, json};

use crate::support::{
    Home, OpenAi, Reply, Running,
    patience::{PATIENCE, until},
    warden::requests,
};

/// A tool that runs without asking.
const CLOCK: &str = "clock.get_time";

/// A tool that has to be approved.
const ECHO: &str = "hostile.echo";

/// A home with a tool that runs and one that asks, and a model that calls the latter.
fn home(model: &OpenAi) -> Home {
    Home::new()
        .env("OPENAI_BASE_URL", model.base_url())
        .env("SALLYPORT_MODEL", "m")
        .plugins(&["clock"])
        .guest("hostile", &requests(&["GET https://hostile.example/"]))
        .policy("[plugin.hostile]\nnet = [\"GET https://hostile.example/\"]\n")
}

/// A model that calls the tool that asks, in each turn.
fn asking_model() -> OpenAi {
    let call = |id| Reply::call(id, "hostile__echo", &json!({ "text": id }));
    let calls = ["c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"];
    OpenAi::start(calls.into_iter().map(call).collect())
}

/// A model that says the same in each turn.
fn talking_model() -> OpenAi {
    OpenAi::start(vec![Reply::Text("Good day.")])
}

/// Makes a token for a user of this name.
#[track_caller]
fn token(home: &Home, user: &str, role: &str) -> String {
    let made = home.run(&["serve", "token", "add", user, "--role", role]).ended(0);
    made.stdout.trim().to_owned()
}

/// A running service.
struct ServiceProgram {
    running: Running,
    address: String,
}

/// An answer: its status, its head in lower case, the cookies that it sets, and its body.
#[derive(Debug, Clone)]
struct HttpReply {
    status: u16,
    head: String,
    cookies: Vec<String>,
    body: String,
}

impl ServiceProgram {
    fn start(home: &Home) -> Self {
        Self::start_with(home, &[])
    }

    fn start_with(home: &Home, more: &[&str]) -> Self {
        Self::start_by(home, &[], more)
    }

    /// Starts it by way of another program.
    fn start_by(home: &Home, launcher: &[&str], more: &[&str]) -> Self {
        let args = [&["serve", "--listen", "127.0.0.1:0"], more].concat();
        let running = Running::start_by(home, launcher, &args);
        let line = running.behind("http://");
        let address = line.split_once("/v1").unwrap().0.to_owned();
        Self { running, address }
    }

    /// Opens a connection.
    fn connect(&self) -> TcpStream {
        connect(&self.address).unwrap()
    }

    /// Sends these bytes, and reads until the connection ends.
    fn send(&self, bytes: &[u8]) -> HttpReply {
        let mut stream = self.connect();
        // A service that refuses the head does not read the rest.
        let _ = stream.write_all(bytes);
        read_reply(stream)
    }

    /// Sends a request with these lines in its head.
    fn request(&self, method: &str, path: &str, lines: &str, body: &str) -> HttpReply {
        self.send(request_text(&self.address, [method, path], lines, body).as_bytes())
    }

    fn ask(&self, token: &str, method: &str, path: &str, body: &str) -> HttpReply {
        self.request(method, path, &bearer(token), body)
    }

    #[track_caller]
    fn get(&self, token: &str, path: &str) -> Value {
        self.ask(token, "GET", path, "").has(200).json()
    }

    #[track_caller]
    fn post(&self, token: &str, path: &str, body: &Value) -> HttpReply {
        self.ask(token, "POST", path, &body.to_string())
    }

    /// Opens a new session, and returns its ID.
    #[track_caller]
    fn open_session(&self, token: &str) -> String {
        let opened = self.post(token, "/v1/sessions", &json!({})).has(201).json();
        opened["id"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    fn say(&self, token: &str, session: &str, text: &str) {
        let command = json!({ "type": "submit-input", "input": { "text": text } });
        self.post(token, &format!("/v1/sessions/{session}/commands"), &command).has(202);
    }

    /// Waits for the only question that a user can read.
    #[track_caller]
    fn only_question(&self, token: &str) -> Value {
        until("a question", || {
            let listed = self.get(token, "/v1/approvals");
            let cards = listed["approvals"].as_array().unwrap();
            assert!(cards.len() <= 1, "{listed}");
            cards.first().cloned()
        })
    }

    /// Streams the events of a session.
    fn stream(&self, token: &str, session: &str, lines: &str) -> EventReader {
        let lines = bearer(token) + lines;
        EventReader::open(&self.address, session, &lines).unwrap()
    }
}

impl HttpReply {
    #[track_caller]
    fn has(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:#?}");
        self
    }

    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// The kind of a problem.
    #[track_caller]
    fn problem(&self) -> String {
        assert!(self.head.contains("content-type: application/problem+json"), "{self:#?}");
        let problem = self.json();
        assert_eq!(problem["status"], self.status, "{problem}");
        problem["type"].as_str().unwrap().to_owned()
    }
}

/// Reads events as they come.
struct EventReader<S = TcpStream> {
    stream: S,
    text: String,
}

impl EventReader {
    /// Streams the events of a session at a service.
    fn open(address: &str, session: &str, lines: &str) -> io::Result<Self> {
        let mut stream = connect(address)?;
        let head =
            format!("GET /v1/sessions/{session}/events HTTP/1.1\r\nHost: {address}\r\n{lines}\r\n");
        stream.write_all(head.as_bytes())?;
        Ok(Self { stream, text: String::new() })
    }
}

impl<S: Read> EventReader<S> {
    /// Reads until a text is there, and returns everything so far.
    #[track_caller]
    fn until(&mut self, text: &str) -> &str {
        let is_there = self.reaches(text);
        assert!(is_there, "no {text:?} in {}", self.text);
        &self.text
    }

    /// Reads until a text is there; the connection may end before.
    fn reaches(&mut self, text: &str) -> bool {
        let mut bytes = [0; 8192];
        while !self.text.contains(text) {
            let Ok(count @ 1..) = self.stream.read(&mut bytes) else { return false };
            self.text += &String::from_utf8_lossy(&bytes[..count]);
        }
        true
    }

    /// Reads to the end of the connection.
    fn rest(mut self) -> String {
        let mut rest = Vec::new();
        // The other side may break the connection.
        let _ = self.stream.read_to_end(&mut rest);
        self.text + &String::from_utf8_lossy(&rest)
    }

    /// The IDs of the events so far.
    fn ids(&self) -> Vec<String> {
        let lines = self.text.lines();
        lines.filter_map(|line| line.strip_prefix("id: ")).map(str::to_owned).collect()
    }
}

fn bearer(token: &str) -> String {
    match token.is_empty() {
        true => String::new(),
        false => format!("Authorization: Bearer {token}\r\n"),
    }
}

/// Opens a connection to a service, which may have ended.
fn connect(address: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// A request with these lines in its head. `target` is its method and its path.
fn request_text(address: &str, target: [&str; 2], lines: &str, body: &str) -> String {
    let (target, length) = (target.join(" "), body.len());
    format!(
        "{target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n{lines}\r\n{body}"
    )
}

fn read_reply(mut stream: impl Read) -> HttpReply {
    let mut bytes = Vec::new();
    // The other side may break the connection.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let cookies = head.lines().filter_map(|line| line.strip_prefix("set-cookie: "));
    let cookies = cookies.map(str::to_owned).collect();
    HttpReply { status, head: head.to_lowercase(), cookies, body: body.to_owned() }
}
