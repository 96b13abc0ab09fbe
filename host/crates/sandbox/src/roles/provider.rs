//! A plugin as a language model: the conversation it receives and the answer it returns.
//!
//! The pieces that it pushes and the text of its answer form one text: pushed text is the beginning
//! of the answer, and the rest of the answer is pushed after it. So a client that shows the pieces
//! has shown the whole answer.

use std::sync::Arc;

use sallyport_contract::{
    AdmittedCall, CallFailure, CallReport, FailureKind, Outcome, Redactor, ToolOutput, json,
};

use crate::{
    Plugin,
    effect_log::EffectLog,
    role_data::{
        DeltaSender, GenerationRequest, ProviderAnswer, ProviderAnswerMessage, ProviderFailure,
        ProviderFinishReason, ProviderToolCall, ProviderUsage,
    },
    role_links::{DeltaStream, RoleLinks},
};

/// Most calls of one answer. A model that requests more at a time has lost its way.
const CALLS_MAX: usize = 256;

/// Longest text of a failure in bytes. It is for the user.
const FAILURE_BYTES_MAX: usize = 4 * 1024;

/// Most tokens that an answer may report, so that no sum of them overflows.
const TOKENS_MAX: u64 = 1 << 40;

/// An answer or a failure, with the record of the run.
#[derive(Debug)]
pub struct ProviderRunResult {
    /// The answer.
    pub answer: Result<ProviderAnswer, ProviderFailure>,
    /// The record of the run.
    pub report: CallReport,
}

impl Plugin {
    /// Asks the plugin to answer a conversation. The pieces go to `deltas` while it generates, all
    /// of them before this returns. Dropping the future stops the instance.
    pub async fn generate_answer(
        &self,
        call: AdmittedCall,
        generation: GenerationRequest,
        deltas: DeltaSender,
    ) -> ProviderRunResult {
        let call = Arc::new(call);
        let body = self.abi().generate_answer(Arc::clone(&call), generation);
        let authorizer = self.authorizer();
        let bytes_max = authorizer.current_grant().limits().output_bytes;
        let delta_stream = Arc::new(DeltaStream::new(deltas, bytes_max, &authorizer.redactor()));
        let links =
            RoleLinks { delta_stream: Some(Arc::clone(&delta_stream)), ..RoleLinks::default() };
        let completed = self.run_call(call, links, body).await;
        let redactor = authorizer.redactor();
        let mut answer = None;
        let report = self.build_report(completed, |value, effect_log| {
            let value = value.and_then(|generated| generated.validate(bytes_max));
            let value = value.map_err(|failure| failure.prefer_denial(effect_log));
            let outcome =
                value.as_ref().map_or_else(ProviderFailure::to_outcome, ProviderAnswer::to_outcome);
            answer = Some(value);
            outcome
        });
        let answer = answer.unwrap_or_else(|| Err(ProviderFailure::from_outcome(&report.outcome)));
        ProviderRunResult { answer: merge_pushed_deltas(answer, &delta_stream, &redactor), report }
    }
}

/// Combines the answer with the pieces that were pushed before. A failure ends the pieces.
fn merge_pushed_deltas(
    answer: Result<ProviderAnswer, ProviderFailure>,
    delta_stream: &DeltaStream,
    redactor: &Redactor,
) -> Result<ProviderAnswer, ProviderFailure> {
    match answer {
        Ok(generated) => {
            let mut generated = generated.redact(redactor);
            generated.message.text = delta_stream.finish_answer(&generated.message.text);
            Ok(generated)
        }
        Err(failure) => {
            delta_stream.finish_answer("");
            Err(failure.redact(redactor))
        }
    }
}

impl ProviderAnswer {
    /// Accepts an answer or rejects it as a whole, and corrects fields that contradict each other.
    fn validate(mut self, bytes_max: u64) -> Result<Self, ProviderFailure> {
        let (bytes, calls) = (self.message.size_bytes(), self.message.calls.len());
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
            && let Err(error) = json::parse_json(opaque, usize::MAX)
        {
            let text = format!("its own form of the answer is broken: {error}");
            return Err(ProviderFailure::Broken(text));
        }
        // An answer that is not final and requests no calls was cut: nothing could continue it.
        if !self.is_final && calls == 0 && self.finish == ProviderFinishReason::Stop {
            self.finish = ProviderFinishReason::Length;
        }
        self.is_final &= calls == 0;
        self.usage = self.usage.map(ProviderUsage::clamp_tokens);
        Ok(self)
    }

    fn redact(mut self, redactor: &Redactor) -> Self {
        let clean = |text: &mut String| *text = redactor.redact_text(text).into_owned();
        let message = &mut self.message;
        clean(&mut message.text);
        message.opaque.iter_mut().for_each(clean);
        for call in &mut message.calls {
            [&mut call.id, &mut call.name, &mut call.arguments].into_iter().for_each(clean);
        }
        if let ProviderFinishReason::Other(text) = &mut self.finish {
            *text = truncate_failure_text(&redactor.redact_text(text));
        }
        self
    }

