//! Calls that run, and the way of their questions to the client that made them.

use std::{
    collections::HashMap,
    future::{self, Future},
    mem,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError},
    task::Poll,
};

use futures::FutureExt;
use sallyport_contract::{
    ApprovalAnswer, ApprovalRequest, BoxFuture, CallFailure, CallReport, Consent, FailureKind,
    Outcome, RequestedCall, ToolCallContext, services::CallProgress,
};
use sallyport_runtime::{RunLeftovers, collect_leftovers, gate::Activity, services::ProgressSink};
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, mpsc, oneshot},
    task::JoinHandle,
};
use tracing::Instrument as _;

/// Most events of a call that wait for its client. News beyond it are left out; a question waits.
const EVENTS_WAITING_MAX: usize = 16;

/// Something that a running call has for its client.
#[derive(Debug)]
pub(crate) enum CallEvent {
    /// It sends a request to a server.
    Contacting(String),
    /// The plugin reports how far it has come.
    Progress(CallProgress),
    /// It needs an approval, and waits for the answer.
    Question(ClientQuestion),
}

/// A question that waits for its answer. Dropping it answers that no user is connected.
#[derive(Debug)]
pub(crate) struct ClientQuestion {
    pub(crate) request: Box<ApprovalRequest>,
    answer: oneshot::Sender<ApprovalAnswer>,
}

impl ClientQuestion {
    /// A question, and what receives its answer.
    pub(crate) fn new(request: ApprovalRequest) -> (Self, oneshot::Receiver<ApprovalAnswer>) {
        let (answer, answered) = oneshot::channel();
        (Self { request: Box::new(request), answer }, answered)
    }

    /// Answers it. It may have ended meanwhile.
    pub(crate) fn answer(self, answer: ApprovalAnswer) {
        let _ = self.answer.send(answer);
    }

    /// Whether no answer is wanted any more.
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.answer.is_closed()
    }

    /// Waits until no answer is wanted any more.
    pub(crate) async fn wait_for_withdrawal(&mut self) {
        self.answer.closed().await;
    }
}

/// Takes the questions and the news of each running call to the client that made it.
///
/// It is made before the host, which asks through it.
#[derive(Debug, Default)]
pub struct CallBroker {
    /// The running calls, by session and call.
    calls: Mutex<HashMap<(String, String), mpsc::Sender<CallEvent>>>,
}

impl CallBroker {
    /// Returns the function that receives the servers which running calls contact.
    pub fn activity(self: &Arc<Self>) -> Activity {
        let broker = Arc::clone(self);
        Arc::new(move |call, server| {
            if let Some(events) = broker.events_of(call) {
                // A client that does not keep up misses news, and nothing else.
                let _ = events.try_send(CallEvent::Contacting(server.to_owned()));
            }
        })
    }

    /// Returns the function that receives how far running calls have come.
    pub fn progress_sink(self: &Arc<Self>) -> ProgressSink {
        let broker = Arc::clone(self);
        Box::new(move |call, progress| {
            if let Some(events) = broker.events_of(call) {
                // As for a server: the next report is newer.
                let _ = events.try_send(CallEvent::Progress(progress));
            }
        })
    }

    fn events_of(&self, call: &ToolCallContext) -> Option<mpsc::Sender<CallEvent>> {
        self.calls().get(&key(call)).cloned()
    }

    fn calls(
        &self,
    ) -> std::sync::MutexGuard<'_, HashMap<(String, String), mpsc::Sender<CallEvent>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Consent for CallBroker {
    fn ask_user(&self, request: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        let events = self.events_of(&request.call.context);
        Box::pin(async move {
            // Such as the timer of a plugin, which no client has called.
            let Some(events) = events.filter(|_| !request.needs_folder()) else {
                return ApprovalAnswer::Nobody;
            };
            let (question, answered) = ClientQuestion::new(request);
            if events.send(CallEvent::Question(question)).await.is_err() {
                return ApprovalAnswer::Nobody;
            }
            answered.await.unwrap_or(ApprovalAnswer::Nobody)
        })
    }
}

fn key(call: &ToolCallContext) -> (String, String) {
    (call.session_id.clone(), call.call_id.clone())
}

/// A call that runs. Dropping it cancels the call.
pub(crate) struct ServedCall {
    requested: RequestedCall,
    broker: Arc<CallBroker>,
    events: mpsc::Receiver<CallEvent>,
    run: CallRun,
    leftovers: Option<Arc<CallLeftovers>>,
    /// The report of a call that has ended.
    report: Option<Box<CallReport>>,
}

