//! `sallyport mcp add`, `list`, `remove` and `check`.

use std::{fs, os::unix::fs::PermissionsExt};

use super::home;
use crate::support::{Home, Person};

#[test]
fn a_server_is_added_checked_listed_and_removed() {
    let home = home("good", "").config("# mine\n").policy("");
    let program = home.path("server.py").display().to_string();
    let add = ["mcp", "add", "fake", "--yes", "--", &program, "good"];
    home.run(&add).ended(0).answers(&["[mcp.fake]", "process = true", "fake.echo", "has 1 tool."]);
    home.run(&add).ended(2).remarks(&["there is an MCP server fake already"]);
    home.run(&["mcp", "list"]).ended(0).answers(&["fake", "ready", "server.py good"]);
    home.run(&["mcp", "list", "--output", "json"]).ended(0).answers(&["\"tools\": 1"]);
    home.run(&["tool", "list"]).ended(0).answers(&["fake.echo"]);
    home.run(&["mcp", "remove", "fake"]).ended(0).remarks(&["policy revoke fake --all"]);
    assert_eq!(fs::read_to_string(home.path("sallyport.toml")).unwrap(), "# mine\n");
    home.run(&["mcp", "remove", "fake"]).ended(2).remarks(&["has no [mcp.fake]"]);
    home.run(&["mcp", "check", "fake"]).ended(2).remarks(&["there is no MCP server fake"]);
    home.run(&["mcp", "list"]).ended(0).remarks(&["No MCP servers"]);
}

#[test]
fn nothing_is_written_without_a_yes() {
    let home = home("good", "").config("").policy("");
    let program = home.path("server.py").display().to_string();
    let add = ["mcp", "add", "fake", "--read", "/usr/share", "--", &program];
    home.run(&add).ended(6).remarks(&["this needs a confirmation"]);
    let mut person = Person::start(&home, &add);
    person.sees("Write this?");
    person.types("n\r");
    person.sees("Nothing was changed.");
    assert_eq!(person.ends(), 0);
    assert_eq!(fs::read_to_string(home.path("sallyport.toml")).unwrap(), "");
    assert_eq!(fs::read_to_string(home.path("policy.toml")).unwrap(), "");
}

/// `add` and `remove` said that nothing was changed after they had changed the configuration.
#[test]
fn nothing_is_changed_if_the_record_of_a_change_cannot_be_written() {
    let home = home("good", "").config("").policy("");
    let program = home.path("server.py").display().to_string();
    let add = |name: &str| home.run(&["mcp", "add", name, "--yes", "--", &program, "good"]);
    add("fake").ended(0);
    let text = |name: &str| fs::read_to_string(home.path(name)).unwrap();
    let before = [text("sallyport.toml"), text("policy.toml")];
    let exposed = fs::Permissions::from_mode(0o644);
    fs::set_permissions(home.path("state/audit.key"), exposed).unwrap();
    add("other").ended(10).remarks(&["nothing was changed"]);
    home.run(&["mcp", "remove", "fake"]).ended(10).remarks(&["nothing was changed"]);
    assert_eq!([text("sallyport.toml"), text("policy.toml")], before);
}

#[test]
fn what_cannot_be_a_server_is_refused() {
    let empty = Home::new().config("");
    let add = |rest: &[&str]| empty.run(&[&["mcp", "add", "--yes"], rest].concat());
    add(&["fake"]).ended(2).remarks(&["COMMAND"]);
    add(&["a b", "--", "true"]).ended(2);
    add(&["fake", "--env", "X", "--", "true"]).ended(2).remarks(&["write NAME=VALUE"]);
    let rows = [
        ("[mcp.fake]\n", "key \"command\" or \"url\" is missing"),
        ("[mcp.fake]\ncommand = []\n", "its command is empty"),
        ("[mcp.fake]\ncommand = ['no-such-program']\n", "there is no program no-such-program"),
        ("[mcp.fake]\ncommand = ['/etc/passwd']\n", "/etc/passwd is not executable"),
        ("[mcp.fake]\ncommand = 'true'\n", "\"command\" must be a list"),
        ("[mcp.fake]\ncommand = ['true']\nurls = 'x'\n", "unknown key \"urls\""),
        ("[mcp.fake]\ncommand = ['true']\nenv = { A = '${NO_SUCH}' }\n", "\"NO_SUCH\" is not set"),
    ];
    for (config, words) in rows {
        let home = Home::new().config(config);
        let ran = home.run(&["plugin", "list"]);
        assert!(ran.stderr.contains(words) || ran.stdout.contains(words), "{config}: {ran:?}");
    }
}

#[test]
fn a_folder_that_is_not_granted_is_refused() {
    let home = home("good", "folder = \"/var\"");
    home.run(&["mcp", "check", "fake"]).ended(9).remarks(&["its folder /var is not granted"]);
}

/// The values of variables are keys, so nothing shows them.
#[test]
fn the_values_of_variables_are_hidden() {
    let home = home("good", "env = { KEY = \"a-long-secret\", OTHER = \"${HOME}\" }");
    home.run(&["config", "show"]).ended(0).answers(&["${HOME}"]).hides(&["a-long-secret"]);
}
