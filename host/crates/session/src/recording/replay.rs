//! Replaces a model and tools with a tape.

use std::{
    collections::VecDeque,
    future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use sallyport_contract::{
    Admission, AdmittedCall, BoxFuture, CallFailure, CallReport, FailureKind, Outcome, Redactor,
    RequestedCall, ToolDescriptor, Toolbox,
};
use sallyport_model::{
    ChatMessage, ChatModel, ModelError, ModelReply, ModelRequest, ModelToolDefinition, ReplyDelta,
    TokenPrice,
};
use serde_json::json;
use tokio::{sync::Notify, task};

use crate::{
    RecallError, RecallQuery, RecalledMemory, SessionEvent, SessionMemory, history::PastTurn,
};

use super::{
    clean,
    difference::ReplayDifference,
    line::{
        AnswerOutcome, DecisionOutcome, RecallOutcome, RecordedAnswer, RecordedDecision,
        RecordedReport, RecordingHeader, RunOutcome, digest,
    },
    reader::{NumberedValue, SessionRecording},
};

/// The error for a recall that exceeded its time limit when the tape was recorded.
const NO_ANSWER_IN_TIME: &str = "no answer came in time";

/// Why a session could not be replayed to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// The model receives a different request.
    #[error("request {} differs from line {line} of the tape, at {difference}", number + 1)]
    Request {
        /// The number of the request, from 0.
        number: usize,
        /// The line of the tape, from 1.
        line: usize,
        /// Where it differs.
        difference: ReplayDifference,
    },
    /// A call is different.
    #[error("call {call:?} differs from line {line} of the tape, at {difference}")]
    Call {
        /// Its id.
        call: String,
        /// The line of the tape, from 1.
        line: usize,
        /// Where it differs.
        difference: ReplayDifference,
    },
    /// The user edited the arguments of a call, which a tape does not record.
    #[error(
        "the call on line {line} of the tape was cancelled by the user, and a replay has no user"
    )]
    UnexpectedWithdrawal {
        /// The line of the tape, from 1.
        line: usize,
    },
    /// The tape ends before the session does.
    #[error("the tape ends with line {line}, and {wanted} is not on it")]
    Ended {
        /// Its last line, from 1.
        line: usize,
        /// The missing step.
        wanted: String,
    },
    /// The tape is cut off; most likely the host was killed during the recording.
    #[error("the tape is cut off after line {line}, before {wanted}")]
    Truncated {
        /// Its last whole line, from 1.
        line: usize,
        /// The missing step.
        wanted: String,
    },
}

/// A tape that is being replayed. Clones replay the same one.
#[derive(Debug, Clone)]
pub struct SessionReplay {
    shared: Arc<SharedReplay>,
}

#[derive(Debug)]
struct SharedReplay {
    header: RecordingHeader,
    redactor: Redactor,
    state: Mutex<ReplayState>,
    cancel_due: Notify,
    /// Notified of the first problem.
    stopped: Notify,
}

/// The rest of the tape, and the last request.
#[derive(Debug)]
struct ReplayState {
    recording: SessionRecording,
    /// The last request, whole.
    messages: Vec<ChatMessage>,
    tools: Vec<ModelToolDefinition>,
    problem: Option<ReplayError>,
}

impl SessionReplay {
    /// Loads a tape. The session's requests are compared without the secrets that the redactor
    /// knows, as they were recorded.
    pub fn new(recording: SessionRecording, redactor: Redactor) -> Self {
        let header = recording.header.clone();
        let state =
            ReplayState { recording, messages: Vec::new(), tools: Vec::new(), problem: None };
        let (cancel_due, stopped) = (Notify::new(), Notify::new());
        let shared =
            SharedReplay { header, redactor, state: Mutex::new(state), cancel_due, stopped };
        Self { shared: Arc::new(shared) }
    }

    /// Returns the tape as a model.
    pub fn to_chat_model(&self) -> Arc<dyn ChatModel> {
        Arc::new(self.clone())
    }

