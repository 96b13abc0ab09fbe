//! Session events as JSON for programs: one object per event.
//!
//! The format is published (`sallyport schema`) and generated from these types. Readers may rely on
//! all of it: within a version, fields and kinds are added but never removed or changed.

mod parts;

use std::sync::Arc;

use sallyport_contract::{ApprovalRequest, ApprovalSubject, RequestPreview};
use sallyport_model::{ModelError, ReplyDelta};
use sallyport_session::{CallPosition, SessionEvent, TurnEnd, TurnUsage};
use schemars::JsonSchema;
use serde::Serialize;

use super::exit::{CommandFailure, ExitStatus};
use parts::{JsonProblem, JsonSessionState, JsonTokenCounts, JsonTurnUsage, to_milliseconds};

pub(super) use parts::JsonFinishedCall;

/// Version of the format. It changes whenever it could mislead a reader of the previous one.
pub(super) const VERSION: u32 = 1;

/// One line: an event with the version of its form.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct JsonEventLine {
    /// Version of this form.
    v: u32,
    #[serde(flatten)]
    event: JsonEvent,
}

/// An event. The last one is always `turn-ended` or `error`, and there is only one of these, but
/// for a tape of several turns, where each has its end.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub(super) enum JsonEvent {
    /// The first event: everything is ready.
    SessionStarted {
        /// Names the session; another run can go on with it unless it is not kept.
        session_id: String,
        /// Who answers.
        model: String,
        /// The tools that it can call.
        tools: Vec<String>,
        /// Turns that there were before.
        past_turns: usize,
    },
    /// The session now does something else.
    State {
        /// What it does.
        state: JsonSessionState,
    },
    /// A turn begins.
    TurnStarted {
        /// Number of the turn, from 1.
        turn: usize,
        /// The words of the input.
        text: String,
    },
    /// A piece of the model's answer, while it arrives.
    TextDelta {
        /// The piece.
        text: String,
    },
    /// A piece of the model's thinking.
    ReasoningDelta {
        /// The piece.
        text: String,
    },
    /// The model has begun to write a call.
    CallBegun {
        /// The function name, as it wrote it.
        name: String,
    },
    /// The provider could not answer and is asked again after a wait.
    Retry {
        /// Number of the next attempt, from 2.
        attempt: u32,
        /// How long until then.
        wait_ms: u64,
        /// Why.
        reason: String,
    },
    /// The model has finished one answer, of which a turn may have several.
    Message {
        /// All of its text, the deltas included.
        text: String,
        /// Tokens used, when the provider says so.
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<JsonTokenCounts>,
    },
    /// The model wants a call made. Nothing about it has been checked.
    CallRequested {
        /// Unique within the session.
        call_id: String,
        /// The tool.
        tool: String,
        /// The arguments as JSON text, as the model wrote them.
        arguments: String,
    },
    /// A person has to decide.
    ApprovalNeeded {
        /// Names the question.
        confirmation_id: u64,
        /// The place of the call among those of the answer, from 1.
        index: usize,
        /// How many calls the answer has.
        count: usize,
        /// The call.
        call_id: String,
        /// The tool.
        tool: String,
        /// The arguments as JSON text.
        arguments: String,
        /// What is reached for; absent when the call itself is asked about.
        #[serde(skip_serializing_if = "Option::is_none")]
        access: Option<String>,
        /// What the address that is reached for says behind its path, known secrets taken out.
        #[serde(skip_serializing_if = "Option::is_none")]
        query: Option<String>,
        /// All that would leave, known secrets taken out.
        #[serde(skip_serializing_if = "Option::is_none")]
        request: Option<RequestPreview>,
        /// Why somebody has to be asked.
        reason: String,
    },
    /// A question needs no answer any more.
    ApprovalClosed {
        /// The question.
        confirmation_id: u64,
    },
    /// The person put other arguments in place of the model's.
    ArgumentsEdited {
        /// The call.
        call_id: String,
        /// The arguments that count from here on.
        arguments: String,
    },
    /// A call has ended.
    CallFinished(JsonFinishedCall),
    /// The last turn was taken back.
    Undone {
        /// The words of its input.
        text: String,
    },
    /// Another model answers from here on.
    ModelChanged {
        /// Who.
        name: String,
    },
    /// The beginning of the conversation was replaced by a summary, for the model alone.
    Summarized {
        /// How many messages it stands for.
        messages: usize,
        /// The summary.
        text: String,
    },
    /// A turn stays in the model's sight.
    Pinned {
        /// Number of the turn, from 1.
        turn: usize,
    },
    /// A running call says how far it has come.
    Progress {
        /// The call.
        call_id: String,
        /// From 0 to 1, where that is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        part: Option<f64>,
        /// A few words.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// A plugin has a message for the person.
    Notified {
        /// The plugin.
        plugin: String,
        /// The message.
        text: String,
        /// What is to be said aloud.
        #[serde(skip_serializing_if = "Option::is_none")]
        speech: Option<String>,
        /// It comes later than it should have.
        late: bool,
    },
    /// Something worth knowing that changes nothing.
    Notice {
        /// What.
        message: String,
    },
    /// The turn is over.
    TurnEnded(JsonTurnEnd),
    /// There was no turn, or it could not be brought to its end.
    Error {
        /// The exit code of the program.
        exit_code: u8,
        #[serde(flatten)]
        problem: JsonProblem,
    },
}

