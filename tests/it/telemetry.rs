//! Telemetry: which spans a command sends, what they never contain, and a collector that fails.

use std::{fs, net::TcpListener, time::Instant};

use serde_json::json;

use crate::mcp_servers;
use crate::support::{
    Home, McpClient, OpenAi, Reply, Response, Server,
    collector::{Collector, config},
    warden::{entry, policy, requests},
};

/// What a caller's trace looks like, and its two IDs.
const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const CALLER_TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER_SPAN: &str = "00f067aa0ba902b7";

/// Values of the kinds of spans.
const INTERNAL: u64 = 1;
const SERVER: u64 = 2;
const CLIENT: u64 = 3;

fn late_in_tokyo() -> OpenAi {
    OpenAi::start(vec![
        Reply::call("call_a", "clock__get_time", &json!({ "timezone": "Asia/Tokyo" })),
        Reply::Text("Late."),
    ])
}

fn home(model: &OpenAi, config: &str) -> Home {
    Home::new().plugins(&["clock"]).env("OPENAI_BASE_URL", model.base_url()).config(config)
}

/// Names of attributes, each with the value that is expected.
type Attributes<'a> = &'a [(&'a str, &'a str)];

const QUESTION: [&str; 4] = ["run", "-m", "scripted", "What time is it in Tokyo?"];

