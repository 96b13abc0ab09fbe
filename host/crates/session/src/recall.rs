//! Memory by meaning: earlier turns come back when they are relevant to the current input.
//!
//! A session neither makes nor stores vectors; it queries through [`Recall`]. Once per input it
//! requests the nearest memories and shows them to the model for the whole turn, in front of the
//! newest part of the conversation and within a budget of their own. A finished turn is passed on
//! to be remembered. Recalled memories are a record, so a restored session, and a reader of the
//! records, see what the model saw.
//!
//! Recall must never hold the user up: if no answer arrives in time, the turn continues without it.
//! The user is notified once, and the next few inputs send no query.

use std::{
    collections::{HashSet, VecDeque},
    mem,
    time::Duration,
};

use sallyport_contract::BoxFuture;
use sallyport_model::Message;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::{
    event::{Event, Notice},
    front::Halt,
    history::PastTurn,
    journal::Record,
    memory::Memory,
    session::Session,
};

/// Longest wait for recalled memories: the user is waiting for an answer.
const RECALL_TIME_MAX: Duration = Duration::from_secs(3);

/// Longest wait for a turn to be remembered or forgotten. It may be longer because the user already
/// has the answer; only the next input waits for it.
const REMEMBER_TIME_MAX: Duration = Duration::from_secs(10);

/// Longest wait for pending errands when the session ends: the user may have closed a window.
const CLOSING_TIME_MAX: Duration = Duration::from_secs(3);

/// Turns without a query after one that was not answered, and turns after which no errand runs. It
/// is a count and not a time because a replayed session must behave the same.
const RESTING_TURNS: u32 = 4;

/// Longest query, in bytes: embedding models read no more of a text.
const QUERY_BYTES_MAX: usize = 8 * 1024;

/// Longest text of one memory that is shown, in bytes: a few paragraphs.
const MEMORY_BYTES_MAX: usize = 4 * 1024;

/// Most memories that are considered for one input: more would not be recall but reading
/// everything.
const FOUND_MAX: usize = 64;

/// Turns to be remembered or forgotten that may wait while the memory does not answer. Beyond that
/// the oldest are discarded; the journal still contains them.
const ERRANDS_MAX: usize = 64;

/// The reason shown when no recall is set up.
const NOBODY_RECALLS: &str = "nothing is set up that finds them";

/// A query to a memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wanted<'a> {
    /// The text of the current input; blank when it consists of files only.
    pub query: &'a str,
    /// Most tokens, by estimate, of all recalled texts.
    pub tokens_max: u64,
    /// The facts that the model was given at the start. They can be recalled as well.
    pub memories: &'a [String],
    /// Turns of this session that the model sees anyway, in order.
    pub shown: &'a [usize],
}

/// A recalled memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recalled {
    /// Its identifier in the store.
    pub id: String,
    /// Its text.
    pub text: String,
    /// Its similarity to the query, from -1 to 1.
    pub similarity: f32,
    /// Its turn in this session, from 1; `None` for a memory from elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<usize>,
}

/// Why nothing was recalled or remembered, in human-readable form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RecallError {
    /// What went wrong.
    pub message: String,
}

/// Remembers the turns of one session, and finds them by meaning.
pub trait Recall: Send + Sync {
    /// Finds the memories nearest in meaning, the nearest first.
    ///
    /// # Errors
    ///
    /// The memory cannot be searched now.
    fn recall<'a>(
        &'a self,
        wanted: Wanted<'a>,
    ) -> BoxFuture<'a, Result<Vec<Recalled>, RecallError>>;

    /// Remembers a turn that has ended, replacing any other of the same number.
    /// [`PastTurn::memory`] is the text to index.
    ///
    /// # Errors
    ///
    /// The turn is not remembered.
    fn remember<'a>(&'a self, turn: &'a PastTurn) -> BoxFuture<'a, Result<(), RecallError>>;

    /// Forgets a turn that was undone; an unknown one is not an error.
    ///
    /// # Errors
    ///
    /// The turn is not forgotten.
    fn forget(&self, turn: usize) -> BoxFuture<'_, Result<(), RecallError>>;
}

/// The pending work of a session's memory, and its recent failures.
#[derive(Debug, Default)]
pub(super) struct Attention {
    /// Inputs that still skip the query.
    resting: u32,
    /// Turns after which the pending errands still wait.
    errands_resting: u32,
    /// In the order in which they arose.
    errands: VecDeque<Errand>,
    /// The user knows that something is missing.
    has_told: bool,
}

#[derive(Debug)]
enum Errand {
    Remember(Box<PastTurn>),
    Forget(usize),
}

impl Attention {
    fn owe(&mut self, errand: Errand) {
        if self.errands.len() == ERRANDS_MAX {
            self.errands.pop_front();
        }
        self.errands.push_back(errand);
    }

    /// Whether a turn is still to be forgotten.
    fn forgets(&self, turn: usize) -> bool {
        self.errands.iter().any(|errand| matches!(errand, Errand::Forget(gone) if *gone == turn))
    }
}

impl Errand {
    async fn run(&self, recall: &dyn Recall) -> Result<(), RecallError> {
        let work = match self {
            Self::Remember(turn) => recall.remember(turn),
            Self::Forget(turn) => recall.forget(*turn),
        };
        within(REMEMBER_TIME_MAX, work).await
    }
}

