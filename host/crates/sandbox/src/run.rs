//! One run of a guest: a store, a deadline, and a result.
//!
//! Epochs do not interrupt host calls and timeouts do not interrupt WebAssembly, so both watch the
//! same deadline. A panic of the host is caught, so that it affects this run only.

use std::{panic::AssertUnwindSafe, pin::pin, sync::Arc};

use futures::FutureExt as _;
use rustix::io::Errno;
use sallyport_contract::{BoxFuture, CallFailure, FailureKind};
use sallyport_policy::ByteSize;
use tokio::task::AbortHandle;
use tracing::Instrument as _;
use wasmtime::{
    Store, Trap, UpdateDeadline,
    component::{Instance, InstancePre, ResourceTableError},
};
use wasmtime_wasi::I32Exit;

use crate::{
    abi::InterfaceMismatch,
    clock::{RunClock, TimeLimit},
    effect_log::EffectLog,
    guest::Guest,
    limits::HANDLES_PER_RESOURCE,
    linked_plugin::LinkedPlugin,
    memory_pool::PoolPlace,
    run_body::{RunBody, box_run_body, limit_host_call},
    wasm_engine::WasmEngine,
};

/// wasmtime's message when a guest passes too much data at a time; the error has no type of its
/// own.
const HOSTCALL_FUEL_MESSAGE: &str = "fuel allocated for hostcalls";

/// The reason why a run did not return.
#[derive(Debug)]
pub(crate) enum RunStopReason {
    /// Its wall time or processor time is used up.
    Expired(TimeLimit),
    /// The guest failed, or the host did.
    Failed(CallFailure),
}

/// A finished run.
#[derive(Debug)]
pub(crate) struct RunResult<R> {
    pub(crate) result: Result<R, RunStopReason>,
    pub(crate) memory_bytes_peak: u64,
}

impl<R> RunResult<R> {
    /// A run that never began.
    pub(crate) fn from_failure(stop: RunStopReason) -> Self {
        Self { result: Err(stop), memory_bytes_peak: 0 }
    }
}

/// Aborts the task when this is dropped.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A guest in its store. The first run creates the instance.
pub(crate) struct GuestInstance {
    engine: Arc<WasmEngine>,
    pre: InstancePre<Guest>,
    store: Store<Guest>,
    instance: Option<Instance>,
    /// Its place in the memory pool, if it has one. Freed after the store.
    _place: Option<PoolPlace>,
}

impl GuestInstance {
    pub(crate) fn new(plugin: &LinkedPlugin, guest: Guest, place: Option<PoolPlace>) -> Self {
        let (engine, pre) = (Arc::clone(&plugin.engine), plugin.pre.clone());
        let store = new_store(&engine, guest);
        Self { engine, pre, store, instance: None, _place: place }
    }

    pub(crate) fn guest(&self) -> &Guest {
        self.store.data()
    }

    pub(crate) fn guest_mut(&mut self) -> &mut Guest {
        self.store.data_mut()
    }

    /// Runs the guest until it returns, fails or runs out of time. Unless it returned, its state is
    /// unknown and it must not be run again.
    pub(crate) async fn run_body<R>(&mut self, body: RunBody<R>) -> RunResult<R> {
        let _epoch_guard = self.engine.ticker.register_guest();
        self.store.set_epoch_deadline(1);
        let run_context = Arc::clone(&self.guest().run_context);
        let result = {
            let work = pin!(self.call_body(body));
            tokio::select! {
                biased;
                result = run_context.clock.meter_future(work) => Some(result),
                () = run_context.clock.wait_for_wall_time_limit() => None,
            }
        };
        self.guest_mut().end_run();
        let result = match result {
            Some(Ok(value)) => Ok(value),
            Some(Err(error)) => Err(classify_trap(&error, self.guest())),
            None => Err(RunStopReason::Expired(TimeLimit::Wall)),
        };
        RunResult { result, memory_bytes_peak: self.guest().memory.bytes_peak() }
    }

    /// Creates the instance, so that its first run does not.
    pub(crate) async fn start(&mut self) -> RunResult<()> {
        self.run_body(box_run_body(|_, _| Box::pin(std::future::ready(Ok(()))))).await
    }

    async fn call_body<R>(&mut self, body: RunBody<R>) -> wasmtime::Result<R> {
        let instance = match self.instance {
            Some(instance) => instance,
            None => *self.instance.insert(self.pre.instantiate_async(&mut self.store).await?),
        };
        body(&mut self.store, instance).await
    }
}

/// Runs a fresh guest until it returns, fails or runs out of time. Dropping the future stops the
/// guest.
pub(crate) async fn run_guest<R: Send + 'static>(
    plugin: &LinkedPlugin,
    guest: Guest,
    body: RunBody<R>,
) -> RunResult<R> {
    run_instance(GuestInstance::new(plugin, guest, None), body).await.0
}