#[test]
fn a_turn_is_one_trace_of_names_and_has_no_content() {
    let (model, collector) = (late_in_tokyo(), Collector::start());
    let key = "telemetry-key-4711";
    let config = collector.config()
        + "headers = { authorization = \"Bearer ${OTEL_KEY}\" }\nservice_name = \"night\"\n";
    let home = home(&model, &config).env("OTEL_KEY", key);
    let trace_file = home.user_path("trace.json");
    let args = [&["--trace", trace_file.to_str().unwrap()], &QUESTION[..]].concat();
    home.run(&args).ended(0).answers(&["Late."]).hides(&["collector", key]);
    assert!(fs::read_to_string(&trace_file).unwrap().contains("\"turn\""), "both are on");

    let turn = collector.span("invoke_agent");
    assert_eq!((&*turn.parent, turn.kind), ("", INTERNAL));
    turn.has(&[("gen_ai.operation.name", "invoke_agent"), ("sallyport.turn.end", "answered")]);
    assert!(turn.attributes.contains_key("gen_ai.conversation.id"), "{turn:#?}");
    let rows: [(&str, u64, Attributes<'_>); 3] = [
        (
            "chat scripted",
            CLIENT,
            &[("gen_ai.operation.name", "chat"), ("gen_ai.provider.name", "openai")],
        ),
        ("decide clock.get_time", INTERNAL, &[("gen_ai.tool.name", "clock.get_time")]),
        (
            "execute_tool clock.get_time",
            INTERNAL,
            &[
                ("gen_ai.operation.name", "execute_tool"),
                ("gen_ai.tool.name", "clock.get_time"),
                ("gen_ai.tool.call.id", "call_a"),
                ("sallyport.outcome", "completed"),
                ("sallyport.denied", "false"),
            ],
        ),
    ];
    for (name, kind, attributes) in rows {
        let span = collector.span(name);
        span.has(attributes);
        assert_eq!((&span.trace, &span.parent, span.kind), (&turn.trace, &turn.id, kind));
        assert!(!span.has_failed, "{span:#?}");
    }
    let chat = collector.span("chat scripted");
    assert!(chat.attributes["gen_ai.usage.input_tokens"].parse::<u64>().unwrap() > 0, "{chat:#?}");
    assert_eq!(collector.spans().len(), 5, "{:#?}", collector.spans());

    let metrics = collector.metrics();
    let metrics =
        metrics.iter().map(|(name, (unit, count))| (name.as_str(), unit.as_str(), *count));
    let want = [
        ("gen_ai.client.operation.duration", "s", 2),
        ("gen_ai.client.token.usage", "{token}", 4),
        ("sallyport.tool.duration", "s", 1),
        ("sallyport.turn.duration", "s", 1),
    ];
    assert_eq!(metrics.collect::<Vec<_>>(), want);

    let call = collector.log("sallyport.call");
    let span = collector.span("execute_tool clock.get_time");
    assert_eq!((&call.trace, &call.span, &*call.severity), (&span.trace, &span.id, "INFO"));
    assert_eq!(call.attributes["sallyport.outcome"], "completed", "{call:#?}");
    assert_eq!(collector.log("sallyport.turn").span, turn.id);
    assert_eq!(collector.logs().len(), 2, "{:#?}", collector.logs());

    let request = &collector.requests()[0];
    assert_eq!((&*request.method, &*request.target), ("POST", "/v1/traces"));
    assert_eq!(request.header("content-type"), Some("application/x-protobuf"));
    assert_eq!(request.header("authorization"), Some(&*format!("Bearer {key}")));
    let text = collector.text();
    assert!(text.contains("night") && !text.contains(key), "{text}");
    assert!(!text.contains("Tokyo") && !text.contains("Late"), "{text}");
}

#[test]
fn a_refused_call_and_a_request_of_a_plugin_are_spans_too() {
    let collector = Collector::start();
    let web = Server::saying("the answer");
    let rules = "[[rule]]\ntool = \"clock.*\"\ndecision = \"deny\"\nmessage = \"never\"\n\
                 [[rule]]\ntool = \"hostile.*\"\ndecision = \"allow\"\n";
    let home = Home::new()
        .plugins(&["clock"])
        .guest("hostile", &requests(&[&format!("GET,HEAD,POST {}/**", web.url())]))
        .policy(policy(&[entry(&web, "")], rules))
        .config(collector.config());
    home.run(&["call", "clock.get_time", "{}"]);
    let refused = collector.span("execute_tool clock.get_time");
    let denied = [("sallyport.outcome", "denied"), ("sallyport.denied", "true")];
    refused.has(&denied).has(&[("error.type", "denied")]);
    assert!(refused.has_failed && !collector.text().contains("never"), "{refused:#?}");
    let log = collector.log("sallyport.call");
    assert_eq!((&*log.severity, &log.span, &log.body), ("WARN", &refused.id, &None));
    assert_eq!(log.attributes["error.type"], "denied", "{log:#?}");

    let path = json!({ "authority": web.authority(), "path": "/private?q=4711" }).to_string();
    home.run(&["call", "hostile.fetches", &path]);
    let (call, request) = (collector.span("execute_tool hostile.fetches"), collector.span("GET"));
    assert_eq!((&request.trace, &request.parent), (&call.trace, &call.id));
    assert_eq!((request.kind, request.has_failed), (CLIENT, false));
    request.has(&[
        ("http.request.method", "GET"),
        ("server.address", "127.0.0.1"),
        ("server.port", &web.port.to_string()),
        ("http.response.status_code", "200"),
    ]);
    assert!(!collector.text().contains("private") && !collector.text().contains("4711"));
    let sent = &web.seen()[0];
    assert_eq!(sent.header("traceparent"), None, "a plugin's server learns of no trace");
}

#[test]
fn a_call_of_an_mcp_client_joins_the_trace_of_its_message() {
    let collector = Collector::start();
    let home = Home::new().plugins(&["clock"]).config(collector.config());
    let mut client = McpClient::greeted(&home, &[], &json!({}));
    let params = json!({ "name": "clock__get_time", "arguments": {},
                         "_meta": { "traceparent": CALLER } });
    let answer = client.ask("tools/call", &params);
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    let request = collector.span("tools/call clock.get_time");
    assert_eq!((&*request.trace, &*request.parent), (CALLER_TRACE, CALLER_SPAN));
    assert_eq!(request.kind, SERVER);
    request.has(&[("mcp.method.name", "tools/call"), ("gen_ai.operation.name", "execute_tool")]);
    let call = collector.span("execute_tool clock.get_time");
    assert_eq!((&*call.trace, &call.parent), (CALLER_TRACE, &request.id));

    // A caller that does not record its trace gets no part of it.
    let unrecorded = CALLER.replace("-01", "-00");
    let params = json!({ "name": "clock__get_time", "arguments": {},
                         "_meta": { "traceparent": unrecorded } });
    client.ask("tools/call", &params);
    client.ask("tools/list", &json!({ "_meta": { "traceparent": "nonsense" } }));
    let listed = collector.span("tools/list");
    assert_eq!(listed.parent, "");
    assert_eq!(client.close(), 0);
    let calls = collector.spans().into_iter().filter(|span| span.name.contains("get_time"));
    assert_eq!(calls.count(), 3, "request, decision and call, once");
}

/// Runs a turn with a collector that fails, and checks that the turn is not affected.
#[track_caller]
fn check_turn_with(collector: &str, reason: Option<&str>) {
    let model = late_in_tokyo();
    let began = Instant::now();
    let ran = home(&model, &config(collector)).run(&QUESTION).ended(0).answers(&["Late."]);
    assert!(began.elapsed().as_secs() < 30, "{collector} delays the end by two seconds at most");
    let told = ran.stderr.matches("not sent to the collector").count();
    assert_eq!(told, usize::from(reason.is_some()), "{ran:#?}");
    if let Some(reason) = reason {
        ran.remarks(&[reason, "To fix:"]);
    }
}

#[test]
fn a_collector_that_fails_affects_no_turn_and_is_told_once() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    check_turn_with(&format!("http://{closed}"), Some("Connection refused"));
    let refusing = Server::start(|_| Response::with(500, &[], "no"));
    check_turn_with(&refusing.url(), Some("it answers 500"));
    let elsewhere = Server::start(|_| Response::with(307, &[("location", "http://x/")], ""));
    check_turn_with(&elsewhere.url(), Some("it answers 307"));
    let silent = Server::start(|_| Response::Silence);
    check_turn_with(&silent.url(), Some("before the end of the program"));
    let flooding = Server::start(|_| Response::Flood(b"HTTP/1.1 ".repeat(1000)));
    check_turn_with(&flooding.url(), Some("not sent to the collector at http://127.0.0.1"));
    // The spans were taken, and the rest of the answer is not read.
    let talking = Server::start(|_| {
        let endless = "HTTP/1.1 200 OK\r\n\r\n".to_owned() + &"x".repeat(100_000);
        Response::Flood(endless.into_bytes())
    });
    check_turn_with(&talking.url(), None);
}

