//! Servers at an address: granted, signed in to, and bounded however they behave.

use std::{fs, sync::Mutex};

use serde_json::{Value, json};

use super::ends;
use crate::{
    mcp::http::HttpServer,
    support::{Home, Response, Server, server::Request},
};

/// The key of the tests.
const KEY: &str = "0123456789abcdef0123";

/// The grant of a server, without a question for its calls.
pub(super) fn granted(url: &str) -> String {
    let allow = json!(format!("DELETE,GET,POST {url}"));
    format!(
        "[plugin.fake]\nnet = [{{ allow = {allow}, to-private = true }}]\n\n\
         [[rule]]\ntool = \"fake.*\"\ndecision = \"allow\"\n"
    )
}

/// A home with a server at this address.
pub(super) fn home(url: &str, more: &str) -> Home {
    let config = format!("[mcp.fake]\nurl = {}\n{more}\n", json!(url));
    Home::with_own_cache().config(config).policy(granted(url))
}

/// An answer to a message of the protocol that has one tool, and says how often it was called.
pub(super) fn answer(request: &Request) -> Response {
    let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
    let result = match message["method"].as_str().unwrap_or_default() {
        "server/discover" => return error(&message, -32601),
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "fake", "version": "1" },
        }),
        "tools/list" => json!({ "tools": [{
            "name": "echo", "description": "Says it again.", "inputSchema": { "type": "object" },
        }] }),
        "tools/call" => json!({ "content": [{ "type": "text", "text": "it answered" }] }),
        _ => return head("202 Accepted", ""),
    };
    let reply = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
    json_reply(&reply)
}

fn error(message: &Value, code: i32) -> Response {
    let error = json!({ "code": code, "message": "no such method" });
    json_reply(&json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }))
}

fn json_reply(reply: &Value) -> Response {
    let body = reply.to_string();
    let length = body.len();
    let head = format!("Content-Type: application/json\r\nContent-Length: {length}\r\n");
    reply_bytes("200 OK", &head, &body)
}

fn head(status: &str, lines: &str) -> Response {
    reply_bytes(status, &format!("Content-Length: 0\r\n{lines}"), "")
}

fn reply_bytes(status: &str, lines: &str, body: &str) -> Response {
    let text = format!("HTTP/1.1 {status}\r\nConnection: close\r\n{lines}\r\n{body}");
    Response::Bytes(text.into_bytes())
}

