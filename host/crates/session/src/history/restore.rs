//! Restores from records a conversation that can continue.

use crate::{budget::Spent, journal::Record, transcript::Transcript};

/// The earlier conversation. The default is an empty session.
#[derive(Debug, Default)]
pub struct Restored {
    pub(crate) transcript: Transcript,
    pub(crate) spent: Spent,
    /// The model's instructions.
    pub system_prompt: Option<String>,
    /// Facts that it knows from the start.
    pub memories: Vec<String>,
    /// The facts are recalled where they are relevant to an input.
    pub(crate) by_meaning: bool,
    /// The name of the model that answered last.
    pub model: Option<String>,
    /// The turn that was in progress when the records end.
    pub interrupted: Option<Interrupted>,
    /// The number of records that could not be read and were skipped.
    pub skipped: usize,
}

/// A turn that did not end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interrupted {
    /// The text of its input.
    pub input: String,
    /// The names of the calls whose end was not recorded. They may or may not have had their
    /// effect.
    pub calls: Vec<String>,
}

/// Restores a conversation that can continue: every call has exactly one result, and every input an
/// answer or a note instead. It accepts any records in any order.
pub fn restore(records: Vec<Record>) -> Restored {
    let mut restored = Restored::default();
    records.into_iter().for_each(|record| restored.take(record));
    restored.interrupted = interrupted(&restored.transcript);
    restored.transcript.close();
    restored
}

impl Restored {
    /// The number of turns, without undone ones.
    pub fn turns(&self) -> usize {
        self.transcript.turns()
    }

    /// The usage of the session so far.
    pub fn spent(&self) -> Spent {
        self.spent
    }

    fn take(&mut self, mut record: Record) {
        if let Some((usage, cost)) = record.spent() {
            self.spent.add(&usage, cost);
        }
        match &mut record {
            Record::Began { system_prompt, memories, by_meaning, .. } => {
                self.system_prompt.clone_from(system_prompt);
                self.memories.clone_from(memories);
                self.by_meaning = *by_meaning;
            }
            Record::Model { name } => self.model = Some(name.clone()),
            Record::Answer { message, .. } => self.transcript.settle_ids(message),
            Record::Unknown => self.skipped += 1,
            _ => {}
        }
        self.transcript.apply(record);
    }
}

fn interrupted(transcript: &Transcript) -> Option<Interrupted> {
    let calls = transcript.open_calls();
    let input = transcript.last_input()?.text.clone();
    (transcript.is_unanswered() || !calls.is_empty()).then_some(Interrupted { input, calls })
}
