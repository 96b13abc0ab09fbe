//! Messages from plugins to the user, outside their answers.

use async_trait::async_trait;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    name::{PluginName, ToolId},
    principal::ToolCallContext,
};

/// Who receives a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoticeAudience {
    /// The conversation that it belongs to, now or when it continues.
    Conversation,
    /// The user: that conversation if it is open, else any other.
    User,
}

/// A message to the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PluginNotice {
    /// The sender: a plugin, or a tool of the host.
    pub plugin: PluginName,
    /// The session that it belongs to.
    pub session_id: String,
    /// The text to show; untrusted.
    pub text: String,
    /// The text to speak; untrusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speech: Option<String>,
    /// Who receives it.
    pub audience: NoticeAudience,
    /// The message arrives later than it should have.
    pub late: bool,
}

/// The progress of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallProgress {
    /// The completed fraction, from 0 to 1, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fraction: Option<f64>,
    /// A short text; untrusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Longest message, shown and spoken text together, in bytes. Gathered messages share this limit,
/// and every implementation of [`NoticeService`] accepts a message of this length.
pub const NOTICE_BYTES_MAX: usize = 64 << 10;

/// When a message is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryTime {
    /// As soon as a user is connected.
    Immediate,
    /// After this time, in one message with everything that the same plugin sends to the same
    /// audience until then.
    Batched(Duration),
}

/// Why a message can neither be shown nor kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoticeError {
    /// The gathered messages have reached the limit; there is room again later.
    #[error("{NOTICE_BYTES_MAX} bytes of messages wait already")]
    Full,
    /// Messages cannot be kept; the text is for the log.
    #[error("{0}")]
    Unavailable(String),
}

/// Delivers messages to the user.
#[async_trait]
pub trait NoticeService: Send + Sync {
    /// Shows a user a message, or keeps it until the user is connected.
    ///
    /// # Errors
    ///
    /// The message can neither be shown nor kept. See [`NoticeError`].
    async fn notify(
        &self,
        user: &str,
        notice: PluginNotice,
        delivery: DeliveryTime,
    ) -> Result<(), NoticeError>;

    /// Shows the progress of a running call. It does not block.
    fn report_progress(&self, call: &ToolCallContext, tool: &ToolId, progress: CallProgress);
}

/// The result of opening a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlOpenResult {
    /// The browser received the address.
    Browser,
    /// The user was shown the address.
    Shown,
}

/// Opens pages in the user's browser.
pub trait UrlOpener: Send + Sync {
    /// Opens an http or https address, or shows it. It may block for a moment.
    fn open_page(&self, url: &str) -> UrlOpenResult;
}
