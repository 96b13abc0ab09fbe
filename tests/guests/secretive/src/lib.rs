//! Reads the secrets that it is told to read. A component of its own, since one that can ask for
//! secrets is not loaded unless its manifest requests some.

use sallyport_sdk::{prelude::*, secrets};

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

sallyport_sdk::export_plugin!(tools = [reads_secret, tries_secret]);
