//! A plugin as a language model: what it is asked, and what it answers.
//!
//! The words that it pushes and those of its answer are one text: what was pushed stands first in the
//! answer, and what the answer adds is pushed after it. So whoever shows the pieces has shown the
//! answer.

use std::{sync::Arc, time::Duration};

use sallyport_contract::{
    Admitted, CallReport, Denial, Failure, FailureKind, Outcome, Redactor, ToolOutput, json,
};
use tokio::sync::mpsc::UnboundedSender;

use super::{RoleLinks, speech::Speech};
use crate::{Plugin, ledger::Ledger, run};

/// Most calls of one answer. A model that wants more at a time has lost its way.
const CALLS_MAX: usize = 256;

/// Longest text of a failure; it is for a person to read.
const FAILURE_BYTES_MAX: usize = 4 * 1024;

/// Most tokens that an answer may claim to have used, so that no sum of them overflows.
const TOKENS_MAX: u64 = 1 << 40;

/// What a provider is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Generation {
    /// The conversation; its last message is to be answered.
    pub history: Vec<Message>,
    /// The tools that may be called.
    pub tools: Vec<ToolDefinition>,
    /// How to answer.
    pub settings: GenerationSettings,
}

/// How a provider is to answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GenerationSettings {
    /// Which model, where the provider has several.
    pub model: Option<String>,
    /// How much the answers may vary, from 0.
    pub temperature: Option<f64>,
    /// Longest answer, in tokens.
    pub tokens_max: Option<u64>,
}

/// One message of a conversation.
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
}

/// What a person said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserMessage {
    /// Their words.
    pub text: String,
    /// Files to look at.
    pub attachments: Vec<Blob>,
}

/// Bytes with a media type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// Such as `image/png`.
    pub media_type: String,
    /// The bytes of the file.
    pub data: Vec<u8>,
    /// The name of the file, without folders, when it has one.
    pub name: Option<String>,
}

/// What a model said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerMessage {
    /// Words for the person; may be empty.
    pub text: String,
    /// Calls that it wants made.
    pub calls: Vec<ToolRequest>,
    /// The provider's own form of this message, a JSON text. It goes back as it was, to the same
    /// plugin alone.
    pub opaque: Option<String>,
}

/// A call that a model wants made. Nothing of it has been checked: ids may come twice, the tool may
/// not exist, the arguments may not be JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolRequest {
    /// Names it within the answer.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments, as the model wrote them.
    pub arguments: String,
}

/// What a tool gave back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// The call that it answers.
    pub call_id: String,
    /// The tool's name.
    pub name: String,
    /// The result, a JSON text.
    pub content: String,
    /// True unless the call completed.
    pub failed: bool,
}

/// A tool that a model may call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolDefinition {
    /// Letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of the arguments, a JSON text.
    pub parameters: String,
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Generated {
    /// What was said, with all that was pushed before.
    pub message: AnswerMessage,
    /// True when nothing more is to be asked for; never with calls.
    pub is_final: bool,
    /// Why the model stopped.
    pub finish: Finish,
    /// What it has used, when that is known.
    pub usage: Option<Usage>,
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finish {
    /// It had said all.
    Stop,
    /// It wants tools called.
    ToolCalls,
    /// The answer was cut at a limit.
    Length,
    /// The answer was withheld.
    Withheld,
    /// Another reason, in the provider's words.
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

/// Why there is no answer; in words for the person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderFailure {
    /// The service did not accept the key.
    #[error("the service did not accept the key: {0}")]
    Credentials(String),
    /// The service cannot be reached.
    #[error("the service cannot be reached: {0}")]
    Unreachable(String),
    /// The service wants to be asked later.
    #[error("the service is busy: {message}")]
    Busy {
        /// What it says.
        message: String,
        /// After which time, when it says so.
        retry_after: Option<Duration>,
    },
    /// The service refused this request, or answered something that cannot be understood.
    #[error("the service refused the request: {0}")]
    Refused(String),
    /// The gate refused the plugin something that it needed.
    #[error("{}: {}", .0.what, .0.why)]
    Denied(Denial),
    /// The plugin was stopped, broke, or answered something impossible.
    #[error("{0}")]
    Broken(String),
}

/// A piece of an answer, while it is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// Words for the person.
    Text(String),
    /// The model thinking aloud.
    Reasoning(String),
}

/// Where the pieces of an answer go. What may be said in one run is limited, so it cannot fill up.
pub type Deltas = UnboundedSender<Delta>;

/// An answer, or why there is none, and what making it did.
#[derive(Debug)]
pub struct Answered {
    /// The answer.
    pub answer: Result<Generated, ProviderFailure>,
    /// The record of the run.
    pub report: CallReport,
}

