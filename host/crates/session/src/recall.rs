//! Memory by meaning: what was said long ago comes back when it bears on what is said now.
//!
//! A session neither makes vectors nor keeps them; it asks through [`Recall`]. Once for each input
//! it asks what is near to it, and shows the model what it hears for the whole turn, in front of the
//! newest part of the conversation and within a budget of its own. A turn that has ended is handed
//! over to be remembered. What was recalled is a record, so a session that is restored, and a reader
//! of the records, see what the model saw.
//!
//! None of it may hold a person up: whoever does not answer in time is done without. The person is
//! told once, and the next few inputs ask nobody.

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

/// Longest wait for what is recalled: a person waits for their answer meanwhile.
const RECALL_TIME_MAX: Duration = Duration::from_secs(3);

/// Longest wait for a turn to be remembered or forgotten. The answer is there already, so it may be
/// longer; the next input waits for it.
const REMEMBER_TIME_MAX: Duration = Duration::from_secs(10);

/// Longest wait for all that is still owed when the session ends: somebody may have closed a window.
const CLOSING_TIME_MAX: Duration = Duration::from_secs(3);

/// Turns that ask nobody after one that was not answered, and after which nothing is remembered.
/// Counted, not timed, so that a session that is played again does the same.
const RESTING_TURNS: u32 = 4;

/// Longest query, in bytes: the models that make vectors read no more of a text.
const QUERY_BYTES_MAX: usize = 8 * 1024;

/// Longest text, in bytes, that is shown of one memory: a few paragraphs.
const MEMORY_BYTES_MAX: usize = 4 * 1024;

/// Most memories that are looked at for one input: more than that is not recalling but reading
/// everything.
const FOUND_MAX: usize = 64;

/// Turns to be remembered or forgotten that may wait for a memory that does not answer. Beyond that
/// the oldest are let go; the journal still has them.
const ERRANDS_MAX: usize = 64;

/// Why nothing is recalled where nothing was set up.
const NOBODY_RECALLS: &str = "nothing is set up that finds them";

/// What is wanted of a memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wanted<'a> {
    /// What was said now; blank when only files came.
    pub query: &'a str,
    /// Most tokens, by estimate, of all that is recalled.
    pub tokens_max: u64,
    /// What the model was given to know from the start. It is among what can be recalled.
    pub memories: &'a [String],
    /// Turns of this session that the model sees anyway, in their order.
    pub shown: &'a [usize],
}

/// Something that was recalled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recalled {
    /// Names it where it is kept.
    pub id: String,
    /// What was said or known then.
    pub text: String,
    /// How near it is to what was said now, from -1 to 1.
    pub similarity: f32,
    /// Which turn of this session it is, from 1; none for what is from elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<usize>,
}

/// Why nothing was recalled or remembered, in words for the person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RecallError {
    /// What went wrong.
    pub message: String,
}

/// Remembers what was said in one session, and finds it by what it means.
pub trait Recall: Send + Sync {
    /// Finds what is nearest in meaning, the nearest first.
    ///
    /// # Errors
    ///
    /// Nothing can be found now.
    fn recall<'a>(
        &'a self,
        wanted: Wanted<'a>,
    ) -> BoxFuture<'a, Result<Vec<Recalled>, RecallError>>;

    /// Remembers a turn that has ended, in place of another of the same number.
    /// [`PastTurn::memory`] is the text to be found by.
    ///
    /// # Errors
    ///
    /// It is not remembered.
    fn remember<'a>(&'a self, turn: &'a PastTurn) -> BoxFuture<'a, Result<(), RecallError>>;

    /// Forgets a turn that was taken back; one that is not known is no error.
    ///
    /// # Errors
    ///
    /// It is not forgotten.
    fn forget(&self, turn: usize) -> BoxFuture<'_, Result<(), RecallError>>;
}

/// What a session still owes its memory, and how that has answered so far.
#[derive(Debug, Default)]
pub(super) struct Attention {
    /// Inputs that are still answered without asking.
    resting: u32,
    /// Turns after which nothing is still to be done that is owed.
    errands_resting: u32,
    /// In the order in which they came up.
    errands: VecDeque<Errand>,
    /// The person knows that something is missing.
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
    /// Recalls what bears on the input of the present turn.
    ///
    /// # Errors
    ///
    /// The turn was called off meanwhile.
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

    /// Takes of what was found what is to be shown: the nearest that fits, nothing twice and nothing
    /// that the model sees anyway or that was taken back.
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

    /// Hands a turn over that has ended.
    pub(super) async fn remember_turn(&mut self) {
        if let Some(turn) = self.book.take_turn() {
            // Another of the same number may have been remembered, and taken back.
            let is_worth_it = !turn.is_forgotten && turn.memory().is_some();
            let forget = Errand::Forget(turn.number);
            let errand = if is_worth_it { Errand::Remember(Box::new(turn)) } else { forget };
            self.attention.owe(errand);
        }
        if !rests(&mut self.attention.errands_resting) {
            self.run_errands().await;
        }
    }

    /// Has a turn forgotten that was taken back.
    pub(super) async fn forget_turn(&mut self, turn: usize) {
        if self.recall.is_some() {
            self.attention.owe(Errand::Forget(turn));
            if self.attention.errands_resting == 0 {
                self.run_errands().await;
            }
        }
    }

    /// Does what is owed, in order; where that fails or is called off, the rest waits.
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

    /// Does what is still owed when the session ends. Nobody listens any more.
    pub(super) async fn settle_errands(&mut self) {
        let Some(recall) = self.recall.clone() else { return };
        let errands = async {
            for errand in self.attention.errands.drain(..) {
                errand.run(&*recall).await?;
            }
            Ok(())
        };
        // Where it fails, nobody is left to be told.
        let _ = within(CLOSING_TIME_MAX, errands).await;
    }

    async fn do_without_recall(&mut self, why: String) {
        if !mem::replace(&mut self.attention.has_told, true) {
            self.front.emit(Event::Notice(Notice::RecallFailed { why })).await;
        }
    }
}

/// What the model is shown where nothing can be found: as much of what it should know from the
/// start as fits.
fn known(memories: &[String]) -> Vec<Recalled> {
    let known = memories.iter().enumerate().map(|(index, text)| Recalled {
        id: format!("known-{}", index + 1),
        text: text.clone(),
        similarity: 0.0,
        turn: None,
    });
    known.collect()
}

/// Counts down one of the turns that rest. Returns whether it was one.
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
