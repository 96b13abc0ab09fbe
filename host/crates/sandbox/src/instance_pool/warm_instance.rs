//! A warm instance: a guest between the calls of its session, and the task that removes it when it
//! was idle for too long.

use std::{
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::{Instant, sleep};
use wasmtime_wasi::runtime::AbortOnDropJoinHandle;

use super::SessionSlot;
use crate::{
    grant::FixedGrantParts,
    mutex::lock_mutex,
    run::{self, GuestInstance, RunResult},
    run_body::RunBody,
    run_context::RunContext,
};

/// A warm instance. It is removed when this is dropped.
pub(super) struct WarmInstance {
    /// `None` while a call runs, and after one that lost it.
    guest_instance: Option<GuestInstance>,
    status: Arc<InstanceStatus>,
    fixed_grant: FixedGrantParts,
    _idle_task: AbortOnDropJoinHandle<()>,
}

/// The activity of an instance and its memory.
#[derive(Debug)]
pub(super) struct InstanceStatus {
    phase: Mutex<InstancePhase>,
    memory_bytes: AtomicU64,
}

#[derive(Debug, Clone, Copy)]
enum InstancePhase {
    /// A call uses the instance.
    Busy,
    /// The instance has been idle since this time.
    Idle(Instant),
    /// The instance takes no more calls.
    Stopped,
}

impl WarmInstance {
    /// Takes a new guest, for a call that is about to follow. It is removed from `slot` when it was
    /// idle for too long.
    pub(super) fn start(
        guest_instance: GuestInstance,
        fixed_grant: FixedGrantParts,
        slot: Weak<SessionSlot>,
    ) -> Self {
        let status = Arc::new(InstanceStatus {
            phase: Mutex::new(InstancePhase::Busy),
            memory_bytes: AtomicU64::new(0),
        });
        let run_context = Arc::clone(&guest_instance.guest().run_context);
        let watch = remove_when_idle(slot, run_context, Arc::clone(&status));
        let idle_task = tokio::spawn(watch).into();
        let guest_instance = Some(guest_instance);
        Self { guest_instance, status, fixed_grant, _idle_task: idle_task }
    }

    /// Claims the instance for a call. Returns false if it has gone in the meantime.
    pub(super) fn try_claim(&self) -> bool {
        self.status.leave_idle(InstancePhase::Busy)
    }

    pub(super) fn has_same_grant(&self, fixed_grant: &FixedGrantParts) -> bool {
        self.fixed_grant == *fixed_grant
    }

    pub(super) fn status(&self) -> &Arc<InstanceStatus> {
        &self.status
    }

    /// Runs something in the instance, which was claimed for it. The instance must not be used again
    /// if this is dropped or fails.
    pub(super) async fn run<R: Send + 'static>(
        &mut self,
        run_context: &Arc<RunContext>,
        body: RunBody<R>,
    ) -> RunResult<R> {
        let Some(mut guest_instance) = self.guest_instance.take() else {
            return run::lost_run_result("no instance".to_owned(), &run_context.effect_log);
        };
        guest_instance.guest_mut().begin_run(run_context);
        let (result, guest_instance) = run::run_instance(guest_instance, body).await;
        if let Some(guest_instance) = &guest_instance {
            self.status.mark_idle(guest_instance.guest().memory.used_bytes());
        }
        self.guest_instance = guest_instance;
        result
    }
}

impl Drop for WarmInstance {
    fn drop(&mut self) {
        *lock_mutex(&self.status.phase) = InstancePhase::Stopped;
    }
}

impl InstanceStatus {
    /// The memory in bytes and the idle time of a live instance.
    pub(super) fn memory_and_idle_time(&self) -> Option<(u64, Duration)> {
        let idle = match *lock_mutex(&self.phase) {
            InstancePhase::Busy => Duration::ZERO,
            InstancePhase::Idle(since) => since.elapsed(),
            InstancePhase::Stopped => return None,
        };
        Some((self.memory_bytes.load(Ordering::Relaxed), idle))
    }

    fn mark_idle(&self, memory_bytes: u64) {
        self.memory_bytes.store(memory_bytes, Ordering::Relaxed);
        *lock_mutex(&self.phase) = InstancePhase::Idle(Instant::now());
    }

    /// Moves from resting to another phase. Both a caller and the idle timeout do this, and the
    /// first one wins.
    fn leave_idle(&self, next: InstancePhase) -> bool {
        let mut phase = lock_mutex(&self.phase);
        let is_idle = matches!(*phase, InstancePhase::Idle(_));
        if is_idle {
            *phase = next;
        }
        is_idle
    }
}

/// Removes an instance from its slot once it was idle for too long. The limit is that of the policy
/// at the moment.
async fn remove_when_idle(
    slot: Weak<SessionSlot>,
    run_context: Arc<RunContext>,
    status: Arc<InstanceStatus>,
) {
    loop {
        let idle_max = run_context.current_grant().limits().idle;
        let Some((_, idle)) = status.memory_and_idle_time() else { return };
        match idle_max.checked_sub(idle) {
            Some(left) if !left.is_zero() => sleep(left).await,
            _ if status.leave_idle(InstancePhase::Stopped) => break,
            // A call has claimed it at this moment.
            _ => sleep(idle_max).await,
        }
    }
    if let Some(slot) = slot.upgrade() {
        slot.remove_stopped(&status).await;
    }
}
