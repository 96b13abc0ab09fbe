//! `sallyport serve` against its own OpenAPI document: schemathesis sends what the document allows and
//! what it does not, and compares each answer with the document.

use std::{
    fs,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};

use super::{NeighbourRow, home::NeighbourHome, packages::Packages};

/// A bounded run with the same cases each time. The stream of events has no end, so it is left out.
const ARGUMENTS: [&str; 14] = [
    "--phases",
    "examples,coverage,fuzzing",
    "--max-examples",
    "25",
    "--max-time",
    "120",
    "--seed",
    "1",
    "--request-timeout",
    "10",
    "--exclude-path-regex",
    "/events$",
    "--checks",
    CHECKS,
];

/// No call waits for an approval or until it is cancelled, which would be no answer in time.
const POLICY: &str = r#"
[plugin.reference]
limits = { time = "2s" }

[[rule]]
tool = "*"
decision = "allow"
"#;

/// What has to be true of each answer: no fault of the service, and nothing that is not documented.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_schema_conformance,response_headers_conformance,\
                      unsupported_method,ignored_auth";

/// Runs the program against a service with an operator's token.
pub(super) fn run_schemathesis(packages: &Packages, home: &NeighbourHome) -> Result<NeighbourRow> {
    let made = home.run(&["serve", "token", "add", "operator", "--role", "operator"])?;
    ensure!(made.status.success(), "no token: {}", String::from_utf8_lossy(&made.stderr));
    let token = String::from_utf8(made.stdout)?;
    let policy = home.folder().join("service-policy.toml");
    fs::write(&policy, POLICY)?;
    let serving = home.serve_users(&policy)?;
    let program = packages.folder().join("python/bin/schemathesis");
    let output = Command::new(&program)
        .args(["run", &format!("{}/openapi.json", serving.url)])
        .args(["--header", &format!("Authorization: Bearer {}", token.trim())])
        .args(ARGUMENTS)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        eprintln!("{text}");
    }
    let count = text.lines().find(|line| line.contains("generated,")).unwrap_or_default();
    Ok(NeighbourRow::new(output.status.success(), "service: schemathesis", count.trim()))
}