    /// Returns the tape as a toolbox.
    pub fn to_toolbox(&self) -> Arc<dyn Toolbox> {
        Arc::new(self.clone())
    }

    /// Returns the tape as a recall, if the recorded session had one.
    pub fn to_session_memory(&self) -> Option<Arc<dyn SessionMemory>> {
        self.lock_state()
            .recording
            .has_recall
            .then(|| Arc::new(self.clone()) as Arc<dyn SessionMemory>)
    }

    /// Waits until the current turn has to be cancelled, as in the recording. Poll it together with
    /// the events of the turn. Cancel-safe: dropping the future loses nothing.
    pub async fn wait_for_cancellation(&self) {
        self.shared.cancel_due.notified().await;
    }

    /// Returns an event of the session with the recorded values: the duration of a turn is the
    /// recorded one.
    pub fn adjust_event(&self, mut event: SessionEvent) -> SessionEvent {
        if let SessionEvent::TurnEnded { usage, .. } = &mut event {
            usage.elapsed = self.lock_state().recording.turns.pop_front().unwrap_or_default();
        }
        event
    }

    /// Returns the first difference from the tape.
    pub fn first_problem(&self) -> Option<ReplayError> {
        self.lock_state().problem.clone()
    }

    fn lock_state(&self) -> MutexGuard<'_, ReplayState> {
        // No operation under the lock can stop halfway.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers that the session has received the result on a line, or waits for it.
    fn reach_line(&self, line: usize) {
        if self.lock_state().recording.schedule.reach_line(line) {
            self.shared.cancel_due.notify_one();
        }
    }

    /// Waits to be dropped, as in the recording, or for a problem elsewhere, because the rest of
    /// the tape then cannot be relied on to end this.
    async fn wait_for_drop(&self, line: usize) -> ReplayError {
        self.reach_line(line);
        loop {
            // Created before the check, so that no problem is missed between the two.
            let stopped = self.shared.stopped.notified();
            if let Some(problem) = self.first_problem() {
                return problem;
            }
            stopped.await;
        }
    }

    /// Looks up the next step. After the first problem there is none.
    fn take_next<T>(
        &self,
        take_value: impl FnOnce(&mut ReplayState) -> Result<T, ReplayError>,
    ) -> Result<T, ReplayError> {
        let mut state = self.lock_state();
        if let Some(problem) = state.problem.clone() {
            return Err(problem);
        }
        let found = take_value(&mut state);
        if let Err(problem) = &found {
            state.problem = Some(problem.clone());
            self.shared.stopped.notify_waiters();
        }
        found
    }

    fn next_answer(
        &self,
        request: ModelRequest<'_>,
    ) -> Result<NumberedValue<RecordedAnswer>, ReplayError> {
        let redactor = &self.shared.redactor;
        let (mut messages, mut tools) = (request.messages.to_vec(), request.tools.to_vec());
        messages.iter_mut().for_each(|message| clean::clean_message(redactor, message));
        tools.iter_mut().for_each(|tool| clean::clean_definition(redactor, tool));
        self.take_next(|state| state.next_answer(&messages, &tools))
    }

    fn next_decision(
        &self,
        call: &RequestedCall,
    ) -> Result<NumberedValue<RecordedDecision>, ReplayError> {
        let (mut id, mut arguments) = (call.context.call_id.clone(), call.arguments.clone());
        clean::clean_text(&self.shared.redactor, &mut id);
        clean::clean_text(&self.shared.redactor, &mut arguments);
        self.take_next(|state| state.next_decision(&id, &call.tool.to_string(), &arguments))
    }

    /// Whether a dropped line waits for a cancellation, and not for a timeout.
    fn will_cancel(&self, line: usize) -> bool {
        self.lock_state().recording.schedule.will_cancel(line)
    }

