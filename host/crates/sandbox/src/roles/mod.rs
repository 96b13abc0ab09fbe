//! The roles that a plugin can have in addition to tools, in plain types: their inputs, their
//! results, and the runs in between.
//!
//! A role run is a run that no model requested. Except for a guide's, which has no grants, it has
//! passed the gate like a call, is limited and recorded like one, and ends in a
//! [`CallReport`](sallyport_contract::CallReport). Its links to the session (the pieces of an
//! answer, an inbox, a seat) are valid for that run only.

mod guide;
mod http;
mod listener;
mod offers;
mod provider;
mod timers;
mod ui;

pub use self::http::{HttpBody, HttpBodyError, ServedRequest};
pub use listener::{PluginListener, SignalResult};
pub use provider::ProviderRunResult;
pub use timers::TimerRunResult;
pub use ui::PluginUi;

pub use crate::role_data::{
    DeltaSender, GenerationRequest, GenerationSettings, GuidePersona, ListenerReply,
    ListenerSignal, MediaBlob, ProviderAnswer, ProviderAnswerMessage, ProviderDelta,
    ProviderFailure, ProviderFinishReason, ProviderMessage, ProviderToolCall,
    ProviderToolDefinition, ProviderToolResult, ProviderUsage, ProviderUserMessage, UiActivity,
    UiEvent, UiMessage, UiMessageAuthor, UiTextFormat, UiToolCallRequest, UiToolCallResult,
};
