//! Sessions: several at once, and those of earlier programs.

use std::{fs, os::unix::fs::PermissionsExt};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{asking_home, echo, home};
use crate::support::{AcpClient, OpenAi, Reply, collector::Collector, patience::until};

fn named(session: &str) -> Value {
    json!({ "sessionId": session })
}

fn opened_again(session: &str) -> Value {
    json!({ "sessionId": session, "cwd": "/", "mcpServers": [] })
}

#[test]
fn sessions_run_side_by_side_and_each_has_one_turn() {
    let model = OpenAi::start(vec![echo("c1", "a"), echo("c2", "b"), Reply::Text("done")]);
    let home = asking_home(&model);
    let mut client = AcpClient::greeted(&home);
    let (a, b) = (client.new_session("/"), client.new_session("/"));
    let turn_a = client.prompt(&a, "go");
    let question_a = client.question(0);
    let turn_b = client.prompt(&b, "go");
    let question_b = client.question(1);
    assert_eq!(question_a["params"]["sessionId"], a.as_str());
    assert_eq!(question_b["params"]["sessionId"], b.as_str());
    let second = client.prompt(&a, "and this");
    let error = client.answer(second)["error"].clone();
    assert_eq!(error["code"], -32600, "{error}");
    assert!(error["message"].as_str().unwrap().contains("a prompt is running"), "{error}");
    client.cancel_turn(&b);
    assert_eq!(client.stop_reason(turn_b), "cancelled");
    client.choose(&question_a, "once");
    assert_eq!(client.stop_reason(turn_a), "end_turn");
    assert_eq!(client.close(), 0);
}

#[test]
fn a_turn_is_cancelled_once_however_often_it_is_asked() {
    let model = OpenAi::start(vec![Reply::Stalls("I begin"), Reply::Text("done")]);
    let home = home(&model);
    let mut client = AcpClient::greeted(&home);
    let session = client.new_session("/");
    client.cancel_turn(&session);
    let turn = client.prompt(&session, "go");
    until("the begin of the answer", || client.said().contains("begin").then_some(()));
    for _ in 0..3 {
        client.cancel_turn(&session);
    }
    client.cancel_turn("no such session");
    assert_eq!(client.stop_reason(turn), "cancelled");
    assert_eq!(client.turn(&session, "again"), "end_turn");
    let request = client.prompt(&session, "and again");
    client.notify("$/cancel_request", &json!({ "requestId": request }));
    // It may have ended before; either way it has one answer.
    client.answer(request);
    assert_eq!(client.close(), 0);
}

#[test]
fn a_session_is_loaded_after_a_kill() {
    let model = OpenAi::start(vec![
        echo("c1", "hello"),
        Reply::Text("It says hello."),
        echo("c2", "again"),
        Reply::Text("Still here."),
    ]);
    let home = asking_home(&model);
    let mut client = AcpClient::greeted(&home);
    let session = client.new_session("/");
    let turn = client.prompt(&session, "first words");
    let question = client.question(0);
    client.choose(&question, "session");
    assert_eq!(client.stop_reason(turn), "end_turn");
    client.prompt(&session, "second words");
    until("the second turn", || (model.bodies().len() >= 3).then_some(()));
    client.signal(Signal::KILL);
    client.ends();

    let mut client = AcpClient::greeted(&home);
    let listed = client.ask("session/list", &json!({}))["result"]["sessions"].clone();
    assert_eq!(listed[0]["sessionId"], session.as_str(), "{listed}");
    assert_eq!((&listed[0]["title"], &listed[0]["cwd"]), (&json!("first words"), &json!("/")));
    let elsewhere = client.ask("session/list", &json!({ "cwd": "/tmp" }));
    assert_eq!(elsewhere["result"]["sessions"], json!([]));
    let loaded = client.ask("session/load", &opened_again(&session));
    assert_eq!(loaded["result"]["modes"]["currentModeId"], "ask", "{loaded}");
    assert!(
        client.texts("user_message_chunk").starts_with("first words"),
        "{:?}",
        client.messages()
    );
    assert!(client.said().starts_with("It says hello."), "{}", client.said());
    let calls = client.updates("tool_call");
    assert_eq!(calls[0]["rawInput"], json!({ "text": "hello" }), "{calls:?}");
    assert_eq!(client.turn(&session, "third words"), "end_turn");
    // What was allowed for the session still is.
    let asked = client.messages().iter().any(|one| one["method"] == "session/request_permission");
    assert!(!asked, "{:?}", client.messages());
    assert_eq!(client.close(), 0);
}

