//! Keys of requests that are repeated: each is done once, whatever kills the program in between.

use std::{
    io::{Read, Write},
    thread,
};

use serde_json::json;

use super::{CLOCK, ServiceProgram, bearer, home, talking_model, token};
use crate::support::patience::until_so;

/// A call that takes an hour, allowed.
const SLEEP: &str = "hostile.sleeps_an_hour";

const KEY: &str = "Idempotency-Key: k\r\n";

#[test]
fn a_request_that_a_kill_cut_off_is_told_and_not_repeated() {
    let model = talking_model();
    let home = home(&model).policy("[plugin.hostile]\nlimits = { time = \"2h\" }\n");
    let (ann, ben) = (token(&home, "ann", "user"), token(&home, "ben", "user"));
    let otto = token(&home, "otto", "operator");
    let service = ServiceProgram::start(&home);
    let path = format!("/v1/tools/{SLEEP}/call");
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{}{KEY}\
         Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}",
        service.address,
        bearer(&ann)
    );
    let mut stream = service.connect();
    stream.write_all(head.as_bytes()).unwrap();
    let waiting = thread::spawn(move || {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        rest
    });
    let decisions = |service: &ServiceProgram| {
        let page = service.get(&otto, "/v1/audit?kind=decision&tool=sleeps_an_hour");
        page["records"].as_array().unwrap().len()
    };
    until_so("the call runs", || decisions(&service) == 1);
    drop(service);
    assert!(waiting.join().unwrap().is_empty(), "the program was killed");

    let service = ServiceProgram::start(&home);
    let repeat = |token: &str, body: &str| {
        service.request("POST", &path, &format!("{}{KEY}", bearer(token)), body)
    };
    for _ in 0..2 {
        assert_eq!(repeat(&ann, "{}").has(409).problem(), "outcome-unknown");
    }
    let other = repeat(&ann, r#"{"arguments": {"a": 1}}"#).has(422);
    assert_eq!(other.problem(), "key-reused");
    assert_eq!(decisions(&service), 1, "it is not made again");
    // The key of another user is another key.
    let clock = format!("/v1/tools/{CLOCK}/call");
    service.request("POST", &clock, &format!("{}{KEY}", bearer(&ben)), "{}").has(200);
}

#[test]
fn a_reply_is_the_same_after_a_restart_and_work_that_was_not_done_is_done_then() {
    let model = talking_model();
    let home = home(&model);
    let ann = token(&home, "ann", "user");
    let service = ServiceProgram::start(&home);
    let clock = format!("/v1/tools/{CLOCK}/call");
    let lines = |key: &str| format!("{}Idempotency-Key: {key}\r\n", bearer(&ann));
    let first = service.request("POST", &clock, &lines("a"), "{}").has(200);
    let unfit = json!({ "arguments": { "timezone": 5 } }).to_string();
    let refused = service.request("POST", &clock, &lines("b"), &unfit).has(400);
    assert_eq!(refused.problem(), "invalid-arguments");
    let opened = service.request("POST", "/v1/sessions", &lines("c"), "{}").has(201);
    drop(service);

    let service = ServiceProgram::start(&home);
    let again = service.request("POST", &clock, &lines("a"), "{}").has(200);
    assert_eq!(again.body, first.body);
    service.request("POST", &clock, &lines("b"), "{}").has(200);
    let reopened = service.request("POST", "/v1/sessions", &lines("c"), "{}").has(201);
    assert_eq!(reopened.body, opened.body);
    let calls = service.get(&ann, "/v1/audit?kind=call");
    assert_eq!(calls["records"].as_array().unwrap().len(), 2, "{calls}");
}
