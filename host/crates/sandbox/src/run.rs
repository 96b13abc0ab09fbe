//! One run of a guest: a fresh store, a deadline, a task of its own, and a verdict.
//!
//! Epochs do not interrupt host calls and time-outs do not interrupt WebAssembly, so both watch the
//! same deadline. The task of its own means that even a panic of the host costs this run only.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use sallyport_contract::{BoxFuture, Failure, FailureKind};
use sallyport_policy::ByteSize;
use tokio::task::{AbortHandle, JoinError};
use wasmtime::{
    Store, Trap, UpdateDeadline,
    component::{Instance, ResourceTableError},
};
use wasmtime_wasi::I32Exit;

use crate::{
    abi::Mismatch,
    guest::Guest,
    ledger::Ledger,
    limits::{COMPONENT_HANDLES_MAX, HANDLES_MAX, MemoryAccount, hostcall_bytes},
    plugin::Prepared,
    runtime::Engine,
};

/// What wasmtime says when a guest hands over too much at once; it has no type for it.
const HOSTCALL_FUEL: &str = "fuel allocated for hostcalls";

/// Why a run did not end by returning.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The deadline passed.
    Deadline,
    /// The guest broke, or the host did.
    Failed(Failure),
}

/// A finished run.
#[derive(Debug)]
pub(crate) struct Run<R> {
    pub(crate) result: Result<R, Stop>,
    pub(crate) memory_bytes_peak: u64,
}

/// What is done with the instance.
pub(crate) type Body<R> = Box<
    dyn for<'a> FnOnce(&'a mut Store<Guest>, Instance) -> BoxFuture<'a, wasmtime::Result<R>> + Send,
>;

/// Ends the run when the waiting side goes away.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs a guest until it returns, breaks or is out of time. Dropping the future ends the guest.
pub(crate) async fn run<R: Send + 'static>(
    prepared: &Prepared,
    guest: Guest,
    limits: &sallyport_policy::Limits,
    body: Body<R>,
) -> Run<R> {
    let (engine, pre) = (Arc::clone(&prepared.engine), prepared.pre.clone());
    let hostcall_bytes = hostcall_bytes(limits);
    let ledger = guest.ledger.clone();
    let task = tokio::spawn(async move {
        let _beat = engine.ticker.beat();
        let deadline = guest.deadline;
        let mut store = new_store(&engine, guest, hostcall_bytes);
        let work = async {
            let instance = pre.instantiate_async(&mut store).await?;
            body(&mut store, instance).await
        };
        let result = tokio::time::timeout_at(deadline.into(), work).await;
        let memory = &store.data().memory;
        let result = match result {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(classify(&error, memory, &store.data().ledger)),
            Err(_) => Err(Stop::Deadline),
        };
        Run { result, memory_bytes_peak: memory.bytes_peak() }
    });
    let _guard = AbortOnDrop(task.abort_handle());
    task.await.unwrap_or_else(|error| lost(&error, &ledger))
}

#[expect(clippy::disallowed_methods, reason = "this is the one place where a guest is run")]
fn new_store(engine: &Engine, guest: Guest, hostcall_bytes: usize) -> Store<Guest> {
    let deadline = guest.deadline;
    let mut store = Store::new(&engine.wasm, guest);
    store.limiter(|guest| &mut guest.memory);
    store.set_hostcall_fuel(hostcall_bytes);
    store.set_max_component_handles(COMPONENT_HANDLES_MAX);
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(move |_| {
        if Instant::now() >= deadline {
            return Ok(UpdateDeadline::Interrupt);
        }
        Ok(UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now())))
    });
    store
}

/// Finds out what a trap means. The backtrace goes to the person, the sentence to the model.
fn classify(error: &wasmtime::Error, memory: &MemoryAccount, ledger: &Ledger) -> Stop {
    if error.downcast_ref() == Some(&Trap::Interrupt) {
        return Stop::Deadline;
    }
    let (kind, message) = if let Some(limit) = limit_behind(error, memory) {
        ledger.limit_reached(limit.clone());
        (
            FailureKind::LimitReached,
            format!("the plugin was stopped: its limit of {limit} is reached"),
        )
    } else if let Some(Mismatch(message)) = error.downcast_ref() {
        (FailureKind::BadOutput, message.clone())
    } else if let Some(I32Exit(code)) = error.downcast_ref() {
        (FailureKind::Trapped, format!("the plugin ended itself with exit code {code}"))
    } else if let Some(trap) = error.downcast_ref::<Trap>() {
        (FailureKind::Trapped, format!("the plugin trapped: {trap}"))
    } else {
        (FailureKind::Trapped, format!("the plugin was stopped: {}", error.root_cause()))
    };
    Stop::Failed(Failure::new(kind, message).with_detail(format!("{error:?}")))
}

/// The limit that made a guest trap, if one did.
fn limit_behind(error: &wasmtime::Error, memory: &MemoryAccount) -> Option<String> {
    let cause = error.root_cause();
    if memory.was_refused() {
        Some(format!("{} of memory", ByteSize(memory.bytes_max())))
    } else if let Some(ResourceTableError::Full) = cause.downcast_ref() {
        Some(format!("{HANDLES_MAX} open things"))
    } else if cause.to_string().contains(HOSTCALL_FUEL) {
        Some("data in one call between plugin and host".to_owned())
    } else {
        None
    }
}

/// The task ended without an answer: the host panicked, or is shutting down.
fn lost<R>(error: &JoinError, ledger: &Ledger) -> Run<R> {
    ledger.limit_reached("host");
    let message = "the call was lost inside the host; nothing else is affected";
    let failure = Failure::new(FailureKind::Internal, message).with_detail(error.to_string());
    Run { result: Err(Stop::Failed(failure)), memory_bytes_peak: 0 }
}

/// The moment at which a run with this limit has to end.
pub(crate) fn deadline(limit: Duration) -> Instant {
    let now = Instant::now();
    // A limit that overflows the clock is as good as none; a day stands for it.
    now.checked_add(limit).unwrap_or(now + Duration::from_secs(24 * 60 * 60))
}

/// Gives a closure the shape of a [`Body`], which type inference does not find by itself.
pub(crate) fn body<R, F>(body: F) -> Body<R>
where
    F: for<'a> FnOnce(&'a mut Store<Guest>, Instance) -> BoxFuture<'a, wasmtime::Result<R>>
        + Send
        + 'static,
{
    Box::new(body)
}