impl Session {
    /// Recalls memories that are relevant to the input of the current turn.
    ///
    /// # Errors
    ///
    /// The turn was halted in the meantime.
    pub(super) async fn recall_for_turn(&mut self) -> Result<(), Halt> {
        let Memory::ByMeaning { recalled_tokens_max, .. } = self.options.memory else {
            return Ok(());
        };
        let Some(recall) = self.recall.clone() else {
            self.do_without_recall(NOBODY_RECALLS.to_owned()).await;
            return Ok(());
        };
        let shown = self.book.transcript().shown_turns(self.options.memory, &self.meter);
        let found = match rests(&mut self.attention.resting) {
            true => known(&self.memories),
            false => self.ask_recall(&*recall, &shown, recalled_tokens_max).await?,
        };
        let memories = self.fitting(found, &shown, recalled_tokens_max);
        if !memories.is_empty() {
            self.book.write(vec![Record::Recalled { memories }], &self.front).await;
        }
        Ok(())
    }

    async fn ask_recall(
        &mut self,
        recall: &dyn Recall,
        shown: &[usize],
        tokens_max: u64,
    ) -> Result<Vec<Recalled>, Halt> {
        let input = self.book.transcript().last_input();
        let query = input.map(|input| input.text.clone()).unwrap_or_default();
        let query = &query[..query.floor_char_boundary(QUERY_BYTES_MAX)];
        let wanted = Wanted { query, tokens_max, memories: &self.memories, shown };
        let work = within(RECALL_TIME_MAX, recall.recall(wanted));
        match self.front.attend(self.book.pages_mut(), work).await? {
            Ok(found) => Ok(found),
            Err(error) => {
                self.attention.resting = RESTING_TURNS;
                self.do_without_recall(error.message).await;
                Ok(known(&self.memories))
            }
        }
    }

    /// Selects the memories to show: the nearest that fit, without duplicates and without turns
    /// that the model sees anyway or that were undone.
    fn fitting(&self, found: Vec<Recalled>, shown: &[usize], tokens_max: u64) -> Vec<Recalled> {
        let (mut ids, mut left) = (HashSet::new(), tokens_max);
        let turns = self.book.transcript().turns();
        let is_gone = |turn: usize| !(1..=turns).contains(&turn) || shown.contains(&turn);
        let mut fitting = Vec::new();
        for mut one in found.into_iter().take(FOUND_MAX) {
            one.text.truncate(one.text.floor_char_boundary(MEMORY_BYTES_MAX));
            one.similarity = if one.similarity.is_finite() { one.similarity } else { 0.0 };
            let tokens = self.meter.tokens(&[Message::user(one.text.as_str())]);
            let is_out = one.turn.is_some_and(|turn| is_gone(turn) || self.attention.forgets(turn));
            if is_out || one.text.trim().is_empty() || tokens > left || !ids.insert(one.id.clone())
            {
                continue;
            }
            left -= tokens;
            fitting.push(one);
        }
        fitting
    }

    /// Passes a finished turn on to be remembered.
    pub(super) async fn remember_turn(&mut self) {
        if let Some(turn) = self.book.take_turn() {
            // Another of the same number may have been remembered and then undone.
            let is_worth_it = !turn.is_forgotten && turn.memory().is_some();
            let forget = Errand::Forget(turn.number);
            let errand = if is_worth_it { Errand::Remember(Box::new(turn)) } else { forget };
            self.attention.owe(errand);
        }
        if !rests(&mut self.attention.errands_resting) {
            self.run_errands().await;
        }
    }

    /// Has an undone turn forgotten.
    pub(super) async fn forget_turn(&mut self, turn: usize) {
        if self.recall.is_some() {
            self.attention.owe(Errand::Forget(turn));
            if self.attention.errands_resting == 0 {
                self.run_errands().await;
            }
        }
    }

    /// Runs the pending errands in order; after a failure or a halt, the rest waits.
    async fn run_errands(&mut self) {
        let Some(recall) = self.recall.clone() else { return };
        while let Some(errand) = self.attention.errands.front() {
            let done = self.front.attend(self.book.pages_mut(), errand.run(&*recall)).await;
            match done {
                Ok(Ok(())) => drop(self.attention.errands.pop_front()),
                Ok(Err(error)) => {
                    self.attention.errands_resting = RESTING_TURNS;
                    return self.do_without_recall(error.message).await;
                }
                Err(_) => return,
            }
        }
    }

    /// Runs the pending errands when the session ends and no user is connected.
    pub(super) async fn settle_errands(&mut self) {
        let Some(recall) = self.recall.clone() else { return };
        let errands = async {
            for errand in self.attention.errands.drain(..) {
                errand.run(&*recall).await?;
            }
            Ok(())
        };
        // A failure cannot be reported any more.
        let _ = within(CLOSING_TIME_MAX, errands).await;
    }

    async fn do_without_recall(&mut self, why: String) {
        if !mem::replace(&mut self.attention.has_told, true) {
            self.front.emit(Event::Notice(Notice::RecallFailed { why })).await;
        }
    }
}

/// Returns the memories to show where nothing can be searched: the facts from the start. The caller
/// cuts them to the budget.
fn known(memories: &[String]) -> Vec<Recalled> {
    let known = memories.iter().enumerate().map(|(index, text)| Recalled {
        id: format!("known-{}", index + 1),
        text: text.clone(),
        similarity: 0.0,
        turn: None,
    });
    known.collect()
}

/// Counts down one of the resting turns. Returns whether it was one.
fn rests(resting: &mut u32) -> bool {
    let rests = *resting > 0;
    *resting = resting.saturating_sub(1);
    rests
}

async fn within<T>(
    time_max: Duration,
    work: impl Future<Output = Result<T, RecallError>>,
) -> Result<T, RecallError> {
    timeout(time_max, work).await.unwrap_or_else(|_| {
        Err(RecallError { message: format!("no answer came within {time_max:?}") })
    })
}
