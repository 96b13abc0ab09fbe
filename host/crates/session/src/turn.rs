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
//! 5. All other calls pass the gate, one after another; the gate may ask the user. Then the
//!    admitted ones run at the same time.
//! 6. Every call gets exactly one result, whatever happened to it, recorded the moment it ends.
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
    CallContext, Failure, FailureKind, Outcome, ToolCall, ToolId, ToolOutput,
};
use sallyport_model::{AssistantMessage, Attachment, Finish, ModelError, UserMessage};
use serde_json::Value;

use super::{
    ask::Exchange,
    budget::Budget,
    calls::{Batch, Call},
    event::{Event, InputError, Notice, State, TurnEnd, TurnUsage},
    journal::Record,
    meaning::{Asked, Meaning, asked, understand},
    naming,
    session::Session,
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
    pub(super) async fn turn(&mut self, input: UserMessage) {
        if let Err(error) = self.check_input(&input) {
            let (reason, usage) = (TurnEnd::InputRefused(error), TurnUsage::default());
            return self.front.emit(Event::TurnEnded { reason, usage }).await;
        }
        self.begin(input).await;
        let reason = self.answer().await;
        self.end(reason).await;
        self.remember_turn().await;
    }

    /// Answers the input and returns how the turn ends.
    async fn answer(&mut self) -> TurnEnd {
        if let Err(halt) = self.recall_for_turn().await {
            return halt.into();
        }
        loop {
            if let Err(end) = self.step().await {
                return end;
            }
        }
    }

    pub(super) fn check_input(&self, input: &UserMessage) -> Result<(), InputError> {
        check_words(input)?;
        check_files(&input.attachments)?;
        if is_blank(&input.text) && input.attachments.is_empty() {
            return Err(InputError::Empty);
        }
        self.check_price()
    }

    /// Checks that the price is known where the cost is limited.
    pub(super) fn check_price(&self) -> Result<(), InputError> {
        if self.ledger.limits_cost() && self.model.price().is_none() {
            return Err(InputError::PriceUnknown { model: self.model.name().to_owned() });
        }
        Ok(())
    }

    async fn begin(&mut self, input: UserMessage) {
        let (text, origin) = (input.text.clone(), input.origin.clone());
        self.lost_summary = false;
        self.front.expect_end(self.ledger.begin_turn());
        self.book.catch_up(&mut self.front);
        self.book.write(vec![Record::Input { message: input }], &self.front).await;
        let turn = self.book.transcript().turns();
        self.front.emit(Event::InputAccepted { turn, text, origin }).await;
    }

    async fn end(&mut self, reason: TurnEnd) {
        let usage = self.ledger.usage();
        let end = reason.word().to_owned();
        let said = mem::take(&mut self.unfinished);
        let mut records: Vec<Record> = self.closing(&reason, &said).into_iter().collect();
        records.push(Record::TurnEnded { end, usage });
        self.book.write(records, &self.front).await;
        self.front.expect_end(None);
        self.front.emit(Event::TurnEnded { reason, usage }).await;
    }

    /// Returns the record that lets the conversation continue with the next input.
    fn closing(&self, end: &TurnEnd, said: &str) -> Option<Record> {
        let note = match end {
            TurnEnd::ModelFailed(
                ModelError::Refused { status: 400..=499, .. }
                | ModelError::TooLong { .. }
                | ModelError::Spent { .. }
                | ModelError::Declined { .. },
            ) => {
                return Some(Record::Forgotten);
            }
            TurnEnd::ModelFailed(_) if is_blank(said) => "[stopped: no answer came]",
            TurnEnd::ModelFailed(_) => "[stopped: the answer broke off]",
            TurnEnd::BudgetReached { what } => &format!("[stopped: {what}]"),
            TurnEnd::Cancelled => "[stopped by the user]",
            TurnEnd::Answered { .. } | TurnEnd::Spoken { .. } | TurnEnd::InputRefused(_) => {
                "[no answer]"
            }
        };
        self.book.transcript().closing(said, note)
    }

    /// Requests one answer and carries out its calls. An `Err` of this function and its parts is
    /// the regular end of a turn.
    async fn step(&mut self) -> Result<(), TurnEnd> {
        self.ledger.take_turn().map_err(|what| TurnEnd::BudgetReached { what })?;
        let exchange = self.generate().await?;
        let calls = self.hear(exchange).await?;
        let mut batch = Batch::new(Arc::clone(&self.toolbox), calls);
        batch.carry_out(&mut self.book, &mut self.front).await?;
        self.speak(&batch).await
    }

    /// Records an answer and returns the calls that it requests.
    async fn hear(&mut self, exchange: Exchange) -> Result<Vec<Call>, TurnEnd> {
        let Exchange { mut reply, usage, cost } = exchange;
        let meant = understand(&reply, &self.toolset);
        naming::settle_names(&mut reply.message, self.toolset.names());
        self.book.transcript_mut().settle_ids(&mut reply.message);
        let asked = asked(&reply.message, meant);
        let message = reply.message.clone();
        self.book.write(vec![Record::Answer { message, usage, cost }], &self.front).await;
        let text = reply.message.text.clone();
        self.front.emit(Event::MessageComplete { text, usage: reply.usage }).await;
        if let Some(notice) = notice(&reply.message, &reply.finish) {
            self.front.emit(Event::Notice(notice)).await;
        }
        if asked.is_empty() {
            return Err(TurnEnd::Answered { text: reply.message.text });
        }
        self.front.enter(State::Executing).await;
        let mut calls = Vec::with_capacity(asked.len());
        for asked in asked {
            calls.push(self.take_up(asked).await);
        }
        Ok(calls)
    }

    /// Counts and announces a call, and determines how to carry it out.
    async fn take_up(&mut self, asked: Asked) -> Call {
        let Asked { call_id, name, tool, arguments, meaning } = asked;
        let event = Event::CallRequested {
            call_id: call_id.clone(),
            tool: tool.clone(),
            arguments: arguments.clone(),
        };
        self.front.emit(event).await;
        if let Err(budget) = self.ledger.take_call(&tool, &arguments) {
            return Call::ended(call_id, name, tool, over_budget(&budget));
        }
        let outcome = match meaning {
            Meaning::Call(tool) => return self.call(call_id, name, tool, arguments),
            Meaning::Search { query, limit } => self.search(&query, limit).await,
            Meaning::Nothing(outcome) => outcome,
        };
        Call::ended(call_id, name, tool, outcome)
    }

    fn call(&self, call_id: String, name: String, tool: ToolId, arguments: String) -> Call {
        let (session_id, user_id) = (self.options.session_id.clone(), self.options.user_id.clone());
        // A session is one conversation.
        let conversation_id = Some(session_id.clone());
        let context = CallContext { call_id, session_id, user_id, conversation_id };
        Call::asked(name, ToolCall { context, tool, arguments })
    }

    /// Answers a search among the tools.
    async fn search(&mut self, query: &str, limit: usize) -> Outcome {
        let data = self.toolset.search(query, limit);
        let record = Record::Found { tools: found(&data) };
        self.book.write(vec![record], &self.front).await;
        Outcome::Completed(ToolOutput { data, ..ToolOutput::default() })
    }

    /// Ends a spoken turn with the tools' own sentences, if they returned any.
    async fn speak(&mut self, batch: &Batch) -> Result<(), TurnEnd> {
        let spoken = self.options.spoken.then(|| speech(batch.outcomes())).flatten();
        match spoken {
            Some(text) => {
                self.book.write(vec![Record::Note { text: text.clone() }], &self.front).await;
                Err(TurnEnd::Spoken { text })
            }
            None => Ok(()),
        }
    }
}

