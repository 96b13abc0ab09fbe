//! The loop: one input, up to the end of its turn.
//!
//! 1. The input is recorded. An empty or far too long one is refused. With memory by meaning,
//!    relevant earlier turns are recalled.
//! 2. The model receives the memory's view of the transcript and the tools; its text is forwarded
//!    as it arrives. Without an answer the turn ends.
//! 3. The answer is recorded, with safe and unique names and ids for its calls. Without calls the
//!    turn ends with its text.
//! 4. Each call is counted and its tool looked up. A call that is over the budget or names an
//!    unknown tool is refused here, with an error that the model can read; a search among the tools
//!    is answered.
//! 5. A query about a kept result is answered. All other calls pass the gate, one after another;
//!    the gate may ask the user. Then the admitted ones run at the same time.
//! 6. Every call gets exactly one result, whatever happened to it, recorded the moment it ends. A
//!    long one is kept whole, and the transcript gets an excerpt.
//! 7. In a spoken session in which every call completed, a tool's own sentence ends the turn.
//! 8. If a budget was reached, the turn ends; otherwise it continues at step 2.
//!
//! The user can cancel, and the turn's time can run out, while step 1 recalls and at every wait of
//! steps 2 and 5: the request or the calls are dropped and the turn ends, after step 6 if there
//! were calls.
//!
//! However a turn ends, the next input finds a transcript that a provider accepts. If the turn
//! ended without a final answer, completed work stays and a note replaces the answer; if nothing
//! was done, the input is forgotten. If the provider refused the conversation itself (such as with
//! status 4xx), the whole turn is forgotten, because the provider would refuse it again with every
//! later input. A forgotten input can still be retried. The text of an answer that was stopped or
//! broke off is kept, because the user has read it and may refer to it.

use std::{mem, sync::Arc};

use sallyport_contract::{
    CallFailure, FailureKind, Outcome, RequestedCall, ToolCallContext, ToolId, ToolOutput,
    TraceParent,
};
use sallyport_model::{
    AssistantMessage, FileAttachment, FinishReason, ModelError, UserInputMessage,
};
use serde_json::Value;
use tracing::{Span, field};

use super::{
    budget::{BudgetLimit, TurnUsage},
    call_meaning::{CallMeaning, InterpretedCall, combine_calls, interpret_calls},
    calls::{BatchCall, CallBatch},
    event::{InputError, SessionActivity, SessionEvent, SessionNotice, TurnEnd},
    journal::JournalRecord,
    model_exchange::ModelExchange,
    session::Session,
    tool_names,
};

/// Longest text of an input, including its origin, in bytes: more than any model reads in one
/// request, little enough to store and to send.
const INPUT_BYTES_MAX: usize = 1024 * 1024;

/// Most bytes of all files attached to an input: the limit of the most generous provider for one
/// request.
const ATTACHED_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Most files attached to an input: more than a user picks by hand.
const ATTACHMENTS_MAX: usize = 64;

/// Longest spoken text, in bytes, that may replace an answer: some minutes of speech. If the tools
/// return more, the model summarizes it instead.
const SPEECH_BYTES_MAX: usize = 4 * 1024;

