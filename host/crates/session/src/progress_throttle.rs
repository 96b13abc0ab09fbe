//! Limits how often the progress of a call is reported.
//!
//! A tool may report progress a thousand times a second. No user reads that, and every event costs
//! each front end something. Each call therefore reports at most once per interval; of the reports
//! in between, the last is kept and sent when the interval is over or the call ends.

use std::{collections::BTreeMap, time::Duration};

use sallyport_contract::services::CallProgress;
use tokio::time::Instant;

/// Shortest time between two reports of one call: the eye still sees a movement.
const INTERVAL: Duration = Duration::from_millis(250);

/// Longest message, in characters: a line of a terminal.
const MESSAGE_CHARS_MAX: usize = 200;

/// The running calls and their pending reports.
#[derive(Debug, Default)]
pub(super) struct ProgressThrottle {
    calls: BTreeMap<String, PendingProgress>,
}

#[derive(Debug, Default)]
struct PendingProgress {
    /// When the last report was sent.
    last_emitted: Option<Instant>,
    pending: Option<CallProgress>,
}

impl ProgressThrottle {
    /// Accepts progress of a call from here on.
    pub(super) fn begin_call(&mut self, call_id: String) {
        self.calls.insert(call_id, PendingProgress::default());
    }

    /// Takes a progress report, and returns it if it can be sent now. A call that is not running
    /// has no progress.
    pub(super) fn accept_progress(
        &mut self,
        call_id: &str,
        progress: CallProgress,
    ) -> Option<CallProgress> {
        let step = self.calls.get_mut(call_id)?;
        step.pending = Some(clamp_progress(progress));
        let is_due = step.due_at().is_some_and(|due| due <= Instant::now());
        if is_due { step.take_pending() } else { None }
    }

    /// Returns when the next pending report is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.calls.values().filter_map(PendingProgress::due_at).min()
    }

    /// Returns a report that is due, and its call.
    pub(super) fn take_due(&mut self) -> Option<(String, CallProgress)> {
        let now = Instant::now();
        let mut steps = self.calls.iter_mut();
        let (id, step) = steps.find(|(_, step)| step.due_at().is_some_and(|due| due <= now))?;
        Some((id.clone(), step.take_pending()?))
    }

    /// Accepts no more progress of a call, and returns its last report if that was not sent.
    pub(super) fn end_call(&mut self, call_id: &str) -> Option<CallProgress> {
        self.calls.remove(call_id)?.pending
    }
}

impl PendingProgress {
    /// Returns when the pending report can be sent; `None` without one.
    fn due_at(&self) -> Option<Instant> {
        self.pending.as_ref()?;
        Some(self.last_emitted.map_or_else(Instant::now, |last_emitted| last_emitted + INTERVAL))
    }

    fn take_pending(&mut self) -> Option<CallProgress> {
        self.last_emitted = Some(Instant::now());
        self.pending.take()
    }
}

/// Limits a report to what a front end can draw: a fraction from 0 to 1, and a short text.
fn clamp_progress(CallProgress { fraction: part, message }: CallProgress) -> CallProgress {
    let part = part.filter(|part| part.is_finite()).map(|part| part.clamp(0.0, 1.0));
    let message = message.map(|words| words.chars().take(MESSAGE_CHARS_MAX).collect());
    CallProgress { fraction: part, message }
}
