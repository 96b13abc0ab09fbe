//! Calls: their results, their failures, and the way to end them.

use std::{
    io::{BufRead, BufReader, Write},
    os::{fd::OwnedFd, unix::net::UnixStream},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{ALLOW, NET, asking_home, hostile_home, reason, recorded};
use crate::support::{
    Home, McpClient,
    mcp::WITH_HANDSHAKE,
    patience::{end_of, until, until_so},
};

/// A call that does not end by itself.
const SLOW: &str = "hostile__sleeps_an_hour";

/// Gives a guest all the time it wants.
const PATIENT: &str = "[plugin.hostile]\nlimits = { time = \"1h\" }\n";

fn patient_home() -> Home {
    Home::new().guest("hostile", NET).policy(format!("{PATIENT}{ALLOW}"))
}

/// Starts a call and waits until it runs. Its record is not on disk before its end.
fn begun(client: &mut McpClient) -> u64 {
    let params = json!({ "name": SLOW, "_meta": { "progressToken": "p" } });
    let id = client.request("tools/call", &params);
    client.of_method("notifications/progress");
    id
}

#[test]
fn a_result_has_its_data_for_programs_and_for_readers() {
    let home = Home::new().plugins(&["clock"]).guest("raw", "").guest("hostile", NET).policy(ALLOW);
    let mut client = McpClient::greeted(&home, &[], &json!({}));
    let time = client.call("clock__get_time", &json!({ "timezone": "Asia/Tokyo" }));
    assert_eq!((&time["isError"], &time["content"][0]["type"]), (&json!(false), &json!("text")));
    assert_eq!(time["structuredContent"]["utc_offset"], "+09:00");
    let text: Value = serde_json::from_str(time["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, time["structuredContent"]);
    assert!(time["_meta"]["sallyport/speech"].as_str().unwrap().contains("Tokyo"), "{time}");
    let echo = client.call("hostile__echo", &json!({ "text": "hi \"there\"" }));
    let parts = [
        ("image", json!({ "type": "image", "mimeType": "image/png" }), "data"),
        ("audio", json!({ "type": "audio", "mimeType": "audio/ogg" }), "data"),
        ("text", json!({ "type": "text", "text": "some words" }), ""),
        ("link", json!({ "type": "resource_link", "uri": "https://example.com/a" }), "name"),
    ];
    for (name, want, other) in parts {
        let result = client.call(&format!("raw__content_{name}"), &json!({}));
        let part = result["content"].as_array().unwrap().last().unwrap();
        for (key, value) in want.as_object().unwrap() {
            assert_eq!(&part[key], value, "{part}");
        }
        assert!(other.is_empty() || part[other].is_string(), "{part}");
        assert!(result.get("structuredContent").is_none(), "no schema, no promise: {result}");
    }
    assert!(echo["content"][0]["text"].as_str().unwrap().contains("there"), "{echo}");
    assert_eq!(client.close(), 0);
}

#[test]
fn a_failure_says_what_it_is_without_a_sentence_to_parse() {
    let home = Home::new()
        .guest("raw", "")
        .guest("hostile", NET)
        .policy(format!("[plugin.hostile]\nlimits = {{ time = \"2s\" }}\n{ALLOW}"));
    let mut client = McpClient::greeted(&home, &[], &json!({}));
    let rows = [
        ("hostile__echo", json!({ "text": 7 }), json!("invalid-arguments"), "failure"),
        ("hostile__echo", json!({}), json!("invalid-arguments"), "failure"),
        ("hostile__traps", json!({}), json!("failed"), "failure"),
        ("hostile__loops_forever", json!({}), json!("timed-out"), "limit_ms"),
        ("raw__error_not_found", json!({}), json!("failed"), "failure"),
        ("raw__error_denied", json!({}), json!("denied"), "reason"),
        ("raw__data_no_json", json!({}), json!("failed"), "failure"),
    ];
    for (tool, arguments, kind, key) in rows {
        let result = client.call(tool, &arguments);
        assert_eq!(result["isError"], true, "{result}");
        assert_eq!(reason(&result)["kind"], kind, "{result}");
        assert!(!reason(&result)[key].is_null(), "{result}");
        assert!(!result["content"][0]["text"].as_str().unwrap().is_empty(), "{result}");
        assert!(result.get("structuredContent").is_none(), "{result}");
    }
    for name in ["nothing__at_all", "hostile__nothing", "", "\u{1b}[2J"] {
        let answer = client.ask("tools/call", &json!({ "name": name, "arguments": {} }));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(!answer.to_string().contains("\\u001b"), "{answer}");
    }
    assert_eq!(client.close(), 0);
}

/// The result and the log named `plugin show`, which allows nothing.
#[test]
fn a_call_without_a_grant_is_denied_with_the_command_that_call_names() {
    let home = Home::new().plugins(&["weather"]);
    let arguments = json!({ "location": "Paris" });
    let command = "sallyport policy grant weather --requested --allow '*'";
    let call = ["call", "weather.get_weather", &arguments.to_string()];
    home.run(&call).ended(3).remarks(&[command]);
    let mut client = McpClient::greeted(&home, &[], &json!({}));
    let result = client.call("weather__get_weather", &arguments);
    assert_eq!(reason(&result)["kind"], "denied", "{result}");
    assert_eq!(reason(&result)["command"], command, "{result}");
    assert!(result["content"][0]["text"].as_str().unwrap().ends_with(command), "{result}");
    until_so("the log has the command", || client.log().contains(command));
    assert_eq!(client.close(), 0);
}

/// The model reads the result, and must not learn where a folder is on the host.
#[test]
fn the_command_of_a_result_names_no_folder_of_the_host() {
    let home = Home::new().plugins(&["files"]).user_file("granted/plain.txt", "plain");
    let folder = home.user_path("granted").display().to_string();
    let policy = format!(
        "[plugin.files]\nfs = [{{ path = {folder:?}, mount = \"/data\", access = \"read\" }}]\n\
         [[rule]]\ntool = \"files.*\"\ndecision = \"allow\"\n"
    );
    let home = home.policy(policy);
    let mut client = McpClient::greeted(&home, &[], &json!({}));
    let arguments = json!({ "path": "/data/new.txt", "text": "x" });
    let result = client.call("files__write", &arguments);
    assert_eq!(reason(&result)["command"], "sallyport plugin show files", "{result}");
    assert!(!result.to_string().contains(&folder), "{result}");
    until_so("the log has the command", || client.log().contains("grant files --write"));
    assert_eq!(client.close(), 0);
}

#[test]
fn a_call_that_nobody_may_approve_is_denied_with_the_command() {
    let home = asking_home();
    let mut client = McpClient::greeted(&home, &[], &json!({}));
    let result = client.call("hostile__echo", &json!({ "text": "hi" }));
    let command = "sallyport policy grant hostile --allow echo";
    assert_eq!(result["isError"], true);
    assert_eq!(reason(&result)["kind"], "needs-approval", "{result}");
    assert_eq!(reason(&result)["command"], command, "{result}");
    assert!(result["content"][0]["text"].as_str().unwrap().ends_with(command), "{result}");
    until_so("the log has the command", || client.log().contains(command));
    // The command does what it promises, for the connection that runs.
    home.run(&["policy", "grant", "hostile", "--allow", "echo", "--yes"]).ended(0);
    let result = client.call("hostile__echo", &json!({ "text": "hi" }));
    assert_eq!(result["isError"], false, "{result}");
    assert_eq!(client.close(), 0);
}

#[test]
fn a_cancelled_call_ends_and_is_recorded_while_others_go_on() {
    let home = patient_home();
    let mut client = McpClient::greeted(&home, &[], &json!({}));
    let id = begun(&mut client);
    client.cancel(id);
    client.cancel(id);
    client.cancel(4711);
    let echo = client.call("hostile__echo", &json!({ "text": "hi" }));
    assert_eq!(echo["isError"], false);
    let answered = client.messages().iter().any(|one| one["id"] == id);
    assert!(!answered, "a cancelled request gets no answer");
    assert_eq!(client.close(), 0);
    // The two end side by side.
    let mut recorded = recorded(&home);
    recorded.sort();
    let want = [("echo", "completed"), ("sleeps_an_hour", "cancelled")];
    assert_eq!(recorded, want.map(|(a, b)| (a.to_owned(), b.to_owned())));
}

#[test]
fn a_slow_call_reports_that_it_runs() {
    let home = patient_home();
    let mut client = McpClient::greeted(&home, &[], &json!({}));
    begun(&mut client);
    let twice = || {
        let is_progress = |one: &&Value| one["method"] == "notifications/progress";
        let reports: Vec<Value> = client.messages().iter().filter(is_progress).cloned().collect();
        (reports.len() >= 2).then_some(reports)
    };
    let reports = until("two reports", twice);
    for (number, report) in reports.iter().take(2).enumerate() {
        assert_eq!(report["params"]["progressToken"], "p");
        assert_eq!(report["params"]["progress"].as_f64().unwrap() as usize, number + 1);
        assert!(report["params"]["message"].as_str().unwrap().starts_with("running for"));
    }
    client.signal(Signal::TERM);
    assert_eq!(client.ends(), 0);
}

/// As Node.js starts programs.
#[test]
fn a_client_may_connect_sockets_to_standard_input_and_output() {
    let home = patient_home();
    let (mut input, stdin) = UnixStream::pair().unwrap();
    let (output, stdout) = UnixStream::pair().unwrap();
    let mut child = home.start_with(&["mcp"], [stdin, stdout].map(OwnedFd::from));
    let mut answers = BufReader::new(output).lines().map(|line| {
        let answer: Value = serde_json::from_str(&line.unwrap()).unwrap();
        answer
    });
    let mut ask = |id: u64, method: &str, params: Value| {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(input, "{request}").unwrap();
        let answer = answers.find(|answer| answer["id"] == id).unwrap();
        assert!(answer["result"].is_object(), "{answer}");
    };
    let client = json!({ "name": "test", "version": "1" });
    let hello =
        json!({ "protocolVersion": WITH_HANDSHAKE, "capabilities": {}, "clientInfo": client });
    ask(1, "initialize", hello);
    let text = "x".repeat(500_000);
    ask(2, "tools/call", json!({ "name": "hostile__echo", "arguments": { "text": text } }));
    drop(input);
    assert_eq!(end_of(&mut child, String::new).code(), Some(0));
    assert!(answers.next().is_none(), "the output ends with the program");
}

#[test]
fn closing_in_the_middle_of_a_call_leaves_a_whole_audit() {
    for how in ["close", "TERM", "INT"] {
        let home = patient_home();
        let mut client = McpClient::greeted(&home, &[], &json!({}));
        client.call("hostile__echo", &json!({ "text": "hi" }));
        begun(&mut client);
        let code = match how {
            "close" => client.close(),
            signal => {
                client.signal(if signal == "TERM" { Signal::TERM } else { Signal::INT });
                client.ends()
            }
        };
        assert_eq!(code, if how == "INT" { 130 } else { 0 }, "{how}: {}", client.log());
        let want = [("echo", "completed"), ("sleeps_an_hour", "cancelled")];
        assert_eq!(recorded(&home), want.map(|(a, b)| (a.to_owned(), b.to_owned())), "{how}");
    }
}

#[test]
fn requests_from_a_file_are_answered_before_the_end() {
    let home = hostile_home();
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "file", "version": "1" },
    }});
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    let ran = home.run_with_input(&["mcp"], &format!("{hello}\n{call}\n")).ended(0);
    assert_eq!(ran.stdout.lines().count(), 2, "{ran:?}");
    ran.answers(&["hostile__echo"]).remarks(&["Serving", "tools over MCP"]);
}

#[test]
fn what_a_plugin_logs_goes_to_a_client_that_wants_it() {
    let home = hostile_home();
    let mut client = McpClient::greeted(&home, &[], &json!({}));
    let log = |client: &McpClient| {
        let is_log = |one: &&Value| one["method"] == "notifications/message";
        client.messages().iter().filter(is_log).count()
    };
    client.call("hostile__endless_log", &json!({ "n": 3 }));
    let quiet = log(&client);
    let answer = client.ask("logging/setLevel", &json!({ "level": "debug" }));
    assert_eq!(answer["result"], json!({}));
    client.call("hostile__endless_log", &json!({ "n": 3 }));
    assert!(log(&client) > quiet, "{:?}", client.messages());
    let first = client.of_method("notifications/message");
    assert_eq!(first["params"]["logger"], "hostile", "{first}");
    let answer = client.ask("logging/setLevel", &json!({ "level": "shouting" }));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    assert_eq!(client.close(), 0);
}
