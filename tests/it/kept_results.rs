//! Long results over whole runs: kept with their session, read in parts, and gone with it.

use serde_json::{Value, json};

use crate::{
    limits::NET,
    support::{
        Home, OpenAi, Ran, Reply,
        events::{events, of_kind},
        transcript,
    },
};

/// Bytes of the result.
const LONG: u64 = 5_000_000;

/// Lets the tool return as much.
const POLICY: &str = "[plugin.hostile]\nlimits = { output = \"8MiB\", memory = \"1GiB\" }\n";

/// A home with a tool that returns much, and the script of its model.
fn home(script: Vec<Reply>) -> (Home, OpenAi) {
    let model = OpenAi::start(script);
    let home = Home::new()
        .guest("hostile", NET)
        .policy(POLICY)
        .env("OPENAI_BASE_URL", model.base_url())
        .env("OPENAI_API_KEY", "sk-key");
    (home, model)
}

fn run(home: &Home, flags: &[&str]) -> Ran {
    home.run(&[&["run", "-m", "scripted", "go"], flags].concat()).ended(0)
}

fn long_call() -> Reply {
    Reply::call("call_long", "hostile__huge_output", &json!({ "n": LONG }))
}

fn reads(id: &'static str) -> Reply {
    Reply::call(id, "result", &json!({ "result": 1, "byte": -5 }))
}

fn text(words: &'static str) -> Reply {
    Reply::Text(words)
}

fn newest_session(home: &Home) -> String {
    let sessions = home.run(&["session", "list", "--output", "json"]).ended(0).json();
    sessions[0]["id"].as_str().unwrap().to_owned()
}

/// Whether the last request lists the tool that reads results.
fn is_offered(bodies: &[Value]) -> bool {
    let tools = bodies.last().unwrap()["tools"].as_array().unwrap();
    tools.iter().any(|tool| tool["function"]["name"] == "result")
}

#[test]
fn a_result_of_megabytes_is_read_now_and_after_a_resume_and_by_no_other_session() {
    let script = vec![
        long_call(),
        reads("call_now"),
        text("one"),
        reads("call_resumed"),
        text("two"),
        reads("call_fork"),
        text("three"),
        reads("call_other"),
        text("four"),
    ];
    let (home, model) = home(script);
    let first = run(&home, &["--output", "jsonl"]);
    let told = events(&first);
    let [kept] = &of_kind(&told, "result-kept")[..] else { panic!("{}", first.stderr) };
    assert_eq!(
        (&kept["number"], &kept["bytes"], &kept["lines"]),
        (&json!(1), &json!(LONG), &json!(1))
    );
    assert_eq!(kept["call_id"], of_kind(&told, "call-finished")[0]["call_id"]);
    let bodies = model.bodies();
    assert_eq!(transcript::result(&bodies, "call_now")["text"], "xxxxx");
    assert!(bodies[2].to_string().len() < 64 << 10, "the request stays small");
    let session = newest_session(&home);
    run(&home, &["--session", &session]);
    assert_eq!(transcript::result(&model.bodies(), "call_resumed")["text"], "xxxxx");
    let fork = home.run(&["session", "fork", &session, "--turn", "1"]).ended(0).stdout;
    let exported = home.run(&["session", "export", &session, "--format", "json"]).ended(0).json();
    let whole = &exported["turns"][0]["steps"][0]["kept"]["text"];
    assert_eq!(whole.as_str().unwrap().len() as u64, LONG);
    home.run(&["session", "remove", "--yes", &session]).ended(0);
    run(&home, &["--session", fork.trim()]);
    assert_eq!(transcript::result(&model.bodies(), "call_fork")["text"], "xxxxx");
    assert!(is_offered(&model.bodies()));
    run(&home, &[]);
    let other = transcript::result(&model.bodies(), "call_other").to_string();
    assert!(other.contains("there is no tool"), "{other}");
    assert!(!is_offered(&model.bodies()));
}

#[test]
fn the_length_that_a_model_reads_whole_can_be_set() {
    let call = |n: u64| Reply::call("call_a", "hostile__huge_output", &json!({ "n": n }));
    let (home, model) = home(vec![call(5000), text("one"), call(4000), text("two")]);
    let home = home.config("[chat]\nresult_bytes_max = 4096\n");
    for ephemeral in [&["--ephemeral"][..], &[]] {
        run(&home, ephemeral);
    }
    let bodies = model.bodies();
    assert_eq!(transcript::result(&bodies[..2], "call_a")["result"], 1);
    assert_eq!(transcript::result(&bodies[2..], "call_a").as_str().unwrap().len(), 4000);
    let home = home.config("[chat]\nresult_bytes_max = 10\n");
    home.run(&["run", "-m", "scripted", "go"]).ended(3).remarks(&["from 4096 to 262144 bytes"]);
}

#[test]
fn a_tape_with_a_kept_result_gives_the_same_again() {
    let (home, _model) = home(vec![long_call(), reads("call_now"), text("done")]);
    let printed = run(&home, &["--record", "tape"]).stdout;
    assert_eq!(home.run(&["run", "--replay", "tape"]).ended(0).stdout, printed);
}