#[test]
fn sessions_are_resumed_closed_and_deleted() {
    let model = OpenAi::start(vec![Reply::Text("done")]);
    let home = home(&model);
    let mut client = AcpClient::greeted(&home);
    let session = client.new_session("/");
    assert_eq!(client.turn(&session, "words"), "end_turn");
    assert_eq!(client.ask("session/close", &named(&session))["result"], json!({}));
    let code = |answer: Value| answer["error"]["code"].clone();
    assert_eq!(code(client.ask("session/close", &named(&session))), -32002);
    let turn = client.prompt(&session, "words");
    assert_eq!(code(client.answer(turn)), -32002, "it is closed");
    let seen = client.updates("agent_message_chunk").len();
    assert!(client.ask("session/resume", &opened_again(&session))["result"].is_object());
    assert_eq!(client.updates("agent_message_chunk").len(), seen, "no history is sent");
    assert_eq!(client.turn(&session, "words"), "end_turn");
    assert_eq!(client.ask("session/delete", &named(&session))["result"], json!({}));
    for method in ["session/load", "session/resume"] {
        assert_eq!(code(client.ask(method, &opened_again(&session))), -32002, "{method}");
    }
    assert_eq!(code(client.ask("session/delete", &named(&session))), -32002);
    // One without a turn is nowhere but in the program.
    let session = client.new_session("/");
    assert_eq!(client.ask("session/delete", &named(&session))["result"], json!({}));
    for params in [
        json!({ "cwd": "relative", "mcpServers": [] }),
        json!({ "mcpServers": [] }),
        json!({ "cwd": 7 }),
        Value::Null,
    ] {
        assert_eq!(code(client.ask("session/new", &params)), -32602, "{params}");
    }
    assert_eq!(client.close(), 0);
}

#[test]
fn a_session_that_is_loaded_while_it_closes_loses_no_turn() {
    const ROUNDS: usize = 6;
    let round = || [Reply::Stalls("I begin"), Reply::Text("done")];
    let model = OpenAi::start((0..ROUNDS).flat_map(|_| round()).collect());
    let home = home(&model);
    let mut client = AcpClient::greeted(&home);
    let session = client.new_session("/");
    for round in 1..=ROUNDS {
        let cut_off = client.prompt(&session, &format!("cut off {round}. "));
        until("the request", || (model.bodies().len() == 2 * round - 1).then_some(()));
        let closing = client.request("session/close", &named(&session));
        let loading = client.request("session/load", &opened_again(&session));
        assert_eq!(client.stop_reason(cut_off), "cancelled");
        assert_eq!(client.answer(closing)["result"], json!({}));
        let loaded = client.answer(loading);
        assert!(loaded["result"].is_object(), "{loaded}");
        assert_eq!(client.turn(&session, &format!("whole {round}. ")), "end_turn");
    }
    assert_eq!(client.close(), 0);
    let mut client = AcpClient::greeted(&home);
    client.ask("session/load", &opened_again(&session));
    let inputs: String =
        (1..=ROUNDS).map(|round| format!("cut off {round}. whole {round}. ")).collect();
    assert_eq!(client.texts("user_message_chunk"), inputs);
    assert_eq!(client.close(), 0);
}

#[test]
fn a_server_of_a_client_that_may_not_run_is_told() {
    let model = OpenAi::start(vec![Reply::Text("done")]);
    let home = home(&model);
    let server = json!({ "name": "Notes", "command": "/bin/false", "args": [], "env": [] });
    let remote = json!({ "name": "far", "type": "http", "url": "https://far.example/mcp" });
    for capabilities in [json!({}), json!({ "session": { "notices": {} } })] {
        let mut client = AcpClient::start(&home);
        client.greet(&capabilities);
        let servers = json!({ "cwd": "/", "mcpServers": [server, remote] });
        let opened = client.ask("session/new", &servers);
        let session = opened["result"]["sessionId"].as_str().unwrap().to_owned();
        assert_eq!(client.turn(&session, "go"), "end_turn");
        let told = match capabilities["session"].is_object() {
            true => json!(client.updates("notice")).to_string(),
            false => client.said(),
        };
        assert!(told.contains("sallyport policy grant notes --grant process=true"), "{told}");
        assert!(told.contains("policy grant far --requested"), "{told}");
        assert_eq!(client.close(), 0);
    }
}

