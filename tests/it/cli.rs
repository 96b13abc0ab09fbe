//! The command line: exit codes, streams, and what is never printed.

use serde_json::json;

use crate::{
    limits::NET,
    support::{Home, OpenAi, Reply, Response, Server},
};

#[test]
fn a_command_line_that_makes_no_sense_ends_with_2() {
    let home = Home::new().plugins(&["clock"]);
    let rows: [(&[&str], &str); 14] = [
        (&[], "Usage"),
        (&["chta"], "chat"),
        (&["tool"], "Usage"),
        (&["tool", "lst"], "list"),
        (&["--nonsense"], "--nonsense"),
        (&["run", "--max-turns", "0", "x"], "--max-turns"),
        (&["run", "--max-turns", "many", "x"], "--max-turns"),
        (&["tool", "list", "--output", "yaml"], "yaml"),
        (&["completions", "tcsh"], "tcsh"),
        (&["call", "clock"], "clock"),
        (&["call", "clock.get_tiem"], "did you mean clock.get_time"),
        (&["call", "clcok.get_time"], "did you mean clock"),
        (&["call", "../../etc.passwd"], "error:"),
        (&["plugin", "show", "nothing"], "there is no plugin"),
    ];
    for (args, words) in rows {
        let ran = home.run(args).ended(2).remarks(&[words]);
        assert_eq!(ran.stdout, "", "{args:?}");
    }
    for args in [&["--help"][..], &["help"], &["run", "--help"], &["--version"]] {
        let ran = home.run(args).ended(0);
        assert_eq!(ran.stderr, "");
    }
}

#[test]
fn arguments_that_do_not_fit_end_with_2_and_say_why() {
    let home = Home::new().plugins(&["clock"]);
    for (arguments, words) in [
        ("{", "not valid JSON"),
        ("[]", "not a JSON object"),
        ("{\"zone\":1}", "zone"),
        ("{\"timezone\":1}", "/timezone"),
        ("{\"timezone\":\"Middle-earth/Shire\"}", "Shire"),
    ] {
        let ran = home.run(&["call", "clock.get_time", arguments]);
        assert!(ran.stderr.contains(words), "{arguments}: {ran:?}");
        assert!(matches!(ran.code, 2 | 7), "{arguments}: {ran:?}");
    }
}

#[test]
fn input_that_is_empty_or_far_too_long_is_refused() {
    let home = Home::new().plugins(&["clock"]);
    for input in ["", " \n\t\n"] {
        home.run_with_input(&["run"], input).ended(2).remarks(&["error:"]);
    }
    home.run_with_input(&["run"], &"x".repeat(3 << 20)).ended(2).remarks(&["error:"]);
    home.run_with_input(&["chat"], "").ended(0);
}

#[test]
fn a_tool_that_fails_ends_a_call_with_7() {
    let home = Home::new().guest("hostile", NET);
    home.run(&["call", "hostile.traps"])
        .ended(7)
        .remarks(&["error: the plugin trapped", "run again with -v for details"]);
    home.run(&["-v", "call", "hostile.traps"]).ended(7).remarks(&["wasm backtrace"]);
    let told = home.run(&["call", "hostile.traps", "--output", "json"]).ended(7).json();
    assert_eq!(told["outcome"], "failed");
    assert!(told["elapsed_ms"].is_number() && told["memory_bytes_peak"].is_number(), "{told}");
}

#[test]
fn without_a_home_the_program_says_which_variable_to_set() {
    let program = env!("CARGO_BIN_EXE_sallyport");
    let output = std::process::Command::new(program).env_clear().args(["tool", "list"]).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("SALLYPORT_HOME"));
}

