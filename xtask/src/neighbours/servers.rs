//! The reference servers, behind our client and inside the walls of a script.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{NeighbourRow, home::NeighbourHome, packages::Packages};
use crate::process::run_for_output;

/// A call of a tool, and how it has to end.
struct ServerCall {
    tool: &'static str,
    arguments: Value,
    outcome: &'static str,
    /// Words of the result.
    words: &'static str,
}

fn call(
    tool: &'static str,
    arguments: Value,
    outcome: &'static str,
    words: &'static str,
) -> ServerCall {
    ServerCall { tool, arguments, outcome, words }
}

/// Adds the servers, and calls their tools.
pub(super) fn run_servers(packages: &Packages, home: &NeighbourHome) -> Result<Vec<NeighbourRow>> {
    eprintln!("the reference servers …");
    let folder = home.folder().join("shared");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("a.md"), "a file of the host")?;
    let node = text_of(packages.node())?;
    let script = |name: &str| {
        let path = format!("@modelcontextprotocol/server-{name}/dist/index.js");
        text_of(packages.module(&path))
    };
    let shared = text_of(folder)?;
    let mut rows = Vec::new();
    let command = [node.as_str(), &script("everything")?, "stdio"];
    rows.extend(check_server(packages, home, ("everything", &[], &command), everything_calls())?);
    let command = [node.as_str(), &script("filesystem")?, &shared];
    let calls = filesystem_calls(&shared, &text_of(home.folder().join("policy.toml"))?);
    rows.extend(check_server(
        packages,
        home,
        ("filesystem", &["--write", &shared], &command),
        calls,
    )?);
    let base = run_for_output(
        Command::new(packages.python()).args(["-c", "import sys; print(sys.base_prefix)"]),
    )?;
    let program = text_of(packages.folder().join("python/bin/mcp-server-time"))?;
    let command = [program.as_str(), "--local-timezone", "UTC"];
    let server = ("time", &["--read", base.trim()][..], &command[..]);
    rows.extend(check_server(packages, home, server, time_calls())?);
    Ok(rows)
}

fn text_of(path: PathBuf) -> Result<String> {
    path.into_os_string().into_string().ok().context("a path is not text")
}

fn everything_calls() -> Vec<ServerCall> {
    vec![
        call("echo", json!({ "message": "hello" }), "completed", "Echo: hello"),
        call("get-sum", json!({ "a": 2, "b": 3 }), "completed", "The sum of 2 and 3 is 5."),
        call("get-tiny-image", json!({}), "completed", "image/png"),
        call(
            "get-structured-content",
            json!({ "location": "Chicago" }),
            "completed",
            "\"temperature\"",
        ),
        call("get-annotated-message", json!({ "messageType": "error" }), "completed", "Error"),
        call("get-resource-links", json!({ "count": 2 }), "completed", "demo://resource"),
        call(
            "get-resource-reference",
            json!({ "resourceType": "Text", "resourceId": 1 }),
            "completed",
            "demo://resource",
        ),
        call(
            "trigger-long-running-operation",
            json!({ "duration": 1, "steps": 2 }),
            "completed",
            "Long running operation completed",
        ),
        call("get-sum", json!({ "a": "two" }), "invalid-arguments", "b"),
        call("get-env", json!({}), "completed", "PATH"),
    ]
}

fn filesystem_calls(shared: &str, policy: &str) -> Vec<ServerCall> {
    let file = |name: &str| format!("{shared}/{name}");
    let write = json!({ "path": file("b.md"), "content": "written" });
    vec![
        call("read_text_file", json!({ "path": file("a.md") }), "completed", "a file of the host"),
        call("write_file", write, "completed", "Successfully wrote"),
        call("read_text_file", json!({ "path": file("b.md") }), "completed", "written"),
        call("list_directory", json!({ "path": shared }), "completed", "[FILE] b.md"),
        call("read_text_file", json!({ "path": policy }), "failed", "Access denied"),
    ]
}

fn time_calls() -> Vec<ServerCall> {
    vec![
        call("get_current_time", json!({ "timezone": "Asia/Tokyo" }), "completed", "+09:00"),
        call(
            "convert_time",
            json!({
                "source_timezone": "Europe/Berlin",
                "time": "12:00",
                "target_timezone": "Asia/Tokyo",
            }),
            "completed",
            "time_difference",
        ),
        call("get_current_time", json!({ "timezone": "Nowhere" }), "failed", "timezone"),
    ]
}

/// Adds a server under a name, with flags and a command, and calls its tools.
fn check_server(
    packages: &Packages,
    home: &NeighbourHome,
    (name, flags, command): (&str, &[&str], &[&str]),
    calls: Vec<ServerCall>,
) -> Result<Vec<NeighbourRow>> {
    let folder = text_of(packages.folder().to_owned())?;
    let added = [&["mcp", "add", name, "--yes", "--read", &folder], flags, &["--"], command];
    let added = home.run(&added.concat())?;
    let log = String::from_utf8_lossy(&added.stderr);
    let detail = log.lines().last().unwrap_or_default().to_owned();
    let mut rows =
        vec![NeighbourRow::new(added.status.success(), format!("server-{name}: is added"), detail)];
    for call in calls {
        rows.push(check_call(home, name, &call)?);
    }
    Ok(rows)
}

fn check_call(home: &NeighbourHome, server: &str, call: &ServerCall) -> Result<NeighbourRow> {
    let ServerCall { tool, arguments, outcome, words } = call;
    let id = format!("{server}.{tool}");
    let output = home.run(&["call", &id, &arguments.to_string(), "--output", "json"])?;
    let answer = String::from_utf8_lossy(&output.stdout);
    let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
    let is_expected = answer["outcome"] == *outcome && says(&answer["result"], words);
    let name = format!("server-{server}: {tool} {outcome}");
    let detail: String = answer["result"].to_string().chars().take(120).collect();
    Ok(NeighbourRow::new(is_expected, name, detail))
}

/// Whether a text somewhere in a value has these words, or the value as JSON.
fn says(value: &Value, words: &str) -> bool {
    match value {
        Value::String(text) => text.contains(words),
        Value::Array(values) => values.iter().any(|value| says(value, words)),
        Value::Object(map) => {
            value.to_string().contains(words) || map.values().any(|value| says(value, words))
        }
        _ => false,
    }
}
