//! Sessions over HTTP: a conversation, its events, and streams that begin again.

use serde_json::{Value, json};

use super::{CLOCK, ServiceProgram, home, talking_model, token};

#[test]
fn a_conversation_is_the_events_of_its_session() {
    let model = talking_model();
    let home = home(&model);
    let ann = token(&home, "ann", "user");
    let service = ServiceProgram::start(&home);
    let session = service.open_session(&ann);
    let path = format!("/v1/sessions/{session}");
    let listed = service.get(&ann, "/v1/sessions");
    assert_eq!(listed["sessions"], json!([{ "id": session, "is_open": true }]), "no turn yet");
    let mut events = service.stream(&ann, &session, "");
    service.say(&ann, &session, "hello");
    let text = events.until("turn-ended").to_owned();
    let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part} in {text}"));
    assert!(place("turn-started") < place("Good day."), "{text}");
    let view = service.get(&ann, &path);
    assert_eq!((&view["is_open"], &view["stored"]["turns"]), (&json!(true), &json!(1)), "{view}");
    assert!(view["stored"]["folder"].is_null(), "the folders of the host are its own: {view}");
    let last = view["last_event_id"].as_str().unwrap();
    assert!(events.ids().contains(&last.to_owned()) || text.contains("turn-ended"), "{last}");
    let exported = service.get(&ann, &format!("{path}/export"));
    assert_eq!(exported["turns"][0]["input"]["text"], "hello", "{exported}");
    let markdown = service.ask(&ann, "GET", &format!("{path}/export?format=markdown"), "").has(200);
    assert!(markdown.body.contains("Good day."), "{markdown:#?}");
    let usage = service.get(&ann, "/v1/usage");
    assert_eq!((&usage["user"], &usage["turns"]), (&json!("ann"), &json!(1)), "{usage}");
    service.post(&ann, &format!("{path}/close"), &json!({})).has(204);
    assert!(events.rest().contains("event: end\ndata: {\"reason\":\"closed\"}"));
    assert_eq!(service.get(&ann, &path)["is_open"], false);
    let late = service.post(&ann, &format!("{path}/commands"), &json!({ "type": "undo" }));
    assert_eq!(late.has(409).problem(), "session-not-open");
}

#[test]
fn a_stream_goes_on_where_it_broke_off() {
    let model = talking_model();
    let home = home(&model);
    let ann = token(&home, "ann", "user");
    let service = ServiceProgram::start(&home);
    let session = service.open_session(&ann);
    service.say(&ann, &session, "hello");
    let mut whole = service.stream(&ann, &session, "");
    whole.until("\"type\":\"turn-ended\"");
    whole.until("\"state\":\"ready\"");
    let ids = whole.ids();
    assert!(ids.len() > 4, "{ids:?}");
    let mut rest = service.stream(&ann, &session, &format!("Last-Event-ID: {}\r\n", ids[1]));
    rest.until(&format!("id: {}", ids.last().unwrap()));
    assert_eq!(rest.ids()[0], ids[2], "the one after the last");
    let (run, _) = ids[0].split_once('-').unwrap();
    let other_run = if run == "00000000" { "11111111" } else { "00000000" };
    let rows = [
        (format!("{run}-999999"), 400, "event-from-the-future"),
        (format!("{run}-18446744073709551615"), 400, "bad-request"),
        (format!("{other_run}-1"), 410, "events-forgotten"),
        ("7".to_owned(), 400, "bad-request"),
        (format!("{run}--1"), 400, "bad-request"),
        (String::new(), 400, "bad-request"),
    ];
    for (id, status, kind) in rows {
        let head = super::bearer(&ann) + &format!("Last-Event-ID: {id}\r\n");
        let path = format!("/v1/sessions/{session}/events");
        let reply = service.request("GET", &path, &head, "").has(status);
        assert_eq!(reply.problem(), kind, "{id}");
    }
    let path = format!("/v1/sessions/{session}/events?after={other_run}-1");
    service.ask(&ann, "GET", &path, "").has(410);
    let unknown = service.ask(&ann, "GET", &format!("{path}&since=1"), "");
    assert_eq!(unknown.has(400).problem(), "bad-request");
}

