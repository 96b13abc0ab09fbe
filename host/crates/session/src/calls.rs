//! The calls of one answer, from the request to a result for each.
//!
//! A call moves through stages and always ends in the last one: refused at the gate, cancelled by
//! the user, stopped by a timeout, or lost to a bug of the host. All decisions are made before the
//! first call runs; then the admitted ones run at the same time, each in a task of its own, so that
//! a call that panics or is slow does not affect the others. A result is recorded the moment its
//! call ends; the front ends receive the results in the order of the calls.

use std::{collections::HashMap, mem, sync::Arc};

use sallyport_contract::{
    Admission, CallFailure, CallReport, FailureKind, Outcome, RequestedCall, Toolbox,
};
use sallyport_model::ToolResultMessage;
use tokio::task::{Id, JoinError, JoinSet};
use tracing::Instrument as _;

use super::{
    abortable_task::{self, AbortableTask},
    call_ending::CallEnding,
    client_port::{AdmissionResult, ClientPort, Interrupt},
    event::{SessionEvent, SessionNotice},
    journal::{JournalError, JournalRecord},
    results::{RESULT_BYTES_DEFAULT, ResultQuery, answer_query},
    session_log::SessionLog,
    tool_names::ToolRef,
};

/// One call.
pub(super) struct BatchCall {
    id: String,
    /// The name in the model's message.
    name: String,
    tool: ToolRef,
    /// The arguments with which the user replaced the model's.
    edited_arguments: Option<String>,
    stage: CallStage,
}

enum CallStage {
    Requested(RequestedCall),
    /// A query about a kept result, which the session itself answers.
    Query(ResultQuery),
    Admitted(Admission),
    Running,
    Ended(CallEnding),
}

impl BatchCall {
    /// Creates a call that still has to pass the gate.
    pub(super) fn new(name: String, call: RequestedCall) -> Self {
        let (id, tool) = (call.context.call_id.clone(), ToolRef::Known(call.tool.clone()));
        Self { id, name, tool, edited_arguments: None, stage: CallStage::Requested(call) }
    }

    /// Creates a query about a kept result of the session.
    pub(super) fn new_query(id: String, name: String, tool: ToolRef, query: ResultQuery) -> Self {
        Self { id, name, tool, edited_arguments: None, stage: CallStage::Query(query) }
    }

    /// Creates a call that ends before it reaches the gate.
    pub(super) fn new_ended(id: String, name: String, tool: ToolRef, outcome: Outcome) -> Self {
        Self { id, name, tool, edited_arguments: None, stage: CallStage::Ended(outcome.into()) }
    }

    fn edit_arguments(&mut self, arguments: String) {
        if let CallStage::Requested(call) = &mut self.stage {
            call.arguments.clone_from(&arguments);
            self.edited_arguments = Some(arguments);
        }
    }

    fn ending(&self) -> Option<&CallEnding> {
        match &self.stage {
            CallStage::Ended(ending) => Some(ending),
            _ => None,
        }
    }

    /// Returns the ending of a call that is interrupted by a halt; `None` if it has already ended.
    fn interrupted_ending(&self, interrupt: Interrupt) -> Option<CallEnding> {
        match self.stage {
            CallStage::Requested(_) | CallStage::Query(_) | CallStage::Admitted(_) => {
                Some(CallEnding::before_run(interrupt))
            }
            CallStage::Running => Some(CallEnding::during_run(interrupt)),
            CallStage::Ended(_) => None,
        }
    }

    fn to_record(&self) -> Option<JournalRecord> {
        let ending = self.ending()?;
        let outcome = &ending.report.outcome;
        let result = ToolResultMessage {
            call_id: self.id.clone(),
            name: self.name.clone(),
            content: ending.result_text(self.edited_arguments.as_deref()),
            failed: !matches!(outcome, Outcome::Completed(_)),
        };
        let (tool, outcome) = (self.tool.to_string(), outcome.as_str().to_owned());
        let (edited, kept) = (self.edited_arguments.clone(), ending.kept());
        Some(JournalRecord::Result { result, tool, outcome, edited, kept })
    }

    /// Returns the events of its end; none before it.
    fn to_events(&self) -> Vec<SessionEvent> {
        let Some(ending) = self.ending() else { return Vec::new() };
        let (call_id, tool) = (self.id.clone(), self.tool.clone());
        let kept = ending.kept().map(|kept| {
            let call_id = call_id.clone();
            SessionEvent::ResultKept { call_id, kept }
        });
        let report = ending.report.clone();
        let finished = SessionEvent::CallFinished { call_id, tool, report };
        [finished].into_iter().chain(kept).collect()
    }
}

