//! Replaces a model and tools with a tape.

use std::{
    collections::VecDeque,
    future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use sallyport_contract::{
    Admitted, BoxFuture, CallReport, Failure, FailureKind, Outcome, Redactor, ToolCall, ToolSpec,
    Toolbox,
};
use sallyport_model::{
    ChatModel, Delta, Message, ModelError, Price, Reply, Request, ToolDefinition,
};
use serde_json::json;
use tokio::{sync::Notify, task};

use crate::{Event, Recall, RecallError, Recalled, Wanted, history::PastTurn};

use super::{
    clean,
    difference::Difference,
    line::{Answer, Answered, Decided, Decision, Header, Recollected, Report, Reported, digest},
    read::{At, Tape},
};

/// The error for a recall that exceeded its time limit when the tape was recorded.
const TOO_LATE: &str = "no answer came in time";

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
        difference: Difference,
    },
    /// A call is different.
    #[error("call {call:?} differs from line {line} of the tape, at {difference}")]
    Call {
        /// Its id.
        call: String,
        /// The line of the tape, from 1.
        line: usize,
        /// Where it differs.
        difference: Difference,
    },
    /// The user edited the arguments of a call, which a tape does not record.
    #[error("the call on line {line} of the tape was taken back, and nobody is here to do that")]
    TakenBack {
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
    Cut {
        /// Its last whole line, from 1.
        line: usize,
        /// The missing step.
        wanted: String,
    },
}

/// A tape that is being replayed. Clones replay the same one.
#[derive(Debug, Clone)]
pub struct Replay {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    header: Header,
    redactor: Redactor,
    state: Mutex<State>,
    cancel_due: Notify,
    /// Notified of the first problem.
    stopped: Notify,
}

/// The rest of the tape, and the last request.
#[derive(Debug)]
struct State {
    tape: Tape,
    /// The last request, whole.
    messages: Vec<Message>,
    tools: Vec<ToolDefinition>,
    problem: Option<ReplayError>,
}

impl Replay {
    /// Loads a tape. The session's requests are compared without the secrets that the redactor
    /// knows, as they were recorded.
    pub fn new(tape: Tape, redactor: Redactor) -> Self {
        let header = tape.header.clone();
        let state = State { tape, messages: Vec::new(), tools: Vec::new(), problem: None };
        let (cancel_due, stopped) = (Notify::new(), Notify::new());
        let shared = Shared { header, redactor, state: Mutex::new(state), cancel_due, stopped };
        Self { shared: Arc::new(shared) }
    }

    /// Returns the tape as a model.
    pub fn model(&self) -> Arc<dyn ChatModel> {
        Arc::new(self.clone())
    }

    /// Returns the tape as a toolbox.
    pub fn toolbox(&self) -> Arc<dyn Toolbox> {
        Arc::new(self.clone())
    }

    /// Returns the tape as a recall, if the recorded session had one.
    pub fn recall(&self) -> Option<Arc<dyn Recall>> {
        self.state().tape.has_recall.then(|| Arc::new(self.clone()) as Arc<dyn Recall>)
    }

    /// Waits until the current turn has to be cancelled, as in the recording. Poll it together with
    /// the events of the turn. Cancel-safe: dropping the future loses nothing.
    pub async fn cancel_due(&self) {
        self.shared.cancel_due.notified().await;
    }

    /// Returns an event of the session with the recorded values: the duration of a turn is the
    /// recorded one.
    pub fn event(&self, mut event: Event) -> Event {
        if let Event::TurnEnded { usage, .. } = &mut event {
            usage.elapsed = self.state().tape.turns.pop_front().unwrap_or_default();
        }
        event
    }

