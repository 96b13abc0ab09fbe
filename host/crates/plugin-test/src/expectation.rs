//! The expected end of a call, and the comparison with its actual end.

use sallyport_contract::{ContentPart, Denial, DenialSubject, FailureKind, Outcome, ToolOutput};
use serde::{Deserialize, Serialize, de::Error as _};
use serde_json::{Value, json};

use crate::json_values::{present, same_json};

/// How a call has to end.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expectation {
    /// It succeeds, with these parts of the output.
    Output { data: Option<Value>, text: Option<ExpectedText>, speech: Option<String> },
    /// It fails with an error of one of these kinds, whose message contains a text.
    Error { kinds: ErrorKinds, message: Option<String> },
    /// It is refused something of this kind.
    Denied(DeniedKind),
}

/// A text, or a long one of which every part is the same.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum ExpectedText {
    Whole(String),
    Repeated { repeat: String, times: usize },
}

impl ExpectedText {
    fn to_text(&self) -> String {
        match self {
            Self::Whole(text) => text.clone(),
            Self::Repeated { repeat, times } => repeat.repeat(*times),
        }
    }
}

/// The kinds of error of which each is right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ErrorKinds(Vec<ErrorKind>);

impl ErrorKinds {
    fn to_json(&self) -> Value {
        match self.0.as_slice() {
            [one] => json!(one),
            more => json!(more),
        }
    }
}

impl<'de> Deserialize<'de> for ErrorKinds {
    /// Reads one kind, or a list of them.
    fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let kinds = match Value::deserialize(reader)? {
            Value::Array(kinds) => kinds,
            one => vec![one],
        };
        let kinds: Result<Vec<ErrorKind>, _> =
            kinds.into_iter().map(serde_json::from_value).collect();
        kinds.map(Self).map_err(D::Error::custom)
    }
}

/// The kinds of error: those of the contract, and those of the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ErrorKind {
    InvalidArguments,
    NotFound,
    AuthRequired,
    Unavailable,
    Failed,
    Trapped,
    LimitReached,
    BadOutput,
    Internal,
    TimedOut,
    Cancelled,
}

impl From<FailureKind> for ErrorKind {
    fn from(kind: FailureKind) -> Self {
        match kind {
            FailureKind::InvalidArguments => Self::InvalidArguments,
            FailureKind::NotFound => Self::NotFound,
            FailureKind::AuthRequired => Self::AuthRequired,
            FailureKind::Unavailable => Self::Unavailable,
            FailureKind::Failed => Self::Failed,
            FailureKind::Trapped => Self::Trapped,
            FailureKind::LimitReached => Self::LimitReached,
            FailureKind::BadOutput => Self::BadOutput,
            FailureKind::Internal => Self::Internal,
        }
    }
}

/// What was refused. The names are those of grants in a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DeniedKind {
    Net,
    Fs,
    Env,
    Secrets,
    State,
    Schedule,
    Notify,
    Progress,
    OpenUrl,
    Packages,
    Scratch,
    Listen,
    Ui,
    Process,
    /// The call itself.
    Call,
    /// The plugin itself reports that something was denied.
    Other,
}

