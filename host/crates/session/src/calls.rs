//! The calls of one answer, from the request to a result for each.
//!
//! A call moves through stages and always ends in the last one: refused at the gate, cancelled by
//! the user, stopped by a timeout, or lost to a bug of the host. All decisions are made before the
//! first call runs; then the admitted ones run at the same time, each in a task of its own, so that
//! a call that panics or is slow does not affect the others. A result is recorded the moment its
//! call ends; the front ends receive the results in the order of the calls.

use std::{collections::HashMap, sync::Arc};

use sallyport_contract::{Admitted, CallReport, Outcome, ToolCall, Toolbox};
use sallyport_model::ToolResult;
use tokio::task::{Id, JoinError, JoinSet};

use super::{
    book::Book,
    ending::Ending,
    event::Event,
    front::{Front, Halt, Ruling},
    journal::Record,
    naming::ToolRef,
    work::{self, Work},
};

/// One call.
pub(super) struct Call {
    id: String,
    /// The name in the model's message.
    name: String,
    tool: ToolRef,
    /// The arguments with which the user replaced the model's.
    edited: Option<String>,
    stage: Stage,
}

enum Stage {
    Asked(ToolCall),
    Admitted(Admitted),
    Running,
    Ended(Ending),
}

impl Call {
    /// Creates a call that still has to pass the gate.
    pub(super) fn asked(name: String, call: ToolCall) -> Self {
        let (id, tool) = (call.context.call_id.clone(), ToolRef::Known(call.tool.clone()));
        Self { id, name, tool, edited: None, stage: Stage::Asked(call) }
    }

    /// Creates a call that ends before it reaches the gate.
    pub(super) fn ended(id: String, name: String, tool: ToolRef, outcome: Outcome) -> Self {
        Self { id, name, tool, edited: None, stage: Stage::Ended(outcome.into()) }
    }

    fn edit(&mut self, arguments: String) {
        if let Stage::Asked(call) = &mut self.stage {
            call.arguments.clone_from(&arguments);
            self.edited = Some(arguments);
        }
    }

    fn ending(&self) -> Option<&Ending> {
        match &self.stage {
            Stage::Ended(ending) => Some(ending),
            Stage::Asked(_) | Stage::Admitted(_) | Stage::Running => None,
        }
    }

    /// Returns the ending of a call that is interrupted by a halt; `None` if it has already ended.
    fn called_off(&self, halt: Halt) -> Option<Ending> {
        match self.stage {
            Stage::Asked(_) | Stage::Admitted(_) => Some(Ending::never_begun(halt)),
            Stage::Running => Some(Ending::stopped(halt)),
            Stage::Ended(_) => None,
        }
    }

    fn record(&self) -> Option<Record> {
        let ending = self.ending()?;
        let outcome = &ending.report.outcome;
        let result = ToolResult {
            call_id: self.id.clone(),
            name: self.name.clone(),
            content: ending.content(self.edited.as_deref()),
            failed: !matches!(outcome, Outcome::Completed(_)),
        };
        let (tool, outcome) = (self.tool.to_string(), outcome.word().to_owned());
        Some(Record::Result { result, tool, outcome, edited: self.edited.clone() })
    }

    fn event(&self) -> Option<Event> {
        let report = self.ending()?.report.clone();
        let (call_id, tool) = (self.id.clone(), self.tool.clone());
        Some(Event::CallFinished { call_id, tool, report })
    }
}

/// The calls of one answer.
pub(super) struct Batch {
    toolbox: Arc<dyn Toolbox>,
    calls: Vec<Call>,
    running: JoinSet<CallReport>,
    /// The call that each task runs.
    places: HashMap<Id, usize>,
    /// How many finished calls the front ends have received.
    told: usize,
}

impl Batch {
    pub(super) fn new(toolbox: Arc<dyn Toolbox>, calls: Vec<Call>) -> Self {
        Self { toolbox, calls, running: JoinSet::new(), places: HashMap::new(), told: 0 }
    }

    /// Brings every call to its end, records each and announces them in the order of the list.
    ///
    /// # Errors
    ///
    /// The calls were halted; they have ended nevertheless.
    pub(super) async fn carry_out(
        &mut self,
        book: &mut Book,
        front: &mut Front,
    ) -> Result<(), Halt> {
        front.expect_calls(self.calls.iter().map(|call| call.id.clone()).collect());
        let mut going = self.decide(book, front).await;
        if going.is_ok() {
            self.start(front);
            going = self.settle(book, front).await;
        }
        if let Err(halt) = going {
            self.call_off(halt, book, front).await;
        }
        front.expect_calls(Vec::new());
        going
    }

