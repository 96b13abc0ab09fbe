//! The task of one warm instance, which owns it and receives its calls as messages.

use std::{
    sync::{
        Arc, Mutex,
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
    mutex::lock_mutex,
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
    pub(super) fn start(guest_instance: GuestInstance, fixed_grant: FixedGrantParts) -> Self {
        let (mailbox, messages) = mpsc::channel(MAILBOX_MAX);
        let status = Arc::new(InstanceStatus {
            phase: Mutex::new(InstancePhase::Busy),
            memory_bytes: AtomicU64::new(0),
        });
        let task = tokio::spawn(run_jobs(guest_instance, messages, Arc::clone(&status)));
        let end = AbortOnDrop(task.abort_handle());
        Self { mailbox, status, fixed_grant, task, _abort_guard: end }
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

    /// Runs something in the instance. The instance must not be used again if this is dropped or
    /// fails.
    pub(super) async fn run<R: Send + 'static>(
        &mut self,
        run_context: &Arc<RunContext>,
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
        let (result_sender, answer) = oneshot::channel();
        let job = InstanceJob { run_context: Arc::clone(run_context), body, result_sender };
        // If the task is gone, waiting for the result below fails.
        let _ = self.mailbox.send(job).await;
        match (answer.await, value.await) {
            (Ok(RunResult { result: Ok(()), memory_bytes_peak }), Ok(value)) => {
                RunResult { result: Ok(value), memory_bytes_peak }
            }
            (Ok(RunResult { result: Err(stop), memory_bytes_peak }), _) => {
                RunResult { result: Err(stop), memory_bytes_peak }
            }
            _ => self.lost_result(run_context).await,
        }
    }

    /// The result if the task ended in the middle of a call: the host panicked.
    async fn lost_result<R>(&mut self, run_context: &RunContext) -> RunResult<R> {
        self.mailbox = mpsc::channel(MAILBOX_MAX).0;
        let end = (&mut self.task).await.err().map_or_else(String::new, |error| error.to_string());
        run::lost_run_result(end, &run_context.effect_log)
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

/// Runs one job after another, until one fails or none arrives before the idle timeout.
async fn run_jobs(
    mut guest_instance: GuestInstance,
    mut mailbox: mpsc::Receiver<InstanceJob>,
    status: Arc<InstanceStatus>,
) {
    let mut run_context = Arc::clone(&guest_instance.guest().run_context);
    while let Some(job) = next_job(&mut mailbox, &run_context, &status).await {
        run_context = Arc::clone(&job.run_context);
        guest_instance.guest_mut().begin_run(&run_context);
        let run = guest_instance.run_body(job.body).await;
        let is_reusable = run.result.is_ok();
        status.mark_idle(guest_instance.guest().memory.used_bytes());
        // If the receiver is gone, this task is being stopped too.
        let _ = job.result_sender.send(run);
        if !is_reusable {
            return;
        }
    }
}

async fn next_job(
    mailbox: &mut mpsc::Receiver<InstanceJob>,
    run_context: &RunContext,
    status: &InstanceStatus,
) -> Option<InstanceJob> {
    loop {
        let idle_max = run_context.current_grant().limits().idle;
        tokio::select! {
            job = mailbox.recv() => return job,
            () = sleep(idle_max) => if status.leave_idle(InstancePhase::Stopped) { return None },
        }
    }
}
