//! Requests to the model: for the next answer, and for a summary of messages that drop out of its
//! view.

use std::ops::Range;

use sallyport_model::{ChatModel, Cost, Delta, Message, ModelError, Reply, Request, Usage};
use tokio::sync::mpsc;

use super::{
    event::{Event, Notice, State, TurnEnd},
    front::Halt,
    journal::Record,
    memory::{Memory, View, summary_request},
    session::Session,
    transcript,
};

/// An answer and its usage.
pub(super) struct Exchange {
    pub(super) reply: Reply,
    /// Estimated where the provider does not report it.
    pub(super) usage: Usage,
    pub(super) cost: Option<Cost>,
}

impl Session {
    /// Requests the next answer; its text is forwarded as it arrives.
    pub(super) async fn generate(&mut self) -> Result<Exchange, TurnEnd> {
        self.front.enter(State::Thinking).await;
        self.make_room().await?;
        let memory = self.options.memory;
        let (transcript, pages) = self.book.open();
        let View { messages, .. } = transcript.view(memory, &self.meter);
        debug_assert_eq!(transcript::check(&messages).map_err(|e| e.to_string()), Ok(()));
        // Estimating reads the whole conversation, so it is skipped when no memory needs it.
        let estimated = (memory != Memory::None).then(|| self.meter.tokens(&messages));
        let (tools, temperature) = (self.toolset.definitions(), self.options.temperature);
        let request = Request { messages: &messages, tools, temperature };
        let mut said = String::new();
        let answer = streamed(&*self.model, request, self.front.events(), &mut said);
        let answered = self.front.attend(pages, answer).await;
        drop(messages);
        let answered = answered.map_err(TurnEnd::from);
        let reply = answered.and_then(|reply| reply.map_err(TurnEnd::ModelFailed));
        let reply = reply.inspect_err(|_| self.unfinished = said)?;
        if let (Some(estimated), Some(usage)) = (estimated, &reply.usage) {
            self.meter.learn(estimated, usage.input_tokens);
        }
        let usage = reply.usage.unwrap_or_else(|| {
            let asked = self.meter.tokens(self.book.transcript().messages());
            self.estimate(self.toolset_tokens + estimated.unwrap_or(asked), &reply)
        });
        Ok(self.count(reply, usage))
    }

    /// Has the model summarize everything since the last summary, at the user's request.
    pub(super) async fn summarize(&mut self) {
        self.lost_summary = false;
        self.front.expect_end(self.ledger.begin_turn());
        let transcript = self.book.transcript();
        let unsummed = transcript.summed_up()..transcript.messages().len();
        if unsummed.is_empty() {
            self.front.emit(Event::Notice(Notice::NothingToSummarize)).await;
        } else if let Err(why) = self.check_means() {
            self.do_without_summary(why).await;
        } else if let Err(halt) = self.sum_up(unsummed).await {
            self.do_without_summary(TurnEnd::from(halt).word().to_owned()).await;
        }
        self.front.expect_end(None);
    }

    /// Checks that tokens and money for a request are left.
    fn check_means(&self) -> Result<(), String> {
        self.check_price().map_err(|error| error.to_string())?;
        self.ledger.check_spent().map_err(|budget| budget.to_string())
    }

    /// Requests a summary of the messages that would otherwise drop out of the model's view.
    /// Without a summary, the model sees only the newest part of the conversation.
    async fn make_room(&mut self) -> Result<(), TurnEnd> {
        if self.lost_summary || !matches!(self.options.memory, Memory::Summary { .. }) {
            return Ok(());
        }
        let view = self.book.transcript().view(self.options.memory, &self.meter);
        if let Some(range) = view.wants_summary {
            self.sum_up(range).await?;
            self.ledger.check_spent().map_err(|what| TurnEnd::BudgetReached { what })?;
        }
        Ok(())
    }

    /// Replaces a part of the conversation, and everything before it, with a summary.
    async fn sum_up(&mut self, range: Range<usize>) -> Result<(), Halt> {
        self.front.enter(State::Thinking).await;
        let (messages, through) = (range.len(), range.end - self.book.transcript().head());
        match self.ask_summary(range).await? {
            Err(why) => self.do_without_summary(why).await,
            Ok(Exchange { reply, usage, cost }) => {
                let text = reply.message.text;
                let record = Record::Summary { text: text.clone(), through, usage, cost };
                self.book.write(vec![record], &self.front).await;
                self.front.emit(Event::Summarized { messages, text }).await;
            }
        }
        Ok(())
    }

    async fn ask_summary(&mut self, range: Range<usize>) -> Result<Result<Exchange, String>, Halt> {
        let transcript = self.book.transcript();
        let asked = summary_request(transcript.summary(), &transcript.messages()[range]);
        debug_assert_eq!(transcript::check(&asked).map_err(|e| e.to_string()), Ok(()));
        let mut unheard = |_| {};
        let request = Request { messages: &asked, ..Request::default() };
        let answer = self.model.generate(request, &mut unheard);
        let reply = match self.front.attend(self.book.pages_mut(), answer).await? {
            Ok(reply) => reply,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let usage = reply.usage;
        let usage = usage.unwrap_or_else(|| self.estimate(self.meter.tokens(&asked), &reply));
        let exchange = self.count(reply, usage);
        let is_blank = exchange.reply.message.text.trim().is_empty();
        Ok(if is_blank { Err(Notice::AnswerEmpty.to_string()) } else { Ok(exchange) })
    }

    async fn do_without_summary(&mut self, why: String) {
        self.lost_summary = true;
        self.front.emit(Event::Notice(Notice::SummaryFailed { why })).await;
    }

    fn estimate(&self, input_tokens: u64, reply: &Reply) -> Usage {
        let output_tokens = self.meter.tokens(&[Message::Assistant(reply.message.clone())]);
        Usage { input_tokens, output_tokens, ..Usage::default() }
    }

    /// Enters an exchange into the ledger.
    fn count(&mut self, reply: Reply, usage: Usage) -> Exchange {
        let cost = self.model.price().map(|price| price.of(&usage));
        self.ledger.spend(&usage, cost);
        Exchange { reply, usage, cost }
    }
}

/// Sends a request and forwards the text as it arrives. The text is also collected in `said`,
/// because an answer that is stopped never returns.
async fn streamed(
    model: &dyn ChatModel,
    request: Request<'_>,
    events: mpsc::Sender<Event>,
    said: &mut String,
) -> Result<Reply, ModelError> {
    // The queue holds the output of one poll of the model: it is drained before the next.
    let (arriving, mut deltas) = mpsc::unbounded_channel();
    // The receiver lives in this function, so sending cannot fail.
    let mut on_delta = |delta: Delta| {
        match &delta {
            Delta::Text(text) => said.push_str(text),
            // The next attempt starts again with the first word.
            Delta::Retry { .. } => said.clear(),
            Delta::Reasoning(_) | Delta::CallBegun { .. } | Delta::LeftOut(_) => {}
        }
        drop(arriving.send(Event::Delta(delta)));
    };
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
    // Without a receiver the session is about to close.
    let _ = events.send(delta).await;
}
