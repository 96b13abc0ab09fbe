//! `sallyport mcp --http`: who may ask, and what each gets.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    process::Child,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{ALLOW, stateless::with_meta};
use crate::support::{
    Home,
    patience::{Heard, until},
};

/// What a client that takes both kinds of answers sends.
const USUAL: &str =
    "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";

/// A running server.
pub(crate) struct HttpServer {
    child: Child,
    stderr: Heard,
    pub(crate) address: String,
}

/// An answer: its status, its head and its body.
struct HttpAnswer {
    status: u16,
    head: String,
    body: String,
}

impl HttpServer {
    pub(crate) fn start(home: &Home, args: &[&str]) -> Self {
        let mut child = home.start(&[&["mcp", "--http", "127.0.0.1:0"], args].concat());
        let stderr = Heard::of(child.stderr.take().unwrap());
        let address = until("the address", || {
            let log = stderr.so_far();
            let (_, rest) = log.split_once("http://")?;
            Some(rest.split_once("/mcp")?.0.to_owned())
        });
        Self { child, stderr, address }
    }

    /// Sends a request with these lines in its head.
    fn send(&self, method: &str, path: &str, lines: &str, body: &[u8]) -> HttpAnswer {
        let host = if lines.contains("Host:") {
            String::new()
        } else {
            format!("Host: {}\r\n", self.address)
        };
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\n{host}{lines}Content-Length: {length}\r\n\
             Connection: close\r\n\r\n"
        );
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        // A server that refuses the head does not read the body.
        let _ = stream.write_all(body);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        HttpAnswer::parse(&answer)
    }

    fn post(&self, lines: &str, message: &Value) -> HttpAnswer {
        self.send("POST", "/mcp", &format!("{USUAL}{lines}"), message.to_string().as_bytes())
    }

    fn status(&self, lines: &str) -> u16 {
        self.post(lines, &initialize()).status
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
        assert!(!self.stderr.so_far().contains("panicked"), "{}", self.stderr.so_far());
    }
}

impl HttpAnswer {
    fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Self { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    fn session(&self) -> String {
        let line = self.head.lines().find(|line| line.starts_with("mcp-session-id:"));
        line.expect("a session").split_once(": ").unwrap().1.to_owned()
    }
}

fn initialize() -> Value {
    let about = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about })
}

fn list() -> Value {
    json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {} })
}

fn clock_home() -> Home {
    Home::new().plugins(&["clock"]).policy(ALLOW)
}

#[test]
fn a_session_beyond_the_limit_was_answered_as_a_failure_of_the_server() {
    let server = HttpServer::start(&clock_home(), &[]);
    let first = server.post("", &initialize());
    assert!((1..64).all(|_| server.status("") == 200));
    let refused = server.post("", &initialize());
    assert_eq!(refused.status, 503, "{}", refused.body);
    assert!(refused.head.contains("retry-after: 10"), "{}", refused.head);
    let session = format!("Mcp-Session-Id: {}\r\n", first.session());
    assert_eq!(server.post(&session, &list()).status, 200, "the others go on");
    assert_eq!(server.send("DELETE", "/mcp", &session, b"").status, 204);
    // Its place is free once its task has ended.
    until("a place", || (server.status("") == 200).then_some(()));
}

#[test]
fn only_this_machine_may_ask_by_its_own_names() {
    let home = clock_home();
    let server = HttpServer::start(&home, &[]);
    let port = server.address.rsplit(':').next().unwrap();
    let rows = [
        (String::new(), 200),
        (format!("Host: localhost:{port}\r\n"), 200),
        ("Host: evil.example\r\n".to_owned(), 403),
        (format!("Host: 127.0.0.1.evil.example:{port}\r\n"), 403),
        ("Origin: http://localhost:3000\r\n".to_owned(), 200),
        ("Origin: http://evil.example\r\n".to_owned(), 403),
        ("Origin: http://localhost.evil.example\r\n".to_owned(), 403),
        ("Origin: null\r\n".to_owned(), 403),
    ];
    for (lines, status) in rows {
        assert_eq!(server.status(&lines), status, "{lines}");
    }
    assert_eq!(server.send("POST", "/", USUAL, b"{}").status, 404);
    assert_eq!(server.send("GET", "/other", "", b"").status, 404);
}

#[test]
fn a_token_is_demanded_from_everybody() {
    let home = clock_home().user_file("token", "0123456789abcdef0123\n");
    let file = home.user_path("token").display().to_string();
    let server = HttpServer::start(&home, &["--token-file", &file]);
    let rows = [
        ("", 401),
        ("Authorization: Bearer 0123456789abcdef012\r\n", 401),
        ("Authorization: Bearer 0123456789abcdef0124\r\n", 401),
        ("Authorization: Basic 0123456789abcdef0123\r\n", 401),
        ("Authorization: Bearer 0123456789abcdef0123\r\n", 200),
    ];
    for (lines, status) in rows {
        assert_eq!(server.status(lines), status, "{lines}");
    }
    let refused = server.post("", &initialize());
    assert!(refused.head.contains("www-authenticate: bearer"), "{}", refused.head);
    assert_eq!(server.send("GET", "/other", "", b"").status, 401);
}

