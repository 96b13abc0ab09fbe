//! The calls of one answer, from what the model asked for to a report for each.
//!
//! A call moves through stages and ends in the last one whatever happens: refused at the gate,
//! cancelled by the person, or lost to a bug of the host. All decisions are made before the first
//! call runs; then the admitted ones run at the same time, each in a task of its own, so that one
//! that panics or is slow costs nobody else anything.

use std::{any::Any, sync::Arc};

use sallyport_contract::{Admitted, CallReport, Failure, FailureKind, Outcome, ToolCall, Toolbox};
use tokio::task::{JoinError, JoinHandle};

use super::{
    event::Event,
    front::{Cancelled, Front},
    naming::ToolRef,
};

/// One call.
pub(super) struct Call {
    id: String,
    tool: ToolRef,
    stage: Stage,
}

enum Stage {
    Asked(ToolCall),
    Admitted(Admitted),
    Running(Task<CallReport>),
    Finished(CallReport),
}

impl Call {
    /// A call that still has to pass the gate.
    pub(super) fn asked(call: ToolCall) -> Self {
        let (id, tool) = (call.context.call_id.clone(), ToolRef::Known(call.tool.clone()));
        Self { id, tool, stage: Stage::Asked(call) }
    }

    /// A call that ends before the gate is asked.
    pub(super) fn refused(id: String, tool: ToolRef, failure: Failure) -> Self {
        Self { id, tool, stage: Stage::Finished(Outcome::Failed(failure).into()) }
    }

    /// Ends the call as cancelled unless it has ended already.
    fn cancel(&mut self) {
        match &self.stage {
            Stage::Asked(_) | Stage::Admitted(_) => {
                self.stage = Stage::Finished(Outcome::Cancelled.into());
            }
            // Whoever settles the call sees which was first: its end or this.
            Stage::Running(task) => task.abort(),
            Stage::Finished(_) => {}
        }
    }

    /// Waits until a running call has ended. Nothing is lost when the future is dropped.
    async fn settle(&mut self) {
        if let Stage::Running(task) = &mut self.stage {
            self.stage = Stage::Finished(task.join().await.unwrap_or_else(lost));
        }
    }

    fn report(&self) -> Option<&CallReport> {
        match &self.stage {
            Stage::Finished(report) => Some(report),
            Stage::Asked(_) | Stage::Admitted(_) | Stage::Running(_) => None,
        }
    }
}

/// The calls of one answer.
pub(super) struct Batch {
    toolbox: Arc<dyn Toolbox>,
    calls: Vec<Call>,
}

impl Batch {
    pub(super) fn new(toolbox: Arc<dyn Toolbox>, calls: Vec<Call>) -> Self {
        Self { toolbox, calls }
    }

    /// Brings every call to its end and tells of each in the order of the list.
    ///
    /// # Errors
    ///
    /// The person cancelled; the calls have ended all the same.
    pub(super) async fn carry_out(&mut self, front: &mut Front) -> Result<(), Cancelled> {
        let mut going = self.decide(front).await;
        match going {
            Ok(()) => self.start(),
            Err(Cancelled) => self.cancel(),
        }
        for index in 0..self.calls.len() {
            if going.is_ok() {
                going = front.attend(self.calls[index].settle()).await;
                if going.is_err() {
                    self.cancel();
                }
            }
            self.finish(index, front).await;
        }
        going
    }

    /// How the calls ended, in their order.
    pub(super) fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
        self.calls.iter().filter_map(Call::report).map(|report| &report.outcome)
    }

    /// Passes every call through the gate, one after another: a person is asked one thing at a time.
    async fn decide(&mut self, front: &mut Front) -> Result<(), Cancelled> {
        for call in &mut self.calls {
            if let Stage::Asked(asked) = &call.stage {
                let mut admission = admit(Arc::clone(&self.toolbox), asked.clone());
                call.stage = match front.attend(admission.join()).await? {
                    Ok(Ok(admitted)) => Stage::Admitted(admitted),
                    Ok(Err(refusal)) => Stage::Finished(*refusal),
                    Err(error) => Stage::Finished(lost(error)),
                };
            }
        }
        Ok(())
    }

    fn start(&mut self) {
        for call in &mut self.calls {
            if let Stage::Admitted(admitted) = &call.stage {
                let running = run(Arc::clone(&self.toolbox), admitted.clone());
                call.stage = Stage::Running(running);
            }
        }
    }

    fn cancel(&mut self) {
        self.calls.iter_mut().for_each(Call::cancel);
    }

    async fn finish(&mut self, index: usize, front: &Front) {
        let call = &mut self.calls[index];
        call.settle().await;
        if let Some(report) = call.report().cloned() {
            let (call_id, tool) = (call.id.clone(), call.tool.clone());
            front.emit(Event::CallFinished { call_id, tool, report }).await;
        }
    }
}

fn admit(toolbox: Arc<dyn Toolbox>, call: ToolCall) -> Task<Result<Admitted, Box<CallReport>>> {
    Task(tokio::spawn(async move { toolbox.admit(call).await }))
}

fn run(toolbox: Arc<dyn Toolbox>, call: Admitted) -> Task<CallReport> {
    Task(tokio::spawn(async move { toolbox.run(call).await }))
}

/// A task that ends with whoever holds it.
struct Task<T>(JoinHandle<T>);

impl<T> Task<T> {
    async fn join(&mut self) -> Result<T, JoinError> {
        (&mut self.0).await
    }

    fn abort(&self) {
        self.0.abort();
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The report of a call whose task did not come to its end.
fn lost(error: JoinError) -> CallReport {
    match error.try_into_panic() {
        Err(_) => Outcome::Cancelled.into(),
        Ok(panic) => {
            let message = "the host failed while it handled this call";
            let failure = Failure::new(FailureKind::Internal, message);
            Outcome::Failed(failure.with_detail(panic_text(&*panic))).into()
        }
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", text.unwrap_or("without a text"))
}
