//! The one on whose behalf something happens, and where a call comes from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

/// Where a call comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCallContext {
    /// Unique within the session; ties the result to the model's request.
    pub call_id: String,
    /// The session that the call belongs to.
    pub session_id: String,
    /// The user on whose behalf the call is made; `None` only where the question concerns no user,
    /// as for the examples of a rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// The conversation that the call belongs to; `None` for a single call without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
}

impl ToolCallContext {
    /// The user on whose behalf the call is made: the local one unless another is named.
    pub fn user(&self) -> &str {
        self.user_id.as_deref().unwrap_or(LOCAL_USER)
    }
}
