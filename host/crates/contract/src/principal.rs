//! The one on whose behalf something happens.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ToolCallContext;

/// The user of a host that serves one person, and the owner of what runs for no call, such as the
/// set-up of a plugin.
pub const LOCAL_USER: &str = "local";

/// The one on whose behalf something happens. Sessions with their kept results, state, timers,
/// memories, messages, approvals and audit records belong to its user, and data of one user is never
/// another's.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Principal {
    /// The user, by a name that the host assigns.
    pub user: String,
    /// The conversation; `None` for a single call without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
}

impl Principal {
    /// The user of a host that serves one person.
    pub fn local() -> Self {
        Self { user: LOCAL_USER.to_owned(), conversation: None }
    }

    /// The same user in a conversation.
    pub fn in_conversation(&self, conversation: impl Into<String>) -> Self {
        Self { user: self.user.clone(), conversation: Some(conversation.into()) }
    }

    /// The context of a call on its behalf.
    pub fn call_context(&self, call_id: String, session_id: &str) -> ToolCallContext {
        ToolCallContext {
            call_id,
            session_id: session_id.to_owned(),
            user_id: Some(self.user.clone()),
            conversation_id: self.conversation.clone(),
        }
    }
}
