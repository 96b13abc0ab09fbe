//! `sallyport serve token …`, and where the service listens.

use std::fs;

use serde_json::json;

use super::{ServiceProgram, home, talking_model, token};
use crate::support::{Home, patience::until_so};

#[test]
fn a_token_is_printed_once_and_refused_when_it_is_removed() {
    let model = talking_model();
    let home = home(&model);
    let (ann, ben) = (token(&home, "ann", "user"), token(&home, "ben", "user"));
    let service = ServiceProgram::start(&home);
    service.get(&ann, "/v1/tools");
    let listed = home.run(&["serve", "token", "list", "--output", "json"]).ended(0);
    let listed = listed.hides(&[&ann, &ben]).json();
    assert_eq!(listed["tokens"][0]["name"], "ann");
    assert_eq!(listed["tokens"][0]["expires_ms"], json!(null));
    home.run(&["serve", "token", "add", "ann", "--role", "user"]).ended(2).remarks(&["already"]);
    home.run(&["serve", "token", "remove", "ann"]).ended(0);
    home.run(&["serve", "token", "remove", "ann"]).ended(2).remarks(&["no token"]);
    let refused = service.ask(&ann, "GET", "/v1/tools", "").has(401);
    assert_eq!(refused.problem(), "unauthorized");
    service.get(&ben, "/v1/tools");
    let phone = ["serve", "token", "add", "phone", "--user", "ann", "--role", "user"];
    let phone = home.run(&phone).ended(0).stdout.trim().to_owned();
    assert_eq!(service.get(&phone, "/v1/usage")["user"], "ann");
}

#[test]
fn without_a_token_only_this_machine_is_served() {
    let model = talking_model();
    let home = home(&model);
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let refused = home.run(&["serve", "--listen", address]).ended(2);
        refused.remarks(&["no user has a token", "serve token add"]);
    }
    let service = ServiceProgram::start(&home);
    let printed = service.running.behind("for the operator \"local\": ");
    assert_eq!(service.get(&printed, "/v1/usage")["user"], "local");
    service.get(&printed, "/v1/grants");
    service.request("GET", "/v1/tools", "", "").has(401);
}

#[test]
fn what_is_wrong_with_the_command_line_is_said() {
    let home = Home::new();
    let rows: [(&[&str], i32, &str); 9] = [
        (&["serve", "--listen", "nowhere"], 2, "invalid"),
        (&["serve", "--origin", "team.example"], 2, "a scheme and a host"),
        (&["serve", "--origin", "https://team.example/a"], 2, "a scheme and a host"),
        (&["serve", "token", "add", "a b", "--role", "user"], 2, "is not a name"),
        (&["serve", "token", "add", "ann", "--role", "admin"], 2, "the roles are"),
        (&["serve", "token", "add", "ann"], 2, "--role"),
        (&["serve", "token", "add", "-x", "--role", "user"], 2, "-x"),
        (&["serve", "token", "add", "a", "--role", "user", "--expires-in", "0s"], 2, "longer"),
        (&["serve", "token"], 2, "Usage"),
    ];
    for (args, code, text) in rows {
        home.run(args).ended(code).remarks(&[text]);
    }
    let home = home.file("service-tokens.toml", "broken");
    home.run(&["serve"]).ended(3).remarks(&["is not a file of tokens"]);
    home.run(&["serve", "token", "add", "ann", "--role", "user"]).ended(3);
    assert_eq!(fs::read_to_string(home.path("service-tokens.toml")).unwrap(), "broken");
}

/// Those that were still being compiled at the first start were missing until the next one.
#[test]
fn a_plugin_that_comes_while_the_service_runs_is_served() {
    let model = talking_model();
    let home = home(&model);
    let ann = token(&home, "ann", "user");
    let service = ServiceProgram::start(&home);
    let has_tool = |name: &str| {
        let listed = service.get(&ann, "/v1/tools");
        listed["tools"].as_array().unwrap().iter().any(|tool| tool["id"] == name)
    };
    assert!(!has_tool("timer.set_timer"));
    let home = home.plugins(&["timer"]);
    until_so("the tool", || has_tool("timer.set_timer"));
    fs::remove_dir_all(home.path("plugins/timer")).unwrap();
    until_so("its removal", || !has_tool("timer.set_timer"));
}
