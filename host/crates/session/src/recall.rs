//! Memory by meaning: earlier turns come back when they are relevant to the current input.
//!
//! Once per input a session requests the nearest memories and shows them to the model for the whole
//! turn, in front of the newest part of the conversation and within a budget of their own. A
//! finished turn is passed on to be remembered. Recalled memories are a record, so a restored
//! session, and a reader of the records, see what the model saw.
//!
//! Recall must never hold the user up: if no answer arrives in time, the turn continues without it.
//! The user is notified once, and the next few inputs send no query.

use std::{collections::HashSet, mem, time::Duration};

use sallyport_model::ChatMessage;

use super::{
    client_port::Interrupt,
    event::{SessionEvent, SessionNotice},
    journal::JournalRecord,
    memory::{MemoryMode, RecalledMemory},
    recall_backlog::RecallJob,
    session::Session,
    session_memory::{RecallQuery, SessionMemory, with_time_limit},
};

/// Longest wait for recalled memories: the user is waiting for an answer.
const RECALL_TIME_MAX: Duration = Duration::from_secs(3);

/// Longest wait for pending errands when the session ends: the user may have closed a window.
const CLOSING_TIME_MAX: Duration = Duration::from_secs(3);

/// Turns without a query after one that was not answered, and turns after which no errand runs. It
/// is a count and not a time because a replayed session must behave the same.
const REST_TURNS: u32 = 4;

/// Longest query, in bytes: embedding models read no more of a text.
const QUERY_BYTES_MAX: usize = 8 * 1024;

/// Longest text of one memory that is shown, in bytes: a few paragraphs.
const MEMORY_BYTES_MAX: usize = 4 * 1024;

/// Most memories that are considered for one input: more would not be recall but reading
/// everything.
const FOUND_MAX: usize = 64;

/// The reason shown when no recall is set up.
const NO_RECALL_MESSAGE: &str = "nothing is set up that finds them";

impl Session {
    /// Recalls memories that are relevant to the input of the current turn.
    ///
    /// # Errors
    ///
    /// The turn was halted in the meantime.
    pub(super) async fn recall_for_turn(&mut self) -> Result<(), Interrupt> {
        let MemoryMode::ByMeaning { recalled_tokens_max, .. } = self.options.memory else {
            return Ok(());
        };
        let Some(recall) = self.recall.clone() else {
            self.report_recall_failure(NO_RECALL_MESSAGE.to_owned()).await;
            return Ok(());
        };
        let shown_turns = self.log.transcript().visible_turns(self.options.memory, &self.meter);
        let found = match count_down_rest(&mut self.recall_backlog.recall_rest_turns) {
            true => known_memories(&self.memories),
            false => self.query_memories(&*recall, &shown_turns, recalled_tokens_max).await?,
        };
        let memories = self.select_memories(found, &shown_turns, recalled_tokens_max);
        if !memories.is_empty() {
            self.log.write_records(vec![JournalRecord::Recalled { memories }]).await;
        }
        Ok(())
    }

    async fn query_memories(
        &mut self,
        recall: &dyn SessionMemory,
        shown_turns: &[usize],
        tokens_max: u64,
    ) -> Result<Vec<RecalledMemory>, Interrupt> {
        let input = self.log.transcript().last_input();
        let query = input.map(|input| input.text.clone()).unwrap_or_default();
        let query = &query[..query.floor_char_boundary(QUERY_BYTES_MAX)];
        let recall_query =
            RecallQuery { query, tokens_max, memories: &self.memories, visible_turns: shown_turns };
        let operation = with_time_limit(RECALL_TIME_MAX, recall.find_memories(recall_query));
        match self.client.run_until_interrupted(self.log.journal_mut(), operation).await? {
            Ok(found) => Ok(found),
            Err(error) => {
                self.recall_backlog.recall_rest_turns = REST_TURNS;
                self.report_recall_failure(error.message).await;
                Ok(known_memories(&self.memories))
            }
        }
    }