impl Session {
    /// Runs one turn, from the input to its end.
    #[tracing::instrument(
        name = "turn",
        skip_all,
        fields(
            session = self.options.session_id,
            traceparent = caller.map(field::display),
            end = field::Empty,
            error = field::Empty,
        )
    )]
    pub(super) async fn turn(&mut self, input: UserInputMessage, caller: Option<TraceParent>) {
        if let Err(error) = self.check_input(&input) {
            let (reason, usage) = (TurnEnd::InputRefused(error), TurnUsage::default());
            return self.client.emit(SessionEvent::TurnEnded { reason, usage }).await;
        }
        self.refresh_tools();
        self.begin_turn(input).await;
        let reason = self.answer_input().await;
        Span::current().record("end", reason.as_str());
        if matches!(reason, TurnEnd::ModelFailed(_)) {
            Span::current().record("error", reason.as_str());
        }
        self.end_turn(reason).await;
        self.remember_turn().await;
    }

    /// Answers the input and returns how the turn ends.
    async fn answer_input(&mut self) -> TurnEnd {
        if let Err(interrupt) = self.recall_for_turn().await {
            return interrupt.into();
        }
        loop {
            if let Err(end) = self.run_step().await {
                return end;
            }
        }
    }

    pub(super) fn check_input(&self, input: &UserInputMessage) -> Result<(), InputError> {
        check_text_length(input)?;
        check_files(&input.attachments)?;
        if is_blank(&input.text) && input.attachments.is_empty() {
            return Err(InputError::Empty);
        }
        self.check_price()
    }

    /// Checks that the price is known where the cost is limited.
    pub(super) fn check_price(&self) -> Result<(), InputError> {
        if self.usage_tracker.has_cost_limit() && self.model.price().is_none() {
            return Err(InputError::PriceUnknown { model: self.model.name().to_owned() });
        }
        Ok(())
    }

    async fn begin_turn(&mut self, input: UserInputMessage) {
        let (text, origin) = (input.text.clone(), input.origin.clone());
        self.summary_failed = false;
        self.client.set_deadline(self.usage_tracker.begin_turn());
        self.log.apply_notices(self.client.take_notices());
        self.log.write_records(vec![JournalRecord::Input { message: input }]).await;
        let turn = self.log.transcript().turn_count();
        self.client.emit(SessionEvent::InputAccepted { turn, text, origin }).await;
    }

    async fn end_turn(&mut self, reason: TurnEnd) {
        let usage = self.usage_tracker.turn_usage();
        let end = reason.as_str().to_owned();
        let partial_text = mem::take(&mut self.partial_reply);
        let mut records: Vec<JournalRecord> =
            self.closing_record(&reason, &partial_text).into_iter().collect();
        records.push(JournalRecord::TurnEnded { end, usage });
        self.log.write_records(records).await;
        self.client.set_deadline(None);
        self.client.emit(SessionEvent::TurnEnded { reason, usage }).await;
    }

    /// Returns the record that lets the conversation continue with the next input.
    fn closing_record(&self, end: &TurnEnd, partial_text: &str) -> Option<JournalRecord> {
        let note = match end {
            TurnEnd::ModelFailed(
                ModelError::Refused { status: 400..=499, .. }
                | ModelError::TooLong { .. }
                | ModelError::Spent { .. }
                | ModelError::Declined { .. },
            ) => {
                return Some(JournalRecord::Forgotten);
            }
            TurnEnd::ModelFailed(_) if is_blank(partial_text) => "[stopped: no answer came]",
            TurnEnd::ModelFailed(_) => "[stopped: the answer broke off]",
            TurnEnd::BudgetReached { limit: what } => &format!("[stopped: {what}]"),
            TurnEnd::Cancelled => "[stopped by the user]",
            TurnEnd::Answered { .. } | TurnEnd::Spoken { .. } | TurnEnd::InputRefused(_) => {
                "[no answer]"
            }
        };
        self.log.transcript().closing_record(partial_text, note)
    }

    /// Requests one answer and carries out its calls. An `Err` of this function and its parts is
    /// the regular end of a turn.
    async fn run_step(&mut self) -> Result<(), TurnEnd> {
        self.usage_tracker
            .charge_answer()
            .map_err(|what| TurnEnd::BudgetReached { limit: what })?;
        self.account.check(&*self.model).await?;
        self.offer_kept_results();
        let exchange = self.request_answer().await?;
        let calls = self.accept_answer(exchange).await?;
        let toolbox = Arc::clone(&self.toolbox);
        let mut batch = CallBatch::new(toolbox, self.options.result_bytes_max, calls);
        batch.run_calls(&mut self.log, &mut self.client).await?;
        let speech = self.options.spoken.then(|| combined_speech(batch.outcomes())).flatten();
        self.end_if_spoken(speech).await
    }

    /// Records an answer and returns the calls that it requests.
    async fn accept_answer(&mut self, exchange: ModelExchange) -> Result<Vec<BatchCall>, TurnEnd> {
        let ModelExchange { mut reply, usage, cost } = exchange;
        let interpretations = interpret_calls(&reply, &self.toolset);
        tool_names::normalize_names(&mut reply.message, self.toolset.name_table());
        self.log.transcript_mut().assign_unique_ids(&mut reply.message);
        let interpreted = combine_calls(&reply.message, interpretations);
        let message = reply.message.clone();
        self.log.write_records(vec![JournalRecord::Answer { message, usage, cost }]).await;
        let text = reply.message.text.clone();
        self.client.emit(SessionEvent::MessageComplete { text, usage: reply.usage }).await;
        if let Some(notice) = answer_notice(&reply.message, &reply.finish) {
            self.client.emit(SessionEvent::Notice(notice)).await;
        }
        if interpreted.is_empty() {
            return Err(TurnEnd::Answered { text: reply.message.text });
        }
        self.client.set_activity(SessionActivity::Executing).await;
        let mut calls = Vec::with_capacity(interpreted.len());
        for interpreted in interpreted {
            calls.push(self.prepare_call(interpreted).await);
        }
        Ok(calls)
    }

    /// Counts and announces a call, and determines how to carry it out.
    async fn prepare_call(&mut self, interpreted: InterpretedCall) -> BatchCall {
        let InterpretedCall { call_id, name, tool, arguments, meaning } = interpreted;
        let event = SessionEvent::CallRequested {
            call_id: call_id.clone(),
            tool: tool.clone(),
            arguments: arguments.clone(),
        };
        self.client.emit(event).await;
        if let Err(budget) = self.usage_tracker.charge_call(&tool, &arguments) {
            return BatchCall::new_ended(call_id, name, tool, over_budget_outcome(&budget));
        }
        let outcome = match meaning {
            CallMeaning::Call(tool) => return self.new_call(call_id, name, tool, arguments),
            CallMeaning::Search { query, limit } => self.search_tools(&query, limit).await,
            CallMeaning::ReadResult(query) => {
                return BatchCall::new_query(call_id, name, tool, query);
            }
            CallMeaning::Rejected(outcome) => outcome,
        };
        BatchCall::new_ended(call_id, name, tool, outcome)
    }

    fn new_call(
        &self,
        call_id: String,
        name: String,
        tool: ToolId,
        arguments: String,
    ) -> BatchCall {
        let (session_id, user_id) = (self.options.session_id.clone(), self.options.user_id.clone());
        // A session is one conversation.
        let conversation_id = Some(session_id.clone());
        let context = ToolCallContext { call_id, session_id, user_id, conversation_id };
        BatchCall::new(name, RequestedCall { context, tool, arguments })
    }

    /// Answers a search among the tools.
    async fn search_tools(&mut self, query: &str, limit: usize) -> Outcome {
        let data = self.toolset.search_tools(query, limit);
        let record = JournalRecord::Found { tools: found_tool_names(&data) };
        self.log.write_records(vec![record]).await;
        Outcome::Completed(ToolOutput { data, ..ToolOutput::default() })
    }

    /// Ends a spoken turn with the tools' own sentences, if there are any.
    async fn end_if_spoken(&mut self, speech: Option<String>) -> Result<(), TurnEnd> {
        match speech {
            Some(text) => {
                self.log.write_records(vec![JournalRecord::Note { text: text.clone() }]).await;
                Err(TurnEnd::Spoken { text })
            }
            None => Ok(()),
        }
    }
}

