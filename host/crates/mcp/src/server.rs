//! The state that all connections of a server share.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use sallyport_contract::{CallReport, RequestedCall, mangle::ToolNameCollision};
use sallyport_runtime::{Host, HostError, HostNotice, session_id::new_session_id};
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tokio_util::sync::CancellationToken;

use crate::{
    calls::{CallBroker, CallLeftovers, CallPlace, ClientQuestion, ServedCall},
    running_tasks::RunningTasks,
    tools::{OfferedTools, ToolSelection},
};

/// Most calls that run at the same time, over all connections. The host has limits of its own for
/// what runs; this one bounds what waits.
const CALLS_MAX: u32 = 64;

/// Most calls that wait for a client to come back with an answer. The oldest ones are cancelled.
const PARKED_CALLS_MAX: usize = 32;

/// Longest wait at shutdown for cancelled calls to end. A call ends as soon as its host call does.
const CALLS_END_TIME_MAX: Duration = Duration::from_secs(5);

/// The parts of a server.
pub struct McpServerParts {
    /// The host, which asks through `broker`.
    pub host: Arc<Host>,
    /// Takes the questions of calls to their clients.
    pub broker: Arc<CallBroker>,
    /// The tools that clients may see.
    pub selection: ToolSelection,
}

/// The tools of a host, and the calls that clients make.
pub struct McpServer {
    host: Arc<Host>,
    broker: Arc<CallBroker>,
    selection: ToolSelection,
    offered: Mutex<Arc<OfferedTools>>,
    places: Arc<Semaphore>,
    parked: Mutex<ParkedCalls>,
    tasks: RunningTasks,
    /// A place for each task until its end is kept.
    task_places: Arc<Semaphore>,
    /// Where calls run, if requests have a thread of their own.
    call_runtime: OnceLock<Handle>,
    leftovers: Arc<CallLeftovers>,
    stop: CancellationToken,
}

/// Calls whose question went to a client in an answer, by the state that the client returns.
#[derive(Default)]
struct ParkedCalls {
    calls: HashMap<String, (ServedCall, ClientQuestion)>,
    /// The states, the oldest first.
    order: Vec<String>,
}

impl McpServer {
    /// Prepares to serve the tools of a host.
    ///
    /// # Errors
    ///
    /// Two of the selected tools would have the same name.
    pub fn new(parts: McpServerParts) -> Result<Arc<Self>, HostError> {
        let McpServerParts { host, broker, selection } = parts;
        let offered = OfferedTools::new(host.tools(), &selection).map_err(HostError::Collision)?;
        host.set_progress_sink(broker.progress_sink());
        Ok(Arc::new(Self {
            host,
            broker,
            selection,
            offered: Mutex::new(Arc::new(offered)),
            places: Arc::new(Semaphore::new(CALLS_MAX as usize)),
            parked: Mutex::default(),
            tasks: RunningTasks::default(),
            task_places: Arc::new(Semaphore::new(CALLS_MAX as usize)),
            call_runtime: OnceLock::new(),
            leftovers: Arc::default(),
            stop: CancellationToken::new(),
        }))
    }

    /// What is left of calls whose requests have a thread of their own.
    pub(crate) fn leftovers(&self) -> &Arc<CallLeftovers> {
        &self.leftovers
    }

    /// The number of tools that clients see.
    pub fn tool_count(&self) -> usize {
        self.offered_tools().listed().len()
    }

