//! Chat models: the only crate that knows a provider's wire format.
//!
//! A *model* takes a conversation and a list of tools and answers with text or with calls. What a
//! provider sends over the wire is turned into [`chat`]'s types at its door, and back; nothing of
//! its JSON is seen elsewhere, except as an opaque part that is replayed untouched.

pub mod chat;
pub mod offline;
pub mod openai;

pub use chat::{
    AssistantMessage, CallRequest, ChatModel, Delta, Finish, Message, ModelError, Reply, Request,
    ToolDefinition, ToolResult, Usage,
};
pub use offline::Offline;
pub use openai::{OpenAi, OpenAiSettings, SettingsError};
