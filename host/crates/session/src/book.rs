//! The book of a session: its transcript, and the journal that stores the transcript's records.
//!
//! Events of a conversation normally go through [`Book::write`]: the records go to the journal
//! first and then into the transcript, so the two cannot diverge. A plugin's message that arrives
//! while a model is answering is written immediately, on the [`Pages`] alone; the transcript
//! [receives it](Book::catch_up) before the next input, and is unaffected by it until then.

use std::mem;

use super::{
    event::{Event, Notice},
    front::Front,
    history::PastTurn,
    journal::{Journal, Record},
    transcript::Transcript,
};

/// Owns the transcript.
pub(super) struct Book {
    transcript: Transcript,
    pages: Pages,
    /// The current turn or the one that has just ended, where turns are remembered.
    turn: Option<PastTurn>,
    keeps_turns: bool,
}

/// The records on their way to the journal.
pub(super) struct Pages {
    journal: Box<dyn Journal>,
    /// Records that the journal has not stored yet.
    unwritten: Vec<Record>,
    is_failing: bool,
}

impl Book {
    pub(super) fn new(
        transcript: Transcript,
        journal: Box<dyn Journal>,
        keeps_turns: bool,
    ) -> Self {
        let pages = Pages { journal, unwritten: Vec::new(), is_failing: false };
        Self { transcript, pages, turn: None, keeps_turns }
    }

    pub(super) fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    pub(super) fn transcript_mut(&mut self) -> &mut Transcript {
        &mut self.transcript
    }

    pub(super) fn pages_mut(&mut self) -> &mut Pages {
        &mut self.pages
    }

    /// Returns both parts, for a caller that reads one while the other may be written to.
    pub(super) fn open(&mut self) -> (&Transcript, &mut Pages) {
        (&self.transcript, &mut self.pages)
    }

    /// Takes the turn that has just ended.
    pub(super) fn take_turn(&mut self) -> Option<PastTurn> {
        self.turn.take()
    }

    /// Applies a record that is of no use alone; it is written together with the next one.
    pub(super) fn prepare(&mut self, record: Record) {
        self.pages.unwritten.push(record.clone());
        self.transcript.apply(record);
    }

    /// Applies the plugin messages that the front has already recorded to the transcript.
    pub(super) fn catch_up(&mut self, front: &mut Front) {
        for notice in front.take_noticed() {
            self.transcript.apply(Record::Noticed { notice });
        }
    }

    /// Records events, all of them or none, and returns when they are safe. If they cannot be
    /// stored, the user is notified once and the session continues.
    pub(super) async fn write(&mut self, records: Vec<Record>, front: &Front) {
        self.pages.write(&records, front).await;
        for record in records {
            self.follow(&record);
            self.transcript.apply(record);
        }
    }

    fn follow(&mut self, record: &Record) {
        match record {
            Record::Input { message } if self.keeps_turns => {
                let number = self.transcript.turns() + 1;
                self.turn = Some(PastTurn::new(number, message.clone()));
            }
            record => self.turn.iter_mut().for_each(|turn| turn.take(record)),
        }
    }
}

impl Pages {
    /// Writes records and returns when they are safe, or when the user knows that they are not.
    pub(super) async fn write(&mut self, records: &[Record], front: &Front) {
        if records.is_empty() {
            return;
        }
        let ends_turn = records.iter().any(|record| matches!(record, Record::TurnEnded { .. }));
        self.unwritten.extend(records.iter().cloned());
        // A failing journal is retried once a turn, each time with everything that it missed.
        if !self.is_failing || ends_turn {
            self.flush(front).await;
        }
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