impl Plugin {
    /// Asks the plugin to answer a conversation. Its words go to `deltas` while it does, all of them
    /// before the answer is there. Dropping the future ends the instance.
    pub async fn generate(
        &self,
        call: Admitted,
        generation: Generation,
        deltas: Deltas,
    ) -> Answered {
        let (abi, call) = (self.abi(), Arc::new(call));
        let admitted = Arc::clone(&call);
        let body = run::body(move |store, instance| {
            Box::pin(async move { abi.generate(store, instance, &admitted, generation).await })
        });
        let warden = self.warden();
        let bytes_max = warden.grant().limits().output_bytes;
        let speech = Arc::new(Speech::new(deltas, bytes_max, &warden.redactor()));
        let links = RoleLinks { speech: Some(Arc::clone(&speech)), ..RoleLinks::default() };
        let ran = self.run_for(call, links, body).await;
        let redactor = warden.redactor();
        let mut answer = None;
        let report = self.report(ran, |value, ledger| {
            let value = value.and_then(|generated| generated.checked(bytes_max));
            let value = value.map_err(|failure| failure.because_of(ledger));
            let outcome = value.as_ref().map_or_else(ProviderFailure::outcome, Generated::outcome);
            answer = Some(value);
            outcome
        });
        let answer = answer.unwrap_or_else(|| Err(ProviderFailure::of(&report.outcome)));
        Answered { answer: settle(answer, &speech, &redactor), report }
    }
}

/// Joins the answer with what was said before, or ends that where there is no answer.
fn settle(
    answer: Result<Generated, ProviderFailure>,
    speech: &Speech,
    redactor: &Redactor,
) -> Result<Generated, ProviderFailure> {
    match answer {
        Ok(generated) => {
            let mut generated = generated.without(redactor);
            generated.message.text = speech.end(&generated.message.text);
            Ok(generated)
        }
        Err(failure) => {
            speech.end("");
            Err(failure.without(redactor))
        }
    }
}

impl Generated {
    /// Takes an answer as a whole or not at all, and puts right what it contradicts itself in.
    fn checked(mut self, bytes_max: u64) -> Result<Self, ProviderFailure> {
        let (bytes, calls) = (self.message.bytes(), self.message.calls.len());
        if bytes > bytes_max {
            let text =
                format!("its answer has {bytes} bytes, its limit is {bytes_max} (limits.output)");
            return Err(ProviderFailure::Broken(text));
        }
        if calls > CALLS_MAX {
            let text = format!("its answer wants {calls} calls, at most {CALLS_MAX} are taken");
            return Err(ProviderFailure::Broken(text));
        }
        if let Some(opaque) = &self.message.opaque
            && let Err(error) = json::parse(opaque, usize::MAX)
        {
            let text = format!("its own form of the answer is broken: {error}");
            return Err(ProviderFailure::Broken(text));
        }
        // What is not all of it, and asks for nothing by which it would go on, was cut.
        if !self.is_final && calls == 0 && self.finish == Finish::Stop {
            self.finish = Finish::Length;
        }
        self.is_final &= calls == 0;
        self.usage = self.usage.map(Usage::counted);
        Ok(self)
    }

    fn without(mut self, redactor: &Redactor) -> Self {
        let clean = |text: &mut String| *text = redactor.text(text).into_owned();
        let message = &mut self.message;
        clean(&mut message.text);
        message.opaque.iter_mut().for_each(clean);
        for call in &mut message.calls {
            [&mut call.id, &mut call.name, &mut call.arguments].into_iter().for_each(clean);
        }
        if let Finish::Other(text) = &mut self.finish {
            *text = shortened(&redactor.text(text));
        }
        self
    }

    /// What the record says of it.
    fn outcome(&self) -> Outcome {
        let calls = self.message.calls.iter().map(|call| call.name.as_str()).collect::<Vec<_>>();
        let data = serde_json::json!({ "text_bytes": self.message.text.len(), "calls": calls });
        Outcome::Completed(ToolOutput { data, ..ToolOutput::default() })
    }
}

impl AnswerMessage {
    /// Every call counts at least as much as its own record, so that empty ones are not free.
    fn bytes(&self) -> u64 {
        let call = |call: &ToolRequest| {
            size_of::<ToolRequest>() + call.id.len() + call.name.len() + call.arguments.len()
        };
        let calls = self.calls.iter().map(call).sum::<usize>();
        (self.text.len() + calls + self.opaque.as_ref().map_or(0, String::len)) as u64
    }
}

impl Usage {
    fn counted(self) -> Self {
        Self {
            input_tokens: self.input_tokens.min(TOKENS_MAX),
            output_tokens: self.output_tokens.min(TOKENS_MAX),
        }
    }
}

