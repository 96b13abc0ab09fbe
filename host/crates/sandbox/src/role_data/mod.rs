//! What the host and a plugin in a role give each other, in plain types.
//!
//! The exports of a component take and return them, whatever the version of the contract. What comes
//! from a plugin is untrusted until the run of its role has checked it.

mod guide;
mod listener;
mod provider;
mod ui;

pub use guide::GuidePersona;
pub use listener::{ListenerReply, ListenerSignal};
pub use provider::{
    DeltaSender, GenerationRequest, GenerationSettings, MediaBlob, ProviderAnswer,
    ProviderAnswerMessage, ProviderDelta, ProviderFailure, ProviderFinishReason, ProviderMessage,
    ProviderToolCall, ProviderToolDefinition, ProviderToolResult, ProviderUsage,
    ProviderUserMessage,
};
pub use ui::{
    UiActivity, UiEvent, UiMessage, UiMessageAuthor, UiTextFormat, UiToolCallRequest,
    UiToolCallResult,
};
