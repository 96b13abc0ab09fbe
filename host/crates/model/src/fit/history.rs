//! Repairs the calls of a conversation, so that every server accepts them back.
//!
//! A server parses the calls that it receives, including those of its own model, and refuses the
//! whole request if it cannot read one. A broken call is therefore repaired before it is sent: the
//! model still sees its own text, but wrapped in readable JSON.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use super::names::PropertyNames;
use crate::{
    chat::{AssistantMessage, CallRequest, Message, ToolResult},
    wire::conversation::{is_safe_id, mended_arguments, safe_id, safe_name},
};

/// Returns a conversation with its calls repaired. Ids that `origin` gave itself stay unless they
/// repeat.
pub(super) fn mended<'a>(
    messages: &'a [Message],
    origin: &str,
    names: &HashMap<String, PropertyNames>,
) -> Cow<'a, [Message]> {
    let mut changed: Option<Vec<Message>> = None;
    let mut ids = Ids::default();
    for (at, message) in messages.iter().enumerate() {
        let mended = match message {
            Message::Assistant(said) => answer(said, origin, names, &mut ids),
            Message::Tool(result) => self::result(result, &ids),
            Message::System { .. } | Message::User(_) => None,
        };
        if let Some(mended) = mended {
            changed.get_or_insert_with(|| messages.to_vec())[at] = mended;
        }
    }
    changed.map_or(Cow::Borrowed(messages), Cow::Owned)
}

/// The ids of calls, and the replacements under which they are sent.
#[derive(Default)]
struct Ids {
    safe: HashMap<String, String>,
    used: HashSet<String>,
}

impl Ids {
    fn take(&mut self, id: &str, is_own: bool) -> Option<String> {
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

fn answer(
    said: &AssistantMessage,
    origin: &str,
    names: &HashMap<String, PropertyNames>,
    ids: &mut Ids,
) -> Option<Message> {
    let is_own = said.opaque.as_ref().is_some_and(|opaque| opaque.origin == origin);
    let mut calls = said.calls.clone();
    for call in &mut calls {
        mend(call, names.get(&call.name));
        if let Some(id) = ids.take(&call.id, is_own) {
            call.id = id;
        }
    }
    (calls != said.calls).then(|| Message::Assistant(AssistantMessage { calls, ..said.clone() }))
}

fn mend(call: &mut CallRequest, names: Option<&PropertyNames>) {
    if let Some(mended) = mended_arguments(&call.arguments) {
        call.arguments = mended;
    } else if let Some(replaced) = names.and_then(|names| names.replaced(&call.arguments)) {
        call.arguments = replaced;
    }
    if let Cow::Owned(safe) = safe_name(&call.name) {
        call.name = safe;
    }
}

fn result(result: &ToolResult, ids: &Ids) -> Option<Message> {
    let id = ids.safe.get(&result.call_id);
    let name = safe_name(&result.name);
    if id.is_none() && matches!(name, Cow::Borrowed(_)) {
        return None;
    }
    let call_id = id.unwrap_or(&result.call_id).clone();
    Some(Message::Tool(ToolResult { call_id, name: name.into_owned(), ..result.clone() }))
}