    /// Selects the memories to show: the nearest that fit, without duplicates and without turns
    /// that the model sees anyway or that were undone.
    fn select_memories(
        &self,
        found: Vec<RecalledMemory>,
        shown_turns: &[usize],
        tokens_max: u64,
    ) -> Vec<RecalledMemory> {
        let (mut ids, mut remaining_tokens) = (HashSet::new(), tokens_max);
        let turns = self.log.transcript().turn_count();
        let is_unavailable =
            |turn: usize| !(1..=turns).contains(&turn) || shown_turns.contains(&turn);
        let mut selected = Vec::new();
        for mut found_memory in found.into_iter().take(FOUND_MAX) {
            found_memory.text.truncate(found_memory.text.floor_char_boundary(MEMORY_BYTES_MAX));
            found_memory.similarity =
                if found_memory.similarity.is_finite() { found_memory.similarity } else { 0.0 };
            let tokens =
                self.meter.estimate_tokens(&[ChatMessage::user(found_memory.text.as_str())]);
            let is_excluded = found_memory
                .turn
                .is_some_and(|turn| is_unavailable(turn) || self.recall_backlog.will_forget(turn));
            if is_excluded
                || found_memory.text.trim().is_empty()
                || tokens > remaining_tokens
                || !ids.insert(found_memory.id.clone())
            {
                continue;
            }
            remaining_tokens -= tokens;
            selected.push(found_memory);
        }
        selected
    }

    /// Passes a finished turn on to be remembered.
    pub(super) async fn remember_turn(&mut self) {
        if let Some(turn) = self.log.take_ended_turn() {
            // Another of the same number may have been remembered and then undone.
            let is_memorable = !turn.is_forgotten && turn.memory_text().is_some();
            let forget = RecallJob::Forget(turn.number);
            let job = if is_memorable { RecallJob::Remember(Box::new(turn)) } else { forget };
            self.recall_backlog.queue_job(job);
        }
        if !count_down_rest(&mut self.recall_backlog.job_rest_turns) {
            self.run_recall_jobs().await;
        }
    }

    /// Has an undone turn forgotten.
    pub(super) async fn forget_turn(&mut self, turn: usize) {
        if self.recall.is_some() {
            self.recall_backlog.queue_job(RecallJob::Forget(turn));
            if self.recall_backlog.job_rest_turns == 0 {
                self.run_recall_jobs().await;
            }
        }
    }

    /// Runs the pending errands in order; after a failure or a halt, the rest waits.
    async fn run_recall_jobs(&mut self) {
        let Some(recall) = self.recall.clone() else { return };
        while let Some(job) = self.recall_backlog.jobs.front() {
            let done =
                self.client.run_until_interrupted(self.log.journal_mut(), job.run(&*recall)).await;
            match done {
                Ok(Ok(())) => drop(self.recall_backlog.jobs.pop_front()),
                Ok(Err(error)) => {
                    self.recall_backlog.job_rest_turns = REST_TURNS;
                    return self.report_recall_failure(error.message).await;
                }
                Err(_) => return,
            }
        }
    }

    /// Runs the pending errands when the session ends and no user is connected.
    pub(super) async fn finish_recall_jobs(&mut self) {
        let Some(recall) = self.recall.clone() else { return };
        let job_runs = async {
            for job in self.recall_backlog.jobs.drain(..) {
                job.run(&*recall).await?;
            }
            Ok(())
        };
        // A failure cannot be reported any more.
        let _ = with_time_limit(CLOSING_TIME_MAX, job_runs).await;
    }

    async fn report_recall_failure(&mut self, why: String) {
        if !mem::replace(&mut self.recall_backlog.has_reported_failure, true) {
            self.client.emit(SessionEvent::Notice(SessionNotice::RecallFailed { why })).await;
        }
    }
}

/// Returns the memories to show where nothing can be searched: the facts from the start. The caller
/// cuts them to the budget.
fn known_memories(memories: &[String]) -> Vec<RecalledMemory> {
    let known = memories.iter().enumerate().map(|(index, text)| RecalledMemory {
        id: format!("known-{}", index + 1),
        text: text.clone(),
        similarity: 0.0,
        turn: None,
    });
    known.collect()
}

/// Counts down one of the resting turns. Returns whether it was one.
fn count_down_rest(rest_turns: &mut u32) -> bool {
    let is_resting = *rest_turns > 0;
    *rest_turns = rest_turns.saturating_sub(1);
    is_resting
}
