//! The weather, from refusal to answer: what is printed is what has to be pasted.

use std::{fs, io::Write};

use crate::support::{Home, Response, Server, Terminal};

const QUESTION: [&str; 2] = ["run", "what is the weather in Paris?"];

const PARIS: &str = r#"{"results": [{"name": "Paris", "latitude": 48.85341, "longitude": 2.3488,
    "country": "France", "country_code": "FR", "admin1": "Île-de-France"}]}"#;
const NOW: &str = r#"{"latitude": 48.86, "longitude": 2.34, "current": {"time": "2026-11-22T10:15",
    "temperature_2m": 17.6, "weather_code": 61}}"#;

const RULE: &str = "[[rule]]\ntool = \"weather.*\"\ndecision = \"allow\"\n";

/// Both services in one.
fn service() -> Server {
    Server::start(|request| match request.target.as_str() {
        target if target.starts_with("/v1/search?") => Response::ok(PARIS),
        target if target.starts_with("/v1/forecast?") => Response::ok(NOW),
        _ => Response::with(404, &[], ""),
    })
}

fn home(service: &Server) -> Home {
    let url = service.url();
    Home::new().plugins(&["weather"]).config(format!(
        "[settings.weather]\ngeocoding_url = \"{url}\"\nforecast_url = \"{url}\"\n"
    ))
}

fn grant(service: &Server) -> String {
    let url = service.url();
    format!(
        "[plugin.weather]\nnet = [\n  {{ allow = \"GET {url}/v1/search\", to-private = true }},\n  \
         {{ allow = \"GET {url}/v1/forecast\", to-private = true }},\n]\n"
    )
}

fn policy(home: &Home) -> String {
    fs::read_to_string(home.path("policy.toml")).unwrap()
}

/// Runs the command that the remarks name, as a user would who agrees to it.
#[track_caller]
fn run_printed_command(home: &Home, remarks: &str) {
    let line = remarks.lines().find_map(|line| line.strip_prefix("hint: to allow it: sallyport "));
    let words = line.unwrap_or_else(|| panic!("no command in {remarks:?}"));
    let words: Vec<String> = words.split(' ').map(|word| word.replace('\'', "")).collect();
    let args = join_quoted(&words);
    let args: Vec<&str> = args.iter().map(String::as_str).chain(["--yes"]).collect();
    home.run(&args).ended(0);
}

/// Joins a method and its address again, which are one argument.
fn join_quoted(words: &[String]) -> Vec<String> {
    let mut args: Vec<String> = Vec::new();
    for word in words {
        match args.last_mut() {
            Some(last) if last == "GET" => last.extend([" ", word]),
            _ => args.push(word.clone()),
        }
    }
    args
}

#[test]
fn without_a_grant_the_answer_says_what_was_refused_and_how_to_allow_it() {
    let home = Home::new().plugins(&["weather"]);
    let refused = "weather may not GET https://geocoding-api.open-meteo.com/v1/search";
    let ran = home.run(&QUESTION).ended(0).answers(&[refused]);
    run_printed_command(&home, &ran.stderr);
    home.run(&["policy", "check"]).ended(0).answers(&[
        "is sound",
        "can GET https://geocoding-api.open-meteo.com/v1/search",
        "can GET https://api.open-meteo.com/v1/forecast",
        "get_weather: allow",
    ]);
}

#[test]
fn a_private_service_is_refused_until_the_printed_command_is_run() {
    let service = service();
    let home = home(&service);
    let ran = home.run(&QUESTION).ended(0).answers(&["may not GET"]);
    assert!(service.seen().is_empty(), "a request left without a grant");
    run_printed_command(&home, &ran.stderr);
    home.run(&QUESTION).ended(0).answers(&["In Paris, France it is 18 °C with light rain."]);
    let targets: Vec<String> = service.seen().into_iter().map(|request| request.target).collect();
    assert_eq!(targets.len(), 2, "{targets:?}");
    assert!(targets[0].starts_with("/v1/search?name=Paris"), "{targets:?}");
    assert!(targets[1].contains("latitude=48.85341&longitude=2.3488"), "{targets:?}");
}

/// The refusal of an address that is private, under a grant that does not say so.
#[test]
fn a_grant_that_forgets_the_private_address_is_mended_by_the_printed_command() {
    let service = service();
    let policy = grant(&service).replace(", to-private = true", "") + RULE;
    let home = home(&service).policy(policy);
    for _ in 0..2 {
        let ran = home.run(&QUESTION).ended(0).answers(&["127.0.0.1 is not a public address"]);
        run_printed_command(&home, &ran.stderr);
    }
    home.run(&QUESTION).ended(0).answers(&["In Paris, France it is 18 °C with light rain."]);
}

