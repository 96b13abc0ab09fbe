//! The server from outside: what gets in, what does not, and with which words.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use sallyport_contract::{BoxFuture, Secret};
use sallyport_policy::ListenAddress;
use sallyport_sandbox::roles::HttpBody;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_tungstenite::{WebSocketStream, tungstenite::protocol::Role};

use super::{Holder, Key, Page, Route, Server, Socket, Talk, Target};

const TOKEN: &str = "0123456789abcdef";

/// That of programs.
const OTHER_TOKEN: &str = "fedcba9876543210";

/// Says what it was asked.
#[derive(Default)]
struct Echo {
    seen: Mutex<Vec<String>>,
}

impl Page for Echo {
    fn answer(&self, request: Request<Full<Bytes>>) -> BoxFuture<'_, Response<HttpBody>> {
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let names: Vec<&str> = head.headers.keys().map(header::HeaderName::as_str).collect();
            let told = format!("{} {} {} {}", head.method, head.uri, body.len(), names.join(","));
            self.seen.lock().unwrap().push(told.clone());
            Response::new(Full::from(told).map_err(|never| match never {}).boxed_unsync())
        })
    }
}

/// Sends everything back.
struct Parrot;

impl Talk for Parrot {
    fn speak(&self, mut socket: Socket, _peer: SocketAddr) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            while let Some(Ok(message)) = socket.next().await {
                if socket.send(message).await.is_err() {
                    return;
                }
            }
        })
    }
}

struct World {
    addr: SocketAddr,
    page: Arc<Echo>,
}

/// A server with a page at /ui, web sockets at /chat, and something for programs at /hooks.
async fn world() -> World {
    let page = Arc::new(Echo::default());
    let local = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    let ui = Arc::new(Key::new(TOKEN.to_owned(), Holder::Person));
    let programs = Arc::new(Key::of(&Secret::new(OTHER_TOKEN)).unwrap());
    let route = |path: &str, target, key: &Arc<Key>| Route {
        address: ListenAddress { addr: local, path: path.to_owned(), public: false },
        target,
        key: Arc::clone(key),
    };
    let routes = vec![
        route("/ui", Target::Page(Arc::clone(&page) as _), &ui),
        route("/chat", Target::Talk(Arc::new(Parrot)), &ui),
        route("/hooks", Target::Page(Arc::clone(&page) as _), &programs),
    ];
    let server = Server::bind(local, routes).await.unwrap();
    let addr = server.addr();
    tokio::spawn(server.run());
    World { addr, page }
}

