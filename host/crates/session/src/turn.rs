//! The loop: one input of the person, up to the last word on it.
//!
//! 1. The input is appended to the transcript. One that is empty or far too long is refused.
//! 2. The model is asked with the whole transcript and the list of tools; its words are passed on
//!    while they arrive. No answer ends the turn.
//! 3. The answer is appended, with names and ids of its calls made safe and unique. Without calls
//!    the turn ends with its text.
//! 4. Each call is counted and its tool looked up. One that is over the budget or has no such tool
//!    is refused here, in words that the model can read.
//! 5. All other calls pass the gate, one after another; the person is asked where the gate says so.
//!    Then those that were admitted run at the same time.
//! 6. Every call gets its one result, in the order of the calls, whatever happened to it.
//! 7. In a spoken session in which every call completed, a tool's own sentence ends the turn.
//! 8. A budget that was reached ends the turn; else it goes on at step 2.
//!
//! The person can cancel at every wait of steps 2 and 5: the request or the calls are dropped and
//! the turn ends, after step 6 if there were calls.
//!
//! However a turn ends, the next input finds a transcript that a provider accepts. If the model did
//! not have the last word, what was done stays and a note stands in the model's place; if nothing
//! was done, the input is taken back. If the provider refused the conversation itself (status
//! 4xx), the whole turn is taken back, since it would be refused again with every later input.

use std::sync::Arc;

use sallyport_contract::{
    CallContext, Failure, FailureKind, NameTable, Outcome, ToolCall, Toolbox, mangle::Collision,
};
use sallyport_model::{
    AssistantMessage, CallRequest, ChatModel, Finish, ModelError, Reply, Request, ToolDefinition,
};
use tokio::sync::mpsc;

use super::{
    Options,
    budget::{Budget, Ledger},
    calls::{Batch, Call},
    event::{Event, InputError, Notice, State, TurnEnd},
    front::Front,
    naming::{self, ToolRef},
    transcript::{self, Transcript},
};

/// Longest input, in bytes: more than any model reads at once, little enough to keep and to send.
const INPUT_BYTES_MAX: usize = 1024 * 1024;

/// Longest text, in bytes, that tools may have said in place of an answer: some minutes of
/// speaking. If they give more, the model sums it up instead.
const SPEECH_BYTES_MAX: usize = 4 * 1024;

/// A conversation and everyone who takes part in it. Owned by one task.
pub(super) struct Session {
    model: Arc<dyn ChatModel>,
    toolbox: Arc<dyn Toolbox>,
    names: NameTable,
    definitions: Vec<ToolDefinition>,
    options: Options,
    transcript: Transcript,
    front: Front,
}

impl Session {
    pub(super) fn new(
        model: Arc<dyn ChatModel>,
        toolbox: Arc<dyn Toolbox>,
        options: Options,
        front: Front,
    ) -> Result<Self, Collision> {
        let names = NameTable::new(toolbox.tools().iter().map(|tool| &tool.id))?;
        let definitions = toolbox.tools().iter().map(ToolDefinition::from).collect();
        let transcript = Transcript::new(options.system_prompt.clone());
        Ok(Self { model, toolbox, names, definitions, options, transcript, front })
    }

    /// Takes inputs until there are no more.
    pub(super) async fn run(mut self) {
        while let Some(text) = self.front.next_input().await {
            let reason = self.turn(text).await;
            self.front.emit(Event::TurnEnded { reason }).await;
        }
    }

    async fn turn(&mut self, text: String) -> TurnEnd {
        if let Err(error) = check_input(&text) {
            return TurnEnd::InputRefused(error);
        }
        self.transcript.ask(text);
        let mut ledger = Ledger::new(self.options.limits);
        loop {
            if let Err(end) = self.step(&mut ledger).await {
                self.leave_valid(&end);
                return end;
            }
        }
    }

    /// Asks the model once and does what it wants done. The `Err` of this and of what it is made of
    /// is the regular end of a turn.
    async fn step(&mut self, ledger: &mut Ledger) -> Result<(), TurnEnd> {
        ledger.take_turn().map_err(|what| TurnEnd::BudgetReached { what })?;
        let reply = self.generate().await?;
        let calls = self.hear(reply, ledger).await?;
        let mut batch = Batch::new(Arc::clone(&self.toolbox), calls);
        let carried_out = batch.carry_out(&mut self.front).await;
        self.transcript.record(batch.outcomes());
        carried_out?;
        self.speak(&batch)
    }

    async fn generate(&mut self) -> Result<Reply, TurnEnd> {
        self.front.enter(State::Thinking).await;
        let messages = self.transcript.messages();
        debug_assert_eq!(transcript::check(messages).map_err(|e| e.to_string()), Ok(()));
        let request = Request { messages, tools: &self.definitions };
        let answer = streamed(&*self.model, request, self.front.events());
        self.front.attend(answer).await?.map_err(TurnEnd::ModelFailed)
    }

    /// Takes an answer in and returns the calls that it asks for.
    async fn hear(&mut self, reply: Reply, ledger: &mut Ledger) -> Result<Vec<Call>, TurnEnd> {
        self.tell(&reply).await;
        let Reply { mut message, finish, .. } = reply;
        if message.calls.is_empty() {
            return Err(self.last_word(message));
        }
        self.front.enter(State::Executing).await;
        let tools = naming::settle_names(&mut message, &self.names);
        let requests = self.transcript.answer(message);
        let mut calls = Vec::with_capacity(requests.len());
        for (mut request, tool) in requests.into_iter().zip(tools) {
            request.arguments = given_arguments(request.arguments, &finish);
            calls.push(self.take_up(request, tool, ledger).await);
        }
        Ok(calls)
    }