/// How a turn ended.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct JsonTurnEnd {
    /// The session.
    session_id: String,
    /// `answered`, `spoken`, `budget-reached`, `model-failed`, `cancelled` or `input-refused`.
    end: String,
    /// The answer; empty when there is none.
    text: String,
    /// What had arrived of an answer that never came to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    incomplete_text: Option<String>,
    /// The exit code of the program.
    exit_code: u8,
    /// Why there is no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<JsonProblem>,
    /// What the turn used.
    usage: JsonTurnUsage,
}

/// The answer of `--output json`: how it ended, and what came before that.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct JsonRunResult {
    #[serde(flatten)]
    last: JsonEventLine,
    /// The calls that were made or refused, in the order in which they ended.
    calls: Vec<JsonFinishedCall>,
    /// What was worth telling.
    notices: Vec<String>,
}

/// Converts an event. Returns `None` for the end of a turn, which [`ending`] converts.
pub(super) fn convert_event(event: &SessionEvent) -> Option<JsonEvent> {
    Some(match event.clone() {
        SessionEvent::State(state) => JsonEvent::State { state: state.into() },
        SessionEvent::InputAccepted { turn, text, .. } => JsonEvent::TurnStarted { turn, text },
        SessionEvent::Delta(delta) => convert_delta(delta),
        SessionEvent::MessageComplete { text, usage } => {
            JsonEvent::Message { text, usage: usage.map(JsonTokenCounts::from) }
        }
        SessionEvent::CallRequested { call_id, tool, arguments } => {
            JsonEvent::CallRequested { call_id, tool: tool.to_string(), arguments }
        }
        SessionEvent::ApprovalNeeded { confirmation_id, position, request } => {
            convert_approval(confirmation_id, position, request)
        }
        SessionEvent::ApprovalClosed { confirmation_id } => {
            JsonEvent::ApprovalClosed { confirmation_id }
        }
        SessionEvent::ArgumentsEdited { call_id, arguments } => {
            JsonEvent::ArgumentsEdited { call_id, arguments }
        }
        SessionEvent::CallFinished { call_id, tool, report } => {
            JsonEvent::CallFinished(JsonFinishedCall::new(call_id, tool.to_string(), &report))
        }
        SessionEvent::Undone { text } => JsonEvent::Undone { text },
        SessionEvent::ModelChanged { name } => JsonEvent::ModelChanged { name },
        SessionEvent::Summarized { messages, text } => JsonEvent::Summarized { messages, text },
        SessionEvent::Pinned { turn } => JsonEvent::Pinned { turn },
        SessionEvent::Progress { call_id, progress } => {
            JsonEvent::Progress { call_id, part: progress.fraction, message: progress.message }
        }
        SessionEvent::Noticed { notice } => JsonEvent::Notified {
            plugin: notice.plugin.to_string(),
            text: notice.text,
            speech: notice.speech,
            late: notice.late,
        },
        SessionEvent::Notice(notice) => JsonEvent::Notice { message: notice.to_string() },
        SessionEvent::TurnEnded { .. } => return None,
    })
}

