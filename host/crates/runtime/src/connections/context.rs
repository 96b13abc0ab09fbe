//! What a model is told about the plugins that have accounts: all of them, or those it names.

use std::sync::Arc;

use sallyport_connections::{Action, Definition};
use sallyport_contract::text;
use sallyport_policy::ActionRuleKind;
use sallyport_store::ConnectionStatus;
use serde::Serialize;
use serde_json::{Value, json};

use super::{AccountError, ConnectionDesk, connect_advice};

/// Longest text about connections in a system prompt, in tokens of about four bytes: a small part of
/// what a model can read.
pub const CONTEXT_TOKENS_MAX: usize = 400;

/// Bytes of a token, as a rule of thumb.
const TOKEN_BYTES: usize = 4;

/// Longest part of a line in characters, so that no plugin takes the place of the others.
const PROMPT_CHARS_MAX: usize = 120;

/// What stands before the plugins.
const PROMPT_TITLE: &str = "These plugins need an account that the user has to connect, as the \
                            end of the line says.\nTell the user when one would help.\n";

/// What stands for those that have no place.
const PROMPT_MORE: &str = "- and more: sallyport connection list\n";

/// What to tell of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextDetail {
    /// Limits and confirmations.
    pub rules: bool,
    /// Messages about results and failures.
    pub guidance: bool,
}

/// The plugins that a model can use, and those that it could.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConnectionContext {
    /// Plugins whose actions can run.
    pub connected: Vec<Value>,
    /// Plugins that the user would have to connect.
    pub available: Vec<Value>,
    /// Plugins whose connection has expired.
    pub expired: Vec<Value>,
}

/// Returns the context of a user. `only` names the plugins; without it, all are told.
///
/// # Errors
///
/// The store cannot be used.
pub async fn connection_context(
    desk: &ConnectionDesk,
    user: &str,
    definitions: &[Arc<Definition>],
    only: Option<&[String]>,
    detail: ContextDetail,
) -> Result<ConnectionContext, AccountError> {
    let mut context =
        ConnectionContext { connected: Vec::new(), available: Vec::new(), expired: Vec::new() };
    let is_wanted = |definition: &&Arc<Definition>| {
        only.is_none_or(|names| names.iter().any(|name| name == definition.name.as_str()))
    };
    let connections = desk.list(user).await?;
    for definition in definitions.iter().filter(is_wanted) {
        let of = connections.iter().find(|one| one.plugin_key == definition.name.as_str());
        match (definition.needs_connection(), of.map(|one| one.status)) {
            (false, _) | (true, Some(ConnectionStatus::Active)) => {
                context.connected.push(full_text(definition, detail));
            }
            (true, Some(ConnectionStatus::Expired)) => {
                context.expired.push(short_text(definition, user))
            }
            (true, _) => context.available.push(short_text(definition, user)),
        }
    }
    Ok(context)
}

fn short_text(definition: &Definition, user: &str) -> Value {
    json!({
        "name": definition.name.as_str(),
        "displayName": definition.shown_name(),
        "description": definition.description,
        "category": definition.category,
        "context": definition.context,
        "connect": connect_advice(&definition.name, user),
    })
}

fn full_text(definition: &Definition, detail: ContextDetail) -> Value {
    let actions = definition.actions.iter().map(|action| action_text(action, detail));
    json!({
        "name": definition.name.as_str(),
        "displayName": definition.shown_name(),
        "description": definition.description,
        "category": definition.category,
        "context": definition.context,
        "actions": actions.collect::<Vec<_>>(),
    })
}

fn action_text(action: &Action, detail: ContextDetail) -> Value {
    let mut text = json!({
        "name": action.name.as_str(),
        "description": action.description,
        "usage_context": action.usage_context,
        "parameters": action.parameters,
    });
    if detail.rules {
        let of_kind = |kind| {
            let rules = action.rules.messages().filter(move |(own, _)| *own == kind);
            rules.map(|(_, message)| message).collect::<Vec<_>>()
        };
        text["rules"] = json!({
            "limits": of_kind(ActionRuleKind::Limit),
            "confirmations": of_kind(ActionRuleKind::Confirmation),
        });
    }
    if detail.guidance {
        text["output_guidance"] = json!({
            "success_message": action.guidance.success_message,
            "common_errors": action.guidance.common_errors,
        });
    }
    text
}

impl ConnectionContext {
    /// The context as a part of a system prompt, of at most [`CONTEXT_TOKENS_MAX`] tokens. `None`
    /// if there is nothing that the list of tools does not tell already.
    pub fn prompt_text(&self) -> Option<String> {
        let expired = self.expired.iter().map(|plugin| prompt_line(plugin, "expired"));
        let available = self.available.iter().map(|plugin| prompt_line(plugin, "not connected"));
        let mut lines = expired.chain(available).peekable();
        lines.peek()?;
        let mut text = PROMPT_TITLE.to_owned();
        for line in lines {
            if text.len() + line.len() + PROMPT_MORE.len() > CONTEXT_TOKENS_MAX * TOKEN_BYTES {
                text.push_str(PROMPT_MORE);
                break;
            }
            text.push_str(&line);
        }
        Some(text.trim_end().to_owned())
    }
}

fn prompt_line(plugin: &Value, what: &str) -> String {
    let text = |key: &str| {
        let text = plugin[key].as_str().unwrap_or_default();
        text::escape_excerpt(text.trim_end_matches('.'), PROMPT_CHARS_MAX)
    };
    format!("- {} ({what}): {}. {}\n", text("name"), text("description"), text("connect"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(count: usize, description: &str) -> ConnectionContext {
        let plugin = |number: usize| {
            let name = format!("p{number}");
            let connect = format!("sallyport connection add {name}");
            json!({"name": name, "description": description, "connect": connect})
        };
        let available = (0..count).map(plugin).collect();
        ConnectionContext { connected: vec![plugin(0)], available, expired: Vec::new() }
    }

    #[test]
    fn a_prompt_names_what_could_be_connected_within_its_tokens() {
        let bytes_max = CONTEXT_TOKENS_MAX * TOKEN_BYTES;
        assert_eq!(context(0, "d").prompt_text(), None);
        let one = context(1, "Sends mail.").prompt_text().unwrap();
        let line = "- p0 (not connected): Sends mail. sallyport connection add p0";
        assert_eq!(one, format!("{PROMPT_TITLE}{line}"));
        let lines = |count| context(count, "Does things").prompt_text().unwrap();
        let fitting = (1..).take_while(|count| !lines(*count).ends_with("list")).count();
        assert!(fitting > 15, "{fitting} plugins fit");
        for count in [fitting, fitting + 1, 1000] {
            let text = lines(count);
            assert!(text.len() <= bytes_max, "{count}: {} bytes", text.len());
            assert_eq!(text.ends_with(PROMPT_MORE.trim_end()), count > fitting, "{count}");
        }
        // A long text cannot push the others out, and none looks like a line of its own.
        let long = context(2, &"x\n- y".repeat(500)).prompt_text().unwrap();
        assert!(long.contains("add p1") && long.lines().count() == 4, "{long}");
    }
}
