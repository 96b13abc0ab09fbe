//! Call ids: the provider's if they are usable, else new ones.

use std::collections::HashSet;

use crate::chat::ChatMessage;

/// Returns one id for each call of an answer, unique in the conversation. A provider's id is kept
/// if possible; an empty one counts as missing.
pub(crate) fn unique_ids(given: &[Option<&str>], conversation: &[ChatMessage]) -> Vec<String> {
    let taken: HashSet<&str> = call_ids(conversation).collect();
    let given_ids: HashSet<&str> = given.iter().copied().flatten().collect();
    let mut made_up = (1_u64..)
        .map(|n| format!("call_{n}"))
        .filter(|id| !taken.contains(id.as_str()) && !given_ids.contains(id.as_str()));
    let mut used = HashSet::new();
    let mut unique = Vec::with_capacity(given.len());
    for id in given {
        let own = id.filter(|id| !id.is_empty() && !taken.contains(id) && used.insert(*id));
        unique.push(own.map(str::to_owned).or_else(|| made_up.next()).unwrap_or_default());
    }
    unique
}

/// Returns every call id in a conversation.
fn call_ids(conversation: &[ChatMessage]) -> impl Iterator<Item = &str> {
    let answer = conversation.iter().filter_map(|message| match message {
        ChatMessage::Assistant(answer) => Some(&answer.calls),
        _ => None,
    });
    answer.flatten().map(|call| call.id.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{AssistantMessage, ModelCallRequest};

    fn conversation(taken: &[&str]) -> [ChatMessage; 1] {
        let call = |id: &&str| ModelCallRequest {
            id: (*id).to_owned(),
            name: String::new(),
            arguments: String::new(),
        };
        let calls = taken.iter().map(call).collect();
        [ChatMessage::Assistant(AssistantMessage { calls, ..AssistantMessage::default() })]
    }

    #[test]
    fn ids_are_unique_in_the_conversation() {
        type Row<'a> = (&'a [Option<&'a str>], &'a [&'a str], &'a [&'a str]);
        let rows: [Row<'_>; 6] = [
            (&[Some("a"), Some("b")], &[], &["a", "b"]),
            (&[Some("a"), Some("a")], &[], &["a", "call_1"]),
            (&[Some(""), None], &[], &["call_1", "call_2"]),
            (&[Some(""), Some("call_1")], &["call_2"], &["call_3", "call_1"]),
            (&[Some("a")], &["a"], &["call_1"]),
            (&[], &["a"], &[]),
        ];
        for (given, taken, want) in rows {
            assert_eq!(unique_ids(given, &conversation(taken)), want);
        }
    }
}
