//! The way from nothing to a first answer: the guided setup with its questions and with its flags,
//! the first message of a chat, and the help.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::{Value, json};

use crate::support::{Home, Person, Reply, Response, Server};

const KEY: &str = "sk-typed-and-never-shown-0123456789";

/// Most keys that may be typed from an empty home to the first answer, besides the key of the
/// provider.
const KEYS_MAX: usize = 60;

const PARIS: &str = r#"{"results": [{"name": "Paris", "latitude": 48.85341, "longitude": 2.3488,
    "country": "France", "country_code": "FR", "admin1": "Île-de-France"}]}"#;
const NOW: &str = r#"{"latitude": 48.86, "longitude": 2.34, "current": {"time": "2026-11-22T10:15",
    "temperature_2m": 17.6, "weather_code": 61}}"#;

/// Services of the weather, and a provider that takes one key, lists one model, and asks for the
/// weather before it answers.
fn server() -> Server {
    Server::start(|request| match request.target.as_str() {
        target if target.starts_with("/v1/search?") => Response::ok(PARIS),
        target if target.starts_with("/v1/forecast?") => Response::ok(NOW),
        _ if request.header("authorization") != Some(&format!("Bearer {KEY}")) => {
            Reply::Status(401).render(false)
        }
        "/v1/models" => Response::ok(r#"{"data": [{"id": "m"}]}"#),
        "/v1/chat/completions" => answer(&serde_json::from_str(&request.body).unwrap()),
        _ => Response::with(404, &[], ""),
    })
}

fn answer(body: &Value) -> Response {
    let last = body["messages"].as_array().unwrap().last().unwrap();
    let words = last["content"].to_string();
    let reply = if last["role"] == "tool" {
        Reply::Text("It rains in Paris.")
    } else if words.contains("Call the tool `repeat`") {
        Reply::call("a", "repeat", &json!({ "text": "ready" }))
    } else if words.contains("weather") {
        Reply::call("b", "weather__get_weather", &json!({ "location": "Paris" }))
    } else {
        Reply::Text("ready")
    };
    reply.render(body["stream"] == true)
}

/// A home in which nothing is configured but where the servers are.
fn home(server: &Server) -> Home {
    let url = server.url();
    Home::new()
        .plugins(&["clock", "weather"])
        .config(format!(
            "# mine\n[settings.weather]\ngeocoding_url = \"{url}\"\nforecast_url = \"{url}\"\n"
        ))
        .env("OPENAI_BASE_URL", format!("{url}/v1"))
}

fn text(home: &Home, file: &str) -> String {
    fs::read_to_string(home.path(file)).unwrap_or_default()
}

/// Checks what the setup wrote: the configuration, the key for its owner alone, and the grant.
#[track_caller]
fn check_written(home: &Home) {
    let config = text(home, "sallyport.toml");
    for part in ["default_model = \"openai\"", "# mine", "[model.openai]", "key_file = "] {
        assert!(config.contains(part), "no {part} in {config}");
    }
    assert!(!config.contains(KEY), "{config}");
    let key = home.path("keys/openai");
    assert_eq!(fs::read_to_string(&key).unwrap(), KEY);
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    let policy = text(home, "policy.toml");
    assert!(policy.contains("[plugin.weather]") && policy.contains("/v1/forecast"), "{policy}");
}

#[test]
fn the_first_answer_takes_few_keys() {
    let server = server();
    let home = home(&server);
    let mut person = Person::start(&home, &[]);
    let mut count = "sallyport\n".len();
    for (question, keys) in [
        ("Enter for yes, n for not now:", "\r"),
        ("Enter to skip:", "1\r"),
        ("Key of openai", "\r"),
        ("(k)?", "\r"),
        ("Enter for m, s to skip:", "\r"),
        ("Write this?", "y\r"),
        ("Enter for none:", "1\r"),
        ("Write this?", "y\r"),
        ("openai>", "weather in Paris?\r"),
        ("[r] no, with a reason", "y"),
    ] {
        person.sees_last_with(question);
        if question.starts_with("Key") {
            person.types(KEY);
        }
        person.types(keys);
        count += keys.len();
    }
    person.sees("It rains in Paris.");
    assert!(count <= KEYS_MAX, "{count} keys");
    assert!(!person.screen().contains(KEY), "{}", person.screen());
    check_written(&home);
}

/// A key that a terminal cuts was dropped without a word, and `s` was sent as a model's name.
#[test]
fn a_step_is_skipped_with_s_and_a_key_that_cannot_be_used_is_reported() {
    let server = server();
    let home = home(&server);
    let before = text(&home, "sallyport.toml");
    for (key, question) in [("x".repeat(4200), "Enter for none:"), (KEY.to_owned(), "s to skip:")] {
        let mut person = Person::start(&home, &["setup"]);
        person.sees_last_with("Enter to skip:");
        person.types("1\r");
        person.sees_last_with("Key of openai");
        person.types(&format!("{key}\r"));
        if key == KEY {
            person.sees_last_with("(k)?");
            person.types("\r");
        }
        person.sees_last_with(question);
        assert_eq!(person.screen().contains("too long for a terminal line"), key != KEY);
        if key == KEY {
            person.types("s\r");
        }
        person.sees_last_with("Enter for none:");
        person.types("s\r");
        person.sees("starts a conversation");
        assert_eq!(person.ends(), 0);
        assert_eq!(text(&home, "sallyport.toml"), before);
    }
    assert!(server.seen().iter().all(|request| !request.target.ends_with("completions")));
}

#[test]
fn flags_answer_every_question() {
    let server = server();
    let home = home(&server);
    let setup = ["setup", "--provider", "openai", "--model", "m", "--key-from-stdin"];
    let ran = home.run_with_input(
        &[&setup[..], &["--grant-requested", "weather"]].concat(),
        &format!("{KEY}\n"),
    );
    ran.ended(0).hides(&[KEY]).answers(&[
        "openai/m answers and calls tools.",
        "+ default_model = \"openai\"",
        "Saved. openai is the model now.",
        "+ [plugin.weather]",
    ]);
    check_written(&home);
    home.run(&["run", "how are you?"]).ended(0).answers(&["ready"]);
    // What is there is replaced only by somebody who says so.
    let again = ["setup", "--provider", "openai", "--model", "m2", "--key-from-env", "OTHER"];
    let home = home.env("OTHER", KEY);
    let before = text(&home, "sallyport.toml");
    home.run(&[&again[..], &["--no-check"]].concat())
        .ended(6)
        .remarks(&["would replace model.openai", "--yes"]);
    assert_eq!(text(&home, "sallyport.toml"), before);
    home.run(&[&again[..], &["--no-check", "--yes"]].concat()).ended(0);
    let config = text(&home, "sallyport.toml");
    assert!(config.contains("model = \"m2\"") && config.contains("\"${OTHER}\""), "{config}");
    assert!(!config.contains("key_file"), "{config}");
    home.run(&["setup", "--grant-requested", "weather"])
        .ended(0)
        .answers(&["weather has everything that it requests"]);
}

#[test]
fn a_setup_that_cannot_work_writes_nothing() {
    let server = server();
    let home = home(&server).env("WRONG", "sk-wrong-and-not-shown");
    let openai = ["setup", "--provider", "openai", "--model", "m"];
    let before = text(&home, "sallyport.toml");
    for (args, code, words) in [
        (&["setup"][..], 2, "no terminal is attached"),
        (&["setup", "--model", "m"], 2, "--provider"),
        (&["setup", "--provider", "opnai", "--model", "m"], 2, "the providers are openai"),
        (&["setup", "--provider", "llamacpp"], 2, "--model NAME"),
        (&openai, 4, "OPENAI_API_KEY is not set"),
        (&[&openai[..], &["--key-from-env", "NOPE"]].concat(), 2, "\"NOPE\" is not set"),
        (&[&openai[..], &["--key-from-env", "WRONG"]].concat(), 4, "--no-check"),
        // A confirmation is no answer to a failed check.
        (&[&openai[..], &["--key-from-env", "WRONG", "--yes"]].concat(), 4, "--no-check"),
        (&[&openai[..], &["--key-from-stdin"]].concat(), 2, "it is empty"),
        (&["setup", "--grant-requested", "wether"], 2, "did you mean weather"),
    ] {
        home.run(args).ended(code).remarks(&[words]).hides(&["sk-wrong"]);
        assert_eq!(text(&home, "sallyport.toml"), before, "{args:?}");
        assert!(!home.path("policy.toml").exists() && !home.path("keys").exists(), "{args:?}");
    }
}

#[test]
fn a_folder_is_granted_by_a_flag_and_named_as_missing_without_it() {
    let home = Home::new().plugins(&["files"]);
    let setup = ["setup", "--grant-requested", "files"];
    home.run(&setup)
        .ended(0)
        .answers(&["Not granted: files wants to"])
        .remarks(&["--write FOLDER"]);
    assert!(!home.path("policy.toml").exists());
    let folder = home.user_path("notes");
    fs::create_dir(&folder).unwrap();
    let folder = folder.to_str().unwrap();
    let ran = home.run(&[&setup[..], &["--folder", folder]].concat()).ended(0);
    assert!(!ran.stderr.contains("does not exist"), "{ran:#?}");
    let elsewhere = Home::new().plugins(&["files"]);
    let missing = elsewhere.run(&[&setup[..], &["--folder", "/nope/dir"]].concat()).ended(0);
    missing.remarks(&["/nope/dir does not exist at the moment"]);
    let policy = text(&home, "policy.toml");
    assert!(policy.contains(folder) && policy.contains("read-write"), "{policy}");
}

#[test]
fn the_setup_is_offered_once_and_never_in_the_way() {
    let home = Home::new().plugins(&["clock"]);
    let mut person = Person::start(&home, &[]);
    person.sees_last_with("n for not now:");
    person.types("n\r");
    person.sees_last("offline>");
    person.types("\u{4}");
    assert_eq!(person.ends(), 0);
    let mut person = Person::start(&home, &["chat"]);
    person.sees_last("offline>");
    assert!(!person.screen().contains("not now"), "{}", person.screen());
    person.types("\u{4}");
    assert_eq!(person.ends(), 0);
    let home = Home::new().plugins(&["clock"]);
    let mut person = Person::start(&home, &["chat"]);
    person.sees_last_with("n for not now:");
    person.types("\u{3}");
    // The signal ends the program, so there is no code.
    assert_eq!(person.ends(), -1);
}

#[test]
fn a_chat_begins_with_the_message_of_the_command_line() {
    let home = Home::new().plugins(&["clock"]);
    let question = ["chat", "--model", "offline", "what time is it in Tokyo?"];
    home.run(&question).ended(0).answers(&["in Tokyo"]);
    let ran = home.run_with_input(&question, "what time is it in Paris?\n").ended(0);
    let (tokyo, paris) = (ran.stdout.find("in Tokyo"), ran.stdout.find("in Paris"));
    assert!(tokyo.is_some() && tokyo < paris, "{}", ran.stdout);
    for (message, want) in [
        ("what time is it in Tokyo?", "clock.get_time"),
        // What starts no turn hung the chat.
        ("help", "/tools"),
        ("/hlep", "/help"),
        ("", ""),
    ] {
        let args = ["chat", "--model", "offline", message];
        let mut person = Person::start_sized(&home, &args, 60, 80);
        person.sees_count("offline>", 2);
        assert!(person.screen().contains(format!("offline> {message}").trim_end()));
        person.sees(want);
        person.sees_last("offline>");
        person.types("/quit\r");
        assert_eq!(person.ends(), 0, "{message:?}");
    }
}

#[test]
fn topics_and_commands_are_explained() {
    let home = Home::new();
    for (words, want) in [
        (&["help", "grants"][..], "# Grants"),
        (&["help", "models"], "# Models"),
        (&["help", "plugins"], "# Plugins"),
        (&["help", "scripts"], "# Scripts"),
        (&["help", "policy", "grant"], "Usage: sallyport policy grant"),
        (&["help", "chat"], "Examples:\n  # Start a conversation\n  sallyport chat\n"),
        (&["help"], "Plugins and permissions:"),
    ] {
        home.run(words).ended(0).answers(&[want]);
    }
    home.run(&["help", "grnts"]).ended(2).remarks(&["did you mean \"grants\"?"]);
    home.run(&["server"]).ended(2).remarks(&["sallyport serve"]).hides(&["secret", "Usage"]);
}
