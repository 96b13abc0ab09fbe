//! Chat models: the only crate that knows a provider's wire format.
//!
//! A *model* takes a conversation and a list of tools and answers with text or with calls. What a
//! provider sends over the wire is turned into [`chat`]'s types at its door, and back; nothing of
//! its JSON is seen elsewhere, except as an opaque part that is replayed untouched.

pub mod chat;
mod endpoint;
pub mod offline;
pub mod openai;
mod wire;

pub use chat::{
    AssistantMessage, Attachment, CallRequest, ChatModel, Cost, Delta, Finish, Message, ModelError,
    Opaque, Price, Reply, Request, ToolDefinition, ToolResult, Usage, UserMessage,
};
pub use endpoint::{Effort, Endpoint, Protocol, SettingsError, ToolCalling};
pub use offline::Offline;
pub use openai::OpenAi;