/// Converts the end of a turn, with the exit code of the program.
pub(super) fn convert_turn_end(
    session_id: &str,
    end: &TurnEnd,
    usage: &TurnUsage,
    exit: ExitStatus,
) -> JsonEvent {
    JsonEvent::TurnEnded(JsonTurnEnd {
        session_id: session_id.to_owned(),
        end: end.as_str().to_owned(),
        text: match end {
            TurnEnd::Answered { text } | TurnEnd::Spoken { text } => text.clone(),
            _ => String::new(),
        },
        incomplete_text: None,
        exit_code: exit as u8,
        error: turn_problem(end),
        usage: usage.into(),
    })
}

impl JsonEvent {
    /// Adds the text that had arrived to the end of a turn without an answer.
    pub(super) fn with_incomplete_text(mut self, partial_text: &str) -> Self {
        if let Self::TurnEnded(ending) = &mut self
            && ending.error.is_some()
            && !partial_text.is_empty()
        {
            ending.incomplete_text = Some(partial_text.to_owned());
        }
        self
    }
}

fn turn_problem(end: &TurnEnd) -> Option<JsonProblem> {
    let (message, hint) = match end {
        TurnEnd::Answered { .. } | TurnEnd::Spoken { .. } => return None,
        TurnEnd::BudgetReached { limit: what } => (format!("stopped: {what}"), None),
        TurnEnd::ModelFailed(error @ ModelError::Denied { fix: Some(fix), .. }) => {
            let hint = format!("to allow it, add to your policy:\n{fix}");
            (error.to_string(), Some(hint))
        }
        TurnEnd::ModelFailed(error) => (error.to_string(), Some(error.hint().into_owned())),
        TurnEnd::Cancelled => ("cancelled".to_owned(), None),
        TurnEnd::InputRefused(error) => (error.to_string(), Some(error.hint().to_owned())),
    };
    Some(JsonProblem { message, hint })
}

fn convert_delta(delta: ReplyDelta) -> JsonEvent {
    match delta {
        ReplyDelta::Text(text) => JsonEvent::TextDelta { text },
        ReplyDelta::Reasoning(text) => JsonEvent::ReasoningDelta { text },
        ReplyDelta::CallBegun { name } => JsonEvent::CallBegun { name },
        ReplyDelta::Retry { attempt, wait, reason } => {
            JsonEvent::Retry { attempt, wait_ms: to_milliseconds(wait), reason }
        }
        ReplyDelta::LeftOut(what) => JsonEvent::Notice { message: what.to_string() },
    }
}

fn convert_approval(
    confirmation_id: u64,
    position: CallPosition,
    request: ApprovalRequest,
) -> JsonEvent {
    let call = request.call;
    let shown = request.request.map(Arc::unwrap_or_clone);
    JsonEvent::ApprovalNeeded {
        confirmation_id,
        index: position.index,
        count: position.count,
        call_id: call.context.call_id,
        tool: call.tool.to_string(),
        arguments: call.arguments,
        access: match request.subject {
            ApprovalSubject::Call => None,
            ApprovalSubject::Access { what } => Some(what),
        },
        query: shown.as_ref().map(|shown| shown.query.clone()).filter(|query| !query.is_empty()),
        request: shown,
        reason: request.reason,
    }
}

impl From<JsonEvent> for JsonEventLine {
    fn from(event: JsonEvent) -> Self {
        Self { v: VERSION, event }
    }
}

impl From<&CommandFailure> for JsonEvent {
    fn from(failure: &CommandFailure) -> Self {
        let CommandFailure { exit, message, hint, location: _ } = failure;
        let problem = JsonProblem { message: message.clone(), hint: hint.clone() };
        Self::Error { exit_code: *exit as u8, problem }
    }
}

impl JsonRunResult {
    /// Combines the end of a run with the calls and notices before it.
    pub(super) fn new(last: JsonEvent, calls: Vec<JsonFinishedCall>, notices: Vec<String>) -> Self {
        Self { last: last.into(), calls, notices }
    }
}
