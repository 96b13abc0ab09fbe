//! The way out of a session: its events, and the count of the plugin messages that are recorded.
//!
//! The front ends read both. Whatever reports to them has a clone: the port for what it hears, the
//! journal for what it wrote.

use tokio::sync::{mpsc, watch};

use super::event::SessionEvent;

/// The session's ends of the channels that lead to its front ends. Clones lead to the same ones.
#[derive(Clone)]
pub(super) struct SessionOutbox {
    events: mpsc::Sender<SessionEvent>,
    /// Counts the plugin messages that are recorded.
    notice_counter: watch::Sender<u64>,
}

impl SessionOutbox {
    pub(super) fn new(
        events: mpsc::Sender<SessionEvent>,
        notice_counter: watch::Sender<u64>,
    ) -> Self {
        Self { events, notice_counter }
    }

    pub(super) fn event_sender(&self) -> mpsc::Sender<SessionEvent> {
        self.events.clone()
    }

    /// Sends an event to the front ends; a slow one delays the session.
    pub(super) async fn emit(&self, event: SessionEvent) {
        // Without a receiver the session is about to close; its port detects that.
        let _ = self.events.send(event).await;
    }

    /// Waits until nobody receives events any more.
    pub(super) async fn closed(&self) {
        self.events.closed().await;
    }

    /// Counts plugin messages that are safe in the journal.
    pub(super) fn count_notices(&self, added: usize) {
        self.notice_counter.send_if_modified(|count| {
            *count += added as u64;
            added > 0
        });
    }
}