/// Where a call runs. It begins in the task of its request, because each change of tasks takes time
/// and most calls wait for nothing. One that waits goes on in a task of its own, whatever its request
/// does meanwhile.
enum CallRun {
    /// In the task of its request. All that it starts belongs to this runtime, in which it goes on.
    Begun(BoxFuture<'static, CallReport>, Handle),
    Task(JoinHandle<CallReport>),
}

/// What a call takes up.
pub(crate) struct CallPlace {
    /// Held until nothing of the call runs.
    pub(crate) permit: OwnedSemaphorePermit,
    /// The runtime of its tasks.
    pub(crate) runtime: Handle,
    /// Takes what is left of a call that ends at once, if somebody gives that back.
    pub(crate) leftovers: Option<Arc<CallLeftovers>>,
}

/// What is left of the call that has ended last, until its answer is on its way.
#[derive(Debug, Default)]
pub(crate) struct CallLeftovers(Mutex<RunLeftovers>);

impl CallLeftovers {
    /// Gives back the memory of the call that has ended.
    pub(crate) fn give_back(&self) {
        drop(self.replace(RunLeftovers::default()));
    }

    /// Gives it back when the request ends, unless its answer is on its way by then.
    pub(crate) fn guard(self: &Arc<Self>) -> LeftoversGuard {
        LeftoversGuard(Some(Arc::clone(self)))
    }

    /// Keeps what is left of another call, and returns what was left of the one before it.
    fn replace(&self, left: RunLeftovers) -> RunLeftovers {
        mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), left)
    }
}

/// Gives back what is left of a call whose request is dropped.
pub(crate) struct LeftoversGuard(Option<Arc<CallLeftovers>>);

impl LeftoversGuard {
    /// Leaves that to the one who sends the answer.
    pub(crate) fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for LeftoversGuard {
    fn drop(&mut self) {
        if let Some(leftovers) = &self.0 {
            leftovers.give_back();
        }
    }
}

/// What happens next in a running call.
pub(crate) enum CallStep {
    Event(CallEvent),
    Finished(Box<CallReport>),
}

impl ServedCall {
    /// Starts a call, which `run` makes.
    pub(crate) fn start(
        run: impl Future<Output = CallReport> + Send + 'static,
        broker: Arc<CallBroker>,
        requested: RequestedCall,
        place: CallPlace,
    ) -> Self {
        let CallPlace { permit, runtime, leftovers } = place;
        let (sender, events) = mpsc::channel(EVENTS_WAITING_MAX);
        broker.calls().insert(key(&requested.context), sender);
        let run = Box::pin(async move {
            let report = AssertUnwindSafe(run).catch_unwind().await;
            drop(permit);
            report.unwrap_or_else(|_| lost_call_report())
        });
        let run = CallRun::Begun(run, runtime);
        Self { requested, broker, events, run, leftovers, report: None }
    }

    /// The call as it was requested.
    pub(crate) fn requested(&self) -> &RequestedCall {
        &self.requested
    }

    /// Waits for the next step. It may be dropped and called again.
    pub(crate) async fn next_step(&mut self) -> CallStep {
        loop {
            // What the call reported comes before its end.
            if let Ok(event) = self.events.try_recv() {
                return CallStep::Event(event);
            }
            if let Some(report) = self.report.take() {
                return CallStep::Finished(report);
            }
            tokio::select! {
                Some(event) = self.events.recv() => return CallStep::Event(event),
                report = self.run.wait(self.leftovers.as_deref()) => self.report = Some(Box::new(report)),
            }
        }
    }
}

impl CallRun {
    /// Waits for the end, which comes once. What is left of a call that ends at once goes to
    /// `leftovers`.
    async fn wait(&mut self, leftovers: Option<&CallLeftovers>) -> CallReport {
        if let Self::Begun(run, runtime) = self {
            let mut run = mem::replace(run, Box::pin(future::pending()));
            let begun = future::poll_fn(|context| {
                let _entered = runtime.enter();
                let Some(leftovers) = leftovers else {
                    return Poll::Ready(run.as_mut().poll(context));
                };
                let (begun, left) = collect_leftovers(|| run.as_mut().poll(context));
                drop(leftovers.replace(left));
                Poll::Ready(begun)
            });
            let begun = begun.await;
            if let Poll::Ready(report) = begun {
                return report;
            }
            let task = runtime.spawn(run.in_current_span());
            *self = Self::Task(task);
        }
        match self {
            Self::Begun(ended, _) => ended.await,
            Self::Task(task) => task.await.unwrap_or_else(|_| lost_call_report()),
        }
    }
}

impl Drop for ServedCall {
    fn drop(&mut self) {
        if let CallRun::Task(task) = &self.run {
            task.abort();
        }
        self.broker.calls().remove(&key(&self.requested.context));
    }
}

/// The report of a call that panicked. The panic ends that call only.
fn lost_call_report() -> CallReport {
    let failure =
        CallFailure::new(FailureKind::Internal, "the call broke; this is a bug of the host");
    Outcome::Failed(failure).into()
}
