//! The tools that use something of the host, and those that have to be stopped.
use std::{fs, hint, io};

use sallyport_sdk::{http, log, prelude::*, secrets, settings, state};

/// A line for the log.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct LogLine {
    /// Its level.
    level: String,
    /// Its text.
    text: String,
}

/// Logs a line.
#[tool]
pub(crate) fn log_line(args: LogLine) {
    match args.level.as_str() {
        "trace" => log::trace(args.text),
        "debug" => log::debug(args.text),
        "warn" => log::warn(args.text),
        "error" => log::error(args.text),
        _ => log::info(args.text),
    }
}

/// A key.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Key {
    /// The key.
    key: String,
}

/// Returns a setting, or null.
#[tool(read_only)]
pub(crate) fn setting(args: Key) -> Result<Value, ToolError> {
    let all: Value = settings::all()?;
    Ok(all.get(&args.key).cloned().unwrap_or_default())
}

/// A request.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Fetch {
    /// The address.
    url: String,
    /// GET when absent.
    method: Option<String>,
}

/// Sends a request and returns the answer.
#[tool]
pub(crate) fn fetch(args: Fetch) -> Result<Value, ToolError> {
    let method = match args.method.as_deref() {
        Some("POST") => http::Method::Post,
        _ => http::Method::Get,
    };
    let response = http::request(method, args.url).send()?;
    Ok(json!({ "status": response.status, "body": response.text()? }))
}

/// A file.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct FilePath {
    /// Its path.
    path: String,
}

/// Returns the text of a file.
#[tool(read_only)]
pub(crate) fn read_file(args: FilePath) -> Result<Output, ToolError> {
    let text = fs::read_to_string(&args.path).map_err(|error| file_error(&args.path, &error))?;
    Ok(Output::new(Value::Null).text(text))
}

/// A file and its new text.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct FileText {
    /// Its path.
    path: String,
    /// The text.
    text: String,
}

/// Writes a file.
#[tool]
pub(crate) fn write_file(args: FileText) -> Result<(), ToolError> {
    fs::write(&args.path, args.text).map_err(|error| file_error(&args.path, &error))
}

fn file_error(path: &str, error: &io::Error) -> ToolError {
    match error.kind() {
        io::ErrorKind::NotFound => ToolError::NotFound(format!("there is no file {path}")),
        _ => ToolError::Failed(format!("{path}: {error}")),
    }
}

/// A key and its value.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct KeyValue {
    /// The key.
    key: String,
    /// The value.
    value: String,
}

/// Keeps a value.
#[tool]
pub(crate) fn state_set(args: KeyValue) -> Result<(), ToolError> {
    Ok(state::set(&args.key, &args.value)?)
}

/// Returns a value that was kept, or null.
#[tool(read_only)]
pub(crate) fn state_get(args: Key) -> Result<Option<String>, ToolError> {
    Ok(state::get(&args.key)?)
}

/// The name of a secret.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct SecretName {
    /// The name.
    name: String,
}

/// Returns whether the plugin can read a secret.
#[tool(read_only)]
pub(crate) fn secret_known(args: SecretName) -> bool {
    secrets::get(&args.name).is_ok()
}

/// Traps.
#[tool]
pub(crate) fn trap() {
    panic!("this tool always panics");
}

/// Never ends.
#[tool]
pub(crate) fn spin() {
    let mut turns = 0_u64;
    loop {
        turns = hint::black_box(turns.wrapping_add(1));
    }
}

/// A count of bytes.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Growth {
    /// How many.
    bytes: u32,
}

/// Allocates memory.
#[tool]
pub(crate) fn grow(args: Growth) -> usize {
    hint::black_box(vec![1_u8; args.bytes as usize]).len()
}