fn check_words(input: &UserMessage) -> Result<(), InputError> {
    let origin = input.origin.iter().flat_map(|origin| [&origin.label, &origin.connection]);
    let words = origin.flatten().chain(&input.aside).map(String::len);
    let (bytes, bytes_max) = (words.sum::<usize>() + input.text.len(), INPUT_BYTES_MAX);
    if bytes > bytes_max { Err(InputError::TooLong { bytes, bytes_max }) } else { Ok(()) }
}

fn check_files(files: &[Attachment]) -> Result<(), InputError> {
    let (count, count_max) = (files.len(), ATTACHMENTS_MAX);
    if count > count_max {
        return Err(InputError::TooManyFiles { count, count_max });
    }
    let bytes = files.iter().map(|file| file.data.len()).sum();
    let bytes_max = ATTACHED_BYTES_MAX;
    if bytes > bytes_max { Err(InputError::FilesTooBig { bytes, bytes_max }) } else { Ok(()) }
}

/// Returns information about an answer for the user.
fn notice(message: &AssistantMessage, finish: &Finish) -> Option<Notice> {
    let is_empty = message.calls.is_empty() && is_blank(&message.text);
    match finish {
        Finish::Length => Some(Notice::AnswerCut),
        Finish::ContentFilter => Some(Notice::AnswerWithheld),
        Finish::Other(reason) => Some(Notice::AnswerEnded { reason: reason.clone(), is_empty }),
        _ if is_empty => Some(Notice::AnswerEmpty),
        _ => None,
    }
}

/// Returns the outcome of a call that is over the budget.
fn over_budget(budget: &Budget) -> Outcome {
    let failure = Failure::new(FailureKind::LimitReached, format!("not called: {budget}"));
    Outcome::Failed(failure)
}

/// The names of the tools that a search returned.
fn found(data: &Value) -> Vec<String> {
    let tools = data["tools"].as_array().into_iter().flatten();
    tools.filter_map(|tool| tool["name"].as_str()).map(str::to_owned).collect()
}

/// Returns the text to speak if every call completed and at least one returned a sentence.
fn speech<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> Option<String> {
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
