//! Waiting messages as either database keeps them, and how they are merged.

use std::time::Duration;

use sallyport_contract::services::{NOTICE_BYTES_MAX, NoticeAudience, PluginNotice};
use serde::{Deserialize, Serialize};

use super::{NoticeBatch, notice_bytes};
use crate::process::ProcessLiveness;

/// Most rows that wait for one session, and most that wait for the user. No user reads more when a
/// conversation continues.
const PENDING_ROWS_MAX: usize = 64;

/// Most rows that are handed out at the same time. The caller takes the others next.
const BATCH_ROWS_MAX: usize = 100;

/// Longest speech of merged messages, in bytes: some minutes. The text is complete.
const SPEECH_BYTES_MAX: usize = 4096;

/// Longest time for which a message is held back, in milliseconds. A message whose time is further
/// ahead is shown: the clock was put back.
const DELAY_MS_MAX: u64 = 5 * 60 * 1000;

/// How long messages stay taken if it is unknown whether the taker lives. Showing them takes less
/// than a second.
pub(crate) const LEASE_MS: u64 = 60_000;

/// A message as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StoredNotice {
    #[serde(flatten)]
    pub(crate) notice: PluginNotice,
    /// Not shown before this time, because further messages may be merged into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) until_ms: Option<u64>,
}

impl StoredNotice {
    /// A message that is shown as soon as possible.
    pub(crate) fn due(notice: &PluginNotice) -> Self {
        Self { notice: notice.clone(), until_ms: None }
    }

    /// A message that is held back for some time.
    pub(crate) fn held_back(notice: &PluginNotice, now_ms: u64, after: Duration) -> Self {
        let after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX).min(DELAY_MS_MAX);
        Self { notice: notice.clone(), until_ms: Some(now_ms.saturating_add(after_ms)) }
    }

    /// Whether the message is not shown yet.
    pub(crate) fn is_held_back(&self, now_ms: u64) -> bool {
        self.until_ms.is_some_and(|until| until > now_ms && until - now_ms <= DELAY_MS_MAX)
    }

    /// The message as JSON.
    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a notice is plain data")
    }

    /// Appends a message to this one. Returns false if they would be too long together.
    pub(crate) fn append(&mut self, notice: &PluginNotice) -> bool {
        let fits = can_merge(&self.notice, notice);
        if fits {
            append_notice(&mut self.notice, notice);
        }
        fits
    }
}

/// A row that waits. Without a message, it only counts some.
pub(crate) struct PendingNotice {
    pub(crate) key: i64,
    pub(crate) session_id: String,
    pub(crate) notice: Option<StoredNotice>,
    pub(crate) count: u64,
    pub(crate) process: Option<String>,
    pub(crate) lease_ms: Option<u64>,
}

impl PendingNotice {
    /// Whether the message is due and not taken by a live process.
    pub(crate) fn is_available(
        &self,
        now_ms: u64,
        liveness: impl Fn(&str) -> ProcessLiveness,
    ) -> bool {
        if self.notice.as_ref().is_some_and(|notice| notice.is_held_back(now_ms)) {
            return false;
        }
        self.process.as_deref().is_none_or(|holder| match liveness(holder) {
            ProcessLiveness::Running => false,
            ProcessLiveness::Ended => true,
            ProcessLiveness::Unknown => self.lease_ms.is_none_or(|end| end <= now_ms),
        })
    }
}

impl NoticeBatch {
    /// Whether no further row fits.
    pub(crate) fn is_full(&self) -> bool {
        self.keys.len() >= BATCH_ROWS_MAX
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, waiting: PendingNotice) {
        self.keys.push(waiting.key);
        match waiting.notice {
            Some(stored) => self.notices.push(stored.notice),
            None => self.discarded_count = self.discarded_count.saturating_add(waiting.count),
        }
    }
}

/// What is done so that not too many rows wait. The second row is removed.
pub(crate) enum Merge {
    /// The first row gets this message, and counts the messages of both.
    Messages { first: i64, second: i64, merged: StoredNotice, added: u64 },
    /// The first row only counts the messages of both.
    Count { first: i64, second: i64, count: u64 },
}

/// Chooses what to merge among the rows that are not taken, oldest first: the two oldest messages of
/// one plugin that fit into one. If none can be merged, the two oldest rows become a count. `None` if
/// there are not too many.
pub(crate) fn choose_merge(rows: &[PendingNotice]) -> Option<Merge> {
    if rows.len() <= PENDING_ROWS_MAX {
        return None;
    }
    if let Some(merge) = first_pair(rows) {
        return Some(merge);
    }
    let [first, second, ..] = rows else { return None };
    let count = first.count.saturating_add(second.count);
    Some(Merge::Count { first: first.key, second: second.key, count })
}

fn first_pair(rows: &[PendingNotice]) -> Option<Merge> {
    let messages = || rows.iter().filter_map(|row| Some((row, row.notice.as_ref()?)));
    messages().enumerate().find_map(|(at, (first, stored))| {
        let mut later = messages().skip(at + 1);
        let (second, other) = later.find(|(_, other)| can_merge(&stored.notice, &other.notice))?;
        let mut merged = stored.clone();
        append_notice(&mut merged.notice, &other.notice);
        // The merged message is only held back if both messages are.
        merged.until_ms = merged.until_ms.and(other.until_ms);
        let added = second.count;
        Some(Merge::Messages { first: first.key, second: second.key, merged, added })
    })
}

/// Whether two messages are of one plugin and short enough to be merged.
fn can_merge(one: &PluginNotice, other: &PluginNotice) -> bool {
    one.plugin == other.plugin && notice_bytes(one) + notice_bytes(other) + 2 <= NOTICE_BYTES_MAX
}

/// Appends a message to another one, on a line of its own.
fn append_notice(to: &mut PluginNotice, notice: &PluginNotice) {
    let speech = match (&to.speech, &notice.speech) {
        (Some(one), Some(other)) if one.len() + other.len() < SPEECH_BYTES_MAX => {
            Some(format!("{one} {other}"))
        }
        (Some(one), _) => Some(one.clone()),
        (None, other) => other.clone(),
    };
    (to.speech, to.late) = (speech, to.late || notice.late);
    to.text.push('\n');
    to.text.push_str(&notice.text);
}

/// The session whose rows count for a new message. Messages to the user are counted across sessions:
/// each may come from a new session.
pub(crate) fn counted_session(notice: &PluginNotice) -> Option<&str> {
    match notice.audience {
        NoticeAudience::Conversation => Some(&notice.session_id),
        NoticeAudience::User => None,
    }
}

/// The audience in one word.
pub(crate) fn audience_name(audience: NoticeAudience) -> &'static str {
    match audience {
        NoticeAudience::Conversation => "conversation",
        NoticeAudience::User => "user",
    }
}
