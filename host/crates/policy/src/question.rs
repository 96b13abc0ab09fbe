//! One call, in the form that rules examine.
//!
//! A rule is about a tool, its component and, with a condition, the call's arguments and origin. A
//! [`PolicyQuestion`] contains all of these. The plugin's grant is passed separately.

use sallyport_contract::{ToolCallContext, ToolId};
use serde_json::Value;

/// The prefix of the tool name in a question about a role of the plugin, which no model asked for.
/// A plugin's own tool cannot have a name with this prefix.
pub const ROLE_PREFIX: &str = "role:";

/// The roles that a rule can name after [`ROLE_PREFIX`].
pub const ROLE_RUNS: [&str; 7] =
    ["timer", "listener", "provider", "ui", "http", "resources", "prompts"];

/// The roles in which a plugin is called like a tool.
const CALLED_LIKE_TOOLS: [&str; 2] = ["resources", "prompts"];

/// Whether a name is that of a role in which a plugin is called like a tool.
pub(crate) fn is_called_like_tool(tool: &ToolId) -> bool {
    let role = tool.tool.as_str().strip_prefix(ROLE_PREFIX);
    role.is_some_and(|role| CALLED_LIKE_TOOLS.contains(&role))
}

/// The groups of the identity server that a user belonged to at their last log-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginGroups {
    /// They are known; none for a user who never logged in there.
    Known(Vec<String>),
    /// They cannot be told. The user counts as a member of each group that names any.
    Unknown,
}

/// The groups of a user who never logged in at an identity server.
pub static NO_LOGIN_GROUPS: LoginGroups = LoginGroups::Known(Vec::new());

/// A call to decide about, or a running call that requests an access.
#[derive(Debug, Clone, Copy)]
pub struct PolicyQuestion<'a> {
    /// The tool.
    pub tool: &'a ToolId,
    /// Digest of the plugin's component, in hexadecimal.
    pub digest: &'a str,
    /// The arguments, parsed.
    pub arguments: &'a Value,
    /// The origin of the call.
    pub context: &'a ToolCallContext,
    /// The groups of the identity server that the call's user belongs to.
    pub login_groups: &'a LoginGroups,
}

impl<'a> PolicyQuestion<'a> {
    /// Returns the facts about the call for conditions and messages. `tool` is the tool's name as
    /// text.
    pub(crate) fn call_facts(&self, tool: &'a str) -> CallFacts<'a> {
        CallFacts { tool, arguments: self.arguments, context: self.context }
    }
}

/// The texts about a call that conditions and messages can refer to, as `context.NAME`.
pub(crate) const CONTEXT_KEYS: [&str; 6] =
    ["call_id", "session_id", "user_id", "conversation_id", "tool", "plugin"];

/// A call with all facts that a condition or a message may refer to. An example of a rule has such
/// facts without an actual call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallFacts<'a> {
    /// The tools as a rule writes them; for a call, exactly one tool.
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a Value,
    pub(crate) context: &'a ToolCallContext,
}

impl<'a> CallFacts<'a> {
    /// The plugin's name: the part of a tool's name before its first dot.
    pub(crate) fn plugin_name(&self) -> &'a str {
        self.tool.split_once('.').map_or(self.tool, |(plugin, _)| plugin)
    }

    /// The text under one of the [`CONTEXT_KEYS`]; `None` if the call does not have it.
    pub(crate) fn context_text(&self, key: &str) -> Option<&'a str> {
        match key {
            "call_id" => Some(&self.context.call_id),
            "session_id" => Some(&self.context.session_id),
            "user_id" => self.context.user_id.as_deref(),
            "conversation_id" => self.context.conversation_id.as_deref(),
            "tool" => Some(self.tool),
            "plugin" => Some(self.plugin_name()),
            _ => None,
        }
    }
}
