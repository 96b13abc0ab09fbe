//! The lines of a tape.
//!
//! Times in reports are whole milliseconds, as in every serialized event. The events of a replay
//! may therefore differ from those of the recorded session by a part of a millisecond.

use std::time::Duration;

use sallyport_contract::{CallReport, ToolDescriptor, ToolId, services::PluginNotice};
use sallyport_model::{
    ChatMessage, ModelError, ModelReply, ModelToolDefinition, ReplyDelta, TokenPrice,
    UserInputMessage,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{RecalledMemory, SessionOptions};

/// The version that this build writes, and the newest that it reads.
pub(super) const VERSION: RecordingVersion = RecordingVersion { major: 2, minor: 0 };

/// Version of a tape. Another major version has other lines; a newer minor one may have more kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RecordingVersion {
    pub(super) major: u32,
    pub(super) minor: u32,
}

/// One line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "kebab-case")]
pub(super) enum RecordingLine {
    Tape(RecordingHeader),
    Input { message: UserInputMessage },
    Cancel,
    Request(RecordedRequest),
    Answer(RecordedAnswer),
    Decision(RecordedDecision),
    Report(RecordedReport),
    Turn { elapsed: Duration },
    Noticed { notice: PluginNotice },
    Recalls,
    Recalled { end: RecallOutcome },
}

/// The first line of a tape.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RecordingHeader {
    pub(super) version: RecordingVersion,
    pub(super) options: SessionOptions,
    pub(super) model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) price: Option<TokenPrice>,
    pub(super) tools: Vec<ToolDescriptor>,
}

/// A request to the model, as its difference from the last one, because a conversation grows and
/// each request contains all of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RecordedRequest {
    pub(super) number: usize,
    pub(super) digest: String,
    pub(super) same: usize,
    pub(super) messages: Vec<ChatMessage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tools: Option<Vec<ModelToolDefinition>>,
}

/// The result of a request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RecordedAnswer {
    pub(super) request: usize,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) deltas: Vec<ReplyDelta>,
    pub(super) end: AnswerOutcome,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum AnswerOutcome {
    Reply(ModelReply),
    Failed(ModelError),
    Dropped,
}

/// The result of a recall for an input.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RecallOutcome {
    Found(Vec<RecalledMemory>),
    Failed(String),
    Dropped,
}

/// The gate's decision about a call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RecordedDecision {
    pub(super) call: String,
    pub(super) tool: ToolId,
    pub(super) arguments: String,
    pub(super) end: DecisionOutcome,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum DecisionOutcome {
    Admitted { arguments: Value, grounds: String },
    Refused(CallReport),
    Dropped,
}

/// How a call ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RecordedReport {
    pub(super) call: String,
    pub(super) end: RunOutcome,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RunOutcome {
    Finished(CallReport),
    Dropped,
}

/// The digest of a request.
pub(super) fn digest(messages: &[ChatMessage], tools: &[ModelToolDefinition]) -> String {
    let mut hasher = blake3::Hasher::new();
    // Hashing cannot fail, and these types are always JSON.
    let _ = serde_json::to_writer(&mut hasher, &(messages, tools));
    hasher.finalize().to_hex().to_string()
}
