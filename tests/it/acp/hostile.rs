//! Clients that send nonsense, too much, or too little.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{asking_home, echo, home};
use crate::support::{
    AcpClient, OpenAi, Reply,
    patience::{end_of, until},
};

/// The first error since `seen` messages.
#[track_caller]
fn told(client: &AcpClient, seen: usize) -> Value {
    until("an error", || {
        client.messages().into_iter().skip(seen).find(|one| one["error"].is_object())
    })
}

/// Asks for something harmless, and checks the answer.
#[track_caller]
fn still_answers(client: &mut AcpClient) {
    let answer = client.ask("session/list", &json!({}));
    assert!(answer["result"]["sessions"].is_array(), "{answer}");
}

#[test]
fn what_is_no_message_is_told_and_the_next_one_is_answered() {
    let home = home(&OpenAi::start(vec![Reply::Text("hi")]));
    let mut client = AcpClient::greeted(&home);
    let rows: [(&[u8], i64); 13] = [
        (b"garbage", -32700),
        (b"{", -32700),
        (b"\xff\xfe\x00", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":9,", -32700),
        (b"[]", -32600),
        (b"[{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"session/list\"}]", -32600),
        (b"null", -32600),
        (b"{}", -32600),
        (b"{\"jsonrpc\":\"1.0\",\"id\":9,\"method\":\"session/list\"}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"no/such\"}", -32601),
        (b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"session/fork\"}", -32601),
        (b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"session/prompt\",\"params\":{}}", -32602),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"session/prompt\",\"params\":{\"sessionId\":\"x\",\"prompt\":[]}}",
            -32002,
        ),
    ];
    for (line, code) in rows {
        let seen = client.messages().len();
        client.write(&[line, b"\n"].concat());
        let line = String::from_utf8_lossy(line).into_owned();
        assert_eq!(told(&client, seen)["error"]["code"], code, "{line}");
        still_answers(&mut client);
    }
    for ignored in ["no/such", "session/cancel", "$/cancel_request", "session/update"] {
        client.notify(ignored, &json!({}));
    }
    client.write(b"\r\n\n  \n");
    still_answers(&mut client);
    assert_eq!(client.close(), 0);
}

#[test]
fn a_message_of_100_mb_is_refused_without_keeping_it() {
    let home = home(&OpenAi::start(vec![Reply::Text("hi")]));
    let mut client = AcpClient::greeted(&home);
    let seen = client.messages().len();
    let megabyte = vec![b'x'; 1 << 20];
    client.write(b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"");
    for _ in 0..100 {
        client.write(&megabyte);
    }
    client.write(b"\"}\n");
    let error = told(&client, seen);
    assert!(error["error"]["message"].as_str().unwrap().contains("at most"), "{error}");
    still_answers(&mut client);
    let status = std::fs::read_to_string(format!("/proc/{}/status", client.pid().as_raw_nonzero()));
    let status = status.unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kib < 120 << 10, "{kib} KiB were in memory");
    assert_eq!(client.close(), 0);
}

#[test]
fn an_id_that_is_in_use_is_refused_and_its_first_request_goes_on() {
    let model = OpenAi::start(vec![Reply::Stalls("I begin"), Reply::Text("done")]);
    let home = home(&model);
    let mut client = AcpClient::greeted(&home);
    let session = client.new_session("/");
    let prompt = json!({ "jsonrpc": "2.0", "id": "a", "method": "session/prompt", "params": {
        "sessionId": session, "prompt": [{ "type": "text", "text": "go" }] } });
    client.send(&prompt);
    client.send(&prompt);
    let refused = client.message(|one| one["id"] == "a");
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    client.cancel_turn(&session);
    let ended = client.message(|one| one["id"] == "a" && one["result"].is_object());
    assert_eq!(ended["result"]["stopReason"], "cancelled", "{ended}");
    // An id may come again once it has its answer.
    client.send(&json!({ "jsonrpc": "2.0", "id": "a", "method": "session/list" }));
    client.message(|one| one["id"] == "a" && one["result"]["sessions"].is_array());
    assert_eq!(client.close(), 0);
}

#[test]
fn a_client_may_leave_at_any_moment() {
    let model = OpenAi::start(vec![Reply::Text("hi")]);
    let home = home(&model);
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": 1 } });
    let hello = format!("{hello}\n");
    let open = json!({ "jsonrpc": "2.0", "id": 2, "method": "session/new",
        "params": { "cwd": "/", "mcpServers": [] } });
    let rows = [
        String::new(),
        "\n".to_owned(),
        hello[..20].to_owned(),
        "garbage\n".to_owned(),
        hello.clone(),
        format!("{hello}{open}\n"),
        format!("{open}\n"),
        format!("{hello}{{\"jsonrpc\":\"2.0\",\"id\":2,"),
    ];
    for input in rows {
        let mut client = AcpClient::start(&home);
        client.write(input.as_bytes());
        assert_eq!(client.close(), 0, "{input:?}: {}", client.log());
        assert!(!client.log().contains("panicked"), "{input:?}: {}", client.log());
    }
}

#[test]
fn a_client_that_leaves_in_a_turn_cancels_it_and_the_call_is_on_record() {
    for way in ["close", "terminate", "close the session and terminate"] {
        let model = OpenAi::start(vec![echo("c1", "x"), Reply::Text("done")]);
        let home = asking_home(&model);
        let mut client = AcpClient::greeted(&home);
        let session = client.new_session("/");
        client.prompt(&session, "go");
        client.message(|one| {
            one["method"] == "session/request_permission" || one["result"]["stopReason"].is_string()
        });
        let code = match way {
            "close" => client.close(),
            _ => {
                if way != "terminate" {
                    client.request("session/close", &json!({ "sessionId": session }));
                    // The answer to what comes after it shows that the close has begun.
                    client.ask("session/list", &json!({}));
                }
                client.signal(Signal::TERM);
                client.ends()
            }
        };
        assert_eq!(code, 0, "{way}: {}", client.log());
        home.run(&["audit", "verify"]).ended(0);
        let shown = home.run(&["session", "list"]).ended(0);
        shown.answers(&["go"]);
    }
}

#[test]
fn a_client_that_never_reads_is_waited_for_and_harms_nobody() {
    let home = home(&OpenAi::start(vec![Reply::Text("hi")]));
    // Nobody reads its standard output here.
    let mut child = home.start(&["acp"]);
    let input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        use std::io::Write;
        let mut input = input;
        let mut id = 0_u64;
        let mut sent = true;
        // It ends when the program does, because that closes the pipe.
        while sent && id < 2_000_000 {
            id += 1;
            let list = json!({ "jsonrpc": "2.0", "id": id, "method": "session/list" });
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
    assert_eq!(end_of(&mut child, String::new).code(), Some(0));
    assert!(writer.join().unwrap() < 2_000_000, "the client had to wait");
    home.run(&["audit", "verify"]).ended(0);
}
