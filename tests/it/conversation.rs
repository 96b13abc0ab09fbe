//! Conversations with a scripted model over the wire, streamed and whole.

use std::io::Write as _;

use serde_json::{Value, json};

use crate::support::{Home, OpenAi, Ran, Reply, home::finish, transcript};

const PLUGINS: [&str; 2] = ["clock", "files"];

/// Both ways of answering.
const WAYS: [&[&str]; 2] = [&[], &["--no-stream"]];

fn tokyo() -> String {
    json!({ "timezone": "Asia/Tokyo" }).to_string()
}

fn home(model: &OpenAi) -> Home {
    Home::new()
        .plugins(&PLUGINS)
        .env("OPENAI_BASE_URL", model.base_url())
        .env("OPENAI_API_KEY", "sk-the-secret-key")
}

fn ask(home: &Home, flags: &[&str]) -> Ran {
    home.run(&[&["run", "--model", "scripted", "go"], flags].concat()).hides(&["sk-the-secret-key"])
}

/// Plays a script once streamed and once whole; `check` sees each run and what the server was
/// asked.
fn play(script: &[Reply], flags: &[&str], code: i32, check: impl Fn(&Ran, &[Value])) {
    for way in WAYS {
        let model = OpenAi::start(script.to_vec());
        let ran = ask(&home(&model), &[way, flags].concat()).ended(code);
        let bodies = model.bodies();
        transcript::check(&bodies);
        assert!(bodies.iter().all(|body| body["stream"] == way.is_empty()), "{way:?}");
        assert_eq!(model.headers("authorization")[0], "Bearer sk-the-secret-key");
        check(&ran, &bodies);
    }
}

#[test]
fn three_calls_two_of_them_parallel_one_failing_end_in_an_answer() {
    let script = [
        Reply::Calls(vec![
            ("call_a", "clock__get_time", tokyo()),
            ("call_b", "files__read", json!({ "path": "/nowhere/x" }).to_string()),
        ]),
        Reply::call("call_c", "clock__get_time", &json!({ "timezone": "UTC" })),
        Reply::Text("It is late in Tokyo."),
    ];
    play(&script, &[], 0, |ran, bodies| {
        assert_eq!(ran.stdout, "It is late in Tokyo.\n");
        assert_eq!(bodies.len(), 3);
        assert_eq!(transcript::result(bodies, "call_a")["timezone"], "Asia/Tokyo");
        assert_eq!(transcript::result(bodies, "call_b")["outcome"], "denied");
        assert_eq!(transcript::result(bodies, "call_c")["timezone"], "UTC");
        assert_eq!(bodies[0]["messages"][0]["content"], "go");
        assert_eq!(bodies[0]["tools"].as_array().unwrap().len(), 10);
    });
    play(&script, &["--fail-on-tool-error"], 7, |ran, _| {
        assert_eq!(ran.stdout, "It is late in Tokyo.\n");
    });
}

#[test]
fn the_tools_on_the_wire_are_those_of_the_list() {
    let model = OpenAi::start(vec![Reply::Text("Hello.")]);
    let home = home(&model);
    ask(&home, &[]).ended(0);
    let listed = home.run(&["tool", "list", "--output", "json"]).ended(0).json();
    let sent = model.bodies()[0]["tools"].clone();
    let (sent, listed) = (sent.as_array().unwrap(), listed.as_array().unwrap());
    assert_eq!(sent.len(), listed.len());
    for (sent, listed) in sent.iter().zip(listed) {
        // A pattern without its ends is refused by some servers, and told in words.
        match listed.to_string().contains("\"pattern\"") {
            true => assert_eq!(sent["function"]["name"], listed["function"]["name"]),
            false => assert_eq!(sent, listed),
        }
    }
}

