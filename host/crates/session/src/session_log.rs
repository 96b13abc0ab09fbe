//! The book of a session: its transcript, and the journal that stores the transcript's records.
//!
//! Events of a conversation normally go through [`SessionLog::write_records`]: the records go to
//! the journal first and then into the transcript, so the two cannot diverge. A plugin's message
//! that arrives while a model is answering is written immediately, on the [`JournalWriter`] alone;
//! the transcript [receives it](SessionLog::apply_notices) before the next input, and is unaffected
//! by it until then.

use std::mem;

use sallyport_contract::services::PluginNotice;

use super::{
    event::{SessionEvent, SessionNotice},
    history::PastTurn,
    journal::{Journal, JournalError, JournalRecord},
    outbox::SessionOutbox,
    results::ResultLookup,
    transcript::Transcript,
};

/// Owns the transcript.
pub(super) struct SessionLog {
    transcript: Transcript,
    journal_writer: JournalWriter,
    /// The current turn or the one that has just ended, where turns are remembered.
    turn: Option<PastTurn>,
    keeps_turns: bool,
}

/// The records on their way to the journal.
pub(super) struct JournalWriter {
    journal: Box<dyn Journal>,
    /// Records that the journal has not stored yet.
    unwritten: Vec<JournalRecord>,
    is_failing: bool,
    /// Reports failures, and the plugin messages that are safe.
    outbox: SessionOutbox,
}

impl SessionLog {
    pub(super) fn new(
        transcript: Transcript,
        journal: Box<dyn Journal>,
        keeps_turns: bool,
        outbox: SessionOutbox,
    ) -> Self {
        let unwritten = Vec::new();
        let journal_writer = JournalWriter { journal, unwritten, is_failing: false, outbox };
        Self { transcript, journal_writer, turn: None, keeps_turns }
    }

    pub(super) fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    pub(super) fn transcript_mut(&mut self) -> &mut Transcript {
        &mut self.transcript
    }

    pub(super) fn journal_mut(&mut self) -> &mut JournalWriter {
        &mut self.journal_writer
    }

    /// Returns both parts, for a caller that reads one while the other may be written to.
    pub(super) fn transcript_and_journal(&mut self) -> (&Transcript, &mut JournalWriter) {
        (&self.transcript, &mut self.journal_writer)
    }

    /// Takes the turn that has just ended.
    pub(super) fn take_ended_turn(&mut self) -> Option<PastTurn> {
        self.turn.take()
    }

    /// Applies a record that is of no use alone; it is written together with the next one.
    pub(super) fn defer_record(&mut self, record: JournalRecord) {
        self.journal_writer.unwritten.push(record.clone());
        self.transcript.apply_record(record);
    }

    /// Applies plugin messages that are already recorded to the transcript.
    pub(super) fn apply_notices(&mut self, notices: Vec<PluginNotice>) {
        for notice in notices {
            self.transcript.apply_record(JournalRecord::Noticed { notice });
        }
    }

    /// Records events, all of them or none, and returns when they are safe. If they cannot be
    /// stored, the user is notified once and the session continues.
    pub(super) async fn write_records(&mut self, records: Vec<JournalRecord>) {
        self.journal_writer.write_records(&records).await;
        for record in records {
            self.update_past_turn(&record);
            self.transcript.apply_record(record);
        }
    }

    fn update_past_turn(&mut self, record: &JournalRecord) {
        match record {
            JournalRecord::Input { message } if self.keeps_turns => {
                let number = self.transcript.turn_count() + 1;
                self.turn = Some(PastTurn::new(number, message.clone()));
            }
            record => self.turn.iter_mut().for_each(|turn| turn.apply_record(record)),
        }
    }
}

impl JournalWriter {
    /// Writes records and returns when they are safe, or when the user knows that they are not.
    pub(super) async fn write_records(&mut self, records: &[JournalRecord]) {
        if records.is_empty() {
            return;
        }
        // Nobody but its sender has a message of a plugin, and it may be the last thing for long.
        let is_urgent = |record: &JournalRecord| {
            matches!(record, JournalRecord::TurnEnded { .. } | JournalRecord::Noticed { .. })
        };
        self.unwritten.extend(records.iter().cloned());
        // A failing journal is retried once a turn, each time with everything that it missed.
        if !self.is_failing || records.iter().any(is_urgent) {
            self.flush().await;
        }
    }

    /// Tries again to write what a failing journal missed.
    pub(super) async fn retry(&mut self) {
        if self.is_failing {
            self.flush().await;
        }
    }

    /// Returns every record of the session, including those that the journal could not store.
    pub(super) async fn read_records(&mut self) -> Result<Vec<JournalRecord>, JournalError> {
        let mut records = self.journal.read_records().await?;
        records.extend(self.unwritten.iter().cloned());
        Ok(records)
    }

    /// Keeps a long result. Not repeated after a failure: the model learns that it is not kept.
    pub(super) async fn keep_result(&mut self, text: String) -> Result<u64, JournalError> {
        self.journal.keep_result(text).await
    }

    /// Looks up a kept result.
    pub(super) async fn find_result(&mut self, number: u64) -> Result<ResultLookup, JournalError> {
        self.journal.find_result(number).await
    }

    async fn flush(&mut self) {
        match self.journal.write_records(self.unwritten.clone()).await {
            Ok(()) => {
                let is_notice =
                    |record: &&JournalRecord| matches!(record, JournalRecord::Noticed { .. });
                self.outbox.count_notices(self.unwritten.iter().filter(is_notice).count());
                self.unwritten.clear();
                self.is_failing = false;
            }
            Err(error) => {
                if !mem::replace(&mut self.is_failing, true) {
                    let notice = SessionNotice::JournalFailed { error };
                    self.outbox.emit(SessionEvent::Notice(notice)).await;
                }
            }
        }
    }
}
