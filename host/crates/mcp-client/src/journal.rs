//! What happened on a connection besides its answers, for its owner.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use rmcp::model::ElicitRequestParams;
use sallyport_contract::text;
use tokio_util::sync::CancellationToken;

/// Most remarks that wait for the owner. A server that causes more is not heard any more.
const REMARKS_MAX: usize = 20;

/// Longest remark, in characters.
const REMARK_CHARS_MAX: usize = 300;

/// Longest part of a question that is noted, in characters.
const QUESTION_CHARS_MAX: usize = 2000;

/// A question of a server to the user, for the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedQuestion {
    /// The server's words; untrusted.
    pub what: String,
    /// How it ended, with the names of the values and without the values.
    pub answer: String,
}

/// The events of one connection.
#[derive(Debug, Default)]
pub(crate) struct ConnectionJournal {
    remarks: Mutex<Vec<String>>,
    questions: Mutex<Vec<AskedQuestion>>,
    fault: Mutex<Option<String>>,
    /// How often the server has reported other tools.
    tool_changes: AtomicU64,
    /// Cancelled when the connection is ended from this side while its messages go on.
    cut: CancellationToken,
}

impl ConnectionJournal {
    /// Notes a remark, unless the same one waits already.
    pub(crate) fn add_remark(&self, remark: &str) {
        let remark = text::escape_excerpt(remark, REMARK_CHARS_MAX);
        let mut remarks = lock(&self.remarks);
        if remarks.len() < REMARKS_MAX && !remarks.contains(&remark) {
            remarks.push(remark);
        }
    }

    /// Returns the remarks since the last time.
    pub(crate) fn take_remarks(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.remarks))
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

    /// Notes a question of the server to the user, and how it ended.
    pub(crate) fn add_question(&self, request: &ElicitRequestParams, answer: &str) {
        let words = match request {
            ElicitRequestParams::FormElicitationParams { message, .. }
            | ElicitRequestParams::UrlElicitationParams { message, .. } => message.as_str(),
            _ => "",
        };
        let what = words.chars().take(QUESTION_CHARS_MAX).collect();
        let answer = text::escape_excerpt(answer, REMARK_CHARS_MAX);
        let mut questions = lock(&self.questions);
        if questions.len() < REMARKS_MAX {
            questions.push(AskedQuestion { what, answer });
        }
    }

    /// Returns the questions since the last time.
    pub(crate) fn take_questions(&self) -> Vec<AskedQuestion> {
        std::mem::take(&mut lock(&self.questions))
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
