//! Session events as JSON for programs: one object per event.
//!
//! The format is published (`sallyport schema`) and generated from these types: an event of the
//! session as it is, and what the program adds to it. Readers may rely on all of it: within a
//! version, fields and kinds are added but never removed or changed.

use std::borrow::Cow;

use sallyport_contract::CallReport;
use sallyport_model::{ModelError, ReplyDelta};
use sallyport_session::{SessionEvent, ToolRef, TurnEnd, TurnUsage};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{
    call_display,
    exit::{CommandFailure, ExitStatus},
};

/// Version of the format. It changes whenever it could mislead a reader of the previous one.
pub(super) const VERSION: u32 = 2;

/// One line: an event and what the program adds to it. The last one is always `turn-ended` or
/// `error`, and there is only one of these, except in a recording of several turns, where each turn
/// has its end.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct JsonEventLine<'a> {
    /// Version of this format.
    v: u32,
    #[serde(flatten)]
    event: JsonEvent<'a>,
    /// What a notice means, for a user.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// What the model receives of a finished call.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    end: Option<JsonTurnEnd>,
}

/// An event of the session or of the program.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
enum JsonEvent<'a> {
    Session(Box<Cow<'a, SessionEvent>>),
    Program(ProgramEvent),
}

/// An event of the program.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub(super) enum ProgramEvent {
    /// The first event: everything is ready.
    SessionStarted {
        /// Names the session. Another run can continue it unless it is not stored.
        session_id: String,
        /// The model that answers.
        model: String,
        /// The tools that it can call.
        tools: Vec<String>,
        /// The number of earlier turns.
        past_turns: usize,
    },
    /// No turn began, or it could not be completed.
    Error {
        /// The exit code of the program.
        exit_code: u8,
        #[serde(flatten)]
        problem: JsonProblem,
    },
}

/// What the program adds to the end of a turn.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct JsonTurnEnd {
    /// The session.
    session_id: String,
    /// The exit code of the program.
    exit_code: u8,
    /// Why there is no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<JsonProblem>,
    /// The part of an incomplete answer that had arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    incomplete_text: Option<String>,
}

/// What went wrong, and how to fix it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct JsonProblem {
    /// What went wrong.
    message: String,
    /// How to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// The result of `--output json`: the end of the run, and what came before it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct JsonRunResult {
    #[serde(flatten)]
    pub(super) last: JsonEventLine<'static>,
    /// The calls that were made or refused, in the order in which they ended.
    pub(super) calls: Vec<JsonFinishedCall>,
    /// The notices of the session and the messages of plugins.
    pub(super) notices: Vec<String>,
}

/// A call that has ended.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct JsonFinishedCall {
    /// Unique within the session.
    pub(super) call_id: String,
    /// The tool.
    pub(super) tool: ToolRef,
    #[serde(flatten)]
    pub(super) report: CallReport,
    /// What the model receives.
    pub(super) result: Value,
}

impl<'a> JsonEventLine<'a> {
    /// Creates the line of an event that does not end a turn.
    pub(super) fn from_event(event: &'a SessionEvent) -> Self {
        let message = event_message(event);
        let result = match event {
            SessionEvent::CallFinished { report, .. } => Some(report.outcome.to_model_value()),
            _ => None,
        };
        let event = JsonEvent::Session(Box::new(Cow::Borrowed(event)));
        Self { v: VERSION, event, message, result, end: None }
    }

    /// Creates the line of the end of a turn. `partial_text` is what had arrived of an answer.
    pub(super) fn from_turn_end(
        session_id: &str,
        (reason, usage): (&TurnEnd, &TurnUsage),
        exit: ExitStatus,
        partial_text: &str,
    ) -> Self {
        let error = turn_problem(reason);
        let end = JsonTurnEnd {
            session_id: session_id.to_owned(),
            exit_code: exit as u8,
            incomplete_text: (error.is_some() && !partial_text.is_empty())
                .then(|| partial_text.to_owned()),
            error,
        };
        let event = SessionEvent::TurnEnded { reason: reason.clone(), usage: *usage };
        let event = JsonEvent::Session(Box::new(Cow::Owned(event)));
        Self { v: VERSION, event, message: None, result: None, end: Some(end) }
    }
}

impl From<ProgramEvent> for JsonEventLine<'_> {
    fn from(event: ProgramEvent) -> Self {
        let event = JsonEvent::Program(event);
        Self { v: VERSION, event, message: None, result: None, end: None }
    }
}

impl From<&CommandFailure> for JsonEventLine<'_> {
    fn from(failure: &CommandFailure) -> Self {
        let CommandFailure { exit, message, hint, location: _ } = failure;
        let problem = JsonProblem { message: message.clone(), hint: hint.clone() };
        ProgramEvent::Error { exit_code: *exit as u8, problem }.into()
    }
}

/// Returns the words of a notice.
pub(super) fn event_message(event: &SessionEvent) -> Option<String> {
    match event {
        SessionEvent::Notice(notice) => Some(notice.to_string()),
        SessionEvent::Delta(ReplyDelta::LeftOut(what)) => Some(what.to_string()),
        _ => None,
    }
}

fn turn_problem(end: &TurnEnd) -> Option<JsonProblem> {
    let (message, hint) = match end {
        TurnEnd::Answered { .. } | TurnEnd::Spoken { .. } => return None,
        TurnEnd::BudgetReached { limit: what } => (format!("stopped: {what}"), None),
        TurnEnd::ModelFailed(error @ ModelError::Denied { fix: Some(fix), .. }) => {
            (error.to_string(), Some(call_display::fix_text(fix)))
        }
        TurnEnd::ModelFailed(error) => (error.to_string(), Some(error.hint().into_owned())),
        TurnEnd::Cancelled => ("cancelled".to_owned(), None),
        TurnEnd::InputRefused(error) => (error.to_string(), Some(error.hint().to_owned())),
    };
    Some(JsonProblem { message, hint })
}
