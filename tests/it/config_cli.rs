//! The configuration at the command line: what counts, where it comes from, and what a project may
//! say of it.

use serde_json::Value;

use crate::support::Home;

const MODELS: &str = "[model.a]\nprovider = 'vllm'\nmodel = 'a'\n\
                      [model.b]\nprovider = 'vllm'\nmodel = 'b'\n";

const PROJECT: &str = ".sallyport/sallyport.toml";

#[test]
fn every_value_is_shown_with_its_origin() {
    let home = Home::new()
        .config(format!("default_model = 'a'\n{MODELS}[chat]\nmemory = 'summary'\n"))
        .env("LLM_TIMEOUT", "30");
    let shown = home.run(&["config", "show", "--origin"]).ended(0);
    shown.answers(&[
        "default_model = \"a\"  # the configuration file",
        "in-use.time_max = \"30s\"  # the variable LLM_TIMEOUT",
        "in-use.base_url = \"http://localhost:8000/v1\"  # the default",
        "chat.memory = \"summary\"  # the configuration file",
        "budget.turns = 16  # the default",
        "# budget.cost is not set",
    ]);
    home.run(&["config", "show"]).ended(0).hides(&["# the"]);
    let json = home.run(&["config", "show", "--output", "json"]).ended(0).json();
    assert_eq!(json["chat.memory"]["origin"], "the configuration file");
    assert_eq!(json["budget.cost"]["value"], Value::Null);
}

#[test]
fn h49_no_key_is_shown() {
    const KEY: &str = "sk-very-secret-0123456789";
    let config = format!(
        "[model.a]\nprovider = 'openai'\nmodel = 'm'\nkey = '{KEY}'\n\
         base_url = 'http://user:{KEY}@127.0.0.1:1/v1'\n\
         [settings.weather]\napi_key = '{KEY}'\n[settings.other]\ndeep = {{ token = '{KEY}' }}\n"
    );
    let home = Home::new().config(config).env("MISTRAL_API_KEY", KEY);
    for args in [
        &["config", "show", "--origin"][..],
        &["config", "show", "--output", "json"],
        &["model", "list"],
        &["model", "check"],
        &["model", "check", "mistral/x"],
        &["doctor", "--output", "json"],
    ] {
        home.run(args).hides(&[KEY, "very-secret"]);
    }
}

#[test]
fn paths_are_shown_even_when_the_file_is_broken() {
    let home = Home::new().config("nonsense").user_file(PROJECT, "also nonsense");
    home.run(&["config", "show"]).ended(3).remarks(&["sallyport.toml:1:"]);
    let paths = home.run(&["config", "path", "--output", "json"]).ended(0).json();
    assert_eq!(paths["config"], home.path("sallyport.toml").to_str().unwrap());
    let project = paths["project"].as_str().unwrap();
    assert!(project.ends_with(PROJECT), "{project}");
    home.run(&["config", "path"]).ended(0).answers(&["policy.toml", "state", "cache"]);
}

#[test]
fn the_schema_names_every_table() {
    let schema = Home::new().run(&["schema", "config"]).ended(0).json();
    for table in ["model", "price", "chat", "budget", "sessions", "settings"] {
        assert!(schema["properties"][table].is_object(), "{table}");
    }
}

#[test]
fn a_mistake_has_its_place_and_its_remedy() {
    let rows = [
        ("[chat]\nmemry = 'none'", "2:1: unknown key", "did you mean \"memory\"?"),
        ("[chat]\nmemory = 'window'", "2:10: \"memory\" cannot be", "write one of none"),
        ("[budget]\nturns = 0", "2:9: \"turns\" must be from 1", ""),
        ("[budget]\ncost = 0", "2:8: \"cost\" is not an amount", "US dollars"),
        ("[budget]\ncost = -1.5", "2:8: \"cost\" must be a number from 0", ""),
        ("[budget]\ntokens = -1", "2:10: \"tokens\" must be a number of tokens", ""),
        ("[budget]\ntime = '0s'", "2:8: \"time\" must be longer", ""),
        ("[sessions]\nkeep = '0d'", "2:8: \"keep\" must be longer", "90d"),
        ("[sessions]\nkeep = 'long'", "2:8: \"long\" is not", "forever"),
        ("[model.a]\nprovider = 'opnai'", "2:12: \"provider\" cannot be", "\"openai\""),
        ("[model.a]\nmodel = 'x'", "1:1: key \"provider\" is missing", ""),
        ("[price.'*']\ninput = 1", "key \"output\" is missing", ""),
        ("[model.a]\nprovider = 'vllm'\nreasoning = 'huge'", "3:13:", "low, medium, high"),
        ("default_model = 'x'", "there is no [model.x]", "known models: offline"),
    ];
    for (config, message, hint) in rows {
        Home::new().config(config).run(&["model", "list"]).ended(3).remarks(&[message, hint]);
    }
    let timeout = Home::new().env("LLM_TIMEOUT", "soon");
    timeout.run(&["model", "list"]).ended(3).remarks(&["LLM_TIMEOUT is \"soon\""]);
}