    /// The outcome for the record.
    fn to_outcome(&self) -> Outcome {
        let calls = self.message.calls.iter().map(|call| call.name.as_str()).collect::<Vec<_>>();
        let data = serde_json::json!({ "text_bytes": self.message.text.len(), "calls": calls });
        Outcome::Completed(ToolOutput { data, ..ToolOutput::default() })
    }
}

impl ProviderAnswerMessage {
    /// The size in bytes. Each call counts at least as much as its own record, so that empty calls
    /// are not free.
    fn size_bytes(&self) -> u64 {
        let call = |call: &ProviderToolCall| {
            size_of::<ProviderToolCall>() + call.id.len() + call.name.len() + call.arguments.len()
        };
        let calls = self.calls.iter().map(call).sum::<usize>();
        (self.text.len() + calls + self.opaque.as_ref().map_or(0, String::len)) as u64
    }
}

impl ProviderUsage {
    fn clamp_tokens(self) -> Self {
        Self {
            input_tokens: self.input_tokens.min(TOKENS_MAX),
            output_tokens: self.output_tokens.min(TOKENS_MAX),
        }
    }
}

impl ProviderFailure {
    /// The failure of a run that ended without a result.
    fn from_outcome(outcome: &Outcome) -> Self {
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

    /// A failure after the gate refused something is reported as denied.
    fn prefer_denial(self, effect_log: &EffectLog) -> Self {
        effect_log.last_denial().map_or(self, Self::Denied)
    }

    fn redact(self, redactor: &Redactor) -> Self {
        let clean = |text: String| truncate_failure_text(&redactor.redact_text(&text));
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

    /// The outcome for the record.
    fn to_outcome(&self) -> Outcome {
        let kind = match self {
            Self::Credentials(_) => FailureKind::AuthRequired,
            Self::Unreachable(_) | Self::Busy { .. } => FailureKind::Unavailable,
            Self::Refused(_) => FailureKind::Failed,
            Self::Denied(denial) => return Outcome::Denied(denial.clone()),
            Self::Broken(_) => FailureKind::BadOutput,
        };
        Outcome::Failed(CallFailure::new(kind, truncate_failure_text(&self.to_string())))
    }
}

/// Cuts a failure's text for the user to its limit.
fn truncate_failure_text(text: &str) -> String {
    text[..text.floor_char_boundary(FAILURE_BYTES_MAX)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generated() -> ProviderAnswer {
        ProviderAnswer {
            message: ProviderAnswerMessage {
                text: "Hello.".to_owned(),
                ..ProviderAnswerMessage::default()
            },
            is_final: true,
            finish: ProviderFinishReason::Stop,
            usage: None,
        }
    }

    fn calling(calls: usize, arguments: &str) -> ProviderAnswer {
        let call =
            ProviderToolCall { id: "a".into(), name: "b".into(), arguments: arguments.to_owned() };
        let message =
            ProviderAnswerMessage { calls: vec![call; calls], ..ProviderAnswerMessage::default() };
        ProviderAnswer { message, ..generated() }
    }

    fn opaque(text: &str) -> ProviderAnswer {
        let opaque = Some(text.to_owned());
        ProviderAnswer {
            message: ProviderAnswerMessage { opaque, ..ProviderAnswerMessage::default() },
            ..generated()
        }
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
            let got = generated.clone().validate(1 << 20);
            match (got, words) {
                (Ok(got), None) => assert_eq!(got.message, generated.message),
                (Err(error), Some(words)) => assert!(error.to_string().contains(words), "{error}"),
                (other, _) => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn an_answer_with_calls_is_not_final() {
        assert!(generated().validate(1000).unwrap().is_final);
        assert!(!calling(1, "{}").validate(1000).unwrap().is_final);
        let unfinished = ProviderAnswer { is_final: false, ..generated() }.validate(1000).unwrap();
        assert_eq!((unfinished.is_final, unfinished.finish), (false, ProviderFinishReason::Length));
    }

    #[test]
    fn no_sum_of_tokens_overflows() {
        let usage = Some(ProviderUsage { input_tokens: u64::MAX, output_tokens: 7 });
        let usage = ProviderAnswer { usage, ..generated() }.validate(1000).unwrap().usage.unwrap();
        assert_eq!((usage.input_tokens, usage.output_tokens), (TOKENS_MAX, 7));
    }

    #[test]
    fn a_run_that_was_stopped_says_why() {
        let limit = std::time::Duration::from_secs(2);
        let failure = ProviderFailure::from_outcome(&Outcome::TimedOut { limit });
        assert_eq!(failure.to_string(), "it did not answer within 2s (limits.time)");
    }
}
