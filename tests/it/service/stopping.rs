//! The end of the service: in the middle of a call, of a turn, of a stream.

use std::{thread, time::Duration};

use rustix::process::Signal;
use serde_json::json;

use super::{ServiceProgram, asking_model, home, talking_model, token};
use crate::support::{Home, patience::until_so};

/// A call that takes an hour, allowed.
const SLEEP: &str = "hostile.sleeps_an_hour";

fn sleeping_home(home: Home) -> Home {
    home.policy("[plugin.hostile]\nlimits = { time = \"2h\" }\n")
}

#[test]
fn a_call_that_runs_at_the_end_has_its_record() {
    let model = talking_model();
    let home = sleeping_home(home(&model));
    let (ann, otto) = (token(&home, "ann", "user"), token(&home, "otto", "operator"));
    let service = ServiceProgram::start(&home);
    let session = service.open_session(&ann);
    let mut events = service.stream(&ann, &session, "");
    events.until("retry:");
    let path = format!("/v1/tools/{SLEEP}/call");
    let ServiceProgram { running, address } = service;
    let client = ServiceProgramClient(address);
    thread::scope(|scope| {
        let calling = scope.spawn(|| client.post(&ann, &path, ""));
        let keyed = scope.spawn(|| client.post(&ann, &path, "Idempotency-Key: k\r\n"));
        until_so("two running calls", || {
            client.get(&otto, "/metrics").contains("sallyport_running_calls 2")
                && decisions(&client, &otto) == 2
        });
        // One that begins later and ends shows that both have begun.
        let quick = client.post(&otto, "/v1/tools/clock.get_time/call", "");
        assert!(quick.starts_with("HTTP/1.1 200"), "{quick}");
        let (code, _, stderr) = running.interrupted();
        assert_eq!(code, 130, "{stderr}");
        assert!(!stderr.contains("panicked") && !stderr.contains("missing"), "{stderr}");
        for reply in [calling.join().unwrap(), keyed.join().unwrap()] {
            assert!(reply.starts_with("HTTP/1.1 503"), "{reply}");
            assert!(reply.contains("\"type\":\"stopping\""), "{reply}");
        }
    });
    let rest = events.rest();
    assert!(rest.contains("event: end\ndata: {\"reason\":\"stopping\"}"), "{rest}");
    let args = ["audit", "show", "--kind", "call", "--outcome", "cancelled", "--output", "json"];
    let records = home.run(&args).ended(0);
    assert_eq!(records.stdout.lines().count(), 2, "{records:#?}");
    home.run(&["audit", "verify"]).ended(0);
}

#[test]
fn a_question_that_waits_at_the_end_has_its_record() {
    let model = asking_model();
    let home = home(&model);
    let ann = token(&home, "ann", "user");
    let service = ServiceProgram::start(&home);
    let session = service.open_session(&ann);
    let mut events = service.stream(&ann, &session, "");
    service.say(&ann, &session, "echo");
    events.until("approval-needed");
    let (code, _, stderr) = service.running.stopped_by(Signal::TERM);
    assert_eq!(code, 0, "a manager of services takes any other code for a failure: {stderr}");
    let rest = events.rest();
    assert!(rest.contains("\"reason\":\"stopping\""), "{rest}");
    let decisions = home.run(&["audit", "show", "--kind", "decision", "--output", "json"]).ended(0);
    assert!(decisions.stdout.contains("\"ann\""), "{decisions:#?}");
    let shown = ServiceProgram::start(&home).get(&ann, &format!("/v1/sessions/{session}"));
    assert_eq!((&shown["is_open"], &shown["stored"]["turns"]), (&json!(false), &json!(1)));
}

/// The decisions about the calls on record.
fn decisions(client: &ServiceProgramClient, token: &str) -> usize {
    let page = client.get(token, "/v1/audit?kind=decision&tool=sleeps_an_hour");
    page.matches("\"seq\":").count()
}

/// Asks a service whose process the test has in its own hands.
struct ServiceProgramClient(String);

impl ServiceProgramClient {
    fn send(&self, text: &str) -> String {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(&self.0).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn get(&self, token: &str, path: &str) -> String {
        let (host, token) = (&self.0, super::bearer(token));
        self.send(&format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{token}\r\n"
        ))
    }

    fn post(&self, token: &str, path: &str, lines: &str) -> String {
        let (host, token) = (&self.0, super::bearer(token));
        self.send(&format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{token}{lines}\
             Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
        ))
    }
}
