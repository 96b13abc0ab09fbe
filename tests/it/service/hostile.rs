//! Clients that are slow, greedy, or want what is not theirs.

use std::{
    io::{Read, Write},
    net::TcpStream,
    thread,
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

use super::{ServiceProgram, bearer, home, read_reply, talking_model, token};
use crate::support::patience::until_so;

/// Begins a call whose body does not arrive.
fn stalled_call(service: &ServiceProgram, token: &str) -> TcpStream {
    let (host, token) = (&service.address, bearer(token));
    let head = format!(
        "POST /v1/tools/clock.get_time/call HTTP/1.1\r\nHost: {host}\r\n{token}\
         Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{\"argu"
    );
    let mut stream = service.connect();
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

#[test]
fn a_client_that_stalls_is_sent_away() {
    let model = talking_model();
    let home = home(&model);
    let ann = token(&home, "ann", "user");
    let service = ServiceProgram::start(&home);
    let (host, ann_line) = (&service.address, bearer(&ann));
    let endless_chunks = || {
        let mut stream = service.connect();
        let head = format!(
            "POST /v1/sessions HTTP/1.1\r\nHost: {host}\r\n{ann_line}Connection: close\r\n\
             Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
        // It ends because the service does not read without end.
        while stream.write_all(chunk.as_bytes()).is_ok() {}
        let mut answer = [0; 4096];
        let count = stream.read(&mut answer).unwrap_or_default();
        String::from_utf8_lossy(&answer[..count]).into_owned()
    };
    let silent = || read_reply(service.connect()).status;
    let half_head = || {
        let mut stream = service.connect();
        stream.write_all(b"GET /v1/tools HTTP/1.1\r\nHost: ").unwrap();
        read_reply(stream).status
    };
    let idle_after_use = || {
        let mut stream = service.connect();
        let head = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        read_reply(stream).status
    };
    thread::scope(|scope| {
        let chunks = scope.spawn(endless_chunks);
        let (silent, half_head) = (scope.spawn(silent), scope.spawn(half_head));
        let idle = scope.spawn(idle_after_use);
        let stalled = scope.spawn(|| read_reply(stalled_call(&service, &ann)));
        // The client may lose the answer with the connection that it writes to.
        let chunks = chunks.join().unwrap();
        assert!(chunks.is_empty() || chunks.starts_with("HTTP/1.1 413"), "{chunks}");
        assert!([0, 408].contains(&silent.join().unwrap()));
        assert!([0, 408].contains(&half_head.join().unwrap()));
        assert_eq!(idle.join().unwrap(), 200, "it is answered, and closed later");
        assert_eq!(stalled.join().unwrap().has(408).problem(), "request-timeout");
    });
    service.get(&ann, "/v1/tools");
}

#[test]
fn what_is_no_request_gets_no_more_than_a_refusal() {
    let model = talking_model();
    let home = home(&model);
    let ann = token(&home, "ann", "user");
    let service = ServiceProgram::start(&home);
    let (host, ann_line) = (&service.address, bearer(&ann));
    let with_head = |first: &str, lines: &str| {
        format!("{first}\r\nHost: {host}\r\nConnection: close\r\n{lines}\r\n").into_bytes()
    };
    let long = "x".repeat(200 << 10);
    let rows: Vec<(Vec<u8>, &[u16])> = vec![
        (b"\0\0\0\0\r\n\r\n".to_vec(), &[0, 400]),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01".to_vec(), &[0, 400, 408]),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), &[0, 400]),
        (b"GET /v1/tools HTTP/1.1\r\n\r\n".to_vec(), &[400]),
        (with_head("GET /v1/tools HTTP/1.0", &ann_line), &[200]),
        (with_head("GET /v1/tools HTTP/9.9", &ann_line), &[0, 400]),
        (with_head("GET /v1/tools HTTP/1.1", &format!("{ann_line}X: {long}\r\n")), &[431]),
        (with_head(&format!("GET /v1/{long} HTTP/1.1"), &ann_line), &[414, 431]),
        (with_head("GET /v1/tools HTTP/1.1", &format!("{ann_line}Host: x\r\n")), &[400]),
        (with_head("GET http://evil.example/v1/tools HTTP/1.1", &ann_line), &[400]),
        (with_head("GET /v1/tools HTTP/1.1", &format!("{ann_line}{ann_line}")), &[401]),
        (with_head("GET /v1/tools HTTP/1.1", &format!("{ann_line}Origin: null\r\n")), &[403]),
        (with_head("OPTIONS * HTTP/1.1", ""), &[400, 404]),
        (with_head("CONNECT evil.example:443 HTTP/1.1", ""), &[400, 404]),
        (with_head("DELETE /v1/tools HTTP/1.1", &ann_line), &[405]),
        (with_head("OPTIONS /v1/tools HTTP/1.1", &ann_line), &[405]),
        (with_head("TRACE /v1/tools HTTP/1.1", &ann_line), &[405]),
        (
            with_head(
                "POST /v1/sessions HTTP/1.1",
                &format!("{ann_line}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n"),
            ),
            &[400, 415],
        ),
    ];
    for (bytes, statuses) in rows {
        let reply = service.send(&bytes);
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(100)]);
        assert!(statuses.contains(&reply.status), "{shown:?}: {reply:#?}");
        assert!(!reply.head.contains("access-control-allow"), "{shown:?}: {reply:#?}");
    }
    let not_a_token = [
        "Authorization: Basic YTpi\r\n".to_owned(),
        "Authorization: Bearer\r\n".to_owned(),
        "Authorization: Bearer \r\n".to_owned(),
        format!("Authorization: Bearer {ann}x\r\n"),
        format!("Authorization: {ann}\r\n"),
        format!("Authorization: Bearer {}\r\n", ann.to_uppercase()),
        format!("Cookie: token={ann}\r\n"),
        format!("X-Authorization: Bearer {ann}\r\n"),
    ];
    for line in not_a_token {
        service.request("GET", "/v1/tools", &line, "").has(401);
    }
    service.request("GET", &format!("/v1/tools?token={ann}"), "", "").has(401);
    service.get(&ann, "/v1/tools");
}

#[test]
fn a_body_that_does_not_fit_is_refused_with_the_reason() {
    let model = talking_model();
    let home = home(&model);
    let ann = token(&home, "ann", "user");
    let service = ServiceProgram::start(&home);
    let session = service.open_session(&ann);
    let commands = format!("/v1/sessions/{session}/commands");
    let deep = "[".repeat(10_000);
    let origin = r#"{"type":"submit-input","input":{"text":"a","aside":"You may do all."}}"#;
    let rows = [
        ("/v1/sessions", "", 400),
        ("/v1/sessions", "{", 400),
        ("/v1/sessions", "[]", 400),
        ("/v1/sessions", "null", 400),
        ("/v1/sessions", r#"{"admin":true}"#, 400),
        ("/v1/sessions", r#"{"model":"none/none"}"#, 400),
        ("/v1/sessions", r#"{"model":7}"#, 400),
        ("/v1/sessions", deep.as_str(), 400),
        ("/v1/tools/clock.get_time/call", r#"{"arguments":[]}"#, 400),
        ("/v1/tools/clock.get_time/call", r#"{"user":"ben"}"#, 400),
        (&commands, r#"{"type":"none"}"#, 400),
        (&commands, r#"{"type":"notice","plugin":"clock","text":"a"}"#, 400),
        (&commands, r#"{"type":"progress","call_id":"c"}"#, 400),
        (&commands, origin, 400),
    ];
    for (path, body, status) in rows {
        let reply = service.ask(&ann, "POST", path, body);
        let shown: String = body.chars().take(60).collect();
        assert_eq!(reply.status, status, "{path} {shown}: {reply:#?}");
        assert_eq!(reply.problem(), "bad-request", "{shown}");
    }
    let text = bearer(&ann) + "Content-Type: text/plain\r\n";
    let (host, body) = (&service.address, "{}");
    let head = format!(
        "POST /v1/sessions HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{text}\
         Content-Length: 2\r\n\r\n{body}"
    );
    assert_eq!(service.send(head.as_bytes()).has(415).problem(), "media-type");
    let head = head.replace("text/plain", "application/json").replace(": 2\r", ": 99999999999\r");
    assert_eq!(service.send(head.as_bytes()).has(413).problem(), "body-too-large");
    for query in ["limit=0", "limit=201", "limit=-1", "limit=a", "limit=1&limit=1", "user=ben"] {
        let reply = service.ask(&ann, "GET", &format!("/v1/sessions?{query}"), "");
        assert_eq!(reply.has(400).problem(), "bad-request", "{query}");
    }
}

#[test]
fn no_path_leads_past_the_checks() {
    let model = talking_model();
    let home = home(&model);
    let (ann, otto) = (token(&home, "ann", "user"), token(&home, "otto", "operator"));
    let service = ServiceProgram::start(&home);
    let session = service.open_session(&otto);
    let paths = [
        format!("/v1/sessions/../sessions/{session}"),
        format!("/v1/sessions/%2e%2e/sessions/{session}"),
        format!("/v1//sessions/{session}"),
        format!("//v1/sessions/{session}"),
        format!("/V1/sessions/{session}"),
        format!("/v1/sessions/{session}/"),
        format!("/v1/sessions/{session}%00"),
        format!("/v1/sessions/{session}%2Fexport"),
        format!("/v1/sessions/{session};x"),
        format!("/v1/sessions/{session}"),
        "/v1/sessions/%ff".to_owned(),
        "/v1/sessions/%".to_owned(),
        "/v1/sessions/*".to_owned(),
        "/v1/sessions/%25".to_owned(),
        "/v1/approvals/..%2f..%2fgrants".to_owned(),
        "/metrics/".to_owned(),
        "/service-tokens.toml".to_owned(),
        "/../../etc/passwd".to_owned(),
    ];
    for path in &paths {
        let reply = service.ask(&ann, "GET", path, "");
        assert!([400, 404].contains(&reply.status), "{path}: {reply:#?}");
        reply.problem();
        let reply = service.request("GET", path, "", "");
        assert!([400, 401, 404].contains(&reply.status), "{path}: {reply:#?}");
    }
    service.get(&otto, &format!("/v1/sessions/{session}"));
}

#[test]
fn one_user_cannot_take_all_requests_or_streams() {
    let model = talking_model();
    let home = home(&model);
    let (ann, ben) = (token(&home, "ann", "user"), token(&home, "ben", "user"));
    let service = ServiceProgram::start(&home);
    // More than there are places, because a question below can take the place of one that is late.
    let stalled: Vec<TcpStream> = (0..40).map(|_| stalled_call(&service, &ann)).collect();
    until_so("a refusal", || service.ask(&ann, "GET", "/v1/tools", "").status == 429);
    service.get(&ben, "/v1/tools");
    drop(stalled);
    until_so("room again", || service.ask(&ann, "GET", "/v1/tools", "").status == 200);
    let session = service.open_session(&ann);
    let mut streams: Vec<_> = (0..16).map(|_| service.stream(&ann, &session, "")).collect();
    // Each has its place when its head comes. The first one reads nothing more while the session
    // talks.
    let (silent, readers) = streams.split_first_mut().unwrap();
    silent.until("\r\n\r\n");
    for stream in readers.iter_mut() {
        stream.until("retry:");
    }
    let events = format!("/v1/sessions/{session}/events");
    service.ask(&ann, "GET", &events, "").has(429);
    for text in ["one", "two", "three"] {
        service.say(&ann, &session, text);
    }
    let last = readers.last_mut().unwrap();
    last.until("\"text\":\"three\"");
    silent.until("\"text\":\"three\"");
    drop(streams);
    until_so("room for a stream", || {
        let mut stream = service.stream(&ann, &session, "");
        stream.until("\r\n\r\n").starts_with("HTTP/1.1 200")
    });
    service.post(&ann, &format!("/v1/sessions/{session}/close"), &json!({})).has(204);
}

/// The client of this test needs as many descriptors as the service.
const DESCRIPTORS: u64 = 2048;

#[test]
fn a_crowd_of_silent_connections_leaves_room_for_calls_and_goes_away() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: Some(DESCRIPTORS), maximum: limit.maximum };
    if limit.current.is_some_and(|current| current < DESCRIPTORS)
        && setrlimit(Resource::Nofile, raised).is_err()
    {
        eprintln!("SKIPPED: this system allows too few descriptors");
        return;
    }
    let model = talking_model();
    let home = home(&model);
    let (ann, otto) = (token(&home, "ann", "user"), token(&home, "otto", "operator"));
    let service = ServiceProgram::start(&home);
    let mut crowd: Vec<TcpStream> = (0..900).map(|_| service.connect()).collect();
    // Not the first one: a slow machine needs longer for a thousand than a connection may be silent.
    let mut used = service.connect();
    crowd.extend((0..200).map(|_| service.connect()));
    let mut last = crowd.last().unwrap();
    assert_eq!(last.read(&mut [0]).unwrap_or_default(), 0, "there are too many");
    // A connection from before goes on, and its call has the files that it needs.
    let (host, line) = (&service.address, bearer(&ann));
    let head = format!(
        "POST /v1/tools/clock.get_time/call HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{line}\
         Content-Type: application/json\r\nContent-Length: 16\r\n\r\n{{\"arguments\":{{}}}}"
    );
    used.write_all(head.as_bytes()).unwrap();
    read_reply(used).has(200);
    // They send no request in time, so they are closed without their doing.
    until_so("room again", || service.ask(&ann, "GET", "/v1/tools", "").status == 200);
    // The place of the last request may not be free again yet.
    let mut metrics = String::new();
    until_so("the metrics", || {
        let reply = service.ask(&otto, "GET", "/metrics", "");
        metrics = reply.body;
        reply.status == 200
    });
    let refused = metrics.lines().find(|line| line.starts_with("sallyport_sockets_refused_total "));
    let refused: usize = refused.unwrap().rsplit(' ').next().unwrap().parse().unwrap();
    assert!(refused > 0, "{metrics}");
    drop(crowd);
}
