//! Many servers at once: whatever ends, no process and no descriptor of them is left.

use std::fs;

use rustix::process::Signal;
use serde_json::json;

use super::{GRANTED, home, hostile::alive};
use crate::support::{Home, McpClient, patience::until_so};

/// Servers of one host; there are four hosts. `SALLYPORT_SERVERS=75` makes 300 of them.
const SERVERS: usize = 4;

/// Calls at the same time, fewer than a host takes.
const CALLS: usize = 16;

fn server_count() -> usize {
    std::env::var("SALLYPORT_SERVERS").map_or(SERVERS, |count| count.parse().unwrap())
}

/// A home with many servers that behave in this way, and the variable that their processes have.
fn crowd(mode: &str) -> (Home, String) {
    let home = home(mode, "");
    let config = fs::read_to_string(home.path("sallyport.toml")).unwrap();
    let folder = home.folder.path().file_name().unwrap().to_string_lossy().replace('.', "_");
    let mark = format!("CROWD_{folder}");
    let (mut servers, mut policy) = (String::new(), String::new());
    for number in 0..server_count() {
        let name = format!("fake{number}");
        servers += &config.replace("[mcp.fake]", &format!("[mcp.{name}]"));
        servers += &format!("env = {{ {mark} = \"1\" }}\n");
        policy += &GRANTED.replace("fake", &name);
    }
    (home.config(servers).policy(policy), mark)
}

/// Calls every server once.
#[track_caller]
fn call_all(client: &mut McpClient, is_error: bool) {
    let names: Vec<String> =
        (0..server_count()).map(|number| format!("fake{number}__echo")).collect();
    for some in names.chunks(CALLS) {
        let call = |name: &String| json!({ "name": name, "arguments": {} });
        let calls: Vec<u64> =
            some.iter().map(|name| client.request("tools/call", &call(name))).collect();
        for id in calls {
            let answer = client.answer(id);
            assert_eq!(answer["result"]["isError"], is_error, "{answer}");
        }
    }
}

#[test]
fn a_crowd_of_servers_ends_with_its_host() {
    for (mode, signal) in
        [("leaves", None), ("stays", Some(Signal::TERM)), ("stays", Some(Signal::KILL))]
    {
        let (home, mark) = crowd(mode);
        let mut client = McpClient::greeted(&home, &[], &json!({}));
        call_all(&mut client, false);
        assert!(alive(&mark) >= server_count(), "{mode}");
        match signal {
            None => assert_eq!(client.close(), 0),
            Some(signal) => {
                client.signal(signal);
                client.ends();
            }
        }
        until_so("the end of all processes", || alive(&mark) == 0);
    }
}

#[test]
fn a_host_keeps_no_descriptor_of_servers_that_died() {
    let (home, mark) = crowd("dies");
    let mut client = McpClient::greeted(&home, &[], &json!({}));
    let files = format!("/proc/{}/fd", client.pid().as_raw_nonzero());
    let descriptors = || fs::read_dir(&files).unwrap().count();
    call_all(&mut client, true);
    until_so("the end of all processes", || alive(&mark) == 0);
    let after_one_round = descriptors();
    // A server that was just ended is not started again for some seconds, so the calls fail at once
    // or start it anew; either way nothing piles up.
    for _ in 0..3 {
        call_all(&mut client, true);
    }
    until_so("the end of all processes", || alive(&mark) == 0);
    until_so("closed descriptors", || descriptors() <= after_one_round);
    assert_eq!(client.close(), 0);
}