#[test]
fn h52_calls_that_make_no_sense_become_results_that_the_model_can_read() {
    let call = |name: &'static str, arguments: &str| vec![("call_x", name, arguments.to_owned())];
    let big = format!(r#"{{"timezone":"{}"}}"#, "x".repeat(2 << 20));
    let rows = [
        (call("clock__tell_time", "{}"), "failed", "there is no tool"),
        (call("rm -rf", "{}"), "failed", "there is no tool"),
        (call("clock__get_time", "{\"timezone\":"), "invalid-arguments", "not valid JSON"),
        (call("clock__get_time", "{\"timezone\": NaN}"), "invalid-arguments", "not valid JSON"),
        (call("clock__get_time", "{\"a\":1,\"a\":2}"), "invalid-arguments", "stands twice"),
        (call("clock__get_time", "[]"), "invalid-arguments", "not a JSON object"),
        (call("clock__get_time", "{\"zone\":\"UTC\"}"), "invalid-arguments", "zone"),
        (call("clock__get_time", "{\"timezone\":7}"), "invalid-arguments", "/timezone"),
        (call("clock__get_time", &big), "invalid-arguments", "bytes of JSON"),
    ];
    for (calls, outcome, words) in rows {
        let script = [Reply::Calls(calls), Reply::Text("I see.")];
        play(&script, &[], 0, |_, bodies| {
            let told = transcript::result(bodies, "call_x");
            assert_eq!(told["outcome"], outcome, "{told}");
            assert!(told["error"].as_str().unwrap().contains(words), "{words}: {told}");
        });
    }
}

#[test]
fn h52_ids_that_repeat_or_are_empty_are_made_unique() {
    let twice = |id: &'static str| {
        Reply::Calls(vec![
            (id, "clock__get_time", tokyo()),
            (id, "clock__get_time", json!({ "timezone": "UTC" }).to_string()),
        ])
    };
    for id in ["same", ""] {
        play(&[twice(id), twice(id), Reply::Text("Done.")], &[], 0, |ran, bodies| {
            assert_eq!(ran.stdout, "Done.\n");
            let results = bodies[2]["messages"].as_array().unwrap().iter();
            let results = results.filter(|message| message["role"] == "tool").count();
            assert_eq!(results, 4);
        });
    }
}

#[test]
fn empty_arguments_are_an_empty_object() {
    let script =
        [Reply::Calls(vec![("call_x", "clock__get_time", String::new())]), Reply::Text("Now.")];
    play(&script, &[], 0, |_, bodies| {
        assert!(transcript::result(bodies, "call_x")["time"].is_string());
    });
}

#[test]
fn what_a_provider_does_wrong_has_an_exit_code() {
    let rows = [
        (Reply::Status(401), 4, 1),
        (Reply::Status(403), 4, 1),
        (Reply::Status(400), 1, 1),
        (Reply::Status(429), 1, 5),
        (Reply::Status(500), 1, 5),
        (Reply::Status(302), 1, 1),
        (Reply::Cut, 1, 1),
    ];
    for (reply, code, attempts) in rows {
        play(&[reply], &[], code, |ran, bodies| {
            assert_eq!(bodies.len(), attempts);
            assert!(ran.stderr.contains("error:"), "{ran:?}");
            // Half an answer is none, and says so of itself.
            let arrived = ran.stdout.strip_prefix("It is\n[incomplete");
            assert!(ran.stdout.is_empty() || arrived.is_some(), "{}", ran.stdout);
        });
    }
    let nobody = Home::new().env("OPENAI_BASE_URL", "http://127.0.0.1:1/v1");
    ask(&nobody, &[]).ended(5).remarks(&["error:", "127.0.0.1:1"]);
    let no_url = Home::new().env("OPENAI_BASE_URL", "not a url");
    ask(&no_url, &[]).ended(3).remarks(&["error:", "hint:"]);
}

#[test]
fn a_provider_that_breaks_after_a_call_leaves_the_call_done_and_fails_the_turn() {
    let script = [Reply::call("call_a", "clock__get_time", &json!({})), Reply::Cut];
    play(&script, &[], 1, |_, bodies| assert_eq!(bodies.len(), 2));
}

#[test]
fn h58_a_model_that_never_stops_is_stopped_by_a_budget() {
    let same = Reply::call("call_a", "clock__get_time", &json!({ "timezone": "UTC" }));
    play(std::slice::from_ref(&same), &[], 8, |ran, bodies| {
        assert!(ran.stderr.contains("same arguments 3 times"), "{ran:?}");
        assert_eq!(bodies.len(), 4);
    });
    play(&[same], &["--max-turns", "2"], 8, |ran, bodies| {
        assert!(ran.stderr.contains("at most 2 answers"), "{ran:?}");
        assert_eq!(bodies.len(), 2);
    });
    let zone = |n: i32| json!({ "timezone": format!("UTC+{n}") }).to_string();
    let flood = |calls| (0..calls).map(|n| ("same", "clock__get_time", zone(n))).collect();
    for calls in [65, 1000] {
        play(&[Reply::Calls(flood(calls))], &[], 8, |ran, bodies| {
            assert!(ran.stderr.contains("at most 64 tool calls"), "{ran:?}");
            assert_eq!(bodies.len(), 1, "a turn over its budget asks no more");
        });
    }
}

