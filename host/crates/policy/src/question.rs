//! One call, as rules look at it.
//!
//! A rule speaks about a tool, about the component behind it, and with a condition about the
//! call's arguments and where the call comes from. All of that is one question; what the plugin
//! may do at all, its grant, is asked for beside it.

use sallyport_contract::{CallContext, ToolId};
use serde_json::Value;

/// What the tool of a question begins with where it stands for a role that a plugin plays, and no
/// model asked for the run. No plugin's own tool may be called so.
pub const ROLE_PREFIX: &str = "role:";

/// The roles that rules can name after it.
pub const ROLE_RUNS: [&str; 5] = ["timer", "listener", "provider", "ui", "http"];

/// A call that is to be decided about, or that reaches for something while it runs.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The tool.
    pub tool: &'a ToolId,
    /// Digest of the plugin's component, in hexadecimal.
    pub digest: &'a str,
    /// The arguments, parsed.
    pub arguments: &'a Value,
    /// Where the call comes from.
    pub context: &'a CallContext,
}

impl<'a> Question<'a> {
    /// What conditions and messages see of the call. `tool` is the tool's name as text.
    pub(crate) fn situation(&self, tool: &'a str) -> Situation<'a> {
        Situation { tool, arguments: self.arguments, context: self.context }
    }
}

/// The texts about a call that conditions and messages can name, as `context.NAME`.
pub(crate) const CONTEXT_KEYS: [&str; 6] =
    ["call_id", "session_id", "user_id", "conversation_id", "tool", "plugin"];

/// A call with everything that a condition or a message may look up. An example of a rule is one
/// without a call behind it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Situation<'a> {
    /// The tools as a rule writes them; of a call, exactly one.
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a Value,
    pub(crate) context: &'a CallContext,
}

impl<'a> Situation<'a> {
    /// The plugin's name: all of a tool's name before its first dot.
    pub(crate) fn plugin(&self) -> &'a str {
        self.tool.split_once('.').map_or(self.tool, |(plugin, _)| plugin)
    }

    /// What stands under one of the [`CONTEXT_KEYS`]; a text that there is not is `None`.
    pub(crate) fn context_text(&self, key: &str) -> Option<&'a str> {
        match key {
            "call_id" => Some(&self.context.call_id),
            "session_id" => Some(&self.context.session_id),
            "user_id" => self.context.user_id.as_deref(),
            "conversation_id" => self.context.conversation_id.as_deref(),
            "tool" => Some(self.tool),
            "plugin" => Some(self.plugin()),
            _ => None,
        }
    }
}