#[test]
fn a_server_of_a_client_is_used_and_ends_with_its_session() {
    const GRANTED: &str =
        "[plugin.notes]\nprocess = true\n[[rule]]\ntool = \"notes.*\"\ndecision = \"allow\"\n";
    let call = Reply::Calls(vec![("c1", "notes__echo", json!({ "a": 1 }).to_string())]);
    let model = OpenAi::start(vec![call, Reply::Text("done")]);
    let home = home(&model).policy(GRANTED);
    let home = home.file("server.py", include_str!("../mcp_servers/server.py"));
    let program = home.path("server.py");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let env = json!([{ "name": "API_KEY", "value": "s3cr3t-of-the-editor" }]);
    let server = json!({ "name": "notes", "command": program, "args": ["good"], "env": env });
    let mut client = AcpClient::start(&home);
    client.greet(&json!({}));
    let opened = client.ask("session/new", &json!({ "cwd": "/", "mcpServers": [server] }));
    let session = opened["result"]["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(client.turn(&session, "go"), "end_turn");
    let asked = json!(model.bodies()).to_string();
    assert!(asked.contains("notes__echo"), "{asked}");
    let called = json!(client.updates("tool_call_update")).to_string();
    assert!(called.contains("completed"), "{called}");
    client.ask("session/close", &json!({ "sessionId": session }));
    let next = client.ask("session/new", &json!({ "cwd": "/", "mcpServers": [] }));
    assert!(next["result"]["sessionId"].is_string(), "{next}");
    assert_eq!(client.close(), 0);
}

#[test]
fn a_model_that_fails_is_the_answer_to_the_prompt() {
    let rows = [(Reply::Status(401), -32000), (Reply::Status(400), -32603)];
    for (reply, code) in rows {
        let model = OpenAi::start(vec![reply, Reply::Text("done")]);
        let home = home(&model);
        let mut client = AcpClient::greeted(&home);
        let session = client.new_session("/");
        let turn = client.prompt(&session, "go");
        let error = client.answer(turn)["error"].clone();
        assert_eq!(error["code"], code, "{error}");
        assert_eq!(client.turn(&session, "again"), "end_turn");
        let empty = client.ask("session/prompt", &json!({ "sessionId": session, "prompt": [] }));
        assert_eq!(empty["error"]["code"], -32602, "{empty}");
        assert_eq!(client.close(), 0);
    }
}

const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[test]
fn a_turn_belongs_to_the_trace_of_its_client_who_gets_it_back_with_questions() {
    let model = OpenAi::start(vec![echo("c1", "c1"), Reply::Text("done"), Reply::Text("done")]);
    let collector = Collector::start();
    let home = asking_home(&model).config(collector.config());
    let mut client = AcpClient::greeted(&home);
    let session = client.new_session("/");
    let prompt = |meta: Value| {
        let blocks = [json!({ "type": "text", "text": "go" })];
        json!({ "sessionId": session, "prompt": blocks, "_meta": meta })
    };
    let turn = client.request("session/prompt", &prompt(json!({ "traceparent": CALLER })));
    let question = client.question(0);
    assert_eq!(question["params"]["_meta"]["traceparent"], CALLER, "{question}");
    client.choose(&question, "no");
    assert_eq!(client.stop_reason(turn), "end_turn");
    let span = collector.span("invoke_agent");
    assert_eq!((&*span.trace, &*span.parent), (&CALLER[3..35], &CALLER[36..52]));
    // What is not a place in a trace is as if it were not there.
    let turn = client.request("session/prompt", &prompt(json!({ "traceparent": 7 })));
    assert_eq!(client.stop_reason(turn), "end_turn");
    let own = until("a trace of its own", || {
        let turns = collector.spans().into_iter().filter(|span| span.name == "invoke_agent");
        turns.into_iter().find(|span| span.trace != CALLER[3..35])
    });
    assert_eq!(own.parent, "");
    assert_eq!(client.close(), 0);
}