#[test]
fn a_spoken_session_ends_with_the_tool_s_own_sentence() {
    let script = [Reply::call("call_a", "clock__get_time", &json!({ "timezone": "Asia/Tokyo" }))];
    play(&script, &["--speak"], 0, |ran, bodies| {
        assert!(ran.stdout.contains("Tokyo"), "{ran:?}");
        assert_eq!(bodies.len(), 1);
    });
    let failing = [
        Reply::call("call_a", "files__read", &json!({ "path": "/x" })),
        Reply::Text("It may not be read."),
    ];
    play(&failing, &["--speak"], 0, |ran, _| assert_eq!(ran.stdout, "It may not be read.\n"));
}

#[test]
fn a_chat_keeps_its_transcript_over_many_turns_and_a_failure() {
    let model = OpenAi::start(vec![
        Reply::call("call_a", "clock__get_time", &json!({})),
        Reply::Text("The first."),
        Reply::Status(400),
        Reply::Text("The third."),
    ]);
    let ran = home(&model).run_with_input(&["chat", "--model", "scripted"], "one\ntwo\nthree\n");
    let ran = ran.ended(0).answers(&["The first.", "The third."]).hides(&["sk-the-secret-key"]);
    ran.remarks(&["error:"]);
    let bodies = model.bodies();
    assert_eq!(bodies.len(), 4);
    transcript::check(&bodies[..3]);
    transcript::check(&bodies[3..]);
    let last: Vec<&Value> = bodies[3]["messages"].as_array().unwrap().iter().collect();
    assert_eq!(last[0]["content"], "one");
    assert_eq!(last.last().unwrap()["content"], "three");
}

#[test]
fn a_system_prompt_and_a_model_of_the_configuration_are_used() {
    let model = OpenAi::start(vec![Reply::Text("Aye.")]);
    let home = Home::new().env("THE_KEY", "sk-of-the-file").config(format!(
        "default_model = 'work'\n[model.work]\nprovider = 'openai'\nmodel = 'gpt-x'\n\
         base_url = '{}'\nkey = '${{THE_KEY}}'\nstream = false\n",
        model.base_url()
    ));
    let ran = home.run(&["run", "--system", "You are a pirate.", "hello"]).ended(0);
    assert_eq!(ran.hides(&["sk-of-the-file"]).stdout, "Aye.\n");
    let bodies = model.bodies();
    assert_eq!((&bodies[0]["model"], &bodies[0]["stream"]), (&json!("gpt-x"), &json!(false)));
    let system = json!({ "role": "system", "content": "You are a pirate." });
    assert_eq!(bodies[0]["messages"][0], system);
    assert_eq!(model.headers("authorization"), ["Bearer sk-of-the-file"]);
}

#[test]
fn h57_output_that_imitates_a_role_stays_data() {
    let model = OpenAi::start(vec![
        Reply::call("call_a", "hostile__imitates_a_role", &json!({})),
        Reply::Text("Noted."),
    ]);
    let home =
        Home::new().guest("hostile", crate::limits::NET).env("OPENAI_BASE_URL", model.base_url());
    ask(&home, &[]).ended(0);
    let bodies = model.bodies();
    transcript::check(&bodies);
    assert_eq!(bodies.len(), 2, "a forged call was made");
    assert!(bodies[1].to_string().contains("forged"), "the output is there, as data");
}

#[test]
fn a_line_that_is_no_text_ended_a_piped_conversation_without_a_word() {
    let home = Home::new().plugins(&["clock"]);
    let args = ["chat", "--model", "offline"];
    let mut chat = home.start(&args);
    let input = b"what time is it in Tokyo?\n\xff\nwhat time is it in Oslo?\n";
    chat.stdin.take().unwrap().write_all(input).unwrap();
    let ran = finish(chat, &args).ended(2);
    ran.answers(&["Tokyo"]).remarks(&["is no UTF-8 text; it and the lines after it"]);
}
