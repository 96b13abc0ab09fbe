//! Notices: messages to the user that wait until a conversation can show them.
//!
//! A conversation takes messages, shows them, and then confirms them. Messages that were taken are
//! not handed out again while the taker lives. If the taker's process ends without a confirmation,
//! it is unknown whether the messages were shown, so they are handed out again: a message may be
//! shown twice, but is never lost.
//!
//! The number of waiting rows is limited for each session, and for the messages to the user across
//! all sessions. Beyond the limit, the oldest messages of one plugin are merged into one, because
//! waiting messages must not be lost. If nothing can be merged within the longest length of a
//! message, the oldest rows become one row that only counts them. A message can also be gathered
//! from the start, with a time before which it is not shown.

pub(crate) mod pending;

use std::time::Duration;

use sallyport_contract::{
    async_trait,
    services::{NOTICE_BYTES_MAX, PluginNotice},
};

use crate::error::StoreError;

/// Messages that are about to be shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NoticeBatch {
    /// The messages, oldest first.
    pub notices: Vec<PluginNotice>,
    /// How many older messages are only counted and no longer stored.
    pub discarded_count: u64,
    /// What the store knows the messages and the counts by.
    pub keys: Vec<i64>,
}

impl NoticeBatch {
    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

/// Hears of messages that other processes store for a user.
#[async_trait]
pub trait NoticeListener: Send {
    /// Waits until one may have been stored since the last time, also if the future was dropped in
    /// between. A store that cannot tell waits for ever, so callers also look from time to time.
    async fn wait_for_news(&mut self);
}

/// The listener of a store that cannot tell.
struct SilentListener;

#[async_trait]
impl NoticeListener for SilentListener {
    async fn wait_for_news(&mut self) {
        std::future::pending().await
    }
}

/// The waiting messages. Every method fails if the database cannot be used.
#[async_trait]
pub trait NoticeStore: Send + Sync {
    /// Stores a message for a user.
    ///
    /// # Errors
    ///
    /// The message is too long.
    async fn store_notice(&self, user: &str, notice: &PluginNotice) -> Result<(), StoreError>;

    /// Listens from now on for messages that other processes store for a user.
    fn listen(&self, _user: &str) -> Box<dyn NoticeListener> {
        Box::new(SilentListener)
    }

    /// Stores a message for a user that is shown `after` some time, at most five minutes. Until
    /// then, messages of the same plugin for the same session and audience are merged into one.
    ///
    /// Returns `false` if the merged message would be too long. Nothing is stored then.
    ///
    /// # Errors
    ///
    /// The message is too long.
    async fn store_or_merge(
        &self,
        user: &str,
        notice: &PluginNotice,
        now_ms: u64,
        after: Duration,
    ) -> Result<bool, StoreError>;

    /// Takes the messages that a session of the user should show: its own, and those to the user
    /// that no other open session shows. The caller must confirm them or give them back.
    async fn take_batch(
        &self,
        user: &str,
        session_id: &str,
        now_ms: u64,
    ) -> Result<NoticeBatch, StoreError>;

    /// Removes messages that were shown.
    async fn confirm_shown(&self, batch: &NoticeBatch) -> Result<(), StoreError>;

    /// Gives back messages that were not shown, so that they are handed out again.
    async fn release_batch(&self, batch: &NoticeBatch) -> Result<(), StoreError>;
}

/// # Errors
///
/// The message is too long.
pub(crate) fn check_notice_length(notice: &PluginNotice) -> Result<(), StoreError> {
    match notice_bytes(notice) {
        bytes if bytes > NOTICE_BYTES_MAX => {
            let (what, bytes_max) = ("a message", NOTICE_BYTES_MAX);
            Err(StoreError::TooLong { what, bytes, bytes_max })
        }
        _ => Ok(()),
    }
}

/// The length of a message's texts.
pub(crate) fn notice_bytes(notice: &PluginNotice) -> usize {
    notice.text.len() + notice.speech.as_ref().map_or(0, String::len)
}
