//! The tools of MCP servers: configured, granted, asked, and bounded however a server behaves.

mod address;
mod changes;
mod commands;
mod crowds;
mod hostile;
mod questions;
mod sign_in;

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::{Value, json};

use crate::support::Home;

/// Lets the server run, without a question.
const GRANTED: &str =
    "[plugin.fake]\nprocess = true\n\n[[rule]]\ntool = \"fake.*\"\ndecision = \"allow\"\n";

/// A home with the server of the tests, which behaves in this way. `more` follows its command.
pub(crate) fn home(mode: &str, more: &str) -> Home {
    let home = Home::with_own_cache().file("server.py", include_str!("server.py"));
    let program = home.path("server.py");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let command = json!([program, mode]);
    home.config(format!("[mcp.fake]\ncommand = {command}\n{more}\n")).policy(GRANTED)
}

/// A call of the tool ends like this, with these words in its result.
#[track_caller]
fn ends(home: &Home, outcome: &str, words: &[&str]) -> Value {
    let (told, _) = home.call("fake.echo", &json!({ "a": 1 }));
    assert_eq!(told["outcome"], outcome, "{told}");
    for word in words {
        assert!(told.to_string().contains(word), "no {word:?} in {told}");
    }
    told
}
