//! What happens on a connection besides its answers.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
};

use sallyport_contract::text;
use tokio_util::sync::CancellationToken;

use crate::{calls::ConnectionCalls, mutex::lock};

/// Removes secrets from a text of a server. It is applied before a text is cut, because a cut inside a
/// secret would hide the rest of it from every later look.
pub type RedactServerText = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// The state of one connection.
pub(crate) struct ConnectionJournal {
    redact: RedactServerText,
    /// The calls, whose records have what happens.
    pub(crate) calls: Arc<ConnectionCalls>,
    fault: Mutex<Option<String>>,
    /// How often the server has reported other tools.
    tool_changes: AtomicU64,
    /// Cancelled when the connection is ended from this side while its messages go on.
    cut: CancellationToken,
}

impl ConnectionJournal {
    /// The journal of a new connection.
    pub(crate) fn new(redact: RedactServerText) -> Self {
        Self {
            redact,
            calls: Arc::default(),
            fault: Mutex::default(),
            tool_changes: AtomicU64::default(),
            cut: CancellationToken::new(),
        }
    }

    /// Removes secrets from a text of the server.
    pub(crate) fn redact(&self, text: &str) -> String {
        (self.redact)(text)
    }

    /// Cuts a text of the server to a length in characters, without secrets and safe to show.
    pub(crate) fn safe_excerpt(&self, text: &str, chars_max: usize) -> String {
        text::escape_excerpt(&self.redact(text), chars_max)
    }

    /// Notes what the server did, and its words, for the call that they belong to.
    pub(crate) fn add_remark(&self, what: &str, words: &str) {
        self.calls.add_remark(what, &self.redact(words));
    }

    /// Notes why the connection is ended from this side. The first reason counts.
    pub(crate) fn set_fault(&self, fault: String) {
        lock(&self.fault).get_or_insert(fault);
    }

    /// Ends the connection from this side for this reason, and every call on it.
    pub(crate) fn cut_off(&self, fault: String) {
        self.set_fault(fault);
        self.cut.cancel();
    }

    /// Whether the connection was cut off.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut.is_cancelled()
    }

    /// Waits until the connection is cut off.
    pub(crate) async fn wait_for_cut(&self) {
        self.cut.cancelled().await;
    }

    /// Why the connection was ended from this side, if it was.
    pub(crate) fn fault(&self) -> Option<String> {
        lock(&self.fault).clone()
    }

    /// Notes that the server has other tools now.
    pub(crate) fn note_changed_tools(&self) {
        self.tool_changes.fetch_add(1, Ordering::Relaxed);
    }

    /// How often the server has reported other tools.
    pub(crate) fn tool_changes(&self) -> u64 {
        self.tool_changes.load(Ordering::Relaxed)
    }
}