    async fn tell(&self, reply: &Reply) {
        let Reply { message, finish, usage } = reply;
        let (text, usage) = (message.text.clone(), *usage);
        self.front.emit(Event::MessageComplete { text, usage }).await;
        let notice = match finish {
            Finish::Length => Notice::AnswerCut,
            Finish::ContentFilter => Notice::AnswerWithheld,
            _ if message.calls.is_empty() && is_blank(&message.text) => Notice::AnswerEmpty,
            _ => return,
        };
        self.front.emit(Event::Notice(notice)).await;
    }

    fn last_word(&mut self, message: AssistantMessage) -> TurnEnd {
        let text = message.text.clone();
        if is_blank(&text) {
            // An answer without content is one that providers do not take back.
            self.transcript.close("[no answer]");
        } else {
            self.transcript.answer(message);
        }
        TurnEnd::Answered { text }
    }

    async fn take_up(&self, request: CallRequest, tool: ToolRef, ledger: &mut Ledger) -> Call {
        let CallRequest { id: call_id, arguments, .. } = request;
        let event = Event::CallRequested {
            call_id: call_id.clone(),
            tool: tool.clone(),
            arguments: arguments.clone(),
        };
        self.front.emit(event).await;
        match ledger.take_call(&tool, &arguments) {
            Err(budget) => Call::refused(call_id, tool, over_budget(&budget)),
            Ok(()) => self.look_up(call_id, tool, arguments),
        }
    }

    fn look_up(&self, call_id: String, tool: ToolRef, arguments: String) -> Call {
        match tool {
            ToolRef::Known(tool) => {
                let session_id = self.options.session_id.clone();
                let context = CallContext { call_id, session_id, ..CallContext::default() };
                Call::asked(ToolCall { context, tool, arguments })
            }
            ToolRef::Unknown(ref name) => {
                let failure = naming::no_such_tool(name, &self.names);
                Call::refused(call_id, tool, failure)
            }
        }
    }

    /// Ends a spoken turn with the tools' own sentences, when they gave any.
    fn speak(&mut self, batch: &Batch) -> Result<(), TurnEnd> {
        let spoken = self.options.spoken.then(|| speech(batch.outcomes())).flatten();
        match spoken {
            Some(text) => {
                self.transcript.say(text.clone());
                Err(TurnEnd::Spoken { text })
            }
            None => Ok(()),
        }
    }

    fn leave_valid(&mut self, end: &TurnEnd) {
        match end {
            TurnEnd::Answered { .. } | TurnEnd::Spoken { .. } | TurnEnd::InputRefused(_) => {}
            TurnEnd::ModelFailed(ModelError::Refused { status: 400..=499, .. }) => {
                self.transcript.forget_turn();
            }
            TurnEnd::ModelFailed(_) => self.transcript.close("[stopped: no answer came]"),
            TurnEnd::BudgetReached { what } => self.transcript.close(&format!("[stopped: {what}]")),
            TurnEnd::Cancelled => self.transcript.close("[stopped by the user]"),
        }
    }
}

fn check_input(text: &str) -> Result<(), InputError> {
    let (bytes, bytes_max) = (text.len(), INPUT_BYTES_MAX);
    if bytes > bytes_max {
        Err(InputError::TooLong { bytes, bytes_max })
    } else if is_blank(text) {
        Err(InputError::Empty)
    } else {
        Ok(())
    }
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// Asks the model and passes its words on while they arrive.
async fn streamed(
    model: &dyn ChatModel,
    request: Request<'_>,
    events: mpsc::Sender<Event>,
) -> Result<Reply, ModelError> {
    // The queue holds what one poll of the model brings: it is emptied before the next.
    let (arriving, mut deltas) = mpsc::unbounded_channel();
    // The other end lives in this function.
    let mut on_delta = |delta| drop(arriving.send(Event::Delta(delta)));
    let mut answer = model.generate(request, &mut on_delta);
    let reply = loop {
        tokio::select! {
            biased;
            Some(delta) = deltas.recv() => pass_on(delta, &events).await,
            reply = &mut answer => break reply,
        }
    };
    while let Ok(delta) = deltas.try_recv() {
        pass_on(delta, &events).await;
    }
    reply
}

async fn pass_on(delta: Event, events: &mpsc::Sender<Event>) {
    // Without a reader the session is about to close.
    let _ = events.send(delta).await;
}

/// Returns the arguments that a call was given. None at all mean an empty object, except where the
/// answer was cut: there they may have been what was cut off.
fn given_arguments(arguments: String, finish: &Finish) -> String {
    if is_blank(&arguments) && *finish != Finish::Length { "{}".to_owned() } else { arguments }
}

/// Tells a model that a call was not made because the turn has used what it may use.
fn over_budget(budget: &Budget) -> Failure {
    Failure::new(FailureKind::LimitReached, format!("not called: {budget}"))
}

/// Returns what is to be said when every call completed and at least one gave a sentence.
fn speech<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> Option<String> {
    let mut sentences = Vec::new();
    for outcome in outcomes {
        let Outcome::Completed(output) = outcome else { return None };
        sentences.extend(output.speech.as_deref().filter(|sentence| !is_blank(sentence)));
    }
    let text = sentences.join(" ");
    (!text.is_empty() && text.len() <= SPEECH_BYTES_MAX).then_some(text)
}
