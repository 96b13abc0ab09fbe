//! Sends mail with the Gmail account that the user has connected.
//!
//! `google-mail.json` describes the action and has its rules; this component runs it. The host signs
//! the request in, so the component never holds a token.

mod answer;
mod message;

use data_encoding::BASE64URL;
use sallyport_sdk::{http, prelude::*, settings};

/// The place of the service that sends messages.
const SEND_PATH: &str = "/gmail/v1/users/me/messages/send";

/// A message to send.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SendEmail {
    recipients: Recipients,
    content: Content,
}

/// Who receives the message. An address is `ann@example.com` or `Ann Lee <ann@example.com>`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Recipients {
    /// Primary recipients.
    to: Vec<String>,
    /// Recipients of a copy.
    #[serde(default)]
    cc: Vec<String>,
    /// Recipients of a copy whom the others do not see.
    #[serde(default)]
    bcc: Vec<String>,
}

/// The text of the message.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Content {
    subject: String,
    /// Plain text.
    #[serde(default)]
    body: String,
}

/// Sends a message from the connected account.
#[tool(idempotent = false, open_world)]
fn send_email(args: SendEmail) -> Result<Value, ToolError> {
    let raw = BASE64URL.encode(&message::build_message(&args)?);
    let base: String = settings::get("gmail_url")?;
    let url = format!("{}{SEND_PATH}", base.trim_end_matches('/'));
    let sent = http::post(url).json(json!({ "raw": raw })).send();
    answer::read_answer(sent.map_err(answer::unclear_end)?)
}

sallyport_sdk::export_plugin!(tools = [send_email]);