    /// Ends an admitted call as the recording does.
    async fn replay_run(&self, call: &AdmittedCall) -> CallReport {
        match self.next_report(call) {
            Err(problem) => *to_call_report(problem),
            Ok(NumberedValue { line, value: RecordedReport { end: RunOutcome::Dropped, .. } }) => {
                *to_call_report(self.wait_for_drop(line).await)
            }
            Ok(NumberedValue {
                line,
                value: RecordedReport { end: RunOutcome::Finished(report), .. },
            }) => {
                self.reach_line(line);
                report
            }
        }
    }

    fn next_report(
        &self,
        call: &AdmittedCall,
    ) -> Result<NumberedValue<RecordedReport>, ReplayError> {
        let mut id = call.context().call_id.clone();
        clean::clean_text(&self.shared.redactor, &mut id);
        self.take_next(|state| state.next_report(&id))
    }
}

impl ReplayState {
    fn end_error(&self, wanted: String) -> ReplayError {
        let line = self.recording.last_line;
        if self.recording.is_truncated {
            ReplayError::Truncated { line, wanted }
        } else {
            ReplayError::Ended { line, wanted }
        }
    }

    fn next_answer(
        &mut self,
        messages: &[ChatMessage],
        tools: &[ModelToolDefinition],
    ) -> Result<NumberedValue<RecordedAnswer>, ReplayError> {
        let Some(NumberedValue { line, value: recorded_request }) =
            self.recording.requests.pop_front()
        else {
            return Err(self.end_error("another request to the model".to_owned()));
        };
        self.messages.truncate(recorded_request.same);
        self.messages.extend(recorded_request.messages);
        self.tools = recorded_request.tools.unwrap_or_else(|| std::mem::take(&mut self.tools));
        let number = recorded_request.number;
        if recorded_request.digest != digest(messages, tools)
            && let Some(difference) = self.request_difference(messages, tools)
        {
            return Err(ReplayError::Request { number, line, difference });
        }
        let answer = self.recording.answers.remove(&number);
        answer.ok_or_else(|| self.end_error(format!("the answer to request {}", number + 1)))
    }

    fn request_difference(
        &self,
        messages: &[ChatMessage],
        tools: &[ModelToolDefinition],
    ) -> Option<ReplayDifference> {
        let recorded = json!({ "messages": self.messages, "tools": self.tools });
        let live = json!({ "messages": messages, "tools": tools });
        ReplayDifference::find(&recorded, &live)
    }

    fn next_decision(
        &mut self,
        id: &str,
        tool: &str,
        arguments: &str,
    ) -> Result<NumberedValue<RecordedDecision>, ReplayError> {
        let Some(decision) = self.recording.decisions.get_mut(id).and_then(VecDeque::pop_front)
        else {
            return Err(self.end_error(format!("the decision about call {id:?}")));
        };
        let NumberedValue {
            line,
            value: RecordedDecision { tool: recorded, arguments: recorded_arguments, end, .. },
        } = &decision;
        let recorded = json!({ "tool": recorded, "arguments": recorded_arguments });
        let live = json!({ "tool": tool, "arguments": arguments });
        if let Some(difference) = ReplayDifference::find(&recorded, &live) {
            return Err(ReplayError::Call { call: id.to_owned(), line: *line, difference });
        }
        if matches!(end, DecisionOutcome::Dropped) && !self.recording.schedule.will_cancel(*line) {
            return Err(ReplayError::UnexpectedWithdrawal { line: *line });
        }
        Ok(decision)
    }

    fn next_recall(&mut self) -> Result<NumberedValue<RecallOutcome>, ReplayError> {
        let recall_outcome = self.recording.recalls.pop_front();
        recall_outcome.ok_or_else(|| self.end_error("what bears on an input".to_owned()))
    }

    fn next_report(&mut self, id: &str) -> Result<NumberedValue<RecordedReport>, ReplayError> {
        let recorded_report = self.recording.reports.get_mut(id).and_then(VecDeque::pop_front);
        recorded_report.ok_or_else(|| self.end_error(format!("the end of call {id:?}")))
    }
}

