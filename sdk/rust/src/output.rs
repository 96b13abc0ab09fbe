//! The result of a tool: data for the model, and optional parts.

use std::{fmt, marker::PhantomData};

use serde::Serialize;
use serde_json::Value;

use crate::{ToolError, resources::Contents, schema::Returns};

/// Data for the model, with optional further parts and a sentence to be spoken.
///
/// A tool that returns only data can return the data itself, of any `Serialize` type.
///
/// ```
/// use sallyport_sdk::Output;
///
/// let output = Output::new(21.5).speech("It is 21 and a half degrees.").text("sensor 7");
/// assert_eq!(output.data, 21.5);
/// assert_eq!(output.speech.as_deref(), Some("It is 21 and a half degrees."));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Output<T = Value> {
    /// The data, for the model.
    pub data: T,
    /// Further parts, in order.
    pub content: Vec<Content>,
    /// A sentence that is spoken to the user as it is, if the session is a spoken one.
    pub speech: Option<String>,
}

/// A part of an output, in addition to its data.
///
/// ```
/// use sallyport_sdk::{Content, Output};
///
/// let chart = Content::Image { media_type: "image/png".to_owned(), data: vec![0x89, 0x50] };
/// assert_eq!(Output::new(()).part(chart.clone()).content, [chart]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Plain text.
    Text(String),
    /// An image.
    Image {
        /// The media type, such as `image/png`.
        media_type: String,
        /// The bytes of the file.
        data: Vec<u8>,
    },
    /// An audio clip.
    Audio {
        /// The media type, such as `audio/ogg`.
        media_type: String,
        /// The bytes of the file.
        data: Vec<u8>,
    },
    /// A link to a resource. The host shows it and never fetches it.
    Link {
        /// The address of the resource.
        uri: String,
        /// Its media type, if known.
        media_type: Option<String>,
        /// The title to show.
        title: Option<String>,
    },
    /// A resource with what it contains.
    Embedded(Contents),
    /// Anything else, as a JSON object with a `type`.
    Other(Value),
}

impl<T> Output<T> {
    /// Makes an output from its data.
    pub fn new(data: T) -> Self {
        Self { data, content: Vec::new(), speech: None }
    }

    /// Adds the sentence that is spoken to the user in a spoken session.
    pub fn speech(self, sentence: impl Into<String>) -> Self {
        Self { speech: Some(sentence.into()), ..self }
    }

    /// Adds a part with plain text.
    pub fn text(self, text: impl Into<String>) -> Self {
        self.part(Content::Text(text.into()))
    }

    /// Adds a part of any kind.
    pub fn part(mut self, part: Content) -> Self {
        self.content.push(part);
        self
    }
}

/// A return value of a tool: any `Serialize` value, an [`Output`] of one, or a `Result` of either.
///
/// The error of a `Result` is a [`ToolError`], converts into one, or implements `Display`. An `Err`
/// always makes the call fail.
///
/// The compiler infers `Kind`; authors do not name it.
///
/// ```
/// use sallyport_sdk::{Output, ToolError, ToolReturn};
///
/// fn data<Kind>(reply: impl ToolReturn<Kind>) -> serde_json::Value {
///     reply.into_output().unwrap().data
/// }
///
/// let spoken: Result<_, ToolError> = Ok(Output::new(1).speech("One."));
/// assert_eq!(data(spoken), 1);
/// assert_eq!(data(["a", "b"])[1], "b");
/// ```
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    note = "return data that derives `Serialize`, an `Output` of it, or a `Result` of either with a `ToolError` or an error that can be displayed"
)]
pub trait ToolReturn<Kind> {
    /// The type of the data.
    type Data;

    /// Converts the data to JSON.
    ///
    /// # Errors
    ///
    /// The error that the tool returned, or data that cannot be represented as JSON.
    fn into_output(self) -> Result<Output, ToolError>;
}

/// Marks plain data. Without such markers the three implementations of [`ToolReturn`] would
/// overlap, because `serde` might one day serialize a `Result`.
#[derive(Debug)]
pub enum Plain {}
/// See [`Plain`].
#[derive(Debug)]
pub enum Rich {}
/// See [`Plain`].
#[derive(Debug)]
pub struct Fallible<Kind>(PhantomData<Kind>);

impl<T: Serialize> ToolReturn<Plain> for T {
    type Data = T;

    fn into_output(self) -> Result<Output, ToolError> {
        Output::new(self).into_output()
    }
}

impl<T: Serialize> ToolReturn<Rich> for Output<T> {
    type Data = T;

    fn into_output(self) -> Result<Output, ToolError> {
        let data = serde_json::to_value(self.data)
            .map_err(|e| ToolError::Failed(format!("the result cannot be written as JSON: {e}")))?;
        Ok(Output { data, content: self.content, speech: self.speech })
    }
}

impl<Kind, R: ToolReturn<Kind>> ToolReturn<Fallible<Kind>> for Result<R, ToolError> {
    type Data = R::Data;

