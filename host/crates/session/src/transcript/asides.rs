//! What plugins told the person, on its way to the model.
//!
//! It is told with the next input, as words of the plugin and not of the person. When the turn that
//! told it is taken back or forgotten, the next one tells it again: a message of a plugin is no part
//! of a turn.

use sallyport_contract::services::Notice;
use sallyport_model::chat::quoted;

/// Most messages that are told with one input, the newest: a plugin that says more has been talking
/// to itself.
const TOLD_MAX: usize = 16;

/// Longest message, in bytes, that a model is told: a person reads no more of it either.
const MESSAGE_BYTES_MAX: usize = 2 * 1024;

/// The messages of a session.
#[derive(Debug, Default)]
pub(super) struct Asides(Vec<Aside>);

#[derive(Debug)]
struct Aside {
    words: String,
    /// With which turn it was told, from 1.
    told: Option<usize>,
}

impl Asides {
    /// Takes a message in that the model does not know yet.
    pub(super) fn add(&mut self, notice: &Notice) {
        self.0.push(Aside { words: words(notice), told: None });
    }

    /// Returns what is told with a turn: all that was not told before.
    pub(super) fn tell(&mut self, turn: usize) -> Option<String> {
        let mut untold: Vec<&mut Aside> =
            self.0.iter_mut().filter(|aside| aside.told.is_none()).collect();
        untold.iter_mut().for_each(|aside| aside.told = Some(turn));
        let left_out = untold.len().saturating_sub(TOLD_MAX);
        let note = format!("[{left_out} earlier messages of plugins are left out here.]");
        let words = untold[left_out..].iter().map(|aside| aside.words.clone());
        let all: Vec<String> = (left_out > 0).then_some(note).into_iter().chain(words).collect();
        (!all.is_empty()).then(|| all.join("\n"))
    }

    /// Takes back that anything was told with a turn.
    pub(super) fn take_back(&mut self, turn: usize) {
        let told = self.0.iter_mut().filter(|aside| aside.told == Some(turn));
        told.for_each(|aside| aside.told = None);
    }
}

fn words(notice: &Notice) -> String {
    let late = if notice.late { ", later than planned" } else { "" };
    let text = &notice.text[..notice.text.floor_char_boundary(MESSAGE_BYTES_MAX)];
    let (plugin, text) = (&notice.plugin, quoted(text.trim()));
    format!("[While you were away, the plugin {plugin} told the user{late}:]\n{text}")
}
