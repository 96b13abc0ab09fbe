//! The book of a session: its transcript, and the journal that keeps what the transcript is made of.
//!
//! There is one way to let something happen in a conversation, [`Book::write`]: the records go to
//! the journal first and then into the transcript, so the two cannot part. What a plugin says while
//! a model is answering is written at once all the same, on the [`Pages`] alone; it changes nothing
//! in the transcript before the next input, and is [there](Book::catch_up) by then.

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
    /// The turn that goes on or has just ended, where turns are remembered.
    turn: Option<PastTurn>,
    keeps_turns: bool,
}

/// What is on its way to the journal.
pub(super) struct Pages {
    journal: Box<dyn Journal>,
    /// What the journal has not taken yet.
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

    /// Both sides at once, for whoever reads the one while the other may be written to.
    pub(super) fn open(&mut self) -> (&Transcript, &mut Pages) {
        (&self.transcript, &mut self.pages)
    }

    /// The turn that has just ended, once.
    pub(super) fn take_turn(&mut self) -> Option<PastTurn> {
        self.turn.take()
    }

    /// Lets something happen that is of no use alone; it is written in front of what comes next.
    pub(super) fn prepare(&mut self, record: Record) {
        self.pages.unwritten.push(record.clone());
        self.transcript.apply(record);
    }

    /// Lets what the front has written down already happen in the transcript too.
    pub(super) fn catch_up(&mut self, front: &mut Front) {
        for notice in front.take_noticed() {
            self.transcript.apply(Record::Noticed { notice });
        }
    }

    /// Lets things happen, all of them or none, and returns when they are safe. If they cannot be,
    /// the person is told once and the session goes on.
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
    /// Writes records down and returns when they are safe, or when the person knows that they are
    /// not.
    pub(super) async fn write(&mut self, records: &[Record], front: &Front) {
        if records.is_empty() {
            return;
        }
        let ends_turn = records.iter().any(|record| matches!(record, Record::TurnEnded { .. }));
        self.unwritten.extend(records.iter().cloned());
        // A journal that fails is tried again once a turn: each time it is given all that it missed.
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
