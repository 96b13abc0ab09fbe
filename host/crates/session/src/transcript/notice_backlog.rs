//! Plugin messages to the user, on their way to the model.
//!
//! They reach the model with the next input, as the plugin's words and not the user's. If that turn
//! is undone or forgotten, the next one carries them again: a plugin's message does not belong to a
//! turn.

use sallyport_contract::services::PluginNotice;
use sallyport_model::chat::quote_text;

/// Most messages, the newest, that go with one input: a plugin that sends more is sending noise.
const NOTICES_MAX: usize = 16;

/// Longest message for the model, in bytes: the user reads no more of it either.
const MESSAGE_BYTES_MAX: usize = 2 * 1024;

/// The messages of a session.
#[derive(Debug, Default)]
pub(super) struct NoticeBacklog(Vec<NoticeMessage>);

#[derive(Debug)]
struct NoticeMessage {
    text: String,
    /// The turn that carried it, from 1.
    delivered_in_turn: Option<usize>,
}

impl NoticeBacklog {
    /// Adds a message that the model does not know yet.
    pub(super) fn add_notice(&mut self, notice: &PluginNotice) {
        self.0.push(NoticeMessage { text: notice_text(notice), delivered_in_turn: None });
    }

    /// Returns the text for a turn: all messages that no turn has carried yet.
    pub(super) fn take_for_turn(&mut self, turn: usize) -> Option<String> {
        let mut undelivered: Vec<&mut NoticeMessage> =
            self.0.iter_mut().filter(|message| message.delivered_in_turn.is_none()).collect();
        undelivered.iter_mut().for_each(|message| message.delivered_in_turn = Some(turn));
        let left_out = undelivered.len().saturating_sub(NOTICES_MAX);
        let note = format!("[{left_out} earlier messages of plugins are left out here.]");
        let texts = undelivered[left_out..].iter().map(|message| message.text.clone());
        let all: Vec<String> = (left_out > 0).then_some(note).into_iter().chain(texts).collect();
        (!all.is_empty()).then(|| all.join("\n"))
    }

    /// Marks the messages of a turn as not delivered.
    pub(super) fn mark_undelivered(&mut self, turn: usize) {
        let delivered = self.0.iter_mut().filter(|message| message.delivered_in_turn == Some(turn));
        delivered.for_each(|message| message.delivered_in_turn = None);
    }
}

fn notice_text(notice: &PluginNotice) -> String {
    let late = if notice.late { ", later than planned" } else { "" };
    let text = &notice.text[..notice.text.floor_char_boundary(MESSAGE_BYTES_MAX)];
    let (plugin, text) = (&notice.plugin, quote_text(text.trim()));
    format!("[While you were away, the plugin {plugin} told the user{late}:]\n{text}")
}
