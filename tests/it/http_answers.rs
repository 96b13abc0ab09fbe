//! What comes back: codings undone, framing in one reading, and a cap on everything.

use std::io::Write as _;

use flate2::{
    Compression,
    write::{GzEncoder, ZlibEncoder},
};
use sallyport_contract::{CallReport, Effect};
use serde_json::{Value, json};

use crate::support::{
    Guarded, Response, Server,
    registry::{data, told},
    server::Request,
    warden::hostile,
};

/// Bytes as gzip.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn to(server: &Server) -> Value {
    json!({ "authority": server.authority() })
}

/// Fetches once from a server that always answers so.
fn fetch(answer: Response, limits: &str) -> CallReport {
    let server = Server::start(move |_| answer.clone());
    let tools = Guarded::by(hostile(&server, &format!("limits = {{ {limits} }}")));
    tools.call("fetches", &to(&server))
}

fn coded(coding: &str, bytes: &[u8]) -> Response {
    Response::bytes(&[("content-encoding", coding)], bytes)
}

/// A report fails, names this, and keeps to it.
#[track_caller]
fn check_failed(what: &str, report: &CallReport, words: &[&str]) {
    let told = told(report);
    assert!(told.starts_with("failed"), "{what}: {told}");
    for word in words {
        assert!(told.contains(word), "{what}: {word:?} is not in {told}");
    }
}

/// A report completed, with so many bytes.
#[track_caller]
fn check_whole(what: &str, report: &CallReport, bytes: usize) {
    assert!(told(report).starts_with("completed"), "{what}: {}", told(report));
    assert_eq!(data(report)["bytes"], bytes, "{what}");
}