    /// Returns the first difference from the tape.
    pub fn problem(&self) -> Option<ReplayError> {
        self.state().problem.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No operation under the lock can stop halfway.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers that the session has received the result on a line, or waits for it.
    fn reach(&self, line: usize) {
        if self.state().tape.schedule.reach(line) {
            self.shared.cancel_due.notify_one();
        }
    }

    /// Waits to be dropped, as in the recording, or for a problem elsewhere, because the rest of
    /// the tape then cannot be relied on to end this.
    async fn dropped(&self, line: usize) -> ReplayError {
        self.reach(line);
        loop {
            // Created before the check, so that no problem is missed between the two.
            let stopped = self.shared.stopped.notified();
            if let Some(problem) = self.problem() {
                return problem;
            }
            stopped.await;
        }
    }

    /// Looks up the next step. After the first problem there is none.
    fn next<T>(
        &self,
        look_up: impl FnOnce(&mut State) -> Result<T, ReplayError>,
    ) -> Result<T, ReplayError> {
        let mut state = self.state();
        if let Some(problem) = state.problem.clone() {
            return Err(problem);
        }
        let found = look_up(&mut state);
        if let Err(problem) = &found {
            state.problem = Some(problem.clone());
            self.shared.stopped.notify_waiters();
        }
        found
    }

    fn answer(&self, request: Request<'_>) -> Result<At<Answered>, ReplayError> {
        let redactor = &self.shared.redactor;
        let (mut messages, mut tools) = (request.messages.to_vec(), request.tools.to_vec());
        messages.iter_mut().for_each(|message| clean::message(redactor, message));
        tools.iter_mut().for_each(|tool| clean::definition(redactor, tool));
        self.next(|state| state.answer(&messages, &tools))
    }

    fn decision(&self, call: &ToolCall) -> Result<At<Decided>, ReplayError> {
        let (mut id, mut arguments) = (call.context.call_id.clone(), call.arguments.clone());
        clean::text(&self.shared.redactor, &mut id);
        clean::text(&self.shared.redactor, &mut arguments);
        self.next(|state| state.decision(&id, &call.tool.to_string(), &arguments))
    }

    /// Whether a dropped line waits for a cancellation, and not for a timeout.
    fn will_cancel(&self, line: usize) -> bool {
        self.state().tape.schedule.will_cancel(line)
    }

    fn report(&self, call: &Admitted) -> Result<At<Reported>, ReplayError> {
        let mut id = call.context().call_id.clone();
        clean::text(&self.shared.redactor, &mut id);
        self.next(|state| state.report(&id))
    }
}

impl State {
    fn ended(&self, wanted: String) -> ReplayError {
        let line = self.tape.end;
        if self.tape.is_cut {
            ReplayError::Cut { line, wanted }
        } else {
            ReplayError::Ended { line, wanted }
        }
    }

    fn answer(
        &mut self,
        messages: &[Message],
        tools: &[ToolDefinition],
    ) -> Result<At<Answered>, ReplayError> {
        let Some(At { line, what: asked }) = self.tape.requests.pop_front() else {
            return Err(self.ended("another request to the model".to_owned()));
        };
        self.messages.truncate(asked.same);
        self.messages.extend(asked.messages);
        self.tools = asked.tools.unwrap_or_else(|| std::mem::take(&mut self.tools));
        let number = asked.number;
        if asked.digest != digest(messages, tools)
            && let Some(difference) = self.difference(messages, tools)
        {
            return Err(ReplayError::Request { number, line, difference });
        }
        let answered = self.tape.answers.remove(&number);
        answered.ok_or_else(|| self.ended(format!("the answer to request {}", number + 1)))
    }

    fn difference(&self, messages: &[Message], tools: &[ToolDefinition]) -> Option<Difference> {
        let taped = json!({ "messages": self.messages, "tools": self.tools });
        let live = json!({ "messages": messages, "tools": tools });
        Difference::find(&taped, &live)
    }

    fn decision(
        &mut self,
        id: &str,
        tool: &str,
        arguments: &str,
    ) -> Result<At<Decided>, ReplayError> {
        let Some(decided) = self.tape.decisions.get_mut(id).and_then(VecDeque::pop_front) else {
            return Err(self.ended(format!("the decision about call {id:?}")));
        };
        let At { line, what: Decided { tool: taped, arguments: written, end, .. } } = &decided;
        let taped = json!({ "tool": taped, "arguments": written });
        let live = json!({ "tool": tool, "arguments": arguments });
        if let Some(difference) = Difference::find(&taped, &live) {
            return Err(ReplayError::Call { call: id.to_owned(), line: *line, difference });
        }
        if matches!(end, Decision::Dropped) && !self.tape.schedule.will_cancel(*line) {
            return Err(ReplayError::TakenBack { line: *line });
        }
        Ok(decided)
    }

