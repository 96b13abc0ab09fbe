//! The provider role: a plugin that answers like a language model, or forwards requests to one.
//!
//! ```
//! use sallyport_sdk::{provider::{self, Answer, Message, ProviderError, Request}, testing};
//!
//! /// Says everything again.
//! fn generate(request: Request) -> Result<Answer, ProviderError> {
//!     let Some(Message::User(said)) = request.history.last() else {
//!         return Err(ProviderError::Refused("there is nothing to answer".to_owned()));
//!     };
//!     provider::text(&said.text);
//!     Ok(Answer::new(&said.text))
//! }
//!
//! sallyport_sdk::export_plugin!(provider = generate);
//!
//! # fn main() {
//! let request = Request { history: vec![Message::user("Hello")], ..Request::default() };
//! assert_eq!(generate(request).unwrap().message.text, "Hello");
//! assert_eq!(testing::deltas(), [provider::Delta::Text("Hello".to_owned())]);
//! # }
//! ```

use std::{error::Error, fmt, time::Duration};

use serde_json::Value;

use crate::{CallContext, http::HttpError, settings::SettingError};

/// A request for an answer.
///
/// ```
/// use sallyport_sdk::provider::Request;
///
/// assert_eq!(Request::default().settings.model, None);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// The origin of the request, and its deadline.
    pub context: CallContext,
    /// The conversation. The answer is to the last message.
    pub history: Vec<Message>,
    /// The tools that the answer may call.
    pub tools: Vec<ToolDefinition>,
    /// The settings of the answer.
    pub settings: Generation,
}

/// A message of the conversation.
///
/// ```
/// use sallyport_sdk::provider::{Message, UserMessage};
///
/// let said = UserMessage { text: "Hello".to_owned(), attachments: vec![] };
/// assert_eq!(Message::user("Hello"), Message::User(said));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// Instructions for the model.
    System(String),
    /// A message of the user.
    User(UserMessage),
    /// An answer of the model.
    Assistant(AnswerMessage),
    /// The result of a tool call.
    Tool(ToolResult),
    /// Anything else, as a JSON object with a `role`.
    Other(Value),
}

impl Message {
    /// Makes a message of the user, without attachments.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User(UserMessage { text: text.into(), attachments: Vec::new() })
    }
}

/// A message of the user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserMessage {
    /// The text.
    pub text: String,
    /// The attached files.
    pub attachments: Vec<Attachment>,
}

/// A file that is attached to a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// The media type, such as `image/png`.
    pub media_type: String,
    /// The bytes of the file.
    pub data: Vec<u8>,
    /// The file name without folders, if it has one.
    pub name: Option<String>,
}

/// A message of the model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AnswerMessage {
    /// The text for the user; may be empty.
    pub text: String,
    /// The calls that the model requests.
    pub calls: Vec<ToolCall>,
    /// The provider's own form of this message. It is returned unchanged, only to this plugin.
    pub opaque: Option<Value>,
}

/// A call that the model requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// An id that is unique within the answer.
    pub id: String,
    /// The name of one of the tools in the request.
    pub name: String,
    /// The arguments: a JSON object, as the model wrote it.
    pub arguments: String,
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// The id of the call.
    pub call_id: String,
    /// The tool's name.
    pub name: String,
    /// The data.
    pub content: Value,
    /// Images and audio that belong to the result.
    pub attachments: Vec<Attachment>,
    /// True unless the call completed.
    pub failed: bool,
}

/// A tool that the answer may call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    /// The name: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// What the tool does and when to use it.
    pub description: String,
    /// The JSON Schema of the arguments, an object schema.
    pub parameters: Value,
}

/// The settings of an answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Generation {
    /// The name of the model, if the provider has several.
    pub model: Option<String>,
    /// How much the answers may vary, from 0 up.
    pub temperature: Option<f64>,
    /// Longest answer, in tokens.
    pub tokens_max: Option<u64>,
}

/// Why the model stopped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Finish {
    /// The answer is complete.
    #[default]
    Stop,
    /// The model requests tool calls.
    ToolCalls,
    /// The answer was cut at a limit.
    Length,
    /// The answer was withheld.
    Withheld,
    /// Another reason.
    Other(String),
}

/// The tokens that an answer used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens that the model read.
    pub input_tokens: u64,
    /// Tokens that the model wrote.
    pub output_tokens: u64,
}

/// An answer. It is final unless it contains calls.
///
/// ```
/// use sallyport_sdk::provider::{Answer, Finish};
///
/// let answer = Answer::new("Good morning.");
/// assert_eq!((answer.is_final(), answer.finish), (true, Finish::Stop));
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// The complete message, including everything that was pushed as deltas.
    pub message: AnswerMessage,
    /// Why the model stopped.
    pub finish: Finish,
    /// The tokens used, if known.
    pub usage: Option<Usage>,
}

impl Answer {
    /// Makes an answer that only has text.
    pub fn new(text: impl Into<String>) -> Self {
        let message = AnswerMessage { text: text.into(), ..AnswerMessage::default() };
        Self { message, ..Self::default() }
    }