#[test]
fn tools_of_another_host_are_used_over_http() {
    let theirs = Home::new()
        .plugins(&["clock"])
        .policy("[[rule]]\ntool = \"*\"\ndecision = \"allow\"\n")
        .user_file("token", KEY);
    let file = theirs.user_path("token").display().to_string();
    let server = HttpServer::start(&theirs, &["--token-file", &file]);
    let url = format!("http://{}/mcp", server.address);
    let ours = Home::with_own_cache().config("").policy("").env("MCP_KEY", KEY);
    let header = "Authorization: Bearer ${MCP_KEY}";
    let add = ["mcp", "add", "fake", "--url", &url, "--header", header, "--yes"];
    let added = ours.run(&add).ended(0);
    added.answers(&["[mcp.fake]", "DELETE,GET,POST http://127.0.0.1", "to-private = true"]);
    let listed = ours.run(&["mcp", "list"]).ended(0);
    listed.answers(&["ready", &url]).hides(&[KEY]);
    ours.run(&["config", "show"]).ended(0).hides(&[KEY]);
    let policy = fs::read_to_string(ours.path("policy.toml")).unwrap();
    let rule = "\n[[rule]]\ntool = \"fake.*\"\ndecision = \"allow\"\n";
    let ours = ours.policy(policy + rule);
    let call = ["call", "fake.clock__get_time", r#"{"timezone":"Asia/Tokyo"}"#];
    ours.run(&call).ended(0).answers(&["Asia/Tokyo"]);
    // Without the key, the reason is the sign-in.
    let config = format!("[mcp.fake]\nurl = {}\n", json!(url));
    let ours = ours.config(config);
    ours.run(&["mcp", "check", "fake"]).ended(9).remarks(&["it requires a sign-in"]);
}

#[test]
fn without_a_grant_nothing_is_sent() {
    let server = Server::start(answer);
    let url = server.url() + "/mcp";
    let public = format!("[plugin.fake]\nnet = [{}]\n", json!(format!("DELETE,GET,POST {url}")));
    let posts = format!("[plugin.fake]\nnet = [{}]\n", json!(format!("POST {url}")));
    let asks = granted(&url).replace("to-private", "decision = \"ask\", to-private");
    // `--requested` changed nothing if the address is named without `to-private`.
    let private = format!("policy grant fake --net 'DELETE,GET,POST {url}' --to-private");
    let rows = [
        (String::new(), "policy grant fake --requested"),
        (public.clone(), &private),
        (posts, "policy grant fake --requested"),
        (asks, "asks before each request"),
    ];
    for (policy, words) in rows {
        let home = home(&url, "").policy(&policy);
        home.run(&["mcp", "check", "fake"]).ended(9).remarks(&[words]);
    }
    assert!(server.seen().is_empty(), "{:?}", server.seen());
    let named = home(&url, "").policy(public);
    let requests = format!("DELETE,GET,POST {url}");
    let grant = ["policy", "grant", "fake", "--net", &requests, "--to-private", "--yes"];
    named.run(&grant).ended(0);
    named.run(&["mcp", "check", "fake"]).ended(0).answers(&["fake.echo"]);
    let far = "https://mcp.example/mcp";
    let proxy = "\n[proxy]\nhttps = \"http://127.0.0.1:1\"\n";
    let proxied = home(far, "").policy(granted(far).replace(", to-private = true", "") + proxy);
    proxied.run(&["mcp", "check", "fake"]).ended(9).remarks(&["through a proxy"]);
    let home = home(&url, "").policy("");
    home.run(&["policy", "grant", "fake", "--requested", "--yes"]).ended(0);
    home.run(&["mcp", "check", "fake"]).ended(0).answers(&["fake.echo"]);
}

/// The grant is read again for each call, so a connection does not outlive it.
#[test]
fn a_revoked_grant_ends_the_connection() {
    let server = Server::start(answer);
    let home = home(&(server.url() + "/mcp"), "");
    ends(&home, "completed", &["it answered"]);
    let home = home.policy("[[rule]]\ntool = \"fake.*\"\ndecision = \"allow\"\n");
    let asked = server.seen().len();
    ends(&home, "denied", &["127.0.0.1"]);
    assert_eq!(server.seen().len(), asked);
}

#[test]
fn a_server_that_misbehaves_is_told_and_bounded() {
    let flood = b"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n".repeat(1000);
    let long = format!("\"{}\"", "x".repeat(9 << 20));
    let html = "<html>Please log in to https://portal.example</html>";
    let page = "Content-Type: text/html\r\n";
    let rows = [
        (head("401 Unauthorized", "WWW-Authenticate: Bearer\r\n"), "it requires a sign-in"),
        (head("302 Found", "Location: http://127.0.0.1:1/\r\n"), "HTTP 302 Found"),
        (head("503 Service Unavailable", "Retry-After: 7\r\n"), "it answered 503; try again in 7"),
        (head("404 Not Found", ""), "404"),
        (reply_bytes("200 OK", page, html), "web page"),
        (reply_bytes("200 OK", "Content-Type: application/json\r\n", "{}"), "cannot be used"),
        (reply_bytes("200 OK", "Content-Type: application/json\r\n", &long), "maximum size"),
        (Response::Silence, "did not answer within 1s"),
        (
            Response::Stall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n".to_vec()),
            "did not answer within 1s",
        ),
        (Response::Flood(flood), "cannot be"),
    ];
    for (reply, words) in rows {
        let server = Server::start(move |_| reply.clone());
        let home = home(&(server.url() + "/mcp"), "start_time = \"1s\"");
        home.run(&["mcp", "check", "fake"]).ended(9).remarks(&["fake has no tools", words]);
    }
    let home = home("http://127.0.0.1:1/mcp", "");
    home.run(&["mcp", "check", "fake"]).ended(9).remarks(&["it cannot be reached", "refused"]);
}

/// A name that leads to this machine is not a way around the policy.
#[test]
fn a_public_name_does_not_reach_this_machine() {
    let server = Server::start(answer);
    let url = format!("http://localhost:{}/mcp", server.port);
    let policy = granted(&url).replace(", to-private = true", "");
    let home = home(&url, "").policy(policy);
    home.run(&["mcp", "check", "fake"]).ended(9);
    assert!(server.seen().is_empty());
}

#[test]
fn an_address_that_cannot_be_one_is_refused() {
    let rows = [
        ("url = 'x'", "is not an address of a server"),
        ("url = 'ftp://a.example/'", "is not an address of a server"),
        ("url = 'https://user:pass@a.example/'", "is not an address of a server"),
        ("url = 'https://a.example/'\nheaders = { Host = 'b' }", "\"Host\" cannot be set"),
        ("url = 'https://a.example/'\nheaders = { Mcp-Method = 'b' }", "cannot be set"),
        ("url = 'https://a.example/'\nheaders = { 'a b' = 'b' }", "\"a b\" cannot be set"),
        ("url = 'http://a.example/'\nheaders = { A = 'b' }", "sent unencrypted"),
        ("url = 'https://a.example/'\nenv = { A = 'b' }", "\"env\" is not possible next to"),
        ("url = 'https://a.example/'\ncommand = ['true']", "\"url\" is not possible next to"),
        ("command = ['true']\nheaders = { A = 'b' }", "\"headers\" is not possible next to"),
        ("start_time = '1s'", "\"command\" or \"url\" is missing"),
    ];
    for (config, words) in rows {
        let home = Home::new().config(format!("[mcp.fake]\n{config}\n"));
        let ran = home.run(&["plugin", "list"]);
        assert!(ran.stderr.contains(words) || ran.stdout.contains(words), "{config}: {ran:?}");
        assert!(!format!("{ran:?}").contains("pass@"), "{ran:?}");
    }
    let home = Home::new().config("").policy("");
    let add = |rest: &[&str]| home.run(&[&["mcp", "add", "fake", "--yes"], rest].concat());
    add(&["--url", "https://a.example/", "--", "true"]).ended(2).remarks(&["--url"]);
    add(&["--header", "A: b", "--", "true"]).ended(2).remarks(&["--url"]);
    add(&["--url", "https://a.example/", "--header", "x"]).ended(2).remarks(&["NAME: VALUE"]);
    add(&["--url", "nowhere"]).ended(2).remarks(&["is not an address of a server"]);
}

/// An entry that could never work was written, and refused the corrected one.
#[test]
fn a_server_that_can_never_work_was_saved() {
    let home = Home::new().config("").policy("").env("SPLIT_KEY", "a\r\nb");
    let add = |rest: &[&str]| home.run(&[&["mcp", "add", "fake", "--yes"], rest].concat());
    let url = |url, header| ["--url", url, "--header", header];
    let (open, sealed) = ("http://a.example/mcp", "https://a.example/mcp");
    let rows: [(&[&str], &str); 7] = [
        (&["--", "no-such-program"], "there is no program no-such-program"),
        (&["--", "/etc/passwd"], "/etc/passwd is not executable"),
        (&["--", ""], "its command is empty"),
        (&url(open, "Authorization: Bearer abcdefghijk"), "would be sent unencrypted"),
        (&url(sealed, "X-Key: a\r\nb"), "the header \"X-Key\" cannot be set"),
        (&url(sealed, "X-Key: ${SPLIT_KEY}"), "the header \"X-Key\" cannot be set"),
        (&url(sealed, "Accept: text/html"), "the header \"Accept\" cannot be set"),
    ];
    for (rest, words) in rows {
        add(rest).ended(2).remarks(&[words]).hides(&["abcdefghijk"]);
        for file in ["sallyport.toml", "policy.toml"] {
            assert_eq!(fs::read_to_string(home.path(file)).unwrap(), "", "{rest:?}: {file}");
        }
    }
}

#[test]
fn the_diff_of_an_added_server_showed_the_key_that_was_typed() {
    let home = Home::new().config("").policy("").env("TRACKER_KEY", "of the environment");
    let add = |header: &str| {
        home.run(&["mcp", "add", "fake", "--url", "https://a.example/", "--header", header])
    };
    let typed = add(&format!("Authorization: Bearer {KEY}")).ended(6);
    typed.hides(&[KEY]).answers(&["[secret mcp.fake.headers.Authorization]"]);
    add("Authorization: Bearer ${TRACKER_KEY}").answers(&["Bearer ${TRACKER_KEY}"]);
}

/// A server of the first revisions that answers any unknown method with an empty result was not used.
#[test]
fn an_empty_answer_to_an_unknown_method_ended_the_connection() {
    let server = Server::start(|request| {
        let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
        match message["method"].as_str() {
            Some("server/discover") => json_reply(&json!({
                "jsonrpc": "2.0", "id": message["id"], "result": {},
            })),
            _ => answer(request),
        }
    });
    let home = home(&(server.url() + "/mcp"), "");
    home.run(&["mcp", "check", "fake"]).ended(0).answers(&["fake.echo"]);
    ends(&home, "completed", &["it answered"]);
}

/// The stream of an answer may end before the answer, which then comes on another stream.
#[test]
fn an_answer_is_fetched_after_its_stream_has_ended() {
    let id = Mutex::new(Value::Null);
    let server = Server::start(move |request| {
        let stream =
            |event: &str| reply_bytes("200 OK", "Content-Type: text/event-stream\r\n", event);
        let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
        if message["method"] == "tools/call" {
            *id.lock().unwrap() = message["id"].clone();
            return stream("id: one\nretry: 20\ndata: \n\n");
        }
        match (request.method.as_str(), request.header("last-event-id")) {
            ("GET", Some("one")) => {
                let content = json!([{ "type": "text", "text": "it came later" }]);
                let id = id.lock().unwrap().take();
                let result = json!({ "content": content });
                let reply = json!({ "jsonrpc": "2.0", "id": id, "result": result });
                stream(&format!("id: two\ndata: {reply}\n\n"))
            }
            ("GET", _) => head("405 Method Not Allowed", ""),
            _ => answer(request),
        }
    });
    let home = home(&(server.url() + "/mcp"), "");
    ends(&home, "completed", &["it came later"]);
}