    fn recollection(&mut self) -> Result<At<Recollected>, ReplayError> {
        let recollected = self.tape.recollections.pop_front();
        recollected.ok_or_else(|| self.ended("what bears on an input".to_owned()))
    }

    fn report(&mut self, id: &str) -> Result<At<Reported>, ReplayError> {
        let reported = self.tape.reports.get_mut(id).and_then(VecDeque::pop_front);
        reported.ok_or_else(|| self.ended(format!("the end of call {id:?}")))
    }
}

impl ChatModel for Replay {
    fn name(&self) -> &str {
        &self.shared.header.model
    }

    fn price(&self) -> Option<Price> {
        self.shared.header.price
    }

    fn generate<'a>(
        &'a self,
        request: Request<'a>,
        on_delta: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let At { line, what: answered } = self.answer(request).map_err(to_model_error)?;
            for delta in answered.deltas {
                on_delta(delta);
                // The session has forwarded the delta when this is polled again.
                task::yield_now().await;
            }
            match answered.end {
                Answer::Dropped => Err(to_model_error(self.dropped(line).await)),
                Answer::Reply(reply) => {
                    self.reach(line);
                    Ok(reply)
                }
                Answer::Failed(error) => {
                    self.reach(line);
                    Err(error)
                }
            }
        })
    }
}

impl Toolbox for Replay {
    fn tools(&self) -> &[ToolSpec] {
        &self.shared.header.tools
    }

    #[expect(clippy::disallowed_methods, reason = "this is a toolbox's own admit")]
    fn admit(&self, call: ToolCall) -> BoxFuture<'_, Result<Admitted, Box<CallReport>>> {
        Box::pin(async move {
            let At { line, what: decided } = self.decision(&call).map_err(to_report)?;
            match decided.end {
                Decision::Dropped => Err(to_report(self.dropped(line).await)),
                Decision::Admitted { arguments, grounds } => {
                    self.reach(line);
                    Ok(Admitted::new(call, arguments).on_grounds(grounds))
                }
                Decision::Refused(report) => {
                    self.reach(line);
                    Err(Box::new(report))
                }
            }
        })
    }

    fn run(&self, call: Admitted) -> BoxFuture<'_, CallReport> {
        Box::pin(async move {
            match self.report(&call) {
                Err(problem) => *to_report(problem),
                Ok(At { line, what: Reported { end: Report::Dropped, .. } }) => {
                    *to_report(self.dropped(line).await)
                }
                Ok(At { line, what: Reported { end: Report::Finished(report), .. } }) => {
                    self.reach(line);
                    report
                }
            }
        })
    }
}

impl Recall for Replay {
    fn recall<'a>(
        &'a self,
        _wanted: Wanted<'a>,
    ) -> BoxFuture<'a, Result<Vec<Recalled>, RecallError>> {
        Box::pin(async move {
            let At { line, what } = self.next(State::recollection).map_err(to_recall_error)?;
            if matches!(what, Recollected::Dropped) && self.will_cancel(line) {
                return Err(to_recall_error(self.dropped(line).await));
            }
            self.reach(line);
            match what {
                Recollected::Found(found) => Ok(found),
                Recollected::Failed(message) => Err(RecallError { message }),
                Recollected::Dropped => Err(RecallError { message: TOO_LATE.to_owned() }),
            }
        })
    }

    fn remember<'a>(&'a self, _turn: &'a PastTurn) -> BoxFuture<'a, Result<(), RecallError>> {
        Box::pin(future::ready(Ok(())))
    }

    fn forget(&self, _turn: usize) -> BoxFuture<'_, Result<(), RecallError>> {
        Box::pin(future::ready(Ok(())))
    }
}

fn to_recall_error(problem: ReplayError) -> RecallError {
    RecallError { message: problem.to_string() }
}

fn to_model_error(problem: ReplayError) -> ModelError {
    ModelError::Broken { provider: "the tape".to_owned(), message: problem.to_string() }
}

fn to_report(problem: ReplayError) -> Box<CallReport> {
    let failure = Failure::new(FailureKind::Internal, problem.to_string());
    Box::new(Outcome::Failed(failure).into())
}
