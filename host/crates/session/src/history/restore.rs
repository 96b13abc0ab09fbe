//! Restores from records a conversation that can continue.

use crate::{budget::ModelSpending, journal::JournalRecord, transcript::Transcript};

/// The earlier conversation. The default is an empty session.
#[derive(Debug, Default)]
pub struct RestoredSession {
    pub(crate) transcript: Transcript,
    pub(crate) spent: ModelSpending,
    /// The model's instructions.
    pub system_prompt: Option<String>,
    /// Facts that it knows from the start.
    pub memories: Vec<String>,
    /// What it was told about the user's accounts.
    pub(crate) accounts: Option<String>,
    /// The facts are recalled where they are relevant to an input.
    pub(crate) by_meaning: bool,
    /// The name of the model that answered last.
    pub model: Option<String>,
    /// The turn that was in progress when the records end.
    pub interrupted: Option<InterruptedTurn>,
    /// The number of records that could not be read and were skipped.
    pub skipped: usize,
}

/// A turn that did not end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterruptedTurn {
    /// The text of its input.
    pub input: String,
    /// The names of the calls whose end was not recorded. They may or may not have had their
    /// effect.
    pub calls: Vec<String>,
}

/// Restores a conversation that can continue: every call has exactly one result, and every input an
/// answer or a note instead. It accepts any records in any order.
pub fn restore_session(records: Vec<JournalRecord>) -> RestoredSession {
    let mut restored = RestoredSession::default();
    records.into_iter().for_each(|record| restored.apply_record(record));
    restored.interrupted = interrupted_turn(&restored.transcript);
    restored.transcript.close_turn();
    restored
}

impl RestoredSession {
    /// The number of turns, without undone ones.
    pub fn turn_count(&self) -> usize {
        self.transcript.turn_count()
    }

    /// The usage of the session so far.
    pub fn spending(&self) -> ModelSpending {
        self.spent
    }

    fn apply_record(&mut self, mut record: JournalRecord) {
        if let Some((usage, cost)) = record.exchange_usage() {
            self.spent.add_usage(&usage, cost);
        }
        match &mut record {
            JournalRecord::Began { system_prompt, memories, accounts, by_meaning, .. } => {
                self.system_prompt.clone_from(system_prompt);
                self.memories.clone_from(memories);
                self.accounts.clone_from(accounts);
                self.by_meaning = *by_meaning;
            }
            JournalRecord::Model { name } => self.model = Some(name.clone()),
            JournalRecord::Answer { message, .. } => self.transcript.assign_unique_ids(message),
            JournalRecord::Unknown => self.skipped += 1,
            _ => {}
        }
        self.transcript.apply_record(record);
    }
}

fn interrupted_turn(transcript: &Transcript) -> Option<InterruptedTurn> {
    let calls = transcript.open_calls();
    let input = transcript.last_input()?.text.clone();
    (transcript.is_unanswered() || !calls.is_empty()).then_some(InterruptedTurn { input, calls })
}