fn headers(report: &CallReport) -> Vec<String> {
    let headers = data(report)["headers"].as_array().unwrap().iter();
    headers.map(|pair| pair[0].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_coding_is_undone_before_the_guest_reads() {
    let text = "hello ".repeat(100);
    let twice = [gzip(text.as_bytes()), gzip(text.as_bytes())].concat();
    for (coding, bytes, want) in [
        ("gzip", gzip(text.as_bytes()), 600),
        ("x-gzip", gzip(text.as_bytes()), 600),
        ("deflate", zlib(text.as_bytes()), 600),
        ("gzip", twice, 1200),
        ("identity", text.clone().into_bytes(), 600),
        ("gzip", Vec::new(), 0),
    ] {
        let report = fetch(coded(coding, &bytes), "");
        check_whole(coding, &report, want);
        assert!(data(&report)["body"].as_str().unwrap().starts_with(&text[..want.min(600)]));
        let of_the_coding = |name: &String| name == "content-encoding" || name == "content-length";
        let left = headers(&report).iter().any(of_the_coding);
        assert_eq!(left, coding == "identity" || bytes.is_empty(), "{coding}: {report:?}");
    }
}

#[test]
fn a_coding_that_is_broken_or_that_nobody_asked_for_is_an_error() {
    let whole = gzip("hello ".repeat(100).as_bytes());
    let mut broken = whole.clone();
    let middle = broken.len() / 2;
    broken[middle] ^= 0xff;
    for (what, coding, bytes) in [
        ("brotli", "br", whole.clone()),
        ("zstd", "zstd", whole.clone()),
        ("twice", "gzip, gzip", gzip(&whole)),
        ("a lie", "gzip", b"hello".to_vec()),
        ("cut short", "gzip", whole[..whole.len() - 9].to_vec()),
        ("a flipped bit", "gzip", broken),
        ("something behind it", "gzip", [whole.clone(), b"hello".to_vec()].concat()),
        ("raw deflate", "deflate", whole[10..whole.len() - 8].to_vec()),
    ] {
        let report = fetch(coded(coding, &bytes), "");
        check_failed(what, &report, &["HttpResponseContentCoding"]);
    }
}

#[test]
fn the_host_alone_says_which_codings_it_takes() {
    let server = Server::saying("hello");
    let tools = Guarded::by(hostile(&server, ""));
    for (headers, want) in [
        (json!([]), "gzip"),
        (json!([["accept-encoding", "br, zstd"], ["Accept-Encoding", "*"]]), "gzip"),
        (json!([["range", "bytes=0-9"]]), "identity"),
    ] {
        let arguments = json!({ "authority": server.authority(), "headers": headers });
        assert_eq!(data(&tools.call("fetches", &arguments))["status"], 200);
        let seen = server.seen().pop().unwrap();
        let values = seen.headers.iter().filter(|(name, _)| name == "accept-encoding");
        let values: Vec<&str> = values.map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, [want], "{headers}");
    }
}

/// A megabyte of nothing is a kilobyte in gzip.
#[test]
fn h43_a_compression_bomb_ends_at_the_limit_of_what_it_becomes() {
    let bomb = gzip(&vec![0; 1 << 20]);
    assert!(bomb.len() < 2048);
    let report = fetch(coded("gzip", &bomb), "http-body = \"1MiB\"");
    check_whole("just below", &report, 1 << 20);
    let over = gzip(&vec![0; (1 << 20) + 1]);
    let report = fetch(coded("gzip", &over), "http-body = \"1MiB\"");
    check_failed("just above", &report, &["1MiB of one body (limits.http-body)"]);
    let large = gzip(&vec![0; 64 << 20]);
    let report = fetch(coded("gzip", &large), "http-body = \"1MiB\"");
    check_failed("a large one", &report, &["1MiB of one body", "after 1048576 bytes"]);
}

#[test]
fn h43_a_coding_that_is_all_padding_ends_too() {
    let empty = gzip(b"").repeat(100_000);
    let report = fetch(coded("gzip", &empty), "http-body = \"1MiB\"");
    check_failed("empty members", &report, &["1MiB of one body (limits.http-body)"]);
}

#[test]
fn h43_one_body_has_a_limit_in_either_direction() {
    let body = |bytes: usize| Response::ok(&"x".repeat(bytes));
    check_whole("just below", &fetch(body(1024), "http-body = \"1KiB\""), 1024);
    let report = fetch(body(1025), "http-body = \"1KiB\"");
    check_failed("just above", &report, &["HttpResponseBodySize", "1KiB of one body"]);
    let server = Server::saying("hello");
    let tools = Guarded::by(hostile(&server, "limits = { http-body = \"1KiB\" }"));
    let post = |bytes: usize| {
        let body = "x".repeat(bytes);
        let arguments = json!({ "method": "POST", "authority": server.authority(), "body": body });
        tools.call("fetches", &arguments)
    };
    check_whole("sent", &post(1024), 5);
    check_failed("sent", &post(1025), &["HttpRequestBodySize", "1KiB of one body"]);
    let cut_off = |seen: &Request| seen.trailers.is_none() && seen.body.len() <= 1024;
    assert!(server.seen().iter().skip(1).all(cut_off), "{:?}", server.seen());
}

#[test]
fn h43_all_bodies_of_a_call_have_a_limit_together() {
    let answer = Response::ok(&"x".repeat(1000));
    let server = Server::start(move |_| answer.clone());
    let tools = Guarded::by(hostile(&server, "limits = { http-total = \"5000B\" }"));
    let post =
        json!({ "method": "POST", "authority": server.authority(), "body": "y".repeat(1000) });
    // Two posts and an answer to each are 4000 bytes, one more answer is the last that fits.
    let turn = json!({ "requests": [post, post, to(&server), to(&server)] });
    let report = tools.call("fetches_in_turn", &turn);
    let came: Vec<bool> = (0..4).map(|n| data(&report)[n]["bytes"] == 1000).collect();
    assert_eq!(came, [true, true, true, false], "{}", data(&report));
    let report = tools.call("fetches_in_turn", &json!({ "requests": [to(&server)] }));
    assert_eq!(data(&report)[0]["bytes"], 1000, "the next call has its own account");
    let tools = Guarded::by(hostile(&server, "limits = { http-total = \"999B\" }"));
    let report = tools.call("fetches", &to(&server));
    check_failed("total", &report, &["999B of all bodies of a call (limits.http-total)"]);
}

#[test]
fn what_bodies_come_to_is_on_record() {
    let body = gzip(&[b'x'; 3000]);
    let server = Server::start(move |_| coded("gzip", &body));
    let tools = Guarded::by(hostile(&server, ""));
    let post = json!({ "method": "POST", "authority": server.authority(), "body": "four" });
    let report = tools.call("fetches_in_turn", &json!({ "requests": [post, to(&server)] }));
    let requested = |method: &str, sent_bytes| Effect::Requested {
        what: format!("{method} {}/", server.url()),
        status: Some(200),
        sent_bytes,
        received_bytes: 3000,
    };
    assert_eq!(report.effects, [requested("POST", 4), requested("GET", 0)]);
}

fn raw(text: &str) -> Response {
    Response::Bytes(text.replace('\n', "\r\n").into_bytes())
}

#[test]
fn h42_h43_a_response_has_one_framing_and_is_nothing_else() {
    let rows = [
        (
            "two framings",
            "HTTP/1.1 200 OK\ncontent-length: 5\ntransfer-encoding: chunked\n\n0\n\n",
            "HttpProtocolError",
        ),
        (
            "two lengths",
            "HTTP/1.1 200 OK\ncontent-length: 5\ncontent-length: 6\n\nhello!",
            "HttpProtocolError",
        ),
        ("no length", "HTTP/1.1 200 OK\ncontent-length: -5\n\nhello", "HttpProtocolError"),
        ("a sum", "HTTP/1.1 200 OK\ncontent-length: +5\n\nhello", "HttpProtocolError"),
        (
            "chunks in 1.0",
            "HTTP/1.0 200 OK\ntransfer-encoding: chunked\n\n0\n\n",
            "HttpProtocolError",
        ),
        (
            "an upgrade",
            "HTTP/1.1 101 Switching Protocols\nupgrade: websocket\nconnection: upgrade\n\n",
            "HttpUpgradeFailed",
        ),
        ("folded lines", "HTTP/1.1 200 OK\nx-a: b\n c\n\n", "HttpProtocolError"),
        ("no protocol", "SSH-2.0-OpenSSH_9.6\n\n", "HttpProtocolError"),
        ("cut off", "HTTP/1.1 200 OK\ncontent-length: 50\n\nhello", "HttpResponseIncomplete"),
        (
            "cut off in a chunk",
            "HTTP/1.1 200 OK\ntransfer-encoding: chunked\n\n50\nhello",
            "HttpResponseIncomplete",
        ),
        (
            "a long chunk size",
            "HTTP/1.1 200 OK\ntransfer-encoding: chunked\n\nfffffffffffffffff\nx",
            "HttpProtocolError",
        ),
        ("silence", "", "HttpResponseIncomplete"),
    ];
    for (what, text, words) in rows {
        check_failed(what, &fetch(raw(text), ""), &[words]);
    }
}

#[test]
fn h40_headers_between_two_hops_are_not_the_guest_s() {
    let names =
        ["connection", "keep-alive", "proxy-authenticate", "upgrade", "via", "te", "trailer"];
    let pairs: Vec<(&str, &str)> = names.iter().map(|name| (*name, "x")).collect();
    let report = fetch(Response::with(200, &[&pairs[..], &[("x-own", "1")]].concat(), "x"), "");
    let seen = headers(&report);
    assert!(seen.contains(&"x-own".to_owned()), "{seen:?}");
    for name in names {
        assert!(!seen.contains(&name.to_owned()), "{name} in {seen:?}");
    }
}

#[test]
fn h40_trailers_come_in_and_never_go_out() {
    let trailers = [("x-end", "1"), ("host", "evil.example"), ("transfer-encoding", "x")];
    let report = fetch(Response::chunked(&[], &[b"hello"], &trailers), "");
    assert_eq!(data(&report)["trailers"], json!([["x-end", "1"]]), "{report:?}");
    let server = Server::saying("hello");
    let tools = Guarded::by(hostile(&server, ""));
    let arguments = json!({
        "method": "POST", "authority": server.authority(), "body": "x", "trailers": [["x-own", "1"]],
    });
    assert_eq!(data(&tools.call("fetches", &arguments))["status"], 200);
    assert_eq!(server.seen()[0].trailers, Some(Vec::new()));
}

#[test]
fn h43_heads_without_end_are_named_as_what_they_are() {
    let interim = b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n".repeat(100);
    let (bytes, lines) = ("65536 bytes of headers", "1000 header lines");
    for (what, answer, limit) in [
        ("interim responses", Response::Flood(interim), bytes),
        ("one long header", Response::with(200, &[("x-a", &"x".repeat(70_000))], "x"), bytes),
        ("many headers", Response::with(200, &vec![("x-a", "b"); 1001], "x"), lines),
    ] {
        check_failed(what, &fetch(answer, "time = \"20s\""), &[limit, "HeaderSectionSize"]);
    }
    let few = b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n".repeat(3);
    let Response::Bytes(last) = Response::ok("hello") else { unreachable!() };
    check_whole("few of them", &fetch(Response::Bytes([few, last].concat()), ""), 5);
}

#[test]
fn hundreds_of_short_headers_are_not_too_large() {
    for count in [98, 200, 998] {
        let report = fetch(Response::with(200, &vec![("x-a", "b"); count], "x"), "");
        check_whole(&format!("{count} headers"), &report, 1);
        assert_eq!(headers(&report).iter().filter(|name| *name == "x-a").count(), count);
    }
}

#[test]
fn a_coding_of_the_transfer_is_refused_and_not_handed_on() {
    let body = gzip("hello ".repeat(100).as_bytes());
    for coding in ["gzip", "gzip, chunked", "deflate"] {
        let head = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: {coding}\r\n\r\n");
        let chunked =
            [format!("{:x}\r\n", body.len()).as_bytes(), &body, b"\r\n0\r\n\r\n"].concat();
        let sent = if coding.ends_with("chunked") { chunked } else { body.clone() };
        let report = fetch(Response::Bytes([head.into_bytes(), sent].concat()), "");
        check_failed(coding, &report, &["HttpResponseTransferCoding"]);
    }
}

/// Begins an answer and never ends it.
fn stall() -> Response {
    Response::Stall(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello".to_vec())
}

#[test]
fn h43_an_exchange_has_a_time_of_its_own() {
    for (what, answer) in [("no head", Response::Silence), ("no end", stall())] {
        let report = fetch(answer, "http-time = \"1s\", time = \"20s\"");
        check_failed(what, &report, &["1s for one exchange (limits.http-time)", "Timeout"]);
    }
}

#[test]
fn h43_a_guest_may_ask_for_less_patience_and_not_for_more() {
    let server = Server::start(move |_| stall());
    let tools = Guarded::by(hostile(&server, "limits = { http-time = \"2s\", time = \"20s\" }"));
    for (timeout_ns, by_limit) in [(0, false), (1, false), (50_000_000, false), (u64::MAX, true)] {
        let arguments = json!({ "authority": server.authority(), "timeout": timeout_ns });
        let report = tools.call("fetches", &arguments);
        check_failed("own time-out", &report, &["Timeout"]);
        let told = told(&report);
        assert_eq!(told.contains("limits.http-time"), by_limit, "{timeout_ns}: {told}");
        if timeout_ns == 0 {
            assert!(server.seen().is_empty(), "no patience at all, and yet a request left");
        }
    }
}
