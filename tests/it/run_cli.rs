//! `run`: where the question comes from, what is told of the answer in each form, and which code
//! each ending has.

use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{
    Home, OpenAi, Ran, Reply, Response, Server,
    events::{events, of_kind, result},
    home::finish,
    patience::until_so,
};

/// A picture of one pixel.
const PNG: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";

/// A sound without a sample.
const WAV: &[u8] =
    b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data\0\0\0\0";

fn home(model: &OpenAi) -> Home {
    Home::new().plugins(&["clock", "files"]).env("OPENAI_BASE_URL", model.base_url())
}

fn tokyo() -> Reply {
    Reply::call("call_a", "clock__get_time", &json!({ "timezone": "Asia/Tokyo" }))
}

/// A call that no policy allows.
fn denied() -> Reply {
    Reply::call("call_a", "files__read", &json!({ "path": "/nowhere/x" }))
}

/// A call that no policy allows, and none denies.
fn asking() -> Home {
    Home::new()
        .guest("hostile", &crate::support::warden::requests(&["GET https://hostile.example/"]))
        .policy("[plugin.hostile]\nnet = [\"GET https://hostile.example/\"]\n")
}

#[test]
fn a_question_is_words_or_what_is_piped_in_or_both() {
    let rows: [(&[&str], &str, &str); 4] = [
        (&["two", "words"], "", "two words"),
        (&[], "piped\n", "piped\n"),
        (&["explain"], "a log\n", "explain\n\n```text\na log\n```"),
        (&["explain"], "```\n", "explain\n\n````text\n```\n````"),
    ];
    for (words, piped, want) in rows {
        let model = OpenAi::start(vec![Reply::Text("Aye.")]);
        let args = [&["run", "-m", "scripted"], words].concat();
        home(&model).run_with_input(&args, piped).ended(0);
        assert_eq!(model.bodies()[0]["messages"][0]["content"], want);
    }
}

#[test]
fn a_question_that_cannot_be_read_is_refused_before_anybody_is_asked() {
    let long = "x".repeat((1 << 20) + 1);
    let rows: [(&[&str], &str, &str); 5] = [
        (&["run"], "", "the input is empty"),
        (&["run", "--attach", "/nowhere"], "x", "there is no file"),
        (&["run", "--audio", "a.png"], "x", "is not a sound file"),
        (&["run", "--session", "nowhere"], "x", "there is no session"),
        (&["run"], &long, "larger than 1048576 bytes"),
    ];
    for (args, piped, words) in rows {
        let model = OpenAi::start(vec![Reply::Text("Aye.")]);
        let home = home(&model).user_file("a.png", PNG);
        let args = [args, &["-m", "scripted", "--output", "jsonl"]].concat();
        let ran = home.run_with_input(&args, piped).ended(2).remarks(&["error:", words]);
        let events = events(&ran);
        assert!(events.last().unwrap().to_string().contains(words), "{events:#?}");
        assert!(model.bodies().is_empty());
    }
}

#[test]
fn files_go_with_the_question() {
    let model = OpenAi::start(vec![Reply::Text("A pixel.")]);
    let home =
        home(&model).user_file("a.png", PNG).user_file("b.txt", "words").user_file("c.wav", WAV);
    let files = ["--attach", "a.png", "--attach", "b.txt", "--audio", "c.wav"];
    home.run(&[&["run", "-m", "scripted", "what is it?"], &files[..]].concat()).ended(0);
    let content = model.bodies()[0]["messages"][0]["content"].to_string();
    for part in ["what is it?", "image_url", "words", "input_audio"] {
        assert!(content.contains(part), "{part}: {content}");
    }
}

#[test]
fn events_tell_all_that_happens() {
    let model = OpenAi::start(vec![tokyo(), denied(), Reply::Text("It is late.")]);
    let ran = home(&model).run(&["run", "-m", "scripted", "--output", "jsonl", "go"]).ended(0);
    let events = events(&ran);
    assert_eq!(events[0]["type"], "session-started");
    assert_eq!(of_kind(&events, "turn-started")[0]["text"], "go");
    let deltas = of_kind(&events, "text-delta");
    let text: String = deltas.iter().filter_map(|delta| delta["text"].as_str()).collect();
    assert_eq!(text, "It is late.");
    let calls = of_kind(&events, "call-finished");
    assert_eq!(
        (&calls[0]["outcome"], &calls[1]["outcome"]),
        (&json!("completed"), &json!("denied"))
    );
    assert_eq!(calls[0]["result"]["timezone"], "Asia/Tokyo");
    assert!(calls[1]["fix"]["toml"].as_str().unwrap().contains("[plugin.files]"), "{calls:#?}");
    let last = events.last().unwrap();
    assert_eq!((&last["end"], &last["text"]), (&json!("answered"), &json!("It is late.")));
    assert_eq!((&last["usage"]["answers"], &last["usage"]["calls"]), (&json!(3), &json!(2)));
}