impl ProviderFailure {
    /// Why there is no answer when the run did not get to give one.
    fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Denied(denial) => Self::Denied(denial.clone()),
            Outcome::Failed(failure) | Outcome::InvalidArguments(failure) => {
                Self::Broken(failure.message.clone())
            }
            Outcome::TimedOut { limit } => {
                Self::Broken(format!("it did not answer within {limit:?} (limits.time)"))
            }
            Outcome::Cancelled | Outcome::Completed(_) => Self::Broken("it was stopped".to_owned()),
        }
    }

    /// What failed after the gate refused something failed because of that.
    fn because_of(self, ledger: &Ledger) -> Self {
        ledger.last_refusal().map_or(self, Self::Denied)
    }

    fn without(self, redactor: &Redactor) -> Self {
        let clean = |text: String| shortened(&redactor.text(&text));
        match self {
            Self::Credentials(text) => Self::Credentials(clean(text)),
            Self::Unreachable(text) => Self::Unreachable(clean(text)),
            Self::Busy { message, retry_after } => {
                Self::Busy { message: clean(message), retry_after }
            }
            Self::Refused(text) => Self::Refused(clean(text)),
            Self::Denied(denial) => Self::Denied(denial),
            Self::Broken(text) => Self::Broken(clean(text)),
        }
    }

    /// What the record says of it.
    fn outcome(&self) -> Outcome {
        let kind = match self {
            Self::Credentials(_) => FailureKind::AuthRequired,
            Self::Unreachable(_) | Self::Busy { .. } => FailureKind::Unavailable,
            Self::Refused(_) => FailureKind::Failed,
            Self::Denied(denial) => return Outcome::Denied(denial.clone()),
            Self::Broken(_) => FailureKind::BadOutput,
        };
        Outcome::Failed(Failure::new(kind, shortened(&self.to_string())))
    }
}

/// A failure's text for a person; what is too long is cut.
fn shortened(text: &str) -> String {
    text[..text.floor_char_boundary(FAILURE_BYTES_MAX)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generated() -> Generated {
        Generated {
            message: AnswerMessage { text: "Hello.".to_owned(), ..AnswerMessage::default() },
            is_final: true,
            finish: Finish::Stop,
            usage: None,
        }
    }

    fn calling(calls: usize, arguments: &str) -> Generated {
        let call =
            ToolRequest { id: "a".into(), name: "b".into(), arguments: arguments.to_owned() };
        let message = AnswerMessage { calls: vec![call; calls], ..AnswerMessage::default() };
        Generated { message, ..generated() }
    }

    fn opaque(text: &str) -> Generated {
        let opaque = Some(text.to_owned());
        Generated { message: AnswerMessage { opaque, ..AnswerMessage::default() }, ..generated() }
    }

    #[test]
    fn an_answer_is_taken_as_a_whole_or_not_at_all() {
        for (generated, words) in [
            (generated(), None),
            (calling(2, "{not even JSON"), None),
            (calling(CALLS_MAX, "{}"), None),
            (calling(CALLS_MAX + 1, "{}"), Some("wants 257 calls")),
            (calling(1, &"x".repeat(1 << 20)), Some("limits.output")),
            (opaque("{\"a\":1}"), None),
            (opaque("{\"a\":1"), Some("its own form")),
        ] {
            let got = generated.clone().checked(1 << 20);
            match (got, words) {
                (Ok(got), None) => assert_eq!(got.message, generated.message),
                (Err(error), Some(words)) => assert!(error.to_string().contains(words), "{error}"),
                (other, _) => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn an_answer_with_calls_is_not_final() {
        assert!(generated().checked(1000).unwrap().is_final);
        assert!(!calling(1, "{}").checked(1000).unwrap().is_final);
        let unfinished = Generated { is_final: false, ..generated() }.checked(1000).unwrap();
        assert_eq!((unfinished.is_final, unfinished.finish), (false, Finish::Length));
    }

    #[test]
    fn no_sum_of_tokens_overflows() {
        let usage = Some(Usage { input_tokens: u64::MAX, output_tokens: 7 });
        let usage = Generated { usage, ..generated() }.checked(1000).unwrap().usage.unwrap();
        assert_eq!((usage.input_tokens, usage.output_tokens), (TOKENS_MAX, 7));
    }

    #[test]
    fn a_run_that_was_stopped_says_why() {
        let limit = std::time::Duration::from_secs(2);
        let failure = ProviderFailure::of(&Outcome::TimedOut { limit });
        assert_eq!(failure.to_string(), "it did not answer within 2s (limits.time)");
    }
}