#[test]
fn plugin_folders_are_named_by_the_nearest_source() {
    let tools = Home::new().plugins(&["clock"]);
    let folder = tools.path("plugins").to_str().unwrap().to_owned();
    let list = ["tool", "list"];
    let flag = ["--plugin-dir", &folder, "tool", "list"];
    Home::new().run(&flag).ended(0).answers(&["clock.get_time"]);
    for name in ["SALLYPORT_PLUGIN_DIR", "PLUGIN_DIR"] {
        Home::new().env(name, &folder).run(&list).ended(0).answers(&["clock.get_time"]);
    }
    let config = format!("plugin_dir = {folder:?}\n");
    Home::new().config(&config).run(&list).ended(0).answers(&["clock.get_time"]);
    let hidden = Home::new().plugins(&["files"]).config(&config);
    hidden.run(&list).ended(0).answers(&["clock.get_time"]).hides(&["files.list"]);
    let bare = Home::new();
    std::fs::copy(tools.path("plugins/clock/clock.wasm"), bare.path("plugins/watch.wasm")).unwrap();
    bare.run(&list).ended(0).answers(&["watch.get_time"]);
}

#[test]
fn verbose_shows_each_invocation() {
    let home = Home::new().plugins(&["clock"]);
    home.run(&["-v", "run", "what time is it in Tokyo?"]).ended(0).remarks(&[
        "→ clock.get_time {",
        "allow: no rule for it",
        "← clock.get_time completed in",
    ]);
    let home = Home::new().guest("hostile", NET);
    home.run(&["-v", "call", "hostile.fetches", r#"{"authority":"evil.example"}"#])
        .remarks(&["refused:", "evil.example"]);
    home.run(&["-v", "call", "hostile.endless_log", r#"{"n":2}"#])
        .ended(0)
        .remarks(&["info: line 0 of a guest", "info: line 1 of a guest"]);
}

#[test]
fn h49_a_key_is_in_no_output() {
    const KEY: &str = "sk-very-secret-key-0123456789";
    let echo = Server::start(|request| {
        let key = request.header("authorization").unwrap_or_default().to_owned();
        let body = json!({ "error": { "message": format!("who is {key}? ({})", request.target) } });
        Response::with(400, &[("content-type", "application/json")], &body.to_string())
    });
    let home = |url: &str| {
        Home::new().plugins(&["clock"]).env("OPENAI_API_KEY", KEY).env("OPENAI_BASE_URL", url)
    };
    let question = ["-v", "run", "--model", "m", "hi"];
    home(&format!("{}/v1", echo.url())).run(&question).ended(1).hides(&[KEY, "very-secret"]);
    home("http://127.0.0.1:1/v1").run(&question).ended(5).hides(&[KEY]);
    let named = home("http://127.0.0.1:1/v1").env("SALLYPORT_MODEL", "m");
    for args in [
        &["doctor"][..],
        &["doctor", "--output", "json"],
        &["plugin", "list"],
        &["policy", "check"],
    ] {
        named.run(args).ended(0).hides(&[KEY]);
    }
    let wrong =
        home("http://x").config(format!("[model.m]\nprovider = \"openai\"\nky = \"{KEY}\"\n"));
    wrong.run(&["doctor"]).ended(1).hides(&[KEY]);
}

#[test]
fn h51_a_model_s_words_are_shown_and_not_obeyed() {
    let model = OpenAi::start(vec![Reply::Text("\u{1b}[2Jgone \u{9b}31m \u{202e}evil")]);
    let home = Home::new().env("OPENAI_BASE_URL", model.base_url());
    for way in [&["run", "--model", "m", "hi"][..], &["run", "--model", "m", "--no-stream", "hi"]] {
        home.run(way).ended(0).answers(&["u{1b}[2Jgone"]).hides(&["\u{1b}", "\u{9b}", "\u{202e}"]);
    }
    let ran = home.run_with_input(&["chat", "--model", "m"], "hi\n").ended(0);
    ran.answers(&["u{1b}[2Jgone"]).hides(&["\u{1b}", "\u{9b}", "\u{202e}"]);
    let names = Home::new().config("default_model = \"\u{202e}x\"\n");
    names.run(&["tool", "list"]).ended(3).hides(&["\u{202e}"]);
}
