//! How a call ended, and the text of it for the model.

use sallyport_contract::{CallReport, Outcome};
use serde_json::{Value, json};

use super::{
    client_port::Interrupt,
    journal::JournalError,
    memory::json_bytes,
    results::{KeptResult, ResultText, json_prefix},
    session_log::JournalWriter,
    transcript::RESULT_BYTES_MAX,
};

/// Bytes reserved for the object around the beginning of a result that is too long.
const CUT_FRAME_BYTES: usize = 256;

/// Longest arguments of the user that are repeated next to a result, in bytes of JSON. The user
/// knows them; the model needs to see that they differ from its own.
const EDITED_BYTES_MAX: usize = 4 << 10;

/// Longest result that fits next to edited arguments, in bytes of JSON.
const WHOLE_BYTES_MAX: usize = RESULT_BYTES_MAX - EDITED_BYTES_MAX - CUT_FRAME_BYTES;

/// The end of a call.
#[derive(Debug)]
pub(super) struct CallEnding {
    pub(super) report: CallReport,
    /// The error for the model when the outcome alone would not explain it.
    reason: Option<String>,
    /// Replaces a result that is too long.
    excerpt: Option<Value>,
    kept: Option<KeptResult>,
}

impl<T: Into<CallReport>> From<T> for CallEnding {
    fn from(report: T) -> Self {
        Self { report: report.into(), reason: None, excerpt: None, kept: None }
    }
}

impl CallEnding {
    /// The end of a call that was halted before it ran.
    pub(super) fn before_run(interrupt: Interrupt) -> Self {
        Self::from_interrupt(interrupt, "it was not made")
    }

    /// The end of a call that was halted while it ran.
    pub(super) fn during_run(interrupt: Interrupt) -> Self {
        Self::from_interrupt(interrupt, "it may or may not have had its effect")
    }

    fn from_interrupt(interrupt: Interrupt, consequence: &str) -> Self {
        match interrupt {
            Interrupt::Cancelled => Outcome::Cancelled.into(),
            Interrupt::TimeUp { time_max } => {
                let reason = format!("the turn may take {time_max:?} at most; {consequence}");
                Self { reason: Some(reason), ..Outcome::TimedOut { limit: time_max }.into() }
            }
        }
    }

    /// The whole result, if it is kept.
    pub(super) fn kept(&self) -> Option<KeptResult> {
        self.kept
    }

    /// Keeps a result of more than `bytes_max` bytes of JSON, so that the model receives an excerpt
    /// of it.
    ///
    /// # Errors
    ///
    /// It could not be kept; the model receives the excerpt all the same.
    pub(super) async fn keep_long_result(
        &mut self,
        bytes_max: usize,
        journal_writer: &mut JournalWriter,
    ) -> Result<(), JournalError> {
        let value = self.to_model_value();
        if json_bytes(&value) <= bytes_max.min(WHOLE_BYTES_MAX) {
            return Ok(());
        }
        let result_text = ResultText::from_value(value);
        let number = journal_writer.keep_result(result_text.kept_text().to_owned()).await;
        self.kept = number.as_ref().ok().map(|number| result_text.to_kept_result(*number));
        self.excerpt = Some(result_text.to_excerpt(self.kept.as_ref(), bytes_max));
        number.map(drop)
    }

    /// Returns the result for the model, as JSON text. `edited` holds the arguments if the user
    /// changed them.
    pub(super) fn result_text(&self, edited: Option<&str>) -> String {
        let model_value = self.excerpt.clone().unwrap_or_else(|| self.to_model_value());
        let model_value = match edited {
            Some(arguments) => json!({
                "note": "the user changed the arguments of this call before it was decided",
                "arguments": edited_value(arguments),
                "result": model_value,
            }),
            None => model_value,
        };
        to_bounded_json(&model_value, RESULT_BYTES_MAX)
    }

    fn to_model_value(&self) -> Value {
        let outcome = &self.report.outcome;
        match &self.reason {
            Some(reason) => json!({ "outcome": outcome.as_str(), "error": reason }),
            None => outcome.to_model_value(),
        }
    }
}

/// Returns the arguments as JSON if they are valid and short, else their beginning as a string.
fn edited_value(arguments: &str) -> Value {
    let parsed = sallyport_contract::json::parse_json(arguments, EDITED_BYTES_MAX).ok();
    parsed
        .filter(|value| json_bytes(value) <= EDITED_BYTES_MAX)
        .unwrap_or_else(|| json_prefix(arguments, EDITED_BYTES_MAX).into())
}

/// Writes a value as JSON text of at most `bytes_max` bytes. A longer one becomes an object that
/// states this and contains the beginning of the text as a string.
fn to_bounded_json(value: &Value, bytes_max: usize) -> String {
    let text = value.to_string();
    if text.len() <= bytes_max {
        return text;
    }
    // JSON text contains no raw control characters, so quoting it can at most double it.
    let kept_bytes = text.floor_char_boundary(bytes_max.saturating_sub(CUT_FRAME_BYTES) / 2);
    let cut = json!({
        "cut": "the result is too long, only the beginning of its JSON text is here",
        "bytes": text.len(),
        "bytes_cut": text.len() - kept_bytes,
        "beginning": &text[..kept_bytes],
    });
    cut.to_string()
}