#[test]
fn a_session_is_resumed_in_another_run_of_the_service() {
    let model = talking_model();
    let home = home(&model);
    let ann = token(&home, "ann", "user");
    let service = ServiceProgram::start(&home);
    let session = service.open_session(&ann);
    let mut events = service.stream(&ann, &session, "");
    service.say(&ann, &session, "hello");
    events.until("turn-ended");
    let last = events.ids().pop().unwrap();
    let (code, _, stderr) = service.running.interrupted();
    assert_eq!(code, 130, "{stderr}");
    let service = ServiceProgram::start(&home);
    let path = format!("/v1/sessions/{session}");
    assert_eq!(service.get(&ann, &path)["is_open"], false);
    service.post(&ann, "/v1/sessions", &json!({ "resume": session })).has(201);
    let head = super::bearer(&ann) + &format!("Last-Event-ID: {last}\r\n");
    let reply = service.request("GET", &format!("{path}/events"), &head, "");
    assert_eq!(reply.has(410).problem(), "events-forgotten", "it is of the run before");
    let snapshot = service.get(&ann, &path)["snapshot"].clone();
    assert!(snapshot.to_string().contains("Good day."), "{snapshot}");
}

#[test]
fn a_tool_is_checked_and_called_and_repeated_once() {
    let model = talking_model();
    let home = home(&model);
    let (ann, ben) = (token(&home, "ann", "user"), token(&home, "ben", "user"));
    let service = ServiceProgram::start(&home);
    let tools = service.get(&ann, "/v1/tools");
    assert!(tools["tools"].as_array().unwrap().iter().any(|tool| tool["id"] == CLOCK), "{tools}");
    let check = |tool: &str, arguments: Value| {
        let path = format!("/v1/tools/{tool}/check");
        service.post(&ann, &path, &json!({ "arguments": arguments })).has(200).json()
    };
    assert_eq!(check(CLOCK, json!({}))["valid"], true);
    assert_eq!(check(CLOCK, json!({ "zone": 7 }))["valid"], false);
    let asks = check("hostile.echo", json!({ "text": "x" }));
    assert_eq!(asks["confirmations_required"].as_array().unwrap().len(), 1, "{asks}");
    let call = |token: &str, key: &str, tool: &str, body: Value| {
        let head = super::bearer(token) + &format!("Idempotency-Key: {key}\r\n");
        service.request("POST", &format!("/v1/tools/{tool}/call"), &head, &body.to_string())
    };
    let berlin = json!({ "arguments": { "timezone": "Europe/Berlin" } });
    let first = call(&ann, "k1", CLOCK, berlin.clone()).has(200);
    assert_eq!(first.json()["outcome"], "completed", "{first:#?}");
    assert_eq!(call(&ann, "k1", CLOCK, berlin.clone()).has(200).body, first.body);
    let other = json!({ "arguments": { "timezone": "Asia/Tokyo" } });
    assert_eq!(call(&ann, "k1", CLOCK, other.clone()).has(422).problem(), "key-reused");
    call(&ben, "k1", CLOCK, other).has(200);
    assert_eq!(
        call(&ann, &"k".repeat(300), CLOCK, berlin.clone()).has(400).problem(),
        "bad-request"
    );
    let calls = service.get(&ann, "/v1/audit?kind=call&plugin=clock");
    assert_eq!(calls["records"].as_array().unwrap().len(), 1, "one for the key: {calls}");
    let refused = service.post(
        &ann,
        &format!("/v1/tools/{CLOCK}/call"),
        &json!({
            "arguments": { "zone": 7 },
        }),
    );
    assert_eq!(refused.has(400).problem(), "invalid-arguments");
    for tool in ["clock.none", "none.none", "none", "..", "clock.get_time.x"] {
        let path = format!("/v1/tools/{tool}/call");
        assert_eq!(service.post(&ann, &path, &json!({})).has(404).problem(), "not-found", "{tool}");
    }
}

#[test]
fn a_user_has_a_bounded_number_of_sessions() {
    let model = talking_model();
    let home = home(&model);
    let (ann, ben) = (token(&home, "ann", "user"), token(&home, "ben", "user"));
    let service = ServiceProgram::start(&home);
    let sessions: Vec<String> = (0..16).map(|_| service.open_session(&ann)).collect();
    let reply = service.post(&ann, "/v1/sessions", &json!({})).has(429);
    assert!(reply.head.contains("retry-after: 1"), "{reply:#?}");
    assert_eq!(reply.problem(), "too-many");
    service.open_session(&ben);
    service.post(&ann, &format!("/v1/sessions/{}/close", sessions[3]), &json!({})).has(204);
    service.open_session(&ann);
}
