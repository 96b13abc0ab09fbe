//! The task of one warm instance, which owns it and receives its calls as messages.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::{Instant, sleep},
};

use crate::{
    grant::FixedGrantParts,
    run::{self, AbortOnDrop, GuestInstance, RunBody, RunResult},
    run_context::RunContext,
};

/// Most messages that wait for an instance. Its callers take turns, so there is never more than
/// one.
const MAILBOX_MAX: usize = 1;

/// A warm instance. It is stopped when this is dropped.
pub(super) struct WarmInstance {
    mailbox: mpsc::Sender<InstanceJob>,
    status: Arc<InstanceStatus>,
    fixed_grant: FixedGrantParts,
    task: JoinHandle<()>,
    _abort_guard: AbortOnDrop,
}

/// One call's work in an instance.
struct InstanceJob {
    run_context: Arc<RunContext>,
    body: RunBody<()>,
    result_sender: oneshot::Sender<RunResult<()>>,
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
    /// Starts the task of an instance for a call that is about to follow.
    pub(super) fn start(vessel: GuestInstance, fixed_grant: FixedGrantParts) -> Self {
        let (mailbox, messages) = mpsc::channel(MAILBOX_MAX);
        let status = Arc::new(InstanceStatus {
            phase: Mutex::new(InstancePhase::Busy),
            memory_bytes: AtomicU64::new(0),
        });
        let task = tokio::spawn(run_jobs(vessel, messages, Arc::clone(&status)));
        let end = AbortOnDrop(task.abort_handle());
        Self { mailbox, status, fixed_grant, task, _abort_guard: end }
    }

    /// Claims the instance for a call. Returns false if it has gone in the meantime.
    pub(super) fn try_claim(&self) -> bool {
        self.status.leave_idle(InstancePhase::Busy)
    }

    pub(super) fn has_same_grant(&self, opening: &FixedGrantParts) -> bool {
        self.fixed_grant == *opening
    }

    pub(super) fn status(&self) -> &Arc<InstanceStatus> {
        &self.status
    }

    /// Runs something in the instance. The instance must not be used again if this is dropped or
    /// fails.
    pub(super) async fn run<R: Send + 'static>(
        &mut self,
        case: &Arc<RunContext>,
        body: RunBody<R>,
    ) -> RunResult<R> {
        let (hand_over, value) = oneshot::channel();
        let body = run::box_run_body(move |store, instance| {
            Box::pin(async move {
                // If the receiver is gone, this instance is being stopped too.
                let _ = hand_over.send(body(store, instance).await?);
                Ok(())
            })
        });
        let (done, answer) = oneshot::channel();
        let errand = InstanceJob { run_context: Arc::clone(case), body, result_sender: done };
        // If the task is gone, waiting for the result below fails.
        let _ = self.mailbox.send(errand).await;
        match (answer.await, value.await) {
            (Ok(RunResult { result: Ok(()), memory_bytes_peak }), Ok(value)) => {
                RunResult { result: Ok(value), memory_bytes_peak }
            }
            (Ok(RunResult { result: Err(stop), memory_bytes_peak }), _) => {
                RunResult { result: Err(stop), memory_bytes_peak }
            }
            _ => self.lost_result(case).await,
        }
    }

    /// The result if the task ended in the middle of a call: the host panicked.
    async fn lost_result<R>(&mut self, case: &RunContext) -> RunResult<R> {
        self.mailbox = mpsc::channel(MAILBOX_MAX).0;
        let end = (&mut self.task).await.err().map_or_else(String::new, |error| error.to_string());
        run::lost_run_result(end, &case.effect_log)
    }
}

impl Drop for WarmInstance {
    fn drop(&mut self) {
        *self.status.lock_phase() = InstancePhase::Stopped;
    }
}

impl InstanceStatus {
    /// The memory in bytes and the idle time of a live instance.
    pub(super) fn memory_and_idle_time(&self) -> Option<(u64, Duration)> {
        let idle = match *self.lock_phase() {
            InstancePhase::Busy => Duration::ZERO,
            InstancePhase::Idle(since) => since.elapsed(),
            InstancePhase::Stopped => return None,
        };
        Some((self.memory_bytes.load(Ordering::Relaxed), idle))
    }

    fn mark_idle(&self, memory_bytes: u64) {
        self.memory_bytes.store(memory_bytes, Ordering::Relaxed);
        *self.lock_phase() = InstancePhase::Idle(Instant::now());
    }

    /// Moves from resting to another phase. Both a caller and the idle timeout do this, and the
    /// first one wins.
    fn leave_idle(&self, next: InstancePhase) -> bool {
        let mut phase = self.lock_phase();
        let rests = matches!(*phase, InstancePhase::Idle(_));
        if rests {
            *phase = next;
        }
        rests
    }

    fn lock_phase(&self) -> MutexGuard<'_, InstancePhase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs one errand after another, until one fails or none arrives before the idle timeout.
async fn run_jobs(
    mut vessel: GuestInstance,
    mut mailbox: mpsc::Receiver<InstanceJob>,
    status: Arc<InstanceStatus>,
) {
    let mut case = Arc::clone(&vessel.guest().run_context);
    while let Some(errand) = next_job(&mut mailbox, &case, &status).await {
        case = Arc::clone(&errand.run_context);
        vessel.guest_mut().begin_run(&case);
        let run = vessel.run_body(errand.body).await;
        let goes_on = run.result.is_ok();
        status.mark_idle(vessel.guest().memory.used_bytes());
        // If the receiver is gone, this task is being stopped too.
        let _ = errand.result_sender.send(run);
        if !goes_on {
            return;
        }
    }
}

async fn next_job(
    mailbox: &mut mpsc::Receiver<InstanceJob>,
    case: &RunContext,
    status: &InstanceStatus,
) -> Option<InstanceJob> {
    loop {
        let idle_max = case.current_grant().limits().idle;
        tokio::select! {
            errand = mailbox.recv() => return errand,
            () = sleep(idle_max) => if status.leave_idle(InstancePhase::Stopped) { return None },
        }
    }
}
