//! Repairs the calls of a conversation, so that every server accepts them back.
//!
//! A server parses the calls that it receives, including those of its own model, and refuses the
//! whole request if it cannot read one. A broken call is therefore repaired before it is sent: the
//! model still sees its own text, but wrapped in readable JSON.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use super::{
    FittedTools,
    conversation::{is_safe_id, repair_arguments, safe_id, safe_name},
    names::PropertyNameMap,
};
use crate::chat::{AssistantMessage, ChatMessage, ModelCallRequest, ToolResultMessage};

/// Returns a conversation with its calls repaired. Ids that `origin` gave itself stay unless they
/// repeat.
pub(super) fn repair_history<'a>(
    messages: &'a [ChatMessage],
    origin: &str,
    names: &HashMap<String, PropertyNameMap>,
) -> Cow<'a, [ChatMessage]> {
    let mut changed: Option<Vec<ChatMessage>> = None;
    let mut ids = CallIdMap::default();
    for (at, message) in messages.iter().enumerate() {
        if let Some(repaired) = repair_message(message, origin, names, &mut ids) {
            changed.get_or_insert_with(|| messages.to_vec())[at] = repaired;
        }
    }
    changed.map_or(Cow::Borrowed(messages), Cow::Owned)
}

/// Repairs a conversation one message after another.
#[derive(Default)]
pub(crate) struct HistoryRepair {
    names: HashMap<String, PropertyNameMap>,
    ids: CallIdMap,
}

impl HistoryRepair {
    /// Begins a conversation with these renamed properties.
    pub(super) fn new(names: HashMap<String, PropertyNameMap>) -> Self {
        Self { names, ids: CallIdMap::default() }
    }

    /// Returns true if these tools rename the same properties.
    pub(crate) fn is_for(&self, fit: &FittedTools) -> bool {
        self.names == fit.names
    }

    /// Repairs the next message; `None` if every server accepts it unchanged.
    pub(crate) fn repair_message(
        &mut self,
        message: &ChatMessage,
        origin: &str,
    ) -> Option<ChatMessage> {
        repair_message(message, origin, &self.names, &mut self.ids)
    }
}

fn repair_message(
    message: &ChatMessage,
    origin: &str,
    names: &HashMap<String, PropertyNameMap>,
    ids: &mut CallIdMap,
) -> Option<ChatMessage> {
    match message {
        ChatMessage::Assistant(answer) => repair_answer(answer, origin, names, ids),
        ChatMessage::Tool(result) => repair_result(result, ids),
        ChatMessage::System { .. } | ChatMessage::User(_) => None,
    }
}

/// The ids of calls, and the replacements under which they are sent.
#[derive(Default)]
struct CallIdMap {
    safe: HashMap<String, String>,
    used: HashSet<String>,
}

impl CallIdMap {
    fn reserve_id(&mut self, id: &str, is_own: bool) -> Option<String> {
        let safe = if is_own || is_safe_id(id) { Cow::Borrowed(id) } else { safe_id(id) };
        let mut unique = safe.to_string();
        let mut n = 1;
        while !self.used.insert(unique.clone()) {
            n += 1;
            unique = format!("id_{n}_{}", self.used.len());
        }
        (unique != id).then(|| {
            self.safe.insert(id.to_owned(), unique.clone());
            unique
        })
    }
}

fn repair_answer(
    answer: &AssistantMessage,
    origin: &str,
    names: &HashMap<String, PropertyNameMap>,
    ids: &mut CallIdMap,
) -> Option<ChatMessage> {
    let is_own = answer.opaque.as_ref().is_some_and(|opaque| opaque.origin == origin);
    let mut calls = answer.calls.clone();
    for call in &mut calls {
        repair_call(call, names.get(&call.name));
        if let Some(id) = ids.reserve_id(&call.id, is_own) {
            call.id = id;
        }
    }
    (calls != answer.calls)
        .then(|| ChatMessage::Assistant(AssistantMessage { calls, ..answer.clone() }))
}

fn repair_call(call: &mut ModelCallRequest, names: Option<&PropertyNameMap>) {
    if let Some(repaired) = repair_arguments(&call.arguments) {
        call.arguments = repaired;
    } else if let Some(replaced) = names.and_then(|names| names.replace_arguments(&call.arguments))
    {
        call.arguments = replaced;
    }
    if let Cow::Owned(safe) = safe_name(&call.name) {
        call.name = safe;
    }
}

fn repair_result(result: &ToolResultMessage, ids: &CallIdMap) -> Option<ChatMessage> {
    let id = ids.safe.get(&result.call_id);
    let name = safe_name(&result.name);
    if id.is_none() && matches!(name, Cow::Borrowed(_)) {
        return None;
    }
    let call_id = id.unwrap_or(&result.call_id).clone();
    Some(ChatMessage::Tool(ToolResultMessage {
        call_id,
        name: name.into_owned(),
        ..result.clone()
    }))
}
