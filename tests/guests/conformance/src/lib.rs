//! The Rust SDK's plugin for the conformance cases in `tests/conformance`.
mod power;

use sallyport_sdk::prelude::*;

/// One value of each kind.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Types {
    /// A yes or no.
    flag: bool,
    /// A small integer.
    count: i32,
    /// A large integer, as a number or as decimal digits.
    big: BigInteger,
    /// A number.
    ratio: f64,
    /// A text.
    text: String,
    /// One of three.
    choice: Choice,
    /// Several texts.
    items: Vec<String>,
    /// A pair of numbers.
    record: Point,
    /// A text that may be left out.
    note: Option<String>,
}

/// A 64-bit integer. Many JSON readers round a large number.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum BigInteger {
    /// As a number.
    Number(u64),
    /// As decimal digits.
    Digits(String),
}

/// A colour.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Choice {
    Red,
    Green,
    Blue,
}

/// A point.
#[derive(Deserialize, Serialize, JsonSchema)]
struct Point {
    /// Its first coordinate.
    x: f64,
    /// Its second coordinate.
    y: f64,
}

/// Returns its arguments.
#[tool(read_only, idempotent, open_world = false)]
fn types(args: Types) -> Result<Value, ToolError> {
    let Types { flag, count, big, ratio, text, choice, items, record, note } = args;
    let big = match big {
        BigInteger::Number(number) => number,
        BigInteger::Digits(digits) => digits.parse().map_err(|_| {
            ToolError::InvalidArguments("big is not a number of at most 64 bits".to_owned())
        })?,
    };
    Ok(json!({
        "flag": flag, "count": count, "big": big.to_string(), "ratio": ratio, "text": text,
        "choice": choice, "items": items, "record": record, "note": note,
    }))
}

/// A text.
#[derive(Deserialize, JsonSchema)]
struct Text {
    /// The text.
    text: String,
}

/// Returns a text as content.
#[tool(read_only)]
fn echo(args: Text) -> Output {
    Output::new(Value::Null).text(args.text)
}

/// A count of bytes.
#[derive(Deserialize, JsonSchema)]
struct Bytes {
    /// How many.
    bytes: u32,
}

/// Returns a long text.
#[tool(read_only)]
fn large(args: Bytes) -> Output {
    Output::new(Value::Null).text("x".repeat(args.bytes as usize))
}

/// An error.
#[derive(Deserialize, JsonSchema)]
struct Failure {
    /// Its kind, as the contract spells it.
    kind: String,
    /// Its message.
    message: String,
}

/// Fails.
#[tool]
fn fail(args: Failure) -> Result<Value, ToolError> {
    let Failure { kind, message } = args;
    Err(match kind.as_str() {
        "invalid-arguments" => ToolError::InvalidArguments(message),
        "not-found" => ToolError::NotFound(message),
        "denied" => ToolError::Denied(message),
        "auth-required" => ToolError::AuthRequired(sallyport_sdk::SignIn::new(message)),
        "unavailable" => ToolError::Unavailable(message),
        "failed" => ToolError::Failed(message),
        _ => ToolError::Other { kind, message },
    })
}

sallyport_sdk::export_plugin!(
    tools = [
        types,
        echo,
        large,
        fail,
        power::log_line,
        power::setting,
        power::fetch,
        power::read_file,
        power::write_file,
        power::state_set,
        power::state_get,
        power::secret_known,
        power::trap,
        power::spin,
        power::grow,
    ]
);
