//! Clients that send nonsense, too much, or too little.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{ALLOW, NET, hostile_home, recorded, stateless::with_meta};
use crate::support::{
    Home, McpClient,
    mcp::{STATELESS, WITH_HANDSHAKE},
    patience::until,
};

/// The error of the only message without an id that the server sent since `seen` messages.
#[track_caller]
fn told(client: &McpClient, seen: usize) -> Value {
    until("an error", || {
        client.messages().into_iter().skip(seen).find(|one| one["error"].is_object())
    })
}

#[test]
fn what_is_no_message_is_told_and_the_next_one_is_answered() {
    let home = hostile_home();
    let mut client = McpClient::greeted(&home, &[], &json!({}));
    let rows: [(&[u8], i64); 12] = [
        (b"garbage", -32700),
        (b"{", -32700),
        (b"\xff\xfe\x00", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":9,", -32700),
        (b"[]", -32600),
        (b"[{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}]", -32600),
        (b"null", -32600),
        (b"{}", -32600),
        (b"{\"jsonrpc\":\"1.0\",\"id\":9,\"method\":\"ping\"}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"no/such\"}", -32601),
        (b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"resources/list\"}", -32601),
        (b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"tools/call\",\"params\":{}}", -32602),
    ];
    for (line, code) in rows {
        let seen = client.messages().len();
        client.write(&[line, b"\n"].concat());
        let line = String::from_utf8_lossy(line).into_owned();
        assert_eq!(told(&client, seen)["error"]["code"], code, "{line}");
        assert_eq!(client.ask("ping", &json!({}))["result"], json!({}), "{line}");
    }
    for ignored in ["notifications/no/such", "notifications/progress", "textDocument/didOpen"] {
        client.notify(ignored, &json!({}));
    }
    client.write(b"\r\n\n  \n");
    client.send(&json!({ "jsonrpc": "2.0", "id": 4711, "result": {} }));
    assert_eq!(client.ask("ping", &json!({}))["result"], json!({}));
    assert_eq!(client.close(), 0);
}

#[test]
fn a_message_of_100_mb_is_refused_without_keeping_it() {
    let home = hostile_home();
    let mut client = McpClient::greeted(&home, &[], &json!({}));
    let seen = client.messages().len();
    let megabyte = vec![b'x'; 1 << 20];
    client.write(b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"");
    for _ in 0..100 {
        client.write(&megabyte);
    }
    client.write(b"\"}\n");
    let error = told(&client, seen);
    assert!(error["error"]["message"].as_str().unwrap().contains("at most"), "{error}");
    assert_eq!(client.ask("ping", &json!({}))["result"], json!({}));
    let status = std::fs::read_to_string(format!("/proc/{}/status", client.pid().as_raw_nonzero()));
    let status = status.unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kib < 100 << 10, "{kib} KiB were in memory");
    assert_eq!(client.close(), 0);
}

#[test]
fn an_id_that_is_in_use_is_refused_and_its_first_request_goes_on() {
    let home = Home::new()
        .guest("hostile", NET)
        .policy(format!("[plugin.hostile]\nlimits = {{ time = \"2s\" }}\n{ALLOW}"));
    let mut client = McpClient::greeted(&home, &[], &json!({}));
    let slow = json!({ "jsonrpc": "2.0", "id": "a", "method": "tools/call",
        "params": { "name": "hostile__loops_forever", "arguments": {} } });
    client.send(&slow);
    client.send(&slow);
    let refused = client.message(|one| one["id"] == "a");
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    let ended = client.message(|one| one["id"] == "a" && one["result"].is_object());
    assert_eq!(ended["result"]["_meta"]["sallyport/reason"]["kind"], "timed-out", "{ended}");
    // An id may come again once it has its answer.
    client.send(&json!({ "jsonrpc": "2.0", "id": "a", "method": "tools/list" }));
    client.message(|one| one["id"] == "a" && one["result"]["tools"].is_array());
    assert_eq!(client.close(), 0);
    assert_eq!(recorded(&home).len(), 1);
}

#[test]
fn a_first_request_that_begins_nothing_ended_the_connection_without_a_word() {
    let home = hostile_home();
    let of_version = |version: &str| {
        let mut params = with_meta(json!({}), &json!({}));
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(version);
        params
    };
    for (method, params) in [
        ("ping", json!({})),
        ("initialize", json!({})),
        ("tools/list", json!({})),
        ("server/discover", json!({})),
        ("tools/list", of_version("1999-01-01")),
        ("server/discover", of_version(STATELESS)),
    ] {
        let mut client = McpClient::start(&home, &[]);
        client.ask(method, &params);
        let seen = client.messages().len();
        client.notify("notifications/initialized", &json!({}));
        assert_eq!(told(&client, seen)["error"]["code"], -32600, "{method} {params}");
        let about = client.greet(WITH_HANDSHAKE, &json!({}));
        assert_eq!(about["protocolVersion"], WITH_HANDSHAKE, "{method} {params}: {about}");
        assert_eq!(client.close(), 0);
    }
}

#[test]
fn a_client_may_leave_at_any_moment() {
    let home = hostile_home();
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "t", "version": "1" } } });
    let hello = format!("{hello}\n");
    let rows = [
        String::new(),
        "\n".to_owned(),
        hello[..40].to_owned(),
        "garbage\n".to_owned(),
        format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}}\n{hello}"),
        hello.clone(),
        format!("{hello}{{\"jsonrpc\":\"2.0\",\"id\":2,"),
    ];
    for input in rows {
        let mut client = McpClient::start(&home, &[]);
        client.write(input.as_bytes());
        assert_eq!(client.close(), 0, "{input:?}: {}", client.log());
        assert!(!client.log().contains("panicked"), "{input:?}: {}", client.log());
    }
}

#[test]
fn a_client_that_never_reads_is_waited_for_and_harms_nobody() {
    let home = hostile_home();
    // Nobody reads its standard output here.
    let mut child = home.start(&["mcp"]);
    let input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        use std::io::Write;
        let mut input = input;
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "t", "version": "1" } } });
        let mut sent = writeln!(input, "{hello}").is_ok();
        let mut id = 1_u64;
        // It ends when the program does, because that closes the pipe.
        while sent && id < 2_000_000 {
            id += 1;
            let list = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" });
            sent = writeln!(input, "{list}").is_ok();
        }
        id
    });
    // The program stops to read when nobody reads its answers: no bytes arrive for a while.
    let read = || {
        let io = std::fs::read_to_string(format!("/proc/{}/io", child.id())).unwrap_or_default();
        io.lines().find_map(|line| line.strip_prefix("rchar: ")).map(str::to_owned)
    };
    let mut before = None;
    until("it stops to read", || {
        std::thread::sleep(Duration::from_millis(300));
        let now = read();
        let has_stopped = now.is_some() && now == before;
        before = now;
        has_stopped.then_some(())
    });
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    let status = crate::support::patience::end_of(&mut child, String::new);
    assert_eq!(status.code(), Some(0));
    assert!(writer.join().unwrap() < 2_000_000, "the client had to wait");
    home.run(&["audit", "verify"]).ended(0);
}
