//! What the conformance suite of the Model Context Protocol expects of a server, as a plugin. The
//! names and texts are those of its scenarios.
mod offers;

use std::{thread::sleep, time::Duration};

use sallyport_sdk::{Content, log, prelude::*, progress, resources::Contents};

/// A red dot of one pixel, as PNG.
pub(crate) const DOT_PNG: &[u8] = &[
    0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, b'I', b'H', b'D', b'R', 0, 0, 0,
    1, 0, 0, 0, 1, 8, 2, 0, 0, 0, 0x90, 0x77, 0x53, 0xde, 0, 0, 0, 0x0c, b'I', b'D', b'A', b'T', 8,
    0xd7, 0x63, 0xf8, 0xcf, 0xc0, 0, 0, 3, 1, 1, 0, 0x18, 0xdd, 0x8d, 0xb0, 0, 0, 0, 0, b'I', b'E',
    b'N', b'D', 0xae, 0x42, 0x60, 0x82,
];

/// A sound without samples, as WAV.
const SILENCE_WAV: &[u8] = &[
    b'R', b'I', b'F', b'F', 36, 0, 0, 0, b'W', b'A', b'V', b'E', b'f', b'm', b't', b' ', 16, 0, 0,
    0, 1, 0, 1, 0, 0x40, 0x1f, 0, 0, 0x80, 0x3e, 0, 0, 2, 0, 16, 0, b'd', b'a', b't', b'a', 0, 0,
    0, 0,
];

/// The pause between two steps.
const STEP: Duration = Duration::from_millis(50);

/// Longer than a call takes that is no task.
const LONG: Duration = Duration::from_millis(1500);

/// The steps of a call that takes until it is cancelled.
const STEPS_MAX: u32 = 1200;

fn dot() -> Content {
    Content::Image { media_type: "image/png".to_owned(), data: DOT_PNG.to_vec() }
}

/// Returns a text.
#[tool(read_only, open_world = false)]
fn test_simple_text() -> &'static str {
    "This is a simple text response for testing."
}

/// Returns a picture.
#[tool(read_only, open_world = false)]
fn test_image_content() -> Output {
    Output::new(Value::Null).part(dot())
}

/// Returns a sound.
#[tool(read_only, open_world = false)]
fn test_audio_content() -> Output {
    let (media_type, data) = ("audio/wav".to_owned(), SILENCE_WAV.to_vec());
    Output::new(Value::Null).part(Content::Audio { media_type, data })
}

/// Returns a resource with its text.
#[tool(read_only, open_world = false)]
fn test_embedded_resource() -> Output {
    let text = "This is an embedded resource content.";
    let contents = Contents::text("test://embedded-resource", "text/plain", text);
    Output::new(Value::Null).part(Content::Embedded(contents))
}

/// Returns a text, a picture and a resource.
#[tool(read_only, open_world = false)]
fn test_multiple_content_types() -> Output {
    let text = json!({ "test": "data", "value": 123 }).to_string();
    let contents = Contents::text("test://mixed-content-resource", "application/json", text);
    let text = "Multiple content types test:";
    Output::new(Value::Null).text(text).part(dot()).part(Content::Embedded(contents))
}

/// Logs three lines.
#[tool(read_only, open_world = false)]
fn test_tool_with_logging() -> &'static str {
    log::info("Tool execution started");
    sleep(STEP);
    log::info("Tool processing data");
    sleep(STEP);
    log::info("Tool execution completed");
    "Logged three lines."
}

/// Logs three lines.
#[tool(read_only, open_world = false)]
fn test_logging_tool() -> &'static str {
    test_tool_with_logging()
}

/// Fails.
#[tool(read_only, open_world = false)]
fn test_error_handling() -> Result<Value, ToolError> {
    Err(ToolError::Failed("This tool intentionally returns an error for testing".to_owned()))
}

/// Reports how far it has come.
#[tool(read_only, open_world = false)]
fn test_tool_with_progress() -> &'static str {
    for part in [0.0, 0.5, 1.0] {
        progress::report(Some(part), Some("working"));
        sleep(STEP);
    }
    "Reported three times."
}

/// Reports how far it has come until it is cancelled, for a minute at most.
#[tool(read_only, open_world = false)]
fn test_until_cancelled() -> &'static str {
    for step in 0..STEPS_MAX {
        progress::report(Some(f64::from(step) / f64::from(STEPS_MAX)), Some("waiting"));
        sleep(STEP);
    }
    "Nobody cancelled."
}

/// What to return.
#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// The text.
    text: String,
}

/// Returns a text.
#[tool(read_only, idempotent, open_world = false)]
fn echo(args: Echo) -> String {
    args.text
}

/// Whom to greet.
#[derive(Deserialize, JsonSchema)]
struct Greet {
    /// The name.
    name: String,
}

/// Greets at once.
#[tool(read_only, open_world = false)]
fn greet(args: Greet) -> String {
    format!("Hello, {}!", args.name)
}

/// How long to take.
#[derive(Deserialize, JsonSchema)]
struct Slow {
    /// The time, in seconds.
    seconds: u64,
    /// A name for the result.
    label: Option<String>,
}

/// Returns a result after a while.
#[tool(read_only, open_world = false)]
fn slow_compute(args: Slow) -> String {
    sleep(Duration::from_secs(args.seconds.min(60)));
    format!("Computed {}.", args.label.unwrap_or_default())
}

/// Fails after a while.
#[tool(read_only, open_world = false)]
fn failing_job() -> Result<Value, ToolError> {
    sleep(LONG);
    Err(ToolError::Failed("This job intentionally fails".to_owned()))
}

/// Breaks after a while.
#[tool(read_only, open_world = false)]
fn protocol_error_job() -> &'static str {
    sleep(LONG);
    panic!("This job intentionally breaks")
}

/// Needs an approval.
#[tool]
fn test_streaming_elicitation() -> &'static str {
    "Approved."
}

/// Needs an approval.
#[tool]
fn test_input_required_result_request_state() -> &'static str {
    "Approved."
}

/// Needs an approval.
#[tool]
fn test_input_required_result_tampered_state() -> &'static str {
    "Approved."
}

/// Needs an approval.
#[tool]
fn test_input_required_result_elicitation() -> &'static str {
    "Approved."
}

sallyport_sdk::export_plugin!(
    tools = [
        test_simple_text,
        test_image_content,
        test_audio_content,
        test_embedded_resource,
        test_multiple_content_types,
        test_tool_with_logging,
        test_logging_tool,
        test_error_handling,
        test_tool_with_progress,
        test_until_cancelled,
        echo,
        greet,
        slow_compute,
        failing_job,
        protocol_error_job,
        test_streaming_elicitation,
        test_input_required_result_request_state,
        test_input_required_result_tampered_state,
        test_input_required_result_elicitation,
    ],
    resources = offers::Texts,
    prompts = offers::Greetings,
);
