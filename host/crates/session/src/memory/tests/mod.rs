//! Views of conversations, from outside.
//!
//! A conversation is written as one word per message, see [`talk`].

mod meters;
mod property;
mod summaries;
mod windows;

use std::collections::BTreeSet;

use sallyport_model::{AssistantMessage, ChatMessage, ModelCallRequest, ToolResultMessage};

use super::{ConversationSummary, ConversationView, MemoryMode, TokenMeter, build_view};
use crate::transcript;

/// Tokens of a message of [`talk`]: forty of text, four around it.
const MESSAGE: u64 = 44;

/// One message of forty tokens per word: `s`ystem, `u`ser, `a`ssistant; `a12` calls 1 and 2, `r1`
/// answers 1. A suffix after a dash distinguishes equal words.
fn talk(words: &str) -> Vec<ChatMessage> {
    words.split_whitespace().map(|word| message(word, 160)).collect()
}

/// A message whose text begins with the word and has this many bytes.
fn message(word: &str, bytes: usize) -> ChatMessage {
    let text = format!("{word}{}", ".".repeat(bytes.saturating_sub(word.len())));
    let ids = || word[1..].chars().take_while(char::is_ascii_alphanumeric).map(String::from);
    let call = |id| ModelCallRequest { id, name: String::new(), arguments: String::new() };
    match &word[..1] {
        "s" => ChatMessage::System { text },
        "u" => ChatMessage::user(text),
        "a" => {
            let calls = ids().map(call).collect();
            ChatMessage::Assistant(AssistantMessage { text, calls, opaque: None })
        }
        _ => ChatMessage::Tool(ToolResultMessage {
            call_id: ids().collect(),
            name: String::new(),
            content: text,
            failed: false,
        }),
    }
}

/// The word that a message was made of; a message not made by [`talk`] is shown verbatim.
fn word(message: &ChatMessage) -> String {
    let text = match message {
        ChatMessage::System { text } => text,
        ChatMessage::User(said) => &said.text,
        ChatMessage::Assistant(answer) => &answer.text,
        ChatMessage::Tool(result) => &result.content,
    };
    let word = match message {
        ChatMessage::Tool(result) => format!("r{}", result.call_id),
        _ => text.split(['.', '\n']).next().unwrap_or_default().to_owned(),
    };
    let is_noted = matches!(message, ChatMessage::User(said) if said.aside.is_some());
    let marked = is_noted || text.contains("\"cut\"");
    word + if marked { "*" } else { "" }
}

fn words(messages: &[ChatMessage]) -> String {
    messages.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn window(messages: u64) -> MemoryMode {
    MemoryMode::SlidingWindow { tokens_max: messages * MESSAGE }
}

fn summed_up(messages: u64) -> MemoryMode {
    MemoryMode::Summary { tokens_max: messages * MESSAGE }
}

/// The number of messages that a view leaves out.
fn dropped(view: &ConversationView<'_>) -> usize {
    view.left_out.iter().map(|range| range.len()).sum()
}

fn shown<'a>(
    memory: MemoryMode,
    transcript: &'a [ChatMessage],
    pinned: &[usize],
    summary: Option<&ConversationSummary>,
) -> ConversationView<'a> {
    let pinned: BTreeSet<usize> = pinned.iter().copied().collect();
    let view = build_view(&memory, transcript, &pinned, summary, &[], &TokenMeter::new());
    assert_eq!(transcript::check_messages(&view.messages), Ok(()), "{}", words(&view.messages));
    view
}