#[test]
fn a_wrong_table_is_told_and_stops_nothing() {
    let rows = [
        ("endpoint = \"127.0.0.1:4318\"", "endpoint is not an address"),
        ("endpoint = \"http://user:4711@127.0.0.1\"", "endpoint is not an address"),
        ("endpoint = \"http://127.0.0.1\"\nheaders = { \"a b\" = \"4711\" }", "\"a b\""),
    ];
    for (table, words) in rows {
        let home = Home::new().plugins(&["clock"]).config(format!("[telemetry]\n{table}\n"));
        let ran = home.run(&["call", "clock.get_time", "{}"]).ended(0);
        ran.remarks(&["no telemetry is sent", words, "To fix:"]).hides(&["4711"]);
    }
}

#[test]
fn a_project_that_is_not_trusted_names_no_collector_and_no_key_is_shown() {
    let (collector, key) = (Collector::start(), "telemetry-key-4711");
    let project = ".sallyport/sallyport.toml";
    let home = Home::new().plugins(&["clock"]).user_file(project, collector.config());
    let refused = home.run(&["call", "clock.get_time", "{}"]).ended(3);
    refused.remarks(&["a project that is not trusted may not set \"telemetry\""]);
    assert!(collector.requests().is_empty());
    let table = format!("{}headers = {{ authorization = \"{key}\" }}\n", collector.config());
    let shown = Home::new().config(table).run(&["config", "show"]).ended(0).hides(&[key]);
    shown.answers(&["telemetry.endpoint = ", "telemetry.headers"]);
}

/// In both versions of the protocol, and nothing of it without telemetry.
#[test]
fn a_call_of_an_mcp_server_takes_its_trace_along() {
    for mode in ["meta", "input-meta"] {
        let collector = Collector::start();
        let (report, _) =
            mcp_servers::home(mode, &collector.config()).call("fake.echo", &json!({}));
        let span = collector.span("execute_tool fake.echo");
        let place = format!("00-{}-{}-01", span.trace, span.id);
        let sent = report.to_string();
        assert!(sent.contains("traceparent") && sent.contains(&place), "{mode} {place}: {sent}");
        let (report, _) = mcp_servers::home(mode, "").call("fake.echo", &json!({}));
        assert_eq!(report["outcome"], "completed", "{report}");
        assert!(!report.to_string().contains("traceparent"), "{mode}: {report}");
    }
}
