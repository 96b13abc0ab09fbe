//! The memory of a session: what a session asks of it, and what it answers.
//!
//! A session neither makes nor stores vectors; it queries through [`SessionMemory`].

use std::time::Duration;

use sallyport_contract::BoxFuture;
use tokio::time::timeout;

use super::{history::PastTurn, memory::RecalledMemory};

/// A query to a memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecallQuery<'a> {
    /// The text of the current input; blank when it consists of files only.
    pub query: &'a str,
    /// Most tokens, by estimate, of all recalled texts.
    pub tokens_max: u64,
    /// The facts that the model was given at the start. They can be recalled as well.
    pub memories: &'a [String],
    /// Turns of this session that the model sees anyway, in order.
    pub visible_turns: &'a [usize],
}

/// Why nothing was recalled or remembered, in human-readable form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RecallError {
    /// What went wrong.
    pub message: String,
}

/// Remembers the turns of one session, and finds them by meaning.
pub trait SessionMemory: Send + Sync {
    /// Finds the memories nearest in meaning, the nearest first.
    ///
    /// # Errors
    ///
    /// The memory cannot be searched now.
    fn find_memories<'a>(
        &'a self,
        recall_query: RecallQuery<'a>,
    ) -> BoxFuture<'a, Result<Vec<RecalledMemory>, RecallError>>;

    /// Remembers a turn that has ended, replacing any other of the same number.
    /// [`PastTurn::memory_text`] is the text to index.
    ///
    /// # Errors
    ///
    /// The turn is not remembered.
    fn remember_turn<'a>(&'a self, turn: &'a PastTurn) -> BoxFuture<'a, Result<(), RecallError>>;

    /// Forgets a turn that was undone; an unknown one is not an error.
    ///
    /// # Errors
    ///
    /// The turn is not forgotten.
    fn forget_turn(&self, turn: usize) -> BoxFuture<'_, Result<(), RecallError>>;
}

/// Waits for an answer of the memory, up to a time limit.
pub(super) async fn with_time_limit<T>(
    time_max: Duration,
    operation: impl Future<Output = Result<T, RecallError>>,
) -> Result<T, RecallError> {
    timeout(time_max, operation).await.unwrap_or_else(|_| {
        Err(RecallError { message: format!("no answer came within {time_max:?}") })
    })
}
