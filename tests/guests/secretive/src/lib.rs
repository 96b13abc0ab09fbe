//! Reads the secrets that it is told to read. A component of its own, since one that can ask for
//! secrets is not loaded unless its manifest requests some.

use sallyport_sdk::{log, prelude::*, secrets};

/// A secret.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Name {
    /// Its name.
    name: String,
}

/// Tells the value of a secret.
#[tool]
fn reads_secret(args: Name) -> Result<String, ToolError> {
    Ok(secrets::get(&args.name)?)
}

/// Tells only whether the value of a secret could be read, and the error if not.
#[tool]
fn tries_secret(args: Name) -> Value {
    match secrets::get(&args.name) {
        Ok(value) => json!({ "bytes": value.len() }),
        Err(error) => json!({ "error": error.to_string() }),
    }
}

/// A line of the log that ends in a secret.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Line {
    /// The name of the secret.
    name: String,
    /// How many letters are in front of it.
    before: usize,
}

/// Writes a secret behind many letters, to the log and to standard error.
#[tool]
fn logs_secret(args: Line) -> Result<(), ToolError> {
    let line = "x".repeat(args.before) + &secrets::get(&args.name)?;
    log::info(&line);
    eprintln!("{line}");
    Ok(())
}

sallyport_sdk::export_plugin!(tools = [reads_secret, tries_secret, logs_secret]);
