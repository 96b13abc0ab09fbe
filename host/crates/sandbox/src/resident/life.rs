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
    case::Case,
    grant::Opening,
    run::{self, AbortOnDrop, Body, Run, Vessel},
};

/// Most messages that wait for an instance. Its callers take turns, so there is never more than
/// one.
const MAILBOX_MAX: usize = 1;

/// A warm instance. It is stopped when this is dropped.
pub(super) struct Resident {
    mailbox: mpsc::Sender<Errand>,
    status: Arc<Status>,
    opening: Opening,
    task: JoinHandle<()>,
    _end: AbortOnDrop,
}

/// One call's work in an instance.
struct Errand {
    case: Arc<Case>,
    body: Body<()>,
    done: oneshot::Sender<Run<()>>,
}

/// The activity of an instance and its memory.
#[derive(Debug)]
pub(super) struct Status {
    phase: Mutex<Phase>,
    memory_bytes: AtomicU64,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    /// A call uses the instance.
    Busy,
    /// The instance has been idle since this time.
    Resting(Instant),
    /// The instance takes no more calls.
    Gone,
}

impl Resident {
    /// Starts the task of an instance for a call that is about to follow.
    pub(super) fn begin(vessel: Vessel, opening: Opening) -> Self {
        let (mailbox, messages) = mpsc::channel(MAILBOX_MAX);
        let status =
            Arc::new(Status { phase: Mutex::new(Phase::Busy), memory_bytes: AtomicU64::new(0) });
        let task = tokio::spawn(live(vessel, messages, Arc::clone(&status)));
        let end = AbortOnDrop(task.abort_handle());
        Self { mailbox, status, opening, task, _end: end }
    }

    /// Claims the instance for a call. Returns false if it has gone in the meantime.
    pub(super) fn claim(&self) -> bool {
        self.status.turn_from_rest(Phase::Busy)
    }

    pub(super) fn is_open_with(&self, opening: &Opening) -> bool {
        self.opening == *opening
    }

    pub(super) fn status(&self) -> &Arc<Status> {
        &self.status
    }

    /// Runs something in the instance. The instance must not be used again if this is dropped or
    /// fails.
    pub(super) async fn run<R: Send + 'static>(
        &mut self,
        case: &Arc<Case>,
        body: Body<R>,
    ) -> Run<R> {
        let (hand_over, value) = oneshot::channel();
        let body = run::body(move |store, instance| {
            Box::pin(async move {
                // If the receiver is gone, this instance is being stopped too.
                let _ = hand_over.send(body(store, instance).await?);
                Ok(())
            })
        });
        let (done, answer) = oneshot::channel();
        let errand = Errand { case: Arc::clone(case), body, done };
        // If the task is gone, waiting for the result below fails.
        let _ = self.mailbox.send(errand).await;
        match (answer.await, value.await) {
            (Ok(Run { result: Ok(()), memory_bytes_peak }), Ok(value)) => {
                Run { result: Ok(value), memory_bytes_peak }
            }
            (Ok(Run { result: Err(stop), memory_bytes_peak }), _) => {
                Run { result: Err(stop), memory_bytes_peak }
            }
            _ => self.lost(case).await,
        }
    }

    /// The result if the task ended in the middle of a call: the host panicked.
    async fn lost<R>(&mut self, case: &Case) -> Run<R> {
        self.mailbox = mpsc::channel(MAILBOX_MAX).0;
        let end = (&mut self.task).await.err().map_or_else(String::new, |error| error.to_string());
        run::lost(end, &case.ledger)
    }
}

impl Drop for Resident {
    fn drop(&mut self) {
        *self.status.phase() = Phase::Gone;
    }
}

impl Status {
    /// The memory in bytes and the idle time of a live instance.
    pub(super) fn figures(&self) -> Option<(u64, Duration)> {
        let idle = match *self.phase() {
            Phase::Busy => Duration::ZERO,
            Phase::Resting(since) => since.elapsed(),
            Phase::Gone => return None,
        };
        Some((self.memory_bytes.load(Ordering::Relaxed), idle))
    }

    fn rest(&self, memory_bytes: u64) {
        self.memory_bytes.store(memory_bytes, Ordering::Relaxed);
        *self.phase() = Phase::Resting(Instant::now());
    }

    /// Moves from resting to another phase. Both a caller and the idle timeout do this, and the
    /// first one wins.
    fn turn_from_rest(&self, next: Phase) -> bool {
        let mut phase = self.phase();
        let rests = matches!(*phase, Phase::Resting(_));
        if rests {
            *phase = next;
        }
        rests
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs one errand after another, until one fails or none arrives before the idle timeout.
async fn live(mut vessel: Vessel, mut mailbox: mpsc::Receiver<Errand>, status: Arc<Status>) {
    let mut case = Arc::clone(&vessel.guest().case);
    while let Some(errand) = next(&mut mailbox, &case, &status).await {
        case = Arc::clone(&errand.case);
        vessel.guest_mut().take_up(&case);
        let run = vessel.run(errand.body).await;
        let goes_on = run.result.is_ok();
        status.rest(vessel.guest().memory.bytes());
        // If the receiver is gone, this task is being stopped too.
        let _ = errand.done.send(run);
        if !goes_on {
            return;
        }
    }
}

async fn next(
    mailbox: &mut mpsc::Receiver<Errand>,
    case: &Case,
    status: &Status,
) -> Option<Errand> {
    loop {
        let idle_max = case.grant().limits().idle;
        tokio::select! {
            errand = mailbox.recv() => return errand,
            () = sleep(idle_max) => if status.turn_from_rest(Phase::Gone) { return None },
        }
    }
}