impl DeniedKind {
    pub(crate) fn of(denial: &Denial) -> Self {
        match &*denial.subject {
            DenialSubject::Call { .. } => Self::Call,
            DenialSubject::Request { .. } => Self::Net,
            DenialSubject::Path { .. } => Self::Fs,
            DenialSubject::Variable { .. } => Self::Env,
            DenialSubject::Secret { .. } => Self::Secrets,
            DenialSubject::Capability { capability, .. } => {
                serde_json::from_value(Value::from(capability.as_str())).unwrap_or(Self::Other)
            }
            DenialSubject::Text(_) => Self::Other,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectationText {
    #[serde(default, deserialize_with = "present")]
    data: Option<Value>,
    text: Option<ExpectedText>,
    speech: Option<String>,
    /// True, for a call that succeeds with any output.
    succeeds: Option<bool>,
    error: Option<ErrorText>,
    denied: Option<DeniedKind>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ErrorText {
    kind: ErrorKinds,
    message: Option<String>,
}

impl<'de> Deserialize<'de> for Expectation {
    fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let ExpectationText { data, text, speech, succeeds, error, denied } =
            ExpectationText::deserialize(reader)?;
        let has_output = data.is_some() || text.is_some() || speech.is_some();
        let has_output = has_output || succeeds == Some(true);
        match (has_output, error, denied) {
            (true, None, None) => Ok(Self::Output { data, text, speech }),
            (false, Some(ErrorText { kind, message }), None) => {
                Ok(Self::Error { kinds: kind, message })
            }
            (false, None, Some(denied)) => Ok(Self::Denied(denied)),
            (false, None, None) => Err(D::Error::custom(
                "it expects nothing; write \"data\", \"text\", \"speech\", \"succeeds\": true, \"error\" \
                 or \"denied\"",
            )),
            _ => Err(D::Error::custom("a call ends either with an output, an error or a denial")),
        }
    }
}

impl Expectation {
    /// Parses the value of `expect`.
    pub(crate) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Whether a call has ended as expected.
    pub(crate) fn is_met(&self, outcome: &Outcome) -> bool {
        match (self, outcome) {
            (Self::Output { data, text, speech }, Outcome::Completed(output)) => {
                data.as_ref().is_none_or(|data| same_json(data, &output.data))
                    && text.as_ref().is_none_or(|text| text.to_text() == text_of(output))
                    && speech.as_ref().is_none_or(|speech| Some(speech) == output.speech.as_ref())
            }
            (Self::Denied(denied), Outcome::Denied(denial)) => *denied == DeniedKind::of(denial),
            (Self::Error { kinds, message }, outcome) => {
                let Some((actual, text)) = error_of(outcome) else { return false };
                kinds.0.contains(&actual)
                    && message.as_ref().is_none_or(|message| text.contains(message))
            }
            _ => false,
        }
    }

    /// The expectation in the form of the file.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Output { data: None, text: None, speech: None } => json!({ "succeeds": true }),
            Self::Output { data, text, speech } => {
                let text = text.as_ref().map(|text| Value::from(text.to_text()));
                let speech = speech.clone().map(Value::from);
                output_json(data.clone(), text, speech)
            }
            Self::Error { kinds, message: None } => json!({ "error": { "kind": kinds.to_json() } }),
            Self::Error { kinds, message } => {
                json!({ "error": { "kind": kinds.to_json(), "message": message } })
            }
            Self::Denied(denied) => json!({ "denied": denied }),
        }
    }

    /// The actual end of a call in the form of the file, with the parts that this expectation has.
    pub(crate) fn actual_json(&self, outcome: &Outcome) -> Value {
        match outcome {
            Outcome::Completed(output) => {
                let (wants_data, wants_text, wants_speech) = match self {
                    Self::Output { data: None, text: None, speech: None } => {
                        return json!({ "succeeds": true });
                    }
                    Self::Output { data, text, speech } => {
                        (data.is_some(), text.is_some(), speech.is_some())
                    }
                    _ => (!has_text(output), has_text(output), false),
                };
                output_json(
                    wants_data.then(|| output.data.clone()),
                    wants_text.then(|| text_of(output).into()),
                    wants_speech.then(|| output.speech.clone().into()),
                )
            }
            Outcome::Denied(denial) => json!({ "denied": DeniedKind::of(denial) }),
            other => {
                let (kind, message) = error_of(other).unwrap_or((ErrorKind::Internal, ""));
                let drops_message =
                    matches!(self, Self::Error { kinds, message: None } if kinds.0.contains(&kind));
                match drops_message || message.is_empty() {
                    true => json!({ "error": { "kind": kind } }),
                    false => json!({ "error": { "kind": kind, "message": message } }),
                }
            }
        }
    }
}

fn output_json(data: Option<Value>, text: Option<Value>, speech: Option<Value>) -> Value {
    let parts = [("data", data), ("text", text), ("speech", speech)];
    let parts = parts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(parts.collect())
}

fn error_of(outcome: &Outcome) -> Option<(ErrorKind, &str)> {
    match outcome {
        Outcome::Failed(failure) | Outcome::InvalidArguments(failure) => {
            Some((failure.kind.into(), &failure.message))
        }
        Outcome::TimedOut { .. } => Some((ErrorKind::TimedOut, "")),
        Outcome::Cancelled => Some((ErrorKind::Cancelled, "")),
        Outcome::Completed(_) | Outcome::Denied(_) => None,
    }
}

fn has_text(output: &ToolOutput) -> bool {
    output.content.iter().any(|part| matches!(part, ContentPart::Text { .. }))
}

/// The text of an output: its parts of text, or else data that is a text.
fn text_of(output: &ToolOutput) -> String {
    let texts = output.content.iter().filter_map(|part| match part {
        ContentPart::Text { text } => Some(text.as_str()),
        _ => None,
    });
    match (has_text(output), &output.data) {
        (false, Value::String(text)) => text.clone(),
        _ => texts.collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sallyport_contract::CallFailure;

    use super::*;

    fn completed(data: Value, texts: &[&str]) -> Outcome {
        let text = |text: &&str| ContentPart::Text { text: (*text).to_owned() };
        let content = texts.iter().map(text).collect();
        Outcome::Completed(ToolOutput { data, content, speech: Some("said".to_owned()) })
    }

    #[track_caller]
    fn check(expect: Value, outcome: &Outcome, is_met: bool) {
        let expectation = Expectation::parse(&expect.to_string()).unwrap();
        assert_eq!(expectation.is_met(outcome), is_met, "{expect} {outcome:?}");
        // What is written as the actual end is met by it.
        let actual = expectation.actual_json(outcome);
        let updated = Expectation::parse(&actual.to_string()).unwrap();
        assert!(updated.is_met(outcome), "{actual} {outcome:?}");
    }

    #[test]
    fn an_output_is_compared_as_far_as_it_is_expected() {
        let outcome = completed(json!({ "n": 1, "list": [1.0] }), &["a", "b"]);
        check(json!({ "data": { "n": 1.0, "list": [1] } }), &outcome, true);
        check(json!({ "data": { "n": 1 } }), &outcome, false);
        check(json!({ "data": { "n": 1, "list": [1, 2] } }), &outcome, false);
        check(json!({ "data": null }), &outcome, false);
        check(json!({ "text": "ab" }), &outcome, true);
        check(json!({ "text": "ab", "speech": "said" }), &outcome, true);
        check(json!({ "text": "ab", "speech": "no" }), &outcome, false);
        check(json!({ "succeeds": true }), &outcome, true);
        check(json!({ "denied": "net" }), &outcome, false);
        check(json!({ "error": { "kind": "failed" } }), &outcome, false);
        let text = completed(json!("xxx"), &[]);
        check(json!({ "text": { "repeat": "x", "times": 3 } }), &text, true);
        check(json!({ "text": { "repeat": "x", "times": 2 } }), &text, false);
        check(json!({ "data": "xxx" }), &text, true);
        // Beyond 2^53 a float is not the integer.
        let large = completed(json!(9_007_199_254_740_993_u64), &[]);
        check(json!({ "data": 9_007_199_254_740_993_u64 }), &large, true);
        check(json!({ "data": 9_007_199_254_740_992_u64 }), &large, false);
    }

    #[test]
    fn an_error_has_a_kind_and_a_part_of_its_message() {
        let failure = CallFailure::new(FailureKind::NotFound, "there is no rate for EUR");
        let outcome = Outcome::Failed(failure);
        check(json!({ "error": { "kind": "not-found" } }), &outcome, true);
        check(json!({ "error": { "kind": "not-found", "message": "EUR" } }), &outcome, true);
        check(json!({ "error": { "kind": "not-found", "message": "USD" } }), &outcome, false);
        check(json!({ "error": { "kind": ["failed", "not-found"] } }), &outcome, true);
        check(json!({ "error": { "kind": "failed" } }), &outcome, false);
        check(json!({ "data": null }), &outcome, false);
        check(json!({ "succeeds": true }), &outcome, false);
        let slow = Outcome::TimedOut { limit: Duration::from_secs(1) };
        check(json!({ "error": { "kind": "timed-out" } }), &slow, true);
    }
}