#[test]
fn one_object_tells_how_it_ended_and_what_led_to_it() {
    let model = OpenAi::start(vec![tokyo(), Reply::Text("It is late.")]);
    let args = ["run", "-m", "scripted", "--output", "json", "go"];
    let told = result(&home(&model).run(&args).ended(0));
    assert_eq!(
        (&told["text"], &told["calls"][0]["tool"]),
        (&json!("It is late."), &json!("clock.get_time"))
    );
    let failed = Home::new().env("OPENAI_BASE_URL", "not a url").run(&args).ended(3);
    assert_eq!(result(&failed)["type"], "error");
}

/// Runs a conversation in all three forms; they end with the same code, and say so.
fn check_code(script: &[Reply], make: impl Fn(&OpenAi) -> Home, flags: &[&str], code: i32) {
    for form in ["text", "json", "jsonl"] {
        let model = OpenAi::start(script.to_vec());
        let ran = run_as(&make(&model), flags, form).ended(code);
        match form {
            "json" => drop(result(&ran)),
            "jsonl" => drop(events(&ran)),
            _ => {}
        }
    }
}

fn run_as(home: &Home, flags: &[&str], form: &str) -> Ran {
    home.run(&[&["run", "-m", "scripted", "--output", form, "go"], flags].concat())
}

#[test]
fn every_ending_has_its_code() {
    let answer = Reply::Text("Aye.");
    let echo = Reply::call("call_a", "hostile__echo", &json!({ "text": "hi" }));
    let asks = |model: &OpenAi| asking().env("OPENAI_BASE_URL", model.base_url());
    let bad_policy = |model: &OpenAi| home(model).policy("[[rule]]\ndecision = 'maybe'\n");
    let nobody = |_: &OpenAi| Home::new().env("OPENAI_BASE_URL", "http://127.0.0.1:1/v1");
    check_code(std::slice::from_ref(&answer), home, &[], 0);
    check_code(&[Reply::Status(400)], home, &[], 1);
    check_code(std::slice::from_ref(&answer), home, &["--session", "nowhere"], 2);
    check_code(std::slice::from_ref(&answer), home, &["--config", "/nowhere"], 3);
    check_code(std::slice::from_ref(&answer), bad_policy, &[], 3);
    check_code(&[Reply::Status(401)], home, &[], 4);
    check_code(std::slice::from_ref(&answer), nobody, &[], 5);
    check_code(&[echo, answer.clone()], asks, &[], 6);
    check_code(&[denied(), answer.clone()], home, &[], 0);
    check_code(&[denied(), answer], home, &["--fail-on-tool-error"], 7);
    check_code(&[tokyo()], home, &["--max-turns", "1"], 8);
    check_code(&[tokyo()], home, &["--max-calls", "1"], 8);
    check_code(&[tokyo()], home, &["--max-tokens", "1"], 8);
    // A plugin that is rejected is no reason not to answer; only to call it is one.
    Home::new().file("plugins/bad/bad.wasm", "no component").run(&["call", "bad.act"]).ended(9);
}

#[test]
fn a_name_that_means_no_model_or_lacks_its_key_sends_nothing() {
    let model = OpenAi::start(vec![Reply::Text("Aye.")]);
    let rows: [(&[&str], i32, &str); 6] = [
        (&["run", "-m", "fkae", "go"], 3, "openai/fkae"),
        (&["run", "-m", "claude-sonnet-4-5", "go"], 3, "anthropic/claude-sonnet-4-5"),
        (&["chat", "-m", "fkae"], 3, "is not the name of a model"),
        (&["model", "check", "fkae"], 3, "openai/fkae"),
        (&["run", "-m", "anthropic/claude-sonnet-4-5", "go"], 4, "ANTHROPIC_API_KEY is not set"),
        (&["model", "check", "gemini/gemini-2.5-flash"], 4, "GEMINI_API_KEY"),
    ];
    for (args, code, want) in rows {
        let ran = Home::new().env("OPENAI_API_KEY", "k").run(args).ended(code);
        assert!(format!("{}{}", ran.stdout, ran.stderr).contains(want), "{args:?}: {}", ran.stderr);
    }
    let remote = ["model", "list", "--remote", "--provider", "mistral"];
    assert!(Home::new().run(&remote).ended(4).stderr.contains("MISTRAL_API_KEY"));
    assert!(model.bodies().is_empty());
}

