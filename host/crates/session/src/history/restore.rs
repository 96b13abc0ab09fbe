//! From records to a conversation that can go on.

use crate::{budget::Spent, journal::Record, transcript::Transcript};

/// What was said before. The default is a session in which nothing was.
#[derive(Debug, Default)]
pub struct Restored {
    pub(crate) transcript: Transcript,
    pub(crate) spent: Spent,
    /// What the model was told to be and do.
    pub system_prompt: Option<String>,
    /// What it was told to know from the start.
    pub memories: Vec<String>,
    /// What it was told to know is recalled where it bears on an input.
    pub(crate) by_meaning: bool,
    /// The name of the model that answered last.
    pub model: Option<String>,
    /// What was going on when the records end.
    pub interrupted: Option<Interrupted>,
    /// Records that could not be read and were left out.
    pub skipped: usize,
}

/// A turn that did not come to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interrupted {
    /// The words of its input.
    pub input: String,
    /// The names of the calls of which nobody saw the end. They may or may not have had their
    /// effect.
    pub calls: Vec<String>,
}

/// Makes a conversation of records that can go on: every call has its one result, and every input
/// its answer or a note in its place. It takes any records in any order.
pub fn restore(records: Vec<Record>) -> Restored {
    let mut restored = Restored::default();
    records.into_iter().for_each(|record| restored.take(record));
    restored.interrupted = interrupted(&restored.transcript);
    restored.transcript.close();
    restored
}

impl Restored {
    /// How many turns there are, those not counted that the person took back.
    pub fn turns(&self) -> usize {
        self.transcript.turns()
    }

    /// What the session has used so far.
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