/// The calls of one answer.
pub(super) struct CallBatch {
    toolbox: Arc<dyn Toolbox>,
    /// Longer results are kept, in bytes of JSON; `None` keeps none.
    result_bytes_max: Option<usize>,
    calls: Vec<BatchCall>,
    running: JoinSet<CallReport>,
    /// The call that each task runs.
    task_indices: HashMap<Id, usize>,
    /// How many finished calls the front ends have received.
    announced_count: usize,
}

impl CallBatch {
    pub(super) fn new(
        toolbox: Arc<dyn Toolbox>,
        result_bytes_max: Option<usize>,
        calls: Vec<BatchCall>,
    ) -> Self {
        Self {
            toolbox,
            result_bytes_max,
            calls,
            running: JoinSet::new(),
            task_indices: HashMap::new(),
            announced_count: 0,
        }
    }

    /// Brings every call to its end, records each and announces them in the order of the list.
    ///
    /// # Errors
    ///
    /// The calls were halted; they have ended nevertheless.
    pub(super) async fn run_calls(
        &mut self,
        log: &mut SessionLog,
        client: &mut ClientPort,
    ) -> Result<(), Interrupt> {
        client.set_current_calls(self.calls.iter().map(|call| call.id.clone()).collect());
        let mut run_result = self.admit_calls(log, client).await;
        if run_result.is_ok() {
            self.start_calls(client);
            run_result = self.await_running(log, client).await;
        }
        if let Err(interrupt) = run_result {
            self.interrupt_calls(interrupt, log, client).await;
        }
        client.set_current_calls(Vec::new());
        run_result
    }

