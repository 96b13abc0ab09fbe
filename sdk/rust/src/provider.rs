//! The role of a provider: a plugin that answers in place of a language model, or asks one.
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

use crate::{CallContext, host, http::HttpError, settings::SettingError};

/// What is to be answered.
///
/// ```
/// use sallyport_sdk::provider::Request;
///
/// assert_eq!(Request::default().settings.model, None);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// Where the request comes from, and how long it may take.
    pub context: CallContext,
    /// The conversation; the last message is the one to answer.
    pub history: Vec<Message>,
    /// The tools that may be called.
    pub tools: Vec<ToolDefinition>,
    /// How to answer.
    pub settings: Generation,
}

/// One message of the conversation.
///
/// ```
/// use sallyport_sdk::provider::{Message, UserMessage};
///
/// let said = UserMessage { text: "Hello".to_owned(), attachments: vec![] };
/// assert_eq!(Message::user("Hello"), Message::User(said));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// What the model should be and do.
    System(String),
    /// What the person said.
    User(UserMessage),
    /// What the model answered.
    Assistant(AnswerMessage),
    /// What a tool gave back.
    Tool(ToolResult),
    /// Anything else, as a JSON object with a `role`.
    Other(Value),
}

impl Message {
    /// Makes a message of the person's, without files.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User(UserMessage { text: text.into(), attachments: Vec::new() })
    }
}

/// What a person said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserMessage {
    /// Their words.
    pub text: String,
    /// Files to look at.
    pub attachments: Vec<Attachment>,
}

/// A file that goes with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Such as `image/png`.
    pub media_type: String,
    /// The bytes of the file.
    pub data: Vec<u8>,
    /// Its name without folders, when it has one.
    pub name: Option<String>,
}

/// What the model said.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AnswerMessage {
    /// Words for the person; may be empty.
    pub text: String,
    /// Calls that it wants made.
    pub calls: Vec<ToolCall>,
    /// The provider's own form of this message. It comes back as it was, to this plugin alone.
    pub opaque: Option<Value>,
}

/// A call that the model wants made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// Unique within the answer.
    pub id: String,
    /// One of the names in the list of tools.
    pub name: String,
    /// A JSON object, as the model wrote it.
    pub arguments: String,
}

/// What a tool gave back.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// The call that it answers.
    pub call_id: String,
    /// The tool's name.
    pub name: String,
    /// The result.
    pub content: Value,
    /// Pictures and sounds that belong to it.
    pub attachments: Vec<Attachment>,
    /// True unless the call completed.
    pub failed: bool,
}

/// A tool that may be called.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    /// Letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of the arguments, an object schema.
    pub parameters: Value,
}

/// How to answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Generation {
    /// Which model, where the provider has several.
    pub model: Option<String>,
    /// How much the answers may vary, from 0.
    pub temperature: Option<f64>,
    /// Longest answer, in tokens.
    pub tokens_max: Option<u64>,
}

/// Why the model stopped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Finish {
    /// It had said all.
    #[default]
    Stop,
    /// It wants tools called.
    ToolCalls,
    /// The answer was cut at a limit.
    Length,
    /// The answer was withheld.
    Withheld,
    /// Another reason.
    Other(String),
}

/// What an answer has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
}

/// An answer. It is the last one to a question unless it holds calls.
///
/// ```
/// use sallyport_sdk::provider::{Answer, Finish};
///
/// let answer = Answer::new("Good morning.");
/// assert_eq!((answer.is_final(), answer.finish), (true, Finish::Stop));
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// What was said, with all that was pushed as deltas.
    pub message: AnswerMessage,
    /// Why the model stopped.
    pub finish: Finish,
    /// What it has used, when that is known.
    pub usage: Option<Usage>,
}

impl Answer {
    /// Makes an answer of words alone.
    pub fn new(text: impl Into<String>) -> Self {
        let message = AnswerMessage { text: text.into(), ..AnswerMessage::default() };
        Self { message, ..Self::default() }
    }

    /// Makes an answer that wants one tool called.
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

    /// Tells whether nothing more is to be asked for.
    pub fn is_final(&self) -> bool {
        self.message.calls.is_empty()
    }
}

/// Why there is no answer. The text is for the person.
///
/// `?` makes one of what went wrong with a request or a setting.
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
    /// The service wants to be asked later.
    Busy {
        /// What it says.
        message: String,
        /// After which time, when it says so.
        retry_after: Option<Duration>,
    },
    /// The service refused this request, or answered something that cannot be understood.
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

/// Words that were shown while an answer was being made; tests read them from
/// [`testing::deltas`](crate::testing).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// Words for the person.
    Text(String),
    /// The model thinking aloud.
    Reasoning(String),
}

/// Shows words for the person while the answer is being made.
///
/// ```
/// use sallyport_sdk::{provider::{self, Delta}, testing};
///
/// provider::text("Good ");
/// provider::text("morning.");
/// assert_eq!(testing::deltas()[1], Delta::Text("morning.".to_owned()));
/// ```
pub fn text(words: &str) {
    host::provider::text(words);
}

/// Shows the model thinking aloud while the answer is being made.
///
/// ```
/// use sallyport_sdk::{provider::{self, Delta}, testing};
///
/// provider::reasoning("They greet me.");
/// assert_eq!(testing::deltas(), [Delta::Reasoning("They greet me.".to_owned())]);
/// ```
pub fn reasoning(words: &str) {
    host::provider::reasoning(words);
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