impl World {
    /// Sends bytes and returns all that comes back until the connection ends.
    async fn send(&self, text: &str) -> String {
        let mut stream = dial(self.addr).await;
        // Who is refused early may not be read to the end.
        let _ = stream.write_all(text.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Sends a request with the right host and no more connection after it.
    async fn ask(&self, line: &str, headers: &str, body: &str) -> String {
        let (addr, length) = (self.addr, body.len());
        let head = format!("{line} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n");
        self.send(&format!("{head}Content-Length: {length}\r\n{headers}\r\n{body}")).await
    }
}

#[expect(clippy::disallowed_methods, reason = "a test is a client")]
async fn dial(addr: SocketAddr) -> TcpStream {
    TcpStream::connect(addr).await.unwrap()
}

#[track_caller]
fn check(answer: &str, status: StatusCode, words: &str) {
    let first = format!("HTTP/1.1 {}", status.as_u16());
    assert!(answer.starts_with(&first) && answer.contains(words), "{status} {words}: {answer}");
}

fn bearer() -> String {
    format!("Authorization: Bearer {TOKEN}\r\n")
}

#[tokio::test]
async fn who_knows_the_key_is_answered_and_the_plugin_does_not_see_it() {
    let world = world().await;
    let cookie = format!("Cookie: sallyport-{}={TOKEN}\r\nX-Own: 1\r\n", world.addr.port());
    check(&world.ask("POST /ui/input?a=1", &bearer(), "hello").await, StatusCode::OK, "POST");
    check(&world.ask("GET /ui", &cookie, "").await, StatusCode::OK, "x-own");
    let seen = world.page.seen.lock().unwrap().join("\n");
    assert!(seen.contains(&format!("POST http://{}/ui/input?a=1 5 ", world.addr)), "{seen}");
    assert!(!seen.contains("cookie") && !seen.contains("authorization"), "{seen}");
}

#[tokio::test]
async fn h70_whoever_should_not_get_in_is_refused_before_a_plugin_runs() {
    let world = world().await;
    let own = bearer();
    let evil = format!("{own}Origin: http://evil.example\r\n");
    let huge = format!(
        "POST /ui HTTP/1.1\r\nHost: {}\r\n{own}Content-Length: 1048577\r\n\r\n",
        world.addr
    );
    let many = format!("{own}{}", "X: 1\r\n".repeat(100));
    let long = format!("{own}X: {}\r\n", "x".repeat(400_000));
    let foreign =
        format!("GET /ui HTTP/1.1\r\nHost: evil.example\r\n{own}Connection: close\r\n\r\n");
    check(&world.ask("GET /ui", "", "").await, StatusCode::UNAUTHORIZED, "www-authenticate");
    check(&world.ask("GET /ui?token=wrong", "", "").await, StatusCode::UNAUTHORIZED, "token");
    check(&world.ask("GET /other", "", "").await, StatusCode::UNAUTHORIZED, "token");
    let posted = world.ask(&format!("POST /ui?token={TOKEN}"), "", "").await;
    check(&posted, StatusCode::UNAUTHORIZED, "token");
    check(&world.ask("GET /ui", &evil, "").await, StatusCode::FORBIDDEN, "origin");
    check(&world.send(&foreign).await, StatusCode::FORBIDDEN, "host");
    check(&world.ask("TRACE /ui", &own, "").await, StatusCode::METHOD_NOT_ALLOWED, "method");
    check(&world.ask("GET /other", &own, "").await, StatusCode::NOT_FOUND, "nothing");
    check(&world.ask("GET /uix", &own, "").await, StatusCode::NOT_FOUND, "nothing");
    check(&world.ask("GET /chat", &own, "").await, StatusCode::UPGRADE_REQUIRED, "web sockets");
    check(&world.send(&huge).await, StatusCode::PAYLOAD_TOO_LARGE, "1 MiB");
    let heads = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    check(&world.ask("GET /ui", &many, "").await, heads, "");
    check(&world.ask("GET /ui", &long, "").await, heads, "");
    check(&world.send("\u{1}\r\n\r\n").await, StatusCode::BAD_REQUEST, "");
    assert_eq!(*world.page.seen.lock().unwrap(), [""; 0]);
}

#[tokio::test]
async fn h70_a_body_in_pieces_has_the_same_limit() {
    let world = world().await;
    let own = bearer();
    let head =
        format!("POST /ui HTTP/1.1\r\nHost: {}\r\n{own}Transfer-Encoding: chunked\r\n", world.addr);
    let piece = format!("10000\r\n{}\r\n", "x".repeat(65536));
    let sent = format!("{head}Connection: close\r\n\r\n{}0\r\n\r\n", piece.repeat(17));
    check(&world.send(&sent).await, StatusCode::PAYLOAD_TOO_LARGE, "1 MiB");
    let broken = format!("{head}Connection: close\r\n\r\nzz\r\n");
    check(&world.send(&broken).await, StatusCode::BAD_REQUEST, "");
    assert_eq!(*world.page.seen.lock().unwrap(), [""; 0]);
}

#[tokio::test]
async fn h70_a_batch_of_requests_is_slowed_down() {
    let world = world().await;
    let one = format!("GET /ui HTTP/1.1\r\nHost: {}\r\n{}\r\n", world.addr, bearer());
    let last = one.replacen("\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1);
    let answers = world.send(&format!("{}{last}", one.repeat(1000))).await;
    let refused = answers.matches("HTTP/1.1 429").count();
    assert!(refused > 500 && answers.contains("retry-after"), "{refused}");
}

#[tokio::test]
async fn h70_a_key_opens_its_own_door_and_no_other() {
    let world = world().await;
    let port = world.addr.port();
    let ui = [bearer(), format!("Cookie: sallyport-{port}={TOKEN}\r\n")];
    let programs = format!("Authorization: Bearer {OTHER_TOKEN}\r\n");
    let cookie = format!("Cookie: sallyport-{port}={OTHER_TOKEN}\r\n");
    let closed = StatusCode::UNAUTHORIZED;
    for own in &ui {
        check(&world.ask("POST /hooks", own, "").await, closed, "token");
    }
    check(&world.ask("POST /ui/confirm", &programs, "").await, closed, "token");
    check(&world.ask("POST /ui/confirm", &cookie, "").await, closed, "token");
    // No browser gets at what a listener serves, so nothing of that runs at the address of the UI.
    let followed = world.ask(&format!("GET /hooks?token={OTHER_TOKEN}"), "", "").await;
    check(&followed, closed, "token");
    assert_eq!(*world.page.seen.lock().unwrap(), [""; 0]);
    check(&world.ask("POST /hooks", &programs, "").await, StatusCode::OK, "POST");
    for own in [&ui[0], &programs] {
        check(&world.ask("GET /other", own, "").await, StatusCode::NOT_FOUND, "nothing");
    }
}

#[tokio::test]
async fn a_person_who_follows_the_address_gets_a_cookie() {
    let world = world().await;
    let answer = world.ask(&format!("GET /ui/?token={TOKEN}&a=1"), "", "").await;
    check(&answer, StatusCode::SEE_OTHER, "location: /ui/?a=1");
    assert!(answer.contains("HttpOnly; SameSite=Strict"), "{answer}");
    assert_eq!(*world.page.seen.lock().unwrap(), [""; 0]);
}

#[tokio::test]
async fn web_sockets_open_at_their_path_only() {
    let world = world().await;
    let handshake = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                     Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let own = format!("{}{handshake}", bearer());
    let evil = format!("{own}Origin: http://evil.example\r\n");
    let old = own.replace("13", "8");
    check(&world.ask("GET /chat", handshake, "").await, StatusCode::UNAUTHORIZED, "token");
    check(&world.ask("GET /chat", &evil, "").await, StatusCode::FORBIDDEN, "origin");
    check(&world.ask("GET /chat", &old, "").await, StatusCode::BAD_REQUEST, "handshake");
    check(&world.ask("POST /chat", &own, "").await, StatusCode::BAD_REQUEST, "handshake");
    check(&world.ask("GET /ui", &own, "").await, StatusCode::NOT_FOUND, "nothing");

    let mut stream = dial(world.addr).await;
    let head =
        format!("GET /chat?token={TOKEN} HTTP/1.1\r\nHost: {}\r\n{handshake}\r\n", world.addr);
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(stream.read_u8().await.unwrap());
    }
    let answer = String::from_utf8(answer).unwrap();
    check(&answer, StatusCode::SWITCHING_PROTOCOLS, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    let mut socket = WebSocketStream::from_raw_socket(stream, Role::Client, None).await;
    socket.send("hello".into()).await.unwrap();
    assert_eq!(socket.next().await.unwrap().unwrap(), "hello".into());
    // More than a message may have ends the connection.
    let _ = socket.send("x".repeat(70_000).into()).await;
    assert!(!matches!(socket.next().await, Some(Ok(message)) if message.is_text()));
}

#[tokio::test(start_paused = true)]
async fn h70_nobody_is_waited_for_without_end() {
    let world = world().await;
    let (addr, own) = (world.addr, bearer());
    let silent = world.send("").await;
    let half = world.send(&format!("GET /ui HTTP/1.1\r\nHost: {addr}\r\n")).await;
    for answer in [silent, half] {
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
    }
    let kept = format!("GET /ui HTTP/1.1\r\nHost: {addr}\r\n{own}\r\n");
    check(&world.send(&kept).await, StatusCode::OK, "GET");
    let head = format!("POST /ui HTTP/1.1\r\nHost: {addr}\r\n{own}Content-Length: 10\r\n\r\nhalf");
    check(&world.send(&head).await, StatusCode::REQUEST_TIMEOUT, "in time");
}

#[tokio::test]
async fn h70_only_so_many_may_be_connected() {
    let world = world().await;
    let mut connected = Vec::new();
    for _ in 0..super::CONNECTIONS_MAX {
        connected.push(dial(world.addr).await);
    }
    check(&world.send("").await, StatusCode::SERVICE_UNAVAILABLE, "too many connections");
    drop(connected);
}