#[test]
fn with_a_grant_and_no_rule_somebody_has_to_be_asked() {
    let service = service();
    let home = home(&service).policy(grant(&service));
    let command = ["sallyport policy grant weather --allow get_weather"];
    home.run(&QUESTION).ended(6).remarks(&command);
    let call = ["call", "weather.get_weather", r#"{"location":"Paris"}"#];
    home.run(&call).ended(6).remarks(&command);
    assert!(service.seen().is_empty(), "nobody agreed");
}

#[test]
fn a_rule_decides_and_the_strictest_wins() {
    let service = service();
    let call = ["call", "weather.get_weather", r#"{"location":"Paris"}"#];
    let deny = "[[rule]]\ntool = \"weather.get_weather\"\ndecision = \"deny\"\n";
    let rows = [
        (RULE.to_owned(), 0),
        (format!("{RULE}{deny}"), 3),
        (format!("{deny}{RULE}"), 3),
        (RULE.replace("allow", "ask"), 6),
    ];
    for (rules, code) in rows {
        home(&service).policy(grant(&service) + &rules).run(&call).ended(code);
    }
}

#[test]
fn a_pipe_cannot_say_yes() {
    let service = service();
    let home = home(&service).policy(grant(&service));
    let call = ["call", "weather.get_weather", r#"{"location":"Paris"}"#];
    home.run_with_input(&call, "yes\ny\n").ended(6);
    home.run_with_input(&["chat"], "what is the weather in Paris?\nyes\ny\n").ended(0);
    assert!(service.seen().is_empty(), "a pipe said yes");
}

#[test]
fn a_service_that_misbehaves_becomes_an_outcome() {
    let rows = [
        (Response::with(503, &[], ""), "status 503"),
        (Response::ok("<html>"), "unexpected answer"),
        (Response::ok("{}"), "no place is called"),
        (Response::Bytes(b"SSH-2.0-x\r\n".to_vec()), "could not be reached"),
        (Response::Bytes(Vec::new()), "could not be reached"),
    ];
    for (answer, words) in rows {
        let service = Server::start(move |_| answer.clone());
        let home = home(&service).policy(grant(&service) + RULE);
        let arguments = serde_json::json!({ "location": "Paris" });
        let (told, code) = home.call("weather.get_weather", &arguments);
        assert_eq!((&told["outcome"], code), (&"failed".into(), 7), "{told}");
        assert!(told["result"]["error"].as_str().unwrap().contains(words), "{words}: {told}");
    }
}

#[test]
fn what_a_run_was_refused_is_learned_step_by_step() {
    let service = service();
    let home = home(&service).policy("# mine\n");
    let call = ["call", "weather.get_weather", r#"{"location":"Paris"}"#];
    let learn = |flags: &[&str]| {
        home.run(&[&["policy", "learn", "weather"], flags, &["--"], &call].concat())
    };
    let ran = learn(&[]).ended(6).answers(&["+ ", "/v1/search", "to-private = true"]);
    ran.remarks(&["this needs a confirmation"]);
    assert_eq!(policy(&home), "# mine\n", "a run grants nothing by itself");
    assert!(service.seen().is_empty());
    let ran = learn(&["--yes"]).ended(0).remarks(&["Accepted by --yes", "refused nothing"]);
    assert_eq!(ran.stdout.matches("Saved.").count(), 3, "{ran:#?}");
    let written = policy(&home);
    assert!(written.starts_with("# mine\n") && written.contains("digest = "), "{written}");
    for path in ["/v1/search\"", "/v1/forecast\""] {
        assert_eq!(written.matches(path).count(), 1, "{written}");
    }
    home.run(&call).ended(0);
    learn(&[]).ended(0).remarks(&["weather was refused nothing"]);
    home.run(&["audit", "show", "--kind", "policy"]).ended(0).answers(&["may not GET http://127"]);
}

#[test]
fn what_is_learned_is_agreed_to_at_a_terminal() {
    let service = service();
    let home = home(&service);
    let learn = ["policy", "learn", "weather", "--"];
    for (answer, is_written) in [("", false), ("y", true)] {
        let mut terminal = Terminal::start(&home, &[&learn[..], &QUESTION].concat());
        terminal.read_to("Write this? [y]es / [n]o: ");
        writeln!(terminal.outer, "{answer}").unwrap();
        terminal.read_to(if is_written { "Saved." } else { "Nothing was changed." });
        terminal.kills();
        assert_eq!(home.path("policy.toml").exists(), is_written);
    }
}

#[test]
fn only_what_can_be_learned_from_is_run() {
    let home = Home::new().plugins(&["weather"]);
    for (args, code, words) in [
        (&["weather"][..], 2, "required"),
        (&["weather", "--", "policy", "check"], 2, "only a call or a run"),
        (&["weather", "--", "cal"], 2, "unrecognized"),
        (&["wether", "--", "call", "weather.get_weather"], 2, "did you mean weather?"),
    ] {
        let ran = home.run(&[&["policy", "learn"], args].concat());
        ran.ended(code).remarks(&[words]);
    }
    assert!(!home.path("policy.toml").exists());
}

#[test]
fn files_that_a_plugin_itself_found_missing_were_not_learned() {
    let home = Home::new().plugins(&["system-info"]);
    let call = ["call", "system-info.get_system_info"];
    let learn = [&["policy", "learn", "system-info", "--yes", "--"], &call[..]].concat();
    home.run(&learn).ended(0).answers(&["/proc/meminfo", "Saved."]);
    home.run(&call).ended(0);
}