    /// Makes an answer that requests one tool call.
    ///
    /// ```
    /// use sallyport_sdk::{prelude::*, provider::Answer};
    ///
    /// let answer = Answer::call("1", "clock__get_time", &json!({ "timezone": "Tokyo" }));
    /// assert!(!answer.is_final());
    /// ```
    pub fn call(id: impl Into<String>, name: impl Into<String>, arguments: &Value) -> Self {
        let call = ToolCall { id: id.into(), name: name.into(), arguments: arguments.to_string() };
        let message = AnswerMessage { calls: vec![call], ..AnswerMessage::default() };
        Self { message, finish: Finish::ToolCalls, usage: None }
    }

    /// Returns whether the answer contains no calls.
    pub fn is_final(&self) -> bool {
        self.message.calls.is_empty()
    }
}

/// Why a provider has no answer. The user reads the text.
///
/// `?` converts errors of requests and of settings into it.
///
/// ```
/// use sallyport_sdk::{http::HttpError, provider::ProviderError};
///
/// let error = ProviderError::from(HttpError::Status { status: 429 });
/// assert!(matches!(error, ProviderError::Busy { .. }));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderError {
    /// The service did not accept the key.
    Credentials(String),
    /// The service cannot be reached.
    Unreachable(String),
    /// The service is busy; the request may succeed later.
    Busy {
        /// The message for the user.
        message: String,
        /// The wait that the service asks for, if it states one.
        retry_after: Option<Duration>,
    },
    /// The request could not be sent or the service refused it, the response was unusable, or a
    /// setting is wrong.
    Refused(String),
}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Credentials(text)
        | Self::Unreachable(text)
        | Self::Busy { message: text, .. }
        | Self::Refused(text)) = self;
        f.write_str(text)
    }
}

impl Error for ProviderError {}

impl From<HttpError> for ProviderError {
    fn from(error: HttpError) -> Self {
        let message = error.to_string();
        match error {
            HttpError::Status { status: 401 | 403 } => Self::Credentials(message),
            HttpError::Status { status: 429 | 503 | 529 } => {
                Self::Busy { message, retry_after: None }
            }
            HttpError::Timeout { .. }
            | HttpError::Unreachable { .. }
            | HttpError::Status { status: 500.. } => Self::Unreachable(message),
            HttpError::Invalid { .. }
            | HttpError::Denied { .. }
            | HttpError::TooLarge { .. }
            | HttpError::Status { .. }
            | HttpError::Body { .. } => Self::Refused(message),
        }
    }
}

impl From<SettingError> for ProviderError {
    fn from(error: SettingError) -> Self {
        Self::Refused(error.to_string())
    }
}

/// Text that was shown while an answer was being made. Tests read it with
/// [`testing::deltas`](crate::testing).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// Text for the user.
    Text(String),
    /// The model's reasoning.
    Reasoning(String),
}

/// Shows text to the user while the answer is being made.
///
/// ```
/// use sallyport_sdk::{provider::{self, Delta}, testing};
///
/// provider::text("Good ");
/// provider::text("morning.");
/// assert_eq!(testing::deltas()[1], Delta::Text("morning.".to_owned()));
/// ```
pub fn text(words: &str) {
    host::text(words);
}

/// Shows the model's reasoning while the answer is being made.
///
/// ```
/// use sallyport_sdk::{provider::{self, Delta}, testing};
///
/// provider::reasoning("They greet me.");
/// assert_eq!(testing::deltas(), [Delta::Reasoning("They greet me.".to_owned())]);
/// ```
pub fn reasoning(words: &str) {
    host::reasoning(words);
}

#[cfg(target_family = "wasm")]
mod host {
    //! The functions of the host, as imports.

    pub(crate) use crate::guest::bindings::powers::sallyport::plugin::deltas::{reasoning, text};
}

#[cfg(not(target_family = "wasm"))]
pub(crate) mod host {
    //! The stand-in for the host in tests.

    use std::cell::RefCell;

    use super::Delta;

    thread_local! {
        static DELTAS: RefCell<Vec<Delta>> = RefCell::default();
    }

    /// Returns the text that a provider has shown since the last call.
    ///
    /// ```
    /// use sallyport_sdk::{provider::{self, Delta}, testing};
    ///
    /// provider::text("Hello");
    /// assert_eq!(testing::deltas(), [Delta::Text("Hello".to_owned())]);
    /// ```
    pub fn deltas() -> Vec<Delta> {
        DELTAS.take()
    }

    pub(crate) fn text(words: &str) {
        DELTAS.with_borrow_mut(|deltas| deltas.push(Delta::Text(words.to_owned())));
    }

    pub(crate) fn reasoning(words: &str) {
        DELTAS.with_borrow_mut(|deltas| deltas.push(Delta::Reasoning(words.to_owned())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_wrong_underneath_has_its_kind() {
        let origin = || "https://a.example".to_owned();
        let status = |status| HttpError::Status { status };
        let timeout = HttpError::Timeout { origin: origin(), waited: Duration::ZERO };
        for (error, kind) in [
            (status(401), "Credentials"),
            (status(403), "Credentials"),
            (status(429), "Busy"),
            (status(503), "Busy"),
            (status(500), "Unreachable"),
            (status(404), "Refused"),
            (timeout, "Unreachable"),
            (HttpError::Denied { origin: origin() }, "Refused"),
        ] {
            let found = format!("{:?}", ProviderError::from(error));
            assert!(found.starts_with(kind), "{found} is not {kind}");
        }
    }
}
