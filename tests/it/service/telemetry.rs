//! Spans of the service: a turn belongs to the trace of the request that began it.

use std::{fs, path::Path};

use serde_json::json;

use super::{
    ServiceProgram, bearer,
    groups::{TIMER_GRANT, set_timers},
    home, token,
};
use crate::support::{
    Home, OpenAi, Reply, Response, Server,
    collector::{Collector, config},
    patience::until,
};

const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const CALLER_TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER_SPAN: &str = "00f067aa0ba902b7";

const COMMANDS: &str = "POST /v1/sessions/{session_id}/commands";

fn telling_time() -> OpenAi {
    let call = || Reply::call("c1", "clock__get_time", &json!({ "timezone": "Asia/Tokyo" }));
    OpenAi::start(vec![call(), Reply::Text("Late."), call(), Reply::Text("Later.")])
}

/// Says something with more lines in the head of the request, and waits for the end of the turn.
fn say(service: &ServiceProgram, token: &str, session: &str, lines: &str) {
    let mut events = service.stream(token, session, "");
    let path = format!("/v1/sessions/{session}/commands");
    let body = json!({ "type": "submit-input", "input": { "text": "What time is it in Tokyo?" } });
    let lines = format!("{}{lines}", bearer(token));
    service.request("POST", &path, &lines, &body.to_string()).has(202);
    events.until("turn-ended");
}

#[test]
fn a_turn_is_one_trace_with_the_request_and_its_caller() {
    let (model, collector) = (telling_time(), Collector::start());
    let home = home(&model).config(collector.config());
    let ann = token(&home, "ann", "user");
    let service = ServiceProgram::start(&home);
    let session = service.open_session(&ann);
    // The key takes the work to another task, which belongs to the trace all the same.
    let lines = format!("traceparent: {CALLER}\r\nIdempotency-Key: k1\r\n");
    say(&service, &ann, &session, &lines);
    let request = collector.span(COMMANDS);
    assert_eq!((&*request.trace, &*request.parent), (CALLER_TRACE, CALLER_SPAN));
    request.has(&[("http.request.method", "POST"), ("http.response.status_code", "202")]);
    let turn = collector.span("invoke_agent");
    assert_eq!((&*turn.trace, &turn.parent), (CALLER_TRACE, &request.id));
    for name in ["chat m", "execute_tool clock.get_time"] {
        let span = collector.span(name);
        assert_eq!((&*span.trace, &span.parent), (CALLER_TRACE, &turn.id), "{name}");
    }
    let called = service.post(&ann, "/v1/tools/clock.get_time/call", &json!({})).has(200);
    let tool_request = collector.span("POST /v1/tools/{tool}/call");
    let spans = collector.spans();
    let call = spans.iter().find(|span| span.parent == tool_request.id);
    assert!(call.is_some_and(|span| span.trace != CALLER_TRACE), "{called:#?} {spans:#?}");
    let text = collector.text();
    assert!(!text.contains("Tokyo") && !text.contains("Late") && !text.contains(&ann), "{text}");
}

#[test]
fn without_a_table_no_thread_is_made_for_it() {
    let model = telling_time();
    let threads = |home: Home| {
        let ann = token(&home, "ann", "user");
        let service = ServiceProgram::start(&home);
        service.get(&ann, "/v1/tools");
        let tasks = Path::new("/proc").join(service.running.pid().to_string()).join("task");
        let names = fs::read_dir(tasks).unwrap().flatten();
        let names = names.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
        names.filter(|name| name.trim() == "telemetry").count()
    };
    assert_eq!(threads(home(&model)), 0);
    assert_eq!(threads(home(&model).config(Collector::start().config())), 1);
}

#[test]
fn spans_that_are_lost_are_told_once_and_counted() {
    let (model, refusing) = (telling_time(), Server::start(|_| Response::with(503, &[], "")));
    let home = home(&model).config(config(&refusing.url()));
    let otto = token(&home, "otto", "operator");
    let service = ServiceProgram::start(&home);
    let lost = || {
        let metrics = service.ask(&otto, "GET", "/metrics", "").has(200).body;
        let line =
            metrics.lines().find_map(|line| line.strip_prefix("sallyport_lost_spans_total "));
        line.unwrap_or_else(|| panic!("no counter in {metrics}")).parse::<u64>().unwrap()
    };
    let first = until("a loss", || Some(lost()).filter(|lost| *lost > 0));
    service.post(&otto, "/v1/tools/clock.get_time/call", &json!({})).has(200);
    until("another loss", || Some(lost()).filter(|lost| *lost > first));
    let (_, stderr) = service.running.said();
    assert_eq!(stderr.matches("not sent to the collector").count(), 1, "{stderr}");
    assert!(stderr.contains("it answers 503"), "{stderr}");
}

/// The text of a warning can name files, so it is sent only if the operator wants it.
#[test]
fn a_warning_is_a_log_record_with_its_text_only_if_that_is_wanted() {
    let model = telling_time();
    let rule = "[[rule]]\ntool = 'timer.role:timer'\ndecision = 'deny'\nmessage = 'not now'\n";
    for (key, is_sent) in [("", false), ("notice_texts = true\n", true)] {
        let collector = Collector::start();
        let home = home(&model).plugins(&["timer"]).policy(format!("{TIMER_GRANT}{rule}"));
        let home = home.config(collector.config() + key);
        set_timers(&home, &["tea"]);
        let service = ServiceProgram::start(&home);
        service.running.remarks("not now");
        let log = collector.log("sallyport.notice");
        assert_eq!(
            (&*log.severity, &*log.attributes["sallyport.notice.kind"]),
            ("WARN", "warning")
        );
        let text = log.body.unwrap_or_default();
        assert_eq!(
            text.contains("is due and waits") && text.contains("not now"),
            is_sent,
            "{text}"
        );
    }
}

/// Such as Jaeger, which takes spans alone.
#[test]
fn a_collector_without_logs_is_no_reason_to_warn_and_they_are_counted() {
    let without_logs = Server::start(|request| {
        Response::with(if request.target == "/v1/traces" { 200 } else { 404 }, &[], "")
    });
    let model = telling_time();
    let home = home(&model).config(config(&without_logs.url()));
    let otto = token(&home, "otto", "operator");
    let service = ServiceProgram::start(&home);
    service.post(&otto, "/v1/tools/clock.get_time/call", &json!({})).has(200);
    until("a lost log record", || {
        let metrics = service.ask(&otto, "GET", "/metrics", "").has(200).body;
        let is_lost = metrics.contains("sallyport_lost_logs_total 1\n");
        is_lost.then(|| assert!(metrics.contains("sallyport_lost_spans_total 0\n"), "{metrics}"))
    });
    let (_, _, stderr) = service.running.interrupted();
    assert!(!stderr.contains("collector"), "{stderr}");
}
