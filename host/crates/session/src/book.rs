//! The book of a session: its transcript, and the journal that keeps what the transcript is made of.
//!
//! There is one way to let something happen in a conversation, [`Book::write`]: the records go to
//! the journal first and then into the transcript, so the two cannot part.

use std::mem;

use super::{
    event::{Event, Notice},
    front::Front,
    journal::{Journal, Record},
    transcript::Transcript,
};

/// Owns the transcript.
pub(super) struct Book {
    transcript: Transcript,
    journal: Box<dyn Journal>,
    /// What the journal has not taken yet.
    unwritten: Vec<Record>,
    is_failing: bool,
}

impl Book {
    pub(super) fn new(transcript: Transcript, journal: Box<dyn Journal>) -> Self {
        Self { transcript, journal, unwritten: Vec::new(), is_failing: false }
    }

    pub(super) fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    pub(super) fn transcript_mut(&mut self) -> &mut Transcript {
        &mut self.transcript
    }

    /// Lets something happen that is of no use alone; it is written in front of what comes next.
    pub(super) fn prepare(&mut self, record: Record) {
        self.unwritten.push(record.clone());
        self.transcript.apply(record);
    }

    /// Lets things happen, all of them or none, and returns when they are safe. If they cannot be,
    /// the person is told once and the session goes on.
    pub(super) async fn write(&mut self, records: Vec<Record>, front: &Front) {
        if records.is_empty() {
            return;
        }
        let ends_turn = records.iter().any(|record| matches!(record, Record::TurnEnded { .. }));
        self.unwritten.extend(records.iter().cloned());
        // A journal that fails is tried again once a turn: each time it is given all that it missed.
        if !self.is_failing || ends_turn {
            self.flush(front).await;
        }
        records.into_iter().for_each(|record| self.transcript.apply(record));
    }

    async fn flush(&mut self, front: &Front) {
        match self.journal.write(self.unwritten.clone()).await {
            Ok(()) => {
                self.unwritten.clear();
                self.is_failing = false;
            }
            Err(error) => {
                if !mem::replace(&mut self.is_failing, true) {
                    front.emit(Event::Notice(Notice::JournalFailed(error))).await;
                }
            }
        }
    }
}
