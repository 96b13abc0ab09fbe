//! Servers whose tools change: no call until the user has accepted the difference.

use std::fs;

use serde_json::json;

use super::{GRANTED, ends, home};
use crate::support::{McpClient, patience::until_so};

#[test]
fn other_tools_than_the_accepted_ones_get_no_call() {
    let home = home("good", "");
    ends(&home, "completed", &[]);
    let config = fs::read_to_string(home.path("sallyport.toml")).unwrap();
    let home = home.config(format!("{config}env = {{ MORE = \"1\" }}\n"));
    // Another variable makes another server.
    home.run(&["call", "fake.echo"]).ended(3).remarks(&["the tool more is new"]);
    home.run(&["plugin", "accept", "fake"]).ended(6).answers(&["+ more: "]).remarks(&["--yes"]);
    home.run(&["plugin", "accept", "fake", "--yes"]).ended(0).answers(&["+ more: "]);
    ends(&home, "completed", &[]);
    // Another value does not, so the server is found out when it is called.
    let home = home.config(format!("{config}env = {{ MORE = \"\" }}\n"));
    let refused = home.run(&["call", "fake.echo"]).ended(7);
    refused.remarks(&["have changed since they were accepted", "plugin accept fake"]);
    // Less than before needs no answer.
    home.run(&["plugin", "accept", "fake"]).ended(0).answers(&["- more", "Accepted fake."]);
    ends(&home, "completed", &[]);
}

#[test]
fn tools_that_change_while_it_runs_get_no_call() {
    let home = home("grows", "");
    let mut client = McpClient::greeted(&home, &[], &json!({}));
    let first = client.call("fake__echo", &json!({}));
    assert!(first["isError"].is_null() || first["isError"] == false, "{first}");
    let second = client.call("fake__echo", &json!({}));
    assert_eq!(second["isError"], true, "{second}");
    let refused = home.run(&["call", "fake.echo"]).ended(3);
    refused.remarks(&["the tool more is new"]);
}

/// The words of a call that gets no result because the tools have changed.
const CHANGED: &str = "have changed since they were accepted";

/// The list was compared once, and then forgotten.
#[test]
fn a_server_with_other_tools_stays_refused() {
    let home = home("grows", "");
    let mut client = McpClient::greeted(&home, &[], &json!({}));
    assert_eq!(client.call("fake__echo", &json!({}))["isError"], false);
    for _ in 0..3 {
        let refused = client.call("fake__echo", &json!({}));
        assert_eq!(refused["isError"], true, "{refused}");
        assert!(refused.to_string().contains(CHANGED), "{refused}");
    }
}

/// The report of the change was used up by the attempt.
#[test]
fn a_list_that_fails_after_a_change_lets_no_call_pass() {
    let home = home("grows-unlisted", "");
    let mut client = McpClient::greeted(&home, &[], &json!({}));
    assert_eq!(client.call("fake__echo", &json!({}))["isError"], false);
    for _ in 0..3 {
        let refused = client.call("fake__echo", &json!({}));
        assert_eq!(refused["isError"], true, "{refused}");
    }
}

/// The second call did not see the report that the first one had taken.
#[test]
fn calls_at_once_wait_for_the_list_of_a_changed_server() {
    let home = home("grows-slowly", "");
    let mut client = McpClient::greeted(&home, &[], &json!({}));
    assert_eq!(client.call("fake__echo", &json!({}))["isError"], false);
    let call = json!({ "name": "fake__echo", "arguments": {} });
    let calls = [0; 3].map(|_| client.request("tools/call", &call));
    for id in calls {
        let refused = client.answer(id);
        assert!(refused.to_string().contains(CHANGED), "{refused}");
    }
}

#[test]
fn a_server_that_changes_back_is_called_again() {
    let home = home("grows-back", "");
    let mut client = McpClient::greeted(&home, &[], &json!({}));
    assert_eq!(client.call("fake__echo", &json!({}))["isError"], false);
    let refused = client.call("fake__echo", &json!({}));
    assert!(refused.to_string().contains(CHANGED), "{refused}");
    until_so("a call", || client.call("fake__echo", &json!({}))["isError"] == false);
    // The file with its tools has the newest ones, so another host has nothing to accept.
    home.run(&["call", "fake.echo"]).ended(0);
}

#[test]
fn a_running_server_is_called_again_once_its_tools_are_accepted() {
    let home = home("good", "").user_file("state/here", "");
    let (folder, grown) = (home.user_path("state"), home.user_path("state/grown"));
    let config = fs::read_to_string(home.path("sallyport.toml")).unwrap();
    let files = format!("process = true\nfs = [{{ path = {folder:?}, access = \"read\" }}]");
    let home = home
        .config(format!("{config}env = {{ STATE = {grown:?} }}\n"))
        .policy(GRANTED.replace("process = true", &files));
    let mut client = McpClient::greeted(&home, &[], &json!({}));
    assert_eq!(client.call("fake__echo", &json!({}))["isError"], false);
    fs::write(&grown, "").unwrap();
    for _ in 0..2 {
        let refused = client.call("fake__echo", &json!({}));
        assert!(refused.to_string().contains(CHANGED), "{refused}");
    }
    home.run(&["plugin", "accept", "fake", "--yes"]).ended(0).answers(&["+ more: "]);
    until_so("the accepted tools", || {
        client.ask("tools/list", &json!({})).to_string().contains("fake__more")
    });
    assert_eq!(client.call("fake__echo", &json!({}))["isError"], false);
}

#[test]
fn another_program_is_another_server() {
    let home = home("good", "");
    ends(&home, "completed", &[]);
    let program = fs::read_to_string(home.path("server.py")).unwrap();
    let home = home.file("server.py", program + "\n");
    home.run(&["call", "fake.echo"]).ended(3).remarks(&["its component was"]);
}

/// Nobody knows what a server does, so it asks, whatever it claims.
#[test]
fn a_claim_decides_nothing() {
    let home = home("claims", "").policy("[plugin.fake]\nprocess = true\n");
    home.run(&["mcp", "check", "fake"]).ended(0).answers(&["changes nothing"]);
    home.run(&["call", "fake.echo"]).ended(6).remarks(&["no user is connected"]);
}