    fn into_output(self) -> Result<Output, ToolError> {
        self.and_then(R::into_output)
    }
}

/// Detects the kind of a return type, with the same technique as `schema::Returns`: method lookup
/// tries a type before a reference to it.
///
/// Without this, `Result<T, String>` would be plain data, because `serde` can serialize it, and its
/// `Err` would count as success.
#[derive(Debug)]
pub struct Returned<T>(PhantomData<T>);

impl<T> Returned<T> {
    /// The value that represents the type.
    pub const TYPE: Self = Self(PhantomData);
}

/// A `Result` whose error converts into a [`ToolError`] of a matching kind.
pub trait FailsInKind {
    /// Returns the converter for this kind.
    fn kind(&self) -> InKind {
        InKind
    }
}

/// A `Result` whose error only has a message.
pub trait FailsInWords {
    /// Returns the converter for this kind.
    fn kind(&self) -> InWords {
        InWords
    }
}

/// A `Result` whose error has no message for the model.
pub trait FailsInSilence {
    /// Returns the converter for this kind, which does not compile.
    fn kind(&self) -> InSilence {
        InSilence
    }
}

/// Every type except `Result`.
pub trait NeverFails {
    /// Returns the converter for this kind, which returns the value as it is.
    fn kind(&self) -> Never {
        Never
    }
}

impl<R, E: Into<ToolError>> FailsInKind for &&&Returned<Result<R, E>> {}
impl<R, E: fmt::Display> FailsInWords for &&Returned<Result<R, E>> {}
impl<R, E> FailsInSilence for &Returned<Result<R, E>> {}
impl<T> NeverFails for Returned<T> {}

/// See [`FailsInKind`].
#[derive(Debug)]
pub struct InKind;
/// See [`FailsInWords`].
#[derive(Debug)]
pub struct InWords;
/// See [`FailsInSilence`].
#[derive(Debug)]
pub struct InSilence;
/// See [`NeverFails`].
#[derive(Debug)]
pub struct Never;

impl InKind {
    /// Converts the error into a [`ToolError`].
    ///
    /// # Errors
    ///
    /// The tool's own error.
    pub fn settle<R, E: Into<ToolError>>(self, returned: Result<R, E>) -> Result<R, ToolError> {
        returned.map_err(Into::into)
    }
}

impl InWords {
    /// Converts the message of the error into a [`ToolError::Failed`].
    ///
    /// # Errors
    ///
    /// The tool's own error.
    pub fn settle<R, E: fmt::Display>(self, returned: Result<R, E>) -> Result<R, ToolError> {
        returned.map_err(|error| ToolError::Failed(error.to_string()))
    }
}

impl InSilence {
    /// Fails to compile, with an error that states the reason.
    ///
    /// # Errors
    ///
    /// None: it is never called.
    pub fn settle<R, E: ErrorOfTool>(self, returned: Result<R, E>) -> Result<R, ToolError> {
        returned.map_err(ErrorOfTool::into_tool_error)
    }
}

impl Never {
    /// Returns the value.
    pub fn settle<T>(self, returned: T) -> T {
        returned
    }
}

/// The error of a tool. No type implements this, so the compiler reports what is missing.
#[diagnostic::on_unimplemented(
    message = "a tool cannot fail with `{Self}`",
    note = "return a `ToolError`, or an error that implements `Display` or `Into<ToolError>`"
)]
pub trait ErrorOfTool {
    /// Converts it into a [`ToolError`].
    fn into_tool_error(self) -> ToolError;
}

/// Represents the data that a tool returns, after its `Result` is unwrapped.
pub fn returns<R, S: ToolReturn<Kind>, Kind>(_settle: impl FnOnce(R) -> S) -> Returns<S::Data> {
    Returns::TYPE
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check<Kind>(reply: impl ToolReturn<Kind>, want: Result<Output, ToolError>) {
        assert_eq!(reply.into_output(), want);
    }

    #[test]
    fn every_kind_of_return_value_becomes_an_output() {
        let spoken = Output { speech: Some("Hi.".to_owned()), ..Output::new(json!({"n": 1})) };
        let failure = ToolError::Failed("no".to_owned());
        check((), Ok(Output::new(json!(null))));
        check("text", Ok(Output::new(json!("text"))));
        check(vec![1, 2], Ok(Output::new(json!([1, 2]))));
        check(u64::MAX, Ok(Output::new(json!(18_446_744_073_709_551_615_u64))));
        check(Output::new(BTreeMap::from([("n", 1)])).speech("Hi."), Ok(spoken));
        check(Ok::<_, ToolError>(7), Ok(Output::new(json!(7))));
        check(Ok::<_, ToolError>(Output::new(7)), Ok(Output::new(json!(7))));
        check(Err::<(), _>(failure.clone()), Err(failure));
    }

    #[test]
    fn data_that_json_cannot_hold_is_an_error() {
        let error = BTreeMap::from([((1, 2), 3)]).into_output().unwrap_err();
        assert!(error.message().starts_with("the result cannot be written as JSON"), "{error}");
    }
}
