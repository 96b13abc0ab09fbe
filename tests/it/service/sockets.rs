//! Sessions over WebSockets: events and commands on one connection.

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{Error, Message, client::IntoClientRequest, http::HeaderValue},
};

use super::{ServiceProgram, bearer, home, talking_model, token};
use crate::support::patience::PATIENCE;

/// A client of one socket.
struct SocketClient {
    runtime: tokio::runtime::Runtime,
    socket: WebSocketStream<tokio::net::TcpStream>,
}

impl SocketClient {
    /// Opens a socket with these lines in its head. An error is the status.
    fn open(
        service: &ServiceProgram,
        path: &str,
        lines: &[(&'static str, &str)],
    ) -> Result<Self, u16> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let opened = runtime.block_on(async {
            let stream = tokio::net::TcpStream::connect(&service.address).await.unwrap();
            let url = format!("ws://{}{path}", service.address);
            let mut request = url.into_client_request().unwrap();
            for (name, value) in lines {
                request.headers_mut().insert(*name, HeaderValue::from_str(value).unwrap());
            }
            client_async(request, stream).await
        });
        match opened {
            Ok((socket, _)) => Ok(Self { runtime, socket }),
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    #[track_caller]
    fn opened(service: &ServiceProgram, token: &str, session: &str, query: &str) -> Self {
        let path = format!("/v1/sessions/{session}/socket{query}");
        Self::open(service, &path, &[("authorization", &format!("Bearer {token}"))]).unwrap()
    }

    fn send(&mut self, message: impl Into<Message>) {
        self.runtime.block_on(self.socket.send(message.into())).unwrap();
    }

    /// Gives a command, and returns the answer to it and the events before that.
    #[track_caller]
    fn command(&mut self, command: &Value) -> Value {
        self.send(json!({ "reference": "r", "command": command }).to_string());
        self.until(|message| message["reference"] == "r").pop().unwrap()
    }

    /// Reads until a message that is looked for, and returns all of them. `Null` is the end.
    #[track_caller]
    fn until(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut messages = Vec::new();
        loop {
            let next = self.runtime.block_on(async {
                tokio::time::timeout(PATIENCE, self.socket.next()).await.unwrap()
            });
            let message = match next {
                Some(Ok(Message::Text(text))) => serde_json::from_str(&text).unwrap(),
                Some(Ok(Message::Ping(_))) => continue,
                _ => Value::Null,
            };
            let is_last = message.is_null() || is_wanted(&message);
            messages.push(message);
            if is_last {
                return messages;
            }
        }
    }
}

fn is_event(message: &Value, kind: &str) -> bool {
    message["type"] == "event" && message["event"]["type"] == kind
}

#[test]
fn a_socket_carries_commands_and_events() {
    let model = talking_model();
    let home = home(&model);
    let ann = token(&home, "ann", "user");
    let service = ServiceProgram::start(&home);
    let session = service.open_session(&ann);
    let mut socket = SocketClient::opened(&service, &ann, &session, "");
    let say = json!({ "type": "submit-input", "input": { "text": "hello" } });
    let taken = socket.command(&say);
    assert_eq!(taken["type"], "taken", "{taken}");
    let mut events = socket.until(|message| is_event(message, "turn-ended"));
    assert!(json!(events).to_string().contains("Good day."), "{events:?}");
    // Another socket begins after an event of the first one.
    let last = events.pop().unwrap()["id"].as_str().unwrap().to_owned();
    let before = events.iter().rev().find_map(|event| event["id"].as_str()).unwrap();
    let mut second = SocketClient::opened(&service, &ann, &session, &format!("?after={before}"));
    assert_eq!(second.until(|_| true)[0]["id"], last);
    // The same event comes as a server-sent event.
    let mut stream = service.stream(&ann, &session, "");
    stream.until(&format!("id: {last}"));
    service.post(&ann, &format!("/v1/sessions/{session}/close"), &json!({})).has(204);
    for socket in [&mut socket, &mut second] {
        let end = socket.until(|message| message["type"] == "end").pop().unwrap();
        assert_eq!(end, json!({ "type": "end", "reason": "closed" }));
        assert_eq!(socket.until(|_| true), [Value::Null], "it is closed");
    }
}

#[test]
fn a_command_on_a_socket_is_what_its_giver_may_say() {
    let model = talking_model();
    let home = home(&model);
    let ann = token(&home, "ann", "user");
    let service = ServiceProgram::start(&home);
    let session = service.open_session(&ann);
    let mut socket = SocketClient::opened(&service, &ann, &session, "");
    let rows = [
        (json!({ "type": "none" }), "bad-request"),
        (json!({ "type": "notice", "plugin": "clock", "text": "a" }), "bad-request"),
        (json!({ "type": "submit-input", "input": { "text": "a", "aside": "b" } }), "bad-request"),
        (json!({ "type": "provide-confirmation", "id": 1, "answer": { "type": "always" } }), ""),
    ];
    for (command, kind) in rows {
        let answer = socket.command(&command);
        assert_eq!(answer["type"], "problem", "{command}: {answer}");
        let found = answer["problem"]["type"].as_str().unwrap();
        assert!(found == kind || kind.is_empty(), "{command}: {answer}");
    }
    let long = "x".repeat(300);
    let unreadable = [
        "{".to_owned(),
        "[]".to_owned(),
        "{}".to_owned(),
        json!({ "command": {}, "more": 1 }).to_string(),
        json!({ "command": {}, "reference": long }).to_string(),
    ];
    for text in unreadable {
        socket.send(text.as_str());
        let answer = socket.until(|message| message["type"] == "problem").pop().unwrap();
        assert_eq!(answer["problem"]["type"], "bad-request", "{text}: {answer}");
        assert!(answer["reference"].is_null(), "{text}: {answer}");
    }
    socket.send(vec![1_u8, 2]);
    let answer = socket.until(|message| message["type"] == "problem").pop().unwrap();
    assert_eq!(answer["problem"]["title"], "send commands as text");
    // A token that is removed gives no command any more.
    home.run(&["serve", "token", "remove", "ann"]).ended(0);
    let refused = socket.command(&json!({ "type": "undo" }));
    assert_eq!(refused["problem"]["type"], "unauthorized", "{refused}");
}

#[test]
fn nobody_opens_a_socket_who_may_not() {
    let model = talking_model();
    let home = home(&model);
    let (ann, ben) = (token(&home, "ann", "user"), token(&home, "ben", "user"));
    let service = ServiceProgram::start(&home);
    let session = service.open_session(&ann);
    let path = format!("/v1/sessions/{session}/socket");
    let logged_in = service.request(
        "POST",
        "/console/login",
        "Sec-Fetch-Site: same-origin\r\nSallyport-Console: 1\r\n",
        &json!({ "token": ann }).to_string(),
    );
    let cookie = logged_in.cookies.first().map(|cookie| cookie.split(';').next().unwrap());
    let cookie = cookie.unwrap_or_else(|| panic!("{logged_in:#?}")).to_owned();
    let (ann, ben) = (format!("Bearer {ann}"), format!("Bearer {ben}"));
    let own = format!("http://{}", service.address);
    type Lines<'a> = &'a [(&'static str, &'a str)];
    let rows: [(Lines<'_>, u16); 6] = [
        (&[], 401),
        (&[("authorization", "Bearer x")], 401),
        (&[("authorization", &ben)], 404),
        (&[("authorization", &ann), ("origin", "https://evil.example")], 403),
        (&[("cookie", &cookie), ("origin", &own), ("sec-fetch-site", "same-origin")], 401),
        (&[("authorization", &ann), ("sec-websocket-version", "8")], 426),
    ];
    for (lines, status) in rows {
        let refused = SocketClient::open(&service, &path, lines).err();
        assert_eq!(refused, Some(status), "{lines:?}");
    }
    let plain = service.request("GET", &path, &format!("Authorization: {ann}\r\n"), "").has(426);
    assert_eq!(plain.problem(), "upgrade-required");
    assert!(plain.head.contains("sec-websocket-version: 13"), "{plain:#?}");
}

#[test]
fn sockets_are_bounded_and_end_with_the_service() {
    let model = talking_model();
    let home = home(&model);
    let ann = token(&home, "ann", "user");
    let service = ServiceProgram::start(&home);
    let session = service.open_session(&ann);
    let mut sockets: Vec<_> =
        (0..16).map(|_| SocketClient::opened(&service, &ann, &session, "")).collect();
    let path = format!("/v1/sessions/{session}/socket");
    let lines = [("authorization", format!("Bearer {ann}"))];
    let lines = lines.each_ref().map(|(name, value)| (*name, value.as_str()));
    assert_eq!(SocketClient::open(&service, &path, &lines).err(), Some(429));
    service.request("GET", &format!("/v1/sessions/{session}/events"), &bearer(&ann), "").has(429);
    // A message that is too long ends its socket alone.
    let long = "x".repeat(9 << 20);
    let mut first = sockets.remove(0);
    let _ = first.runtime.block_on(first.socket.send(Message::text(long)));
    assert_eq!(first.until(|message| message["type"] == "end").pop(), Some(Value::Null));
    let (code, _, stderr) = service.running.interrupted();
    assert_eq!(code, 130, "{stderr}");
    for mut socket in sockets {
        let end = socket.until(|message| message["type"] == "end").pop().unwrap();
        assert_eq!(end["reason"], "stopping");
    }
}