    /// Cancels all calls and waits until nothing of them is left, so that each has its record.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.parked().clear();
        let all = async {
            // The places never close.
            let _ = self.places.acquire_many(CALLS_MAX).await;
            let _ = self.task_places.acquire_many(CALLS_MAX).await;
        };
        if tokio::time::timeout(CALLS_END_TIME_MAX, all).await.is_err() {
            let text = "some calls did not end in time; their records may be missing";
            self.host.notices()(HostNotice::Warning(text.to_owned()));
        }
    }

    /// The host.
    pub(crate) fn host(&self) -> &Arc<Host> {
        &self.host
    }

    /// Is cancelled when calls have to end.
    pub(crate) fn stop_token(&self) -> &CancellationToken {
        &self.stop
    }

    /// The selected tools of this moment. If two of them have come to look alike, the earlier list
    /// stays.
    pub(crate) fn offered_tools(&self) -> Arc<OfferedTools> {
        let source = self.host.tools();
        let mut offered = self.offered.lock().unwrap_or_else(PoisonError::into_inner);
        if !offered.is_made_of(&source) {
            match OfferedTools::new(source, &self.selection) {
                Ok(changed) => *offered = Arc::new(changed),
                Err(collision) => self.report_collision(&collision),
            }
        }
        Arc::clone(&offered)
    }

    fn report_collision(&self, collision: &ToolNameCollision) {
        let text = format!("the list of tools stays as it was: {collision}");
        self.host.notices()(HostNotice::Warning(text));
    }

    /// Starts a call. `None` if there are too many, or if the server stops.
    pub(crate) fn start_call(&self, call: RequestedCall) -> Option<ServedCall> {
        let (host, requested) = (Arc::clone(&self.host), call.clone());
        self.start_run(call, async move { host.call_tool(requested).await })
    }

    /// Starts what a request asks for. `None` if there is too much, or if the server stops.
    pub(crate) fn start_run(
        &self,
        requested: RequestedCall,
        run: impl Future<Output = CallReport> + Send + 'static,
    ) -> Option<ServedCall> {
        let permit = Arc::clone(&self.places).try_acquire_owned().ok()?;
        if self.stop.is_cancelled() {
            return None;
        }
        let leftovers = self.call_runtime.get().map(|_| Arc::clone(&self.leftovers));
        let place = CallPlace { permit, runtime: self.call_runtime(), leftovers };
        Some(ServedCall::start(run, Arc::clone(&self.broker), requested, place))
    }

    /// Where calls run, and what outlives a request.
    pub(crate) fn call_runtime(&self) -> Handle {
        self.call_runtime.get().cloned().unwrap_or_else(Handle::current)
    }

    /// Has calls run in another runtime than their requests, which have one thread. That thread gives
    /// back what is left of the calls.
    pub(crate) fn set_call_runtime(&self, runtime: Handle) {
        // A server serves one connection over standard input and output.
        let _ = self.call_runtime.set(runtime);
    }

    /// The tasks that run in this process.
    pub(crate) fn tasks(&self) -> &RunningTasks {
        &self.tasks
    }

    /// A place for a task. `None` if there are too many, or if the server stops.
    pub(crate) fn task_place(&self) -> Option<OwnedSemaphorePermit> {
        let place = Arc::clone(&self.task_places).try_acquire_owned().ok()?;
        (!self.stop.is_cancelled()).then_some(place)
    }

    /// What clients may see.
    pub(crate) fn selection(&self) -> &ToolSelection {
        &self.selection
    }

    /// Keeps a call until its client returns with the answer to a question. Returns the state that
    /// the client has to return. A server that stops cancels the call, because it clears the kept
    /// ones only once.
    pub(crate) fn park_call(&self, call: ServedCall, question: ClientQuestion) -> String {
        let state = new_session_id();
        let mut parked = self.parked();
        if self.stop.is_cancelled() {
            return state;
        }
        if parked.order.len() >= PARKED_CALLS_MAX {
            let oldest = parked.order.remove(0);
            parked.calls.remove(&oldest);
        }
        parked.order.push(state.clone());
        parked.calls.insert(state.clone(), (call, question));
        state
    }

    /// Takes back a call that waits. It exists once, so an answer cannot be given twice.
    pub(crate) fn take_parked_call(&self, state: &str) -> Option<(ServedCall, ClientQuestion)> {
        let mut parked = self.parked();
        parked.order.retain(|one| one != state);
        parked.calls.remove(state)
    }

    fn parked(&self) -> std::sync::MutexGuard<'_, ParkedCalls> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ParkedCalls {
    fn clear(&mut self) {
        self.calls.clear();
        self.order.clear();
    }
}