#[test]
fn a_wait_for_the_provider_is_told_while_it_lasts() {
    let model = OpenAi::start(vec![Reply::Status(503), Reply::Text("Aye.")]);
    let ran = home(&model).run(&["run", "-m", "scripted", "go"]).ended(0);
    assert!(ran.stderr.contains("retrying in"), "{}", ran.stderr);
    assert!(ran.stderr.contains("the provider says no"), "{}", ran.stderr);
    assert_eq!(ran.stdout.trim(), "Aye.");
}

#[test]
fn what_had_arrived_of_an_answer_that_broke_off_is_printed() {
    let model = OpenAi::start(vec![Reply::Cut]);
    let ran = home(&model).run(&["run", "-m", "scripted", "go"]).ended(1);
    assert!(ran.stdout.starts_with("It is\n[incomplete"), "{}", ran.stdout);
    let told = run_as(&home(&model), &[], "json").ended(1).json();
    assert_eq!((&told["incomplete_text"], &told["text"]), (&json!("It is"), &Value::Null));
}

#[test]
fn h83_a_conversation_goes_on_after_calls_that_no_server_takes_back() {
    let broken = ["{\"cut", "{\"half\":\"\\ud83d\"}", "[1]", "NaN", "{\"k\":1,\"k\":2}"];
    let calls = broken.iter().map(|arguments| ("call_a", "7 bad.name", (*arguments).to_owned()));
    let model = OpenAi::start(vec![Reply::Calls(calls.collect()), Reply::Text("Aye.")]);
    home(&model).run(&["run", "-m", "scripted", "go"]).ended(0);
    let [_, request] = &model.bodies()[..] else { panic!("not asked twice") };
    let messages = request["messages"].as_array().unwrap();
    let calls = messages.iter().flat_map(|m| m["tool_calls"].as_array().into_iter().flatten());
    let mut ids = Vec::new();
    for call in calls {
        let arguments = call["function"]["arguments"].as_str().unwrap();
        assert!(serde_json::from_str::<Value>(arguments).unwrap().is_object(), "{arguments}");
        let name = call["function"]["name"].as_str().unwrap();
        assert!(name.starts_with('_') && !name.contains([' ', '.']), "{name}");
        assert!(!ids.contains(&call["id"]));
        ids.push(call["id"].clone());
    }
    let results: Vec<Value> = messages
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["tool_call_id"].clone())
        .collect();
    assert_eq!((ids.len(), &results), (broken.len(), &ids));
}

#[test]
fn a_run_that_is_interrupted_or_out_of_time_says_so() {
    let interrupt = |child: &Child| kill_process(Pid::from_child(child), Signal::INT).unwrap();
    let rows: [(&[&str], bool, i32, &str); 2] =
        [(&[], true, 130, "cancelled"), (&["--timeout", "100ms"], false, 8, "budget-reached")];
    for (flags, interrupted, code, end) in rows {
        let silent = Server::start(|_| Response::Silence);
        let home = Home::new().env("OPENAI_BASE_URL", format!("{}/v1", silent.url()));
        let args = [&["run", "-m", "scripted", "--output", "jsonl", "go"], flags].concat();
        let mut child = home.start(&args);
        drop(child.stdin.take());
        until_so("a request", || !interrupted || !silent.seen().is_empty());
        if interrupted {
            interrupt(&child);
        }
        let ran = finish(child, &args).ended(code);
        assert_eq!(events(&ran).last().unwrap()["end"], end);
    }
}

#[test]
fn what_was_denied_is_told_as_the_policy_that_would_allow_it() {
    let echo = Reply::call("call_a", "hostile__echo", &json!({ "text": "hi" }));
    let answer = Reply::Text("I may not.");
    let model = OpenAi::start(vec![echo.clone(), answer.clone(), echo, answer]);
    let home = asking().env("OPENAI_BASE_URL", model.base_url());
    let ran = home.run(&["run", "-m", "scripted", "--output", "jsonl", "go"]).ended(6);
    let events = events(&ran);
    let denial = of_kind(&events, "call-finished")[0];
    assert_eq!(denial["nobody_to_ask"], true, "{denial:#}");
    let needed = home.run(&["run", "-m", "scripted", "--emit-needed-grants", "go"]).stdout;
    assert_eq!(denial["fix"]["toml"].as_str().unwrap().trim(), needed.trim());
}

#[test]
fn the_form_of_the_configuration_is_published() {
    let schema = Home::new().run(&["schema", "config"]).ended(0).json();
    let takes = |value: &Value| jsonschema::is_valid(&schema, value);
    assert!(takes(&json!({ "default_model": "offline", "budget": { "cost": 0.5 } })));
    assert!(!takes(&json!({ "defaultmodel": "offline" })));
}