#[test]
fn a_project_is_a_stranger_until_it_is_trusted() {
    let wants = "plugin_dir = 'tools'\ndefault_model = 'b'\n[budget]\nturns = 99\n";
    let home = Home::new().plugins(&["clock"]).config(MODELS).user_file(PROJECT, wants);
    home.run(&["tool", "list"]).ended(3).remarks(&[
        ".sallyport/sallyport.toml:1:14: a project that is not trusted may not set \"plugin_dir\"",
        "sallyport trust",
    ]);
    home.run(&["trust"]).ended(0).answers(&["is trusted as it is now", "    turns = 99"]);
    home.run(&["tool", "list"]).ended(0).hides(&["clock"]);
    home.run(&["config", "show", "--origin"]).ended(0).answers(&[
        "default_model = \"b\"  # the project's configuration file",
        "budget.turns = 99  # the project's configuration file",
    ]);
    home.run(&["doctor", "-v"]).answers(&["is sound, and trusted", "there is no record yet"]);
    let home = home.user_file(PROJECT, format!("{wants}calls = 9"));
    home.run(&["tool", "list"]).ended(3).remarks(&["not trusted"]);
    home.run(&["trust", "."]).ended(0);
    home.run(&["trust", "--remove"]).ended(0).answers(&["is not trusted any more"]);
    home.run(&["tool", "list"]).ended(3).remarks(&["not trusted"]);
}

#[test]
fn a_stranger_chooses_a_model_of_the_user_and_lowers_the_budget() {
    let home = Home::new()
        .config(MODELS)
        .user_file(PROJECT, "default_model = 'b'\n[budget]\nturns = 4\ncalls = 999\n");
    home.run(&["config", "show", "--origin"]).ended(0).answers(&[
        "in-use.model = \"b\"",
        "budget.turns = 4  # the project's configuration file",
        "budget.calls = 64  # the default",
    ]);
    home.run(&["doctor", "-v"]).answers(&["it is not trusted"]);
    let home = home.user_file(PROJECT, "default_model = 'gpt-5'");
    home.run(&["tool", "list"]).ended(3).remarks(&["there is no [model.gpt-5]"]);
}

#[test]
fn a_broken_project_is_not_trusted() {
    let home = Home::new().user_file(PROJECT, "[chat]\nsytem = 'x'");
    home.run(&["trust"]).ended(3).remarks(&["did you mean \"system\"?"]);
    home.run(&["trust", "/nonexistent"]).ended(2).remarks(&["there is no folder"]);
    Home::new().run(&["trust"]).ended(3).remarks(&["in no project"]);
}

#[test]
fn the_store_goes_on_beside_what_is_trusted() {
    let home = Home::new().plugins(&["clock"]).user_file(PROJECT, "[chat]\nsystem = 'x'\n");
    home.run(&["trust"]).ended(0);
    home.run(&["call", "clock.get_time"]).ended(0);
    home.run(&["audit", "verify"]).ended(0);
}

#[test]
fn a_mistake_is_drawn_for_nobody_but_a_person() {
    let config = "[chat]\nmemry = 'none'";
    let ran = Home::new().config(config).run(&["model", "list"]).ended(3).hides(&["╭", "here"]);
    assert_eq!(ran.stderr.lines().count(), 2, "{ran:?}");
}

#[test]
fn words_of_other_programs_are_answered() {
    let rows: [(&[&str], &str); 5] = [
        (&["ask", "what", "time"], "sallyport run PROMPT"),
        (&["sessions"], "sallyport session list"),
        (&["-p", "hi"], "sallyport run PROMPT"),
        (&["chat", "--yolo"], "sallyport policy grant"),
        (&["run", "--allow-all", "hi"], "sallyport policy grant"),
    ];
    for (args, words) in rows {
        Home::new().run(args).ended(2).remarks(&["error:", "hint:", words]);
    }
}

#[test]
fn the_manual_has_a_page_for_every_command() {
    let home = Home::new();
    home.run(&["man"]).ended(0).answers(&[".TH sallyport 1", "Exit codes"]);
    home.run(&["man", "pages/man1"]).ended(0).remarks(&["Start with sallyport.1"]);
    for page in ["sallyport", "sallyport-run", "sallyport-model-check", "sallyport-policy-grant"] {
        let text = std::fs::read_to_string(home.user_path(&format!("pages/man1/{page}.1")));
        assert!(text.unwrap().contains(".SH NAME"), "{page}");
    }
    let home = home.user_file("taken", "");
    home.run(&["man", "taken"]).ended(1).remarks(&["cannot write to taken"]);
}

#[test]
fn a_date_is_shown_as_it_is_written() {
    let home = Home::new().config("[settings.weather]\nsince = 2026-01-31\n");
    home.run(&["config", "show"]).ended(0).answers(&["settings.weather.since = \"2026-01-31\""]);
}

#[test]
fn settings_for_a_plugin_that_is_not_there_are_told() {
    let home = Home::new().plugins(&["clock"]).config("[settings.clok]\nzone = 'UTC'\n");
    let ran = home.run(&["plugin", "list"]).ended(0);
    for want in ["[settings.clok] has no effect", "did you mean [settings.clock]?"] {
        assert!(ran.stderr.contains(want), "{}", ran.stderr);
    }
}
