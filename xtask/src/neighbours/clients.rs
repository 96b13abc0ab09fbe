//! The clients of the official SDKs list and call every tool, over standard input and HTTP.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Context, Result};
use serde_json::Value;

use super::{NeighbourRow, home::NeighbourHome, packages::Packages};

/// Runs both clients. Each prints a JSON line for each row.
pub(super) fn run_clients(packages: &Packages, home: &NeighbourHome) -> Result<Vec<NeighbourRow>> {
    let server = home.serve()?;
    let clients: [(&str, PathBuf, &str); 2] = [
        ("TypeScript SDK", packages.node(), "client.mjs"),
        ("Python SDK", packages.python(), "client.py"),
    ];
    let mut rows = Vec::new();
    for (name, interpreter, script) in clients {
        eprintln!("the client of the {name} …");
        let output = Command::new(interpreter)
            .current_dir(packages.folder())
            .arg(packages.folder().join(script))
            .arg(home.program())
            .args([home.folder().as_os_str(), server.url.as_ref()])
            .stderr(Stdio::inherit())
            .output()
            .context("cannot run the client")?;
        let text = String::from_utf8_lossy(&output.stdout);
        rows.extend(text.lines().map(|line| client_row(name, line)));
        let ended = NeighbourRow::new(
            output.status.success(),
            format!("{name}: ends"),
            output.status.to_string(),
        );
        rows.push(ended);
    }
    Ok(rows)
}

/// A line is `{"name": …, "ok": …, "detail": …}`.
fn client_row(client: &str, line: &str) -> NeighbourRow {
    let row: Value = serde_json::from_str(line).unwrap_or_default();
    let name = format!("{client}: {}", row["name"].as_str().unwrap_or(line));
    NeighbourRow::new(row["ok"] == true, name, row["detail"].as_str().unwrap_or_default())
}
