//! Servers whose tools change: no call until the user has accepted the difference.

use std::fs;

use serde_json::json;

use super::{ends, home};
use crate::support::McpClient;

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