    /// Returns the outcomes of the calls, in the order of the calls.
    pub(super) fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
        self.calls.iter().filter_map(Call::ending).map(|ending| &ending.report.outcome)
    }

    /// Passes every call through the gate, one after another, because the user answers one question
    /// at a time.
    async fn decide(&mut self, book: &mut Book, front: &mut Front) -> Result<(), Halt> {
        let ended = self.calls.iter().filter_map(Call::record).collect();
        book.write(ended, front).await;
        for index in 0..self.calls.len() {
            match self.admit(index, book, front).await? {
                Some(Ok(admitted)) => self.calls[index].stage = Stage::Admitted(admitted),
                Some(Err(refusal)) => self.end(index, (*refusal).into(), book, front).await,
                None => {}
            }
        }
        Ok(())
    }

    /// Passes a call through the gate, again for every edit of its arguments by the user. `None` if
    /// it has already ended.
    async fn admit(
        &mut self,
        index: usize,
        book: &mut Book,
        front: &mut Front,
    ) -> Result<Option<Result<Admitted, Box<CallReport>>>, Halt> {
        while let Stage::Asked(asked) = &self.calls[index].stage {
            let mut admission = work::admit(&self.toolbox, asked.clone());
            let (id, pages) = (&self.calls[index].id, book.pages_mut());
            match front.attend_admission(pages, id, admission.join()).await? {
                Ruling::Made(ruling) => {
                    return Ok(Some(
                        ruling.unwrap_or_else(|error| Err(Box::new(work::lost(error)))),
                    ));
                }
                Ruling::Edited { question, arguments } => {
                    self.edit(index, admission, question, arguments, front).await;
                }
            }
        }
        Ok(None)
    }

    async fn edit<T>(
        &mut self,
        index: usize,
        admission: Work<T>,
        question: u64,
        arguments: String,
        front: &mut Front,
    ) {
        // The asker has to be gone before its question is, or it would receive an answer.
        admission.end().await;
        front.withdraw(question).await;
        let call = &mut self.calls[index];
        call.edit(arguments.clone());
        front.emit(Event::ArgumentsEdited { call_id: call.id.clone(), arguments }).await;
    }

    fn start(&mut self, front: &mut Front) {
        for (index, call) in self.calls.iter_mut().enumerate() {
            if let Stage::Admitted(admitted) = &call.stage {
                let (toolbox, admitted) = (Arc::clone(&self.toolbox), admitted.clone());
                let task = self.running.spawn(async move { toolbox.run(admitted).await });
                self.places.insert(task.id(), index);
                front.expect_progress(&call.id);
                call.stage = Stage::Running;
            }
        }
    }

    /// Waits until every running call has ended.
    async fn settle(&mut self, book: &mut Book, front: &mut Front) -> Result<(), Halt> {
        self.tell(front).await;
        loop {
            let next = self.running.join_next_with_id();
            let Some(joined) = front.attend(book.pages_mut(), next).await? else { return Ok(()) };
            if let Some((index, ending)) = self.place(joined, None) {
                self.end(index, ending, book, front).await;
                self.tell(front).await;
            }
        }
    }

    /// Ends all calls that have not ended. A call that finishes before it is stopped keeps its own
    /// result.
    async fn call_off(&mut self, halt: Halt, book: &mut Book, front: &mut Front) {
        self.running.abort_all();
        while let Some(joined) = self.running.join_next_with_id().await {
            if let Some((index, ending)) = self.place(joined, Some(halt)) {
                self.end(index, ending, book, front).await;
            }
        }
        for index in 0..self.calls.len() {
            if let Some(ending) = self.calls[index].called_off(halt) {
                self.end(index, ending, book, front).await;
            }
        }
        self.tell(front).await;
    }

    /// Returns the call that a task ran, and its ending.
    fn place(
        &mut self,
        joined: Result<(Id, CallReport), JoinError>,
        halt: Option<Halt>,
    ) -> Option<(usize, Ending)> {
        let id = joined.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let index = self.places.remove(&id)?;
        let ending = match (joined, halt) {
            (Ok((_, report)), _) => report.into(),
            (Err(error), Some(halt)) if error.is_cancelled() => Ending::stopped(halt),
            (Err(error), _) => work::lost(error).into(),
        };
        Some((index, ending))
    }

    async fn end(&mut self, index: usize, ending: Ending, book: &mut Book, front: &mut Front) {
        let call = &mut self.calls[index];
        front.end_progress(&call.id).await;
        call.stage = Stage::Ended(ending);
        book.write(call.record().into_iter().collect(), front).await;
    }

    /// Announces the calls that have ended, up to the first that has not.
    async fn tell(&mut self, front: &Front) {
        while let Some(event) = self.calls.get(self.told).and_then(Call::event) {
            front.emit(event).await;
            self.told += 1;
        }
    }
}
