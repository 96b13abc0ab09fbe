//! The bindings to the contract, and conversions between its types and those of this crate.
//!
//! Generated types are not exposed: authors see the types of this crate, which exist on every
//! target.

pub(crate) mod bindings;
mod offers;
mod provider;
mod roles;
pub(crate) mod schedule;
pub(crate) mod serve;
pub(crate) mod state;

use serde_json::{Value, json};

use crate::{
    CallContext, Content, Hints, Output, SetupError, SignIn, ToolError, ToolSpec,
    log::Level,
    plugin::{self, Lifecycle, Tools},
    secrets::SecretError,
};

use bindings::{
    lifecycle::exports::sallyport::plugin::lifecycle as wit_lifecycle,
    powers::sallyport::plugin::secrets as wit_secrets,
    tools::{
        exports::sallyport::plugin::tools as wit_tools,
        sallyport::plugin::{config, log as wit_log, types as wit},
    },
};

impl<P: Tools> wit_tools::Guest for P {
    fn list_tools() -> Vec<wit::ToolSpec> {
        plugin::list(P::TOOLS).map(Into::into).collect()
    }

    fn call_tool(
        context: wit::CallContext,
        name: String,
        arguments: String,
    ) -> Result<wit::ToolOutput, wit::ToolError> {
        Ok(plugin::call(P::TOOLS, &context.into(), &name, &arguments)?.into())
    }
}

impl<P: Lifecycle> wit_lifecycle::Guest for P {
    fn setup() -> Result<(), wit_lifecycle::SetupError> {
        P::setup().map_err(Into::into)
    }

    fn teardown() {
        P::teardown();
    }
}

pub(crate) fn log(level: Level, message: String) {
    wit_log::log(level.into(), &message);
}

pub(crate) fn setting(key: &str) -> Option<String> {
    config::get(key)
}

pub(crate) fn all_settings() -> String {
    config::get_all()
}

pub(crate) fn secret(name: &str) -> Result<String, SecretError> {
    let unavailable = |reason| SecretError::Unavailable { name: name.to_owned(), reason };
    wit_secrets::get(name).map_err(|error| match error {
        wit_secrets::Error::NotGranted => SecretError::NotGranted { name: name.to_owned() },
        wit_secrets::Error::Unavailable(reason) => unavailable(reason),
        wit_secrets::Error::Other(other) => unavailable(message(other)),
    })
}

pub(crate) fn granted_folders() -> Vec<String> {
    let folders = wasip2::filesystem::preopens::get_directories();
    folders.into_iter().map(|(_, path)| path).collect()
}

/// Parses JSON from the host. Text that is not JSON is returned as a string, so that it stays
/// readable.
fn value(json: String) -> Value {
    serde_json::from_str(&json).unwrap_or(Value::String(json))
}

/// Returns the message of an `other` case: its `message` field, or the whole value.
pub(crate) fn message(json: String) -> String {
    match value(json) {
        Value::Object(mut fields) => match fields.remove("message") {
            Some(Value::String(message)) => message,
            _ => Value::Object(fields).to_string(),
        },
        Value::String(text) => text,
        other => other.to_string(),
    }
}

fn blob(media_type: String, data: Vec<u8>) -> wit::Blob {
    wit::Blob { media_type, data, name: None, extra: None }
}

/// Converts a duration to milliseconds, saturating.
fn milliseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl From<wit::CallContext> for CallContext {
    fn from(context: wit::CallContext) -> Self {
        Self {
            call_id: context.call_id,
            session_id: context.session_id,
            user_id: context.user_id,
            conversation_id: context.conversation_id,
            deadline_ms: context.deadline_ms.map(u64::from),
            host_started_ms: context
                .extra
                .and_then(|extra| value(extra)["host_started_ms"].as_u64()),
        }
    }
}

impl From<ToolSpec> for wit::ToolSpec {
    fn from(spec: ToolSpec) -> Self {
        let Hints { read_only, destructive, idempotent, open_world } = spec.hints;
        Self {
            name: spec.name.to_owned(),
            title: spec.title.map(str::to_owned),
            description: spec.description,
            parameters: spec.parameters.to_string(),
            output: spec.output.as_ref().map(Value::to_string),
            hints: wit::Hints { read_only, destructive, idempotent, open_world, extra: None },
            extra: None,
        }
    }
}

impl From<Output> for wit::ToolOutput {
    fn from(output: Output) -> Self {
        Self {
            data: output.data.to_string(),
            content: output.content.into_iter().map(Into::into).collect(),
            speech: output.speech,
            extra: None,
        }
    }
}

impl From<Content> for wit::Content {
    fn from(content: Content) -> Self {
        match content {
            Content::Text(text) => Self::Text(text),
            Content::Image { media_type, data } => Self::Image(blob(media_type, data)),
            Content::Audio { media_type, data } => Self::Audio(blob(media_type, data)),
            Content::Link { uri, media_type, title } => Self::Link(wit::ResourceLink {
                uri,
                media_type,
                title,
                description: None,
                extra: None,
            }),
            Content::Embedded(contents) => Self::Embedded(contents.into()),
            Content::Other(value) => Self::Other(value.to_string()),
        }
    }
}

impl From<ToolError> for wit::ToolError {
    fn from(error: ToolError) -> Self {
        match error {
            ToolError::InvalidArguments(message) => Self::InvalidArguments(message),
            ToolError::NotFound(message) => Self::NotFound(message),
            ToolError::Denied(message) => Self::Denied(message),
            ToolError::AuthRequired(SignIn { message, connection, scopes }) => {
                Self::AuthRequired(wit::SignIn { message, connection, scopes, extra: None })
            }
            ToolError::Unavailable(message) => Self::Unavailable(message),
            ToolError::Failed(message) => Self::Failed(message),
            ToolError::Other { kind, message } => {
                Self::Other(json!({ "kind": kind, "message": message }).to_string())
            }
        }
    }
}

impl From<SetupError> for wit_lifecycle::SetupError {
    fn from(error: SetupError) -> Self {
        match error {
            SetupError::MissingSettings(names) => Self::MissingSettings(names),
            SetupError::Unavailable(reason) => Self::Unavailable(reason),
        }
    }
}

impl From<Level> for wit_log::Level {
    fn from(level: Level) -> Self {
        match level {
            Level::Trace => Self::Trace,
            Level::Debug => Self::Debug,
            Level::Info => Self::Info,
            Level::Warn => Self::Warn,
            Level::Error => Self::Error,
        }
    }
}