/// Runs a guest until it returns, fails or runs out of time, and returns it with the result, unless
/// the host panicked. Dropping the future stops the guest.
///
/// The only guest that runs has no task of its own, because waking another thread costs more than a
/// small call. Beside others, it has one, so that guests compute on all processors.
pub(crate) async fn run_instance<R: Send + 'static>(
    mut guest_instance: GuestInstance,
    body: RunBody<R>,
) -> (RunResult<R>, Option<GuestInstance>) {
    let effect_log = guest_instance.guest().run_context.effect_log.clone();
    let is_alone = guest_instance.engine.ticker.is_idle();
    // A box, because its caller's future would otherwise contain the guest's whole run.
    let work: BoxFuture<'static, _> = Box::pin(async move {
        let result = guest_instance.run_body(body).await;
        (result, Some(guest_instance))
    });
    let lost = |how: String| (lost_run_result(how, &effect_log), None);
    if is_alone {
        let ended = AssertUnwindSafe(work).catch_unwind().await;
        ended.unwrap_or_else(|_| lost("the host panicked".to_owned()))
    } else {
        let task = tokio::spawn(work.in_current_span());
        let _guard = AbortOnDrop(task.abort_handle());
        task.await.unwrap_or_else(|error| lost(error.to_string()))
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one place where a guest is run")]
fn new_store(engine: &WasmEngine, guest: Guest) -> Store<Guest> {
    let limits = guest.limits.clone();
    let mut store = Store::new(&engine.wasm, guest);
    store.limiter(|guest| &mut guest.memory);
    limit_host_call(&mut store, 1);
    store.set_max_component_handles(HANDLES_PER_RESOURCE * limits.handles as usize);
    store.epoch_deadline_callback(|store| {
        let clock = &store.data().run_context.clock;
        if clock.expired_limit().is_some() {
            return Ok(UpdateDeadline::Interrupt);
        }
        Ok(UpdateDeadline::YieldCustom(1, Box::pin(yield_to_tasks(clock.clone()))))
    });
    store
}

/// Lets other tasks run, and waits while the guest's clock is paused, so that a guest does not
/// compute for free while the user is asked.
async fn yield_to_tasks(clock: RunClock) {
    tokio::task::yield_now().await;
    clock.wait_while_paused().await;
}

/// Determines the cause of a trap. The backtrace is for the user, the message for the model.
fn classify_trap(error: &wasmtime::Error, guest: &Guest) -> RunStopReason {
    if error.downcast_ref() == Some(&Trap::Interrupt) {
        return RunStopReason::Expired(
            guest.run_context.clock.expired_limit().unwrap_or(TimeLimit::Wall),
        );
    }
    let is_unreachable = error.downcast_ref() == Some(&Trap::UnreachableCodeReached);
    let panic = guest.run_context.effect_log.panic_message().filter(|_| is_unreachable);
    let (kind, message) = if let Some(limit) = find_reached_limit(error, guest) {
        guest.run_context.effect_log.record_limit(limit.clone());
        (
            FailureKind::LimitReached,
            format!("the plugin was stopped: its limit of {limit} is reached"),
        )
    } else if is_out_of_memory(error, guest) {
        let limit = ByteSize(guest.memory.bytes_max());
        let message = format!(
            "the plugin was stopped: this machine has no memory left for it, although its limit of \
             {limit} is not reached"
        );
        (FailureKind::Unavailable, message)
    } else if let Some(InterfaceMismatch(message)) = error.downcast_ref() {
        (FailureKind::BadOutput, message.clone())
    } else if let Some(I32Exit(code)) = error.downcast_ref() {
        (FailureKind::Trapped, exit_message(*code))
    } else if panic.is_some() {
        (FailureKind::Trapped, "the plugin panicked".to_owned())
    } else if let Some(trap) = error.downcast_ref::<Trap>() {
        (FailureKind::Trapped, format!("the plugin trapped: {trap}"))
    } else {
        (FailureKind::Trapped, format!("the plugin was stopped: {}", error.root_cause()))
    };
    RunStopReason::Failed(
        CallFailure::new(kind, message).with_detail(format!("{error:?}")).with_panic(panic),
    )
}

/// Whether the operating system refused memory when the guest started or grew, as it does with a
/// low `ulimit -v`.
fn is_out_of_memory(error: &wasmtime::Error, guest: &Guest) -> bool {
    let never_began = error.root_cause().downcast_ref() == Some(&Errno::NOMEM);
    never_began || guest.memory.was_refused_by_machine()
}

/// The message for a guest that called `exit`. Most languages report every failure as 1, so that
/// code carries no information.
fn exit_message(code: i32) -> String {
    match code {
        0 => "the plugin ended itself, without an answer".to_owned(),
        1 => "the plugin ended itself and reported a failure".to_owned(),
        code => format!("the plugin ended itself with exit code {code}"),
    }
}

/// The limit that made a guest trap, if there is one.
fn find_reached_limit(error: &wasmtime::Error, guest: &Guest) -> Option<String> {
    let (cause, limits) = (error.root_cause(), &guest.limits);
    if guest.memory.was_refused() {
        Some(format!("{} of memory (limits.memory)", ByteSize(guest.memory.bytes_max())))
    } else if let Some(ResourceTableError::Full) = cause.downcast_ref() {
        Some(format!("{} open handles (limits.handles)", limits.handles))
    } else if cause.to_string().contains(HOSTCALL_FUEL_MESSAGE) {
        let size = ByteSize(limits.host_call_bytes);
        Some(format!("{size} in one call between plugin and host (limits.host-call)"))
    } else {
        None
    }
}

/// The result of a task that ended without one: the host panicked or is shutting down.
pub(crate) fn lost_run_result<R>(how: String, effect_log: &EffectLog) -> RunResult<R> {
    effect_log.record_limit("host");
    let message = "the call was lost inside the host; nothing else is affected";
    let failure = CallFailure::new(FailureKind::Internal, message).with_detail(how);
    RunResult::from_failure(RunStopReason::Failed(failure))
}
