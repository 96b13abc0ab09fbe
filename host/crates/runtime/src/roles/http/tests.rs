//! Tests of the server from outside: which requests pass, and the messages of refusals.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use governor::{RateLimiter, clock::FakeRelativeClock};
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use sallyport_contract::{BoxFuture, Secret};
use sallyport_policy::ListenAddress;
use sallyport_sandbox::roles::HttpBody;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_tungstenite::{WebSocketStream, tungstenite::protocol::Role};

use super::{
    AccessKey, AccessKeyHolder, HttpRequestHandler, HttpRoute, HttpServer, REQUEST_QUOTA,
    RouteHandler, Socket, WebSocketHandler, with_write_timeout,
};

const TOKEN: &str = "0123456789abcdef";

/// The key of programs.
const OTHER_TOKEN: &str = "fedcba9876543210";

/// Returns the request that it received.
#[derive(Default)]
struct Echo {
    seen: Mutex<Vec<String>>,
}

impl HttpRequestHandler for Echo {
    fn handle_request(&self, request: Request<Full<Bytes>>) -> BoxFuture<'_, Response<HttpBody>> {
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

impl WebSocketHandler for Parrot {
    fn handle_socket(&self, mut socket: Socket, _peer: SocketAddr) -> BoxFuture<'static, ()> {
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

/// A server with a page at /ui, WebSockets at /chat, and a page for programs at /hooks.
async fn world() -> World {
    let page = Arc::new(Echo::default());
    let local = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    let ui = Arc::new(AccessKey::new(TOKEN.to_owned(), AccessKeyHolder::User));
    let programs = Arc::new(AccessKey::from_secret(&Secret::new(OTHER_TOKEN)).unwrap());
    let route = |path: &str, target, key: &Arc<AccessKey>| HttpRoute {
        address: ListenAddress { socket_address: local, path: path.to_owned(), public: false },
        handler: target,
        key: Arc::clone(key),
    };
    let routes = vec![
        route("/ui", RouteHandler::Http(Arc::clone(&page) as _), &ui),
        route("/chat", RouteHandler::WebSocket(Arc::new(Parrot)), &ui),
        route("/hooks", RouteHandler::Http(Arc::clone(&page) as _), &programs),
    ];
    let server = HttpServer::bind(local, routes).await.unwrap();
    let addr = server.local_addr();
    tokio::spawn(server.run());
    World { addr, page }
}

impl World {
    /// Sends bytes and returns everything received until the connection ends.
    async fn send(&self, text: &str) -> String {
        let mut stream = dial(self.addr).await;
        // The server may not read an early-refused request to its end.
        let _ = stream.write_all(text.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Sends a request with the right host that closes the connection.
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

/// As many requests pass as the burst and the elapsed time allow.
#[tokio::test]
async fn h70_a_batch_of_requests_is_slowed_down() {
    let world = world().await;
    let begun = std::time::Instant::now();
    let (mut passed, mut slowed) = (0, 0);
    for _ in 0..600 {
        let answer = world.ask("GET /ui", &bearer(), "").await;
        match answer.starts_with("HTTP/1.1 429") {
            true if answer.contains("retry-after") => slowed += 1,
            _ => passed += 1,
        }
    }
    let allowed = 200 + 50 * (begun.elapsed().as_secs() + 1);
    assert!(passed <= allowed && passed >= 200, "{passed} passed, {slowed} did not");
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
    // A browser cannot open a listener's page, so no such page runs at the address of the UI.
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
    let other_version = world.ask("GET /chat", &old, "").await;
    check(&other_version, StatusCode::UPGRADE_REQUIRED, "sec-websocket-version: 13");
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
    // A message over the limit ends the connection.
    let _ = socket.send("x".repeat(70_000).into()).await;
    assert!(!matches!(socket.next().await, Some(Ok(message)) if message.is_text()));
}

#[tokio::test]
async fn h86_what_is_no_handshake_opens_no_web_socket() {
    let world = world().await;
    let addr = world.addr;
    let (old, bad) = (StatusCode::UPGRADE_REQUIRED, StatusCode::BAD_REQUEST);
    let usual = [
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ];
    for (line, instead, status) in [
        (3, "Sec-WebSocket-Key: x", bad),
        (3, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25j", bad),
        (3, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZR==", bad),
        (3, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ", bad),
        (3, "X: 1", bad),
        (3, &[usual[3]; 2].join("\r\n"), bad),
        (2, "Sec-WebSocket-Version: 8", old),
        (2, "Sec-WebSocket-Version: 13, 8", old),
        (2, "X: 1", old),
        (1, "Connection: close", bad),
        (0, "Upgrade: h2c", bad),
    ] {
        let mut lines = usual;
        lines[line] = instead;
        let head = format!("GET /chat HTTP/1.1\r\nHost: {addr}\r\n{}", bearer());
        let answer = world.send(&format!("{head}{}\r\n\r\n", lines.join("\r\n"))).await;
        check(&answer, status, "");
    }
    let all = usual.join("\r\n");
    let own = bearer();
    for (first, status) in [
        ("GET /chat HTTP/1.0", bad),
        ("POST /chat HTTP/1.1", bad),
        ("GET /chat/../x HTTP/1.1", bad),
        ("GET /chat/%2e%2e/x HTTP/1.1", bad),
        ("GET /chat//x HTTP/1.1", bad),
        (&format!("GET /chat?token={TOKEN}&token=0 HTTP/1.1"), StatusCode::UNAUTHORIZED),
    ] {
        let answer = world.send(&format!("{first}\r\nHost: {addr}\r\n{own}{all}\r\n\r\n")).await;
        assert!(!answer.contains(" 101 "), "{first}: {answer}");
        assert!(answer.contains(&format!(" {} ", status.as_u16())), "{first}: {answer}");
    }
}

#[tokio::test]
async fn h86_a_request_in_two_readings_is_refused_and_the_connection_closed() {
    let world = world().await;
    let (addr, own) = (world.addr, bearer());
    let smuggled = format!("0\r\n\r\nGET /ui?smuggled HTTP/1.1\r\nHost: {addr}\r\n{own}\r\n");
    let length = format!("Content-Length: {}\r\n", smuggled.len());
    let chunked = "Transfer-Encoding: chunked\r\n";
    for lines in [
        format!("{length}{chunked}"),
        format!("{chunked}{length}"),
        format!("{length}{length}"),
        format!("{length} x\r\n"),
        format!("X: 1\n{length}"),
        "Transfer-Encoding: gzip, chunked\r\n".to_owned(),
        "Content-Length: +5\r\n".to_owned(),
    ] {
        let head = format!("POST /ui HTTP/1.1\r\nHost: {addr}\r\n{own}{lines}\r\n");
        let answer = world.send(&format!("{head}{smuggled}")).await;
        check(&answer, StatusCode::BAD_REQUEST, "");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{lines}: {answer}");
    }
    for path in ["/ui/../hooks", "/ui/%2e%2e/hooks", "/ui/..%2fhooks", "/ui\\..\\hooks", "//ui"] {
        check(&world.ask(&format!("GET {path}"), &own, "").await, StatusCode::BAD_REQUEST, "");
    }
    assert_eq!(*world.page.seen.lock().unwrap(), [""; 0]);
    // Data after a request is not a second request.
    let one = format!("GET /ui HTTP/1.1\r\nHost: {addr}\r\n{own}\r\n");
    let answers = world.send(&one.repeat(3)).await;
    assert_eq!(answers.matches("HTTP/1.1 200").count(), 1, "{answers}");
    assert_eq!(world.page.seen.lock().unwrap().len(), 1);
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
    let head = format!("POST /ui HTTP/1.1\r\nHost: {addr}\r\n{own}Content-Length: 10\r\n\r\nhalf");
    check(&world.send(&head).await, StatusCode::REQUEST_TIMEOUT, "in time");
}

/// More connections than places, none of them with a key.
#[tokio::test]
async fn h86_half_open_connections_keep_nobody_out() {
    let world = world().await;
    let mut half_open = Vec::new();
    for round in 0..2 {
        for number in 0..super::connections::CONNECTIONS_MAX {
            let mut stream = dial(world.addr).await;
            let said = ["", "GET /ui HTTP/1.1\r\n", "\u{16}\u{3}\u{1}", "POST /"][number % 4];
            // A dropped connection accepts no data.
            let _ = stream.write_all(said.as_bytes()).await;
            half_open.push(stream);
        }
        let answer = world.ask("GET /ui", &bearer(), "").await;
        check(&answer, StatusCode::OK, "GET");
        assert_eq!(world.page.seen.lock().unwrap().len(), round + 1);
    }
}

#[tokio::test]
async fn h86_bodies_that_come_slowly_keep_nobody_out() {
    let world = world().await;
    let (addr, own) = (world.addr, bearer());
    let head = format!("POST /ui HTTP/1.1\r\nHost: {addr}\r\n{own}Content-Length: 10\r\n\r\nhalf");
    let mut slow = Vec::new();
    for _ in 0..40 {
        let mut stream = dial(addr).await;
        stream.write_all(head.as_bytes()).await.unwrap();
        slow.push(stream);
    }
    check(&world.ask("POST /ui", &own, "hello").await, StatusCode::OK, "POST");
    for mut stream in slow {
        stream.write_all(b" a body").await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert!(["HTTP/1.1 200", "HTTP/1.1 503"].map(str::as_bytes).contains(&&answer[..]));
    }
}

#[test]
fn a_flood_is_too_much_and_a_pause_helps() {
    let clock = FakeRelativeClock::default();
    let limiter = RateLimiter::direct_with_clock(REQUEST_QUOTA, clock.clone());
    let taken = || (0..1000).filter(|_| limiter.check().is_ok()).count();
    assert_eq!(taken(), 200);
    assert!(limiter.check().is_err());
    clock.advance(Duration::from_secs(1));
    assert_eq!(taken(), 50);
}

#[tokio::test]
async fn only_so_many_are_answered_at_once() {
    let local = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    let site = HttpServer::bind(local, Vec::new()).await.unwrap().site;
    let bodies: Vec<_> = (0..64).map(|_| site.read_permits.try_acquire().unwrap()).collect();
    assert!(site.read_permits.try_acquire().is_err());
    let permits: Vec<_> = (0..16).map(|_| site.answer_permits.try_acquire().unwrap()).collect();
    assert!(site.answer_permits.try_acquire().is_err());
    drop((bodies, permits));
    assert!(site.read_permits.try_acquire().is_ok() && site.answer_permits.try_acquire().is_ok());
}

#[tokio::test(start_paused = true)]
async fn h70_whoever_takes_nothing_is_not_waited_for() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = dial(listener.local_addr().unwrap()).await;
    let (stream, _) = listener.accept().await.unwrap();
    let result = with_write_timeout(stream).write_all(&vec![0; 64 << 20]).await;
    assert_eq!(result.unwrap_err().kind(), io::ErrorKind::TimedOut);
    drop(silent);
}