    /// Returns the outcomes of the calls, in the order of the calls.
    pub(super) fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
        self.calls.iter().filter_map(BatchCall::ending).map(|ending| &ending.report.outcome)
    }

    /// Passes every call through the gate, one after another, because the user answers one question
    /// at a time. Queries are answered here, one after another because each has a whole result in
    /// memory.
    async fn admit_calls(
        &mut self,
        log: &mut SessionLog,
        client: &mut ClientPort,
    ) -> Result<(), Interrupt> {
        let ended = self.calls.iter().filter_map(BatchCall::to_record).collect();
        log.write_records(ended).await;
        for index in 0..self.calls.len() {
            if let CallStage::Query(query) = &self.calls[index].stage {
                let query = query.clone();
                self.read_result(index, query, log, client).await?;
            }
            match self.admit_call(index, log, client).await? {
                Some(Ok(admitted)) => self.calls[index].stage = CallStage::Admitted(admitted),
                Some(Err(refusal)) => self.end_call(index, (*refusal).into(), log, client).await,
                None => {}
            }
        }
        Ok(())
    }

    /// Answers a query about a kept result of this session.
    async fn read_result(
        &mut self,
        index: usize,
        query: ResultQuery,
        log: &mut SessionLog,
        client: &mut ClientPort,
    ) -> Result<(), Interrupt> {
        let found = log.journal_mut().find_result(query.number).await;
        let bytes_max = self.result_bytes_max.unwrap_or(RESULT_BYTES_DEFAULT);
        let answer = async move {
            match found {
                Ok(found) => answer_query(query, found, bytes_max).await,
                Err(error) => unreadable_outcome(error),
            }
        };
        let outcome = client.run_until_interrupted(log.journal_mut(), answer).await?;
        self.end_call(index, outcome.into(), log, client).await;
        Ok(())
    }

    /// Passes a call through the gate, again for every edit of its arguments by the user. `None` if
    /// it has already ended.
    async fn admit_call(
        &mut self,
        index: usize,
        log: &mut SessionLog,
        client: &mut ClientPort,
    ) -> Result<Option<Result<Admission, Box<CallReport>>>, Interrupt> {
        while let CallStage::Requested(requested_call) = &self.calls[index].stage {
            let mut admission =
                abortable_task::spawn_admission(&self.toolbox, requested_call.clone());
            let (id, journal_writer) = (&self.calls[index].id, log.journal_mut());
            match client.await_admission(journal_writer, id, admission.join()).await? {
                AdmissionResult::Decided(decision) => {
                    return Ok(Some(decision.unwrap_or_else(|error| {
                        Err(Box::new(abortable_task::failure_report(error)))
                    })));
                }
                AdmissionResult::Edited { question_id: question, arguments } => {
                    self.apply_edit(index, admission, question, arguments, client).await;
                }
            }
        }
        Ok(None)
    }

    async fn apply_edit<T>(
        &mut self,
        index: usize,
        admission: AbortableTask<T>,
        question: u64,
        arguments: String,
        client: &mut ClientPort,
    ) {
        // The asker has to be gone before its question is, or it would receive an answer.
        admission.abort_and_wait().await;
        client.withdraw_question(question).await;
        let call = &mut self.calls[index];
        call.edit_arguments(arguments.clone());
        client.emit(SessionEvent::ArgumentsEdited { call_id: call.id.clone(), arguments }).await;
    }

    fn start_calls(&mut self, client: &mut ClientPort) {
        for (index, call) in self.calls.iter_mut().enumerate() {
            match mem::replace(&mut call.stage, CallStage::Running) {
                CallStage::Admitted(admission) => {
                    let task = self.running.spawn(admission.run_call().in_current_span());
                    self.task_indices.insert(task.id(), index);
                    client.begin_progress(&call.id);
                }
                other => call.stage = other,
            }
        }
    }

    /// Waits until every running call has ended.
    async fn await_running(
        &mut self,
        log: &mut SessionLog,
        client: &mut ClientPort,
    ) -> Result<(), Interrupt> {
        self.announce_ended(client).await;
        loop {
            let next = self.running.join_next_with_id();
            let Some(joined) = client.run_until_interrupted(log.journal_mut(), next).await? else {
                return Ok(());
            };
            if let Some((index, ending)) = self.match_finished_task(joined, None) {
                self.end_call(index, ending, log, client).await;
                self.announce_ended(client).await;
            }
        }
    }

    /// Ends all calls that have not ended. A call that finishes before it is stopped keeps its own
    /// result.
    async fn interrupt_calls(
        &mut self,
        interrupt: Interrupt,
        log: &mut SessionLog,
        client: &mut ClientPort,
    ) {
        self.running.abort_all();
        while let Some(joined) = self.running.join_next_with_id().await {
            if let Some((index, ending)) = self.match_finished_task(joined, Some(interrupt)) {
                self.end_call(index, ending, log, client).await;
            }
        }
        for index in 0..self.calls.len() {
            if let Some(ending) = self.calls[index].interrupted_ending(interrupt) {
                self.end_call(index, ending, log, client).await;
            }
        }
        self.announce_ended(client).await;
    }

    /// Returns the call that a task ran, and its ending.
    fn match_finished_task(
        &mut self,
        joined: Result<(Id, CallReport), JoinError>,
        interrupt: Option<Interrupt>,
    ) -> Option<(usize, CallEnding)> {
        let id = joined.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let index = self.task_indices.remove(&id)?;
        let ending = match (joined, interrupt) {
            (Ok((_, report)), _) => report.into(),
            (Err(error), Some(interrupt)) if error.is_cancelled() => {
                CallEnding::during_run(interrupt)
            }
            (Err(error), _) => abortable_task::failure_report(error).into(),
        };
        Some((index, ending))
    }

    async fn end_call(
        &mut self,
        index: usize,
        mut ending: CallEnding,
        log: &mut SessionLog,
        client: &mut ClientPort,
    ) {
        let call = &mut self.calls[index];
        client.end_progress(&call.id).await;
        if let Some(bytes_max) = self.result_bytes_max
            && let Err(error) = ending.keep_long_result(bytes_max, log.journal_mut()).await
        {
            client.emit(SessionEvent::Notice(SessionNotice::ResultNotKept { error })).await;
        }
        call.stage = CallStage::Ended(ending);
        log.write_records(call.to_record().into_iter().collect()).await;
    }

    /// Announces the calls that have ended, up to the first that has not.
    async fn announce_ended(&mut self, client: &ClientPort) {
        while let Some(call) = self.calls.get(self.announced_count)
            && call.ending().is_some()
        {
            for event in call.to_events() {
                client.emit(event).await;
            }
            self.announced_count += 1;
        }
    }
}

/// Returns the outcome of a query whose result the journal could not read.
fn unreadable_outcome(error: JournalError) -> Outcome {
    let failure = CallFailure::new(FailureKind::Unavailable, "kept results cannot be read for now");
    Outcome::Failed(failure.with_detail(error.message))
}