fn check_text_length(input: &UserInputMessage) -> Result<(), InputError> {
    let origin = input.origin.iter().flat_map(|origin| [&origin.label, &origin.connection]);
    let origin_lengths = origin.flatten().chain(&input.aside).map(String::len);
    let (bytes, bytes_max) = (origin_lengths.sum::<usize>() + input.text.len(), INPUT_BYTES_MAX);
    if bytes > bytes_max { Err(InputError::TooLong { bytes, bytes_max }) } else { Ok(()) }
}

fn check_files(files: &[FileAttachment]) -> Result<(), InputError> {
    let (count, count_max) = (files.len(), ATTACHMENTS_MAX);
    if count > count_max {
        return Err(InputError::TooManyFiles { count, count_max });
    }
    let bytes = files.iter().map(|file| file.data.len()).sum();
    let bytes_max = ATTACHED_BYTES_MAX;
    if bytes > bytes_max { Err(InputError::FilesTooBig { bytes, bytes_max }) } else { Ok(()) }
}

/// Returns information about an answer for the user.
fn answer_notice(message: &AssistantMessage, finish: &FinishReason) -> Option<SessionNotice> {
    let is_empty = message.calls.is_empty() && is_blank(&message.text);
    match finish {
        FinishReason::Length => Some(SessionNotice::AnswerCut),
        FinishReason::ContentFilter => Some(SessionNotice::AnswerWithheld),
        FinishReason::Other(reason) => {
            Some(SessionNotice::AnswerEnded { reason: reason.clone(), is_empty })
        }
        _ if is_empty => Some(SessionNotice::AnswerEmpty),
        _ => None,
    }
}

/// Returns the outcome of a call that is over the budget.
fn over_budget_outcome(budget: &BudgetLimit) -> Outcome {
    let failure = CallFailure::new(FailureKind::LimitReached, format!("not called: {budget}"));
    Outcome::Failed(failure)
}

/// The names of the tools that a search returned.
fn found_tool_names(data: &Value) -> Vec<String> {
    let tools = data["tools"].as_array().into_iter().flatten();
    tools.filter_map(|tool| tool["name"].as_str()).map(str::to_owned).collect()
}

/// Returns the text to speak if every call completed and at least one returned a sentence.
fn combined_speech<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> Option<String> {
    let mut sentences = Vec::new();
    for outcome in outcomes {
        let Outcome::Completed(output) = outcome else { return None };
        sentences.extend(output.speech.as_deref().filter(|sentence| !is_blank(sentence)));
    }
    let text = sentences.join(" ");
    (!text.is_empty() && text.len() <= SPEECH_BYTES_MAX).then_some(text)
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}