#[test]
fn an_address_of_other_machines_needs_a_token() {
    let home = Home::new().user_file("short", "abc").user_file("shared", "0123456789abcdef0123");
    let path = |name: &str| home.user_path(name).display().to_string();
    fs::set_permissions(path("shared"), fs::Permissions::from_mode(0o666)).unwrap();
    let rows: [(&[&str], &str); 6] = [
        (&["--http", "0.0.0.0:0"], "needs a token"),
        (&["--http", "[::]:0"], "needs a token"),
        (&["--http", "nowhere"], "invalid"),
        (&["--token-file", "x"], "--http"),
        (&["--http", "127.0.0.1:0", "--token-file", &path("short")], "at least 16"),
        (&["--http", "127.0.0.1:0", "--token-file", &path("shared")], "cannot use"),
    ];
    for (args, words) in rows {
        home.run(&[&["mcp"], args].concat()).ended(2).remarks(&[words]);
    }
}

#[test]
fn a_session_begins_answers_and_ends() {
    let home = clock_home();
    let server = HttpServer::start(&home, &[]);
    let begun = server.post("", &initialize());
    assert!(begun.body.contains("\"sallyport\""), "{}", begun.body);
    let session = format!("Mcp-Session-Id: {}\r\n", begun.session());
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(server.post(&session, &initialized).status, 202);
    let listed = server.post(&session, &list());
    assert_eq!(listed.status, 200);
    assert!(listed.body.contains("clock__get_time"), "{}", listed.body);
    let call = json!({ "name": "clock__get_time", "arguments": { "timezone": "Asia/Tokyo" } });
    let call = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call });
    let called = server.post(&session, &call);
    assert!(
        called.body.contains("Tokyo") && called.body.contains("\"isError\":false"),
        "{}",
        called.body
    );
    assert_eq!(server.post("Mcp-Session-Id: other\r\n", &list()).status, 404);
    assert_eq!(server.send("DELETE", "/mcp", &session, b"").status, 204);
    assert_eq!(server.post(&session, &list()).status, 404);
}

#[test]
fn a_request_without_a_session_is_answered() {
    let home = clock_home();
    let server = HttpServer::start(&home, &[]);
    let lines = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n";
    let params = with_meta(json!({}), &json!({}));
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params });
    let listed = server.post(lines, &message);
    assert_eq!(listed.status, 200, "{}", listed.body);
    assert!(listed.body.contains("clock__get_time"), "{}", listed.body);
}

#[test]
fn bad_requests_are_refused_and_the_next_is_answered() {
    let home = clock_home();
    let server = HttpServer::start(&home, &[]);
    let big = vec![b' '; 9 << 20];
    let body = initialize().to_string();
    let rows: [(&str, &str, &[u8], u16); 5] = [
        ("POST", USUAL, &big, 413),
        ("POST", "Accept: application/json, text/event-stream\r\n", body.as_bytes(), 415),
        ("POST", "Content-Type: application/json\r\n", body.as_bytes(), 406),
        ("PUT", USUAL, body.as_bytes(), 405),
        ("BREW", USUAL, body.as_bytes(), 405),
    ];
    for (method, lines, body, status) in rows {
        let answer = server.send(method, "/mcp", lines, body);
        assert_eq!(answer.status, status, "{method} {lines}: {}", answer.body);
        assert_eq!(server.status(""), 200);
    }
    for garbage in [&b"{"[..], b"[]", b"\xff\xfe", b"7", b""] {
        let status = server.send("POST", "/mcp", USUAL, garbage).status;
        assert!((400..500).contains(&status), "{status}");
    }
    // More sessions than there are places: an error, and no end of the server.
    let refused = (0..80).map(|_| server.status("")).filter(|status| *status != 200).count();
    assert!(refused > 0);
}

/// Calls the clock in a session of its own, and returns the answer.
fn call_clock(server: &HttpServer) -> String {
    let session = server.post("", &initialize()).session();
    let session = format!("Mcp-Session-Id: {session}\r\n");
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(server.post(&session, &initialized).status, 202);
    let call = json!({ "name": "clock__get_time", "arguments": { "timezone": "Asia/Tokyo" } });
    let call = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call });
    server.post(&session, &call).body
}

#[test]
fn a_group_of_the_policy_holds_for_its_clients() {
    let rule = "[[group.guests.rule]]\ntool = 'clock.*'\ndecision = 'deny'\nmessage = 'no clock'\n";
    let denied = format!("{ALLOW}[group.guests]\nusers = ['local']\n{rule}");
    let home = clock_home().policy(&denied);
    let server = HttpServer::start(&home, &[]);
    let refused = call_clock(&server);
    assert!(refused.contains("no clock (rule of the group guests at"), "{refused}");
    assert!(refused.contains("\"isError\":true"), "{refused}");

    // A change counts from the next call on, and a budget from then on.
    let budget = "[group.guests]\nusers = ['local']\n[group.guests.budget]\ncalls-per-day = 2\n";
    fs::write(home.path("policy.toml"), format!("{ALLOW}{budget}")).unwrap();
    for _ in 0..2 {
        let answer = call_clock(&server);
        assert!(answer.contains("\"isError\":false"), "{answer}");
    }
    let spent = call_clock(&server);
    assert!(spent.contains("budget of the group guests (2 calls per day) is used up"), "{spent}");
    drop(server);
    let server = HttpServer::start(&home, &[]);
    let spent = call_clock(&server);
    assert!(spent.contains("is used up"), "it outlives the program: {spent}");
}