impl ChatModel for SessionReplay {
    fn name(&self) -> &str {
        &self.shared.header.model
    }

    fn price(&self) -> Option<TokenPrice> {
        self.shared.header.price
    }

    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(ReplyDelta) + Send),
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(async move {
            let NumberedValue { line, value: answer } =
                self.next_answer(request).map_err(to_model_error)?;
            for delta in answer.deltas {
                on_delta(delta);
                // The session has forwarded the delta when this is polled again.
                task::yield_now().await;
            }
            match answer.end {
                AnswerOutcome::Dropped => Err(to_model_error(self.wait_for_drop(line).await)),
                AnswerOutcome::Reply(reply) => {
                    self.reach_line(line);
                    Ok(reply)
                }
                AnswerOutcome::Failed(error) => {
                    self.reach_line(line);
                    Err(error)
                }
            }
        })
    }
}

impl Toolbox for SessionReplay {
    fn tools(&self) -> Arc<[ToolDescriptor]> {
        self.shared.header.tools.clone().into()
    }

    #[expect(clippy::disallowed_methods, reason = "this is a toolbox's own admit")]
    fn admit_call(
        self: Arc<Self>,
        call: RequestedCall,
    ) -> BoxFuture<'static, Result<Admission, Box<CallReport>>> {
        Box::pin(async move {
            let NumberedValue { line, value: decision } =
                self.next_decision(&call).map_err(to_call_report)?;
            match decision.end {
                DecisionOutcome::Dropped => Err(to_call_report(self.wait_for_drop(line).await)),
                DecisionOutcome::Admitted { arguments, grounds: authorization_reason_text } => {
                    self.reach_line(line);
                    let call = AdmittedCall::new(call, arguments)
                        .with_authorization_reason(authorization_reason_text);
                    let replay = Arc::clone(&self);
                    Ok(Admission::new(call, |call| async move { replay.replay_run(&call).await }))
                }
                DecisionOutcome::Refused(report) => {
                    self.reach_line(line);
                    Err(Box::new(report))
                }
            }
        })
    }
}

impl SessionMemory for SessionReplay {
    fn find_memories<'a>(
        &'a self,
        _wanted: RecallQuery<'a>,
    ) -> BoxFuture<'a, Result<Vec<RecalledMemory>, RecallError>> {
        Box::pin(async move {
            let NumberedValue { line, value } =
                self.take_next(ReplayState::next_recall).map_err(to_recall_error)?;
            if matches!(value, RecallOutcome::Dropped) && self.will_cancel(line) {
                return Err(to_recall_error(self.wait_for_drop(line).await));
            }
            self.reach_line(line);
            match value {
                RecallOutcome::Found(found) => Ok(found),
                RecallOutcome::Failed(message) => Err(RecallError { message }),
                RecallOutcome::Dropped => {
                    Err(RecallError { message: NO_ANSWER_IN_TIME.to_owned() })
                }
            }
        })
    }

    fn remember_turn<'a>(&'a self, _turn: &'a PastTurn) -> BoxFuture<'a, Result<(), RecallError>> {
        Box::pin(future::ready(Ok(())))
    }

    fn forget_turn(&self, _turn: usize) -> BoxFuture<'_, Result<(), RecallError>> {
        Box::pin(future::ready(Ok(())))
    }
}

fn to_recall_error(problem: ReplayError) -> RecallError {
    RecallError { message: problem.to_string() }
}

fn to_model_error(problem: ReplayError) -> ModelError {
    ModelError::Broken { provider: "the tape".to_owned(), message: problem.to_string() }
}

fn to_call_report(problem: ReplayError) -> Box<CallReport> {
    let failure = CallFailure::new(FailureKind::Internal, problem.to_string());
    Box::new(Outcome::Failed(failure).into())
}
