//! Views of conversations, from outside.
//!
//! A conversation is written as one word per message, see [`talk`].

mod meters;
mod property;
mod summaries;
mod windows;

use std::collections::BTreeSet;

use sallyport_model::{AssistantMessage, CallRequest, Message, ToolResult};

use super::{ConversationSummary, ConversationView, MemoryMode, TokenMeter, build_view};
use crate::transcript;

/// Tokens of a message of [`talk`]: forty of text, four around it.
const MESSAGE: u64 = 44;

/// One message of forty tokens per word: `s`ystem, `u`ser, `a`ssistant; `a12` calls 1 and 2, `r1`
/// answers 1. A suffix after a dash distinguishes equal words.
fn talk(words: &str) -> Vec<Message> {
    words.split_whitespace().map(|word| message(word, 160)).collect()
}

/// A message whose text begins with the word and has this many bytes.
fn message(word: &str, bytes: usize) -> Message {
    let text = format!("{word}{}", ".".repeat(bytes.saturating_sub(word.len())));
    let ids = || word[1..].chars().take_while(char::is_ascii_alphanumeric).map(String::from);
    let call = |id| CallRequest { id, name: String::new(), arguments: String::new() };
    match &word[..1] {
        "s" => Message::System { text },
        "u" => Message::user(text),
        "a" => {
            let calls = ids().map(call).collect();
            Message::Assistant(AssistantMessage { text, calls, opaque: None })
        }
        _ => Message::Tool(ToolResult {
            call_id: ids().collect(),
            name: String::new(),
            content: text,
            failed: false,
        }),
    }
}

/// The word that a message was made of; a message not made by [`talk`] is shown verbatim.
fn word(message: &Message) -> String {
    let text = match message {
        Message::System { text } => text,
        Message::User(said) => &said.text,
        Message::Assistant(answer) => &answer.text,
        Message::Tool(result) => &result.content,
    };
    let word = match message {
        Message::Tool(result) => format!("r{}", result.call_id),
        _ => text.split(['.', '\n']).next().unwrap_or_default().to_owned(),
    };
    let is_noted = matches!(message, Message::User(said) if said.aside.is_some());
    let marked = is_noted || text.contains("\"cut\"");
    word + if marked { "*" } else { "" }
}

fn words(messages: &[Message]) -> String {
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
    transcript: &'a [Message],
    pinned: &[usize],
    summary: Option<&ConversationSummary>,
) -> ConversationView<'a> {
    let pinned: BTreeSet<usize> = pinned.iter().copied().collect();
    let view = build_view(&memory, transcript, &pinned, summary, &[], &TokenMeter::new());
    assert_eq!(transcript::check_messages(&view.messages), Ok(()), "{}", words(&view.messages));
    view
}
