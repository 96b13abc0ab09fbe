//! Requests to the model: for the next answer, and for a summary of messages that drop out of its
//! view.

use std::ops::Range;

use sallyport_model::{
    ChatMessage, ChatModel, ModelError, ModelReply, ModelRequest, ProviderProtocol, ReplyDelta,
    TokenCost, TokenUsage,
};
use tokio::sync::mpsc;
use tracing::{Span, field::Empty};

use super::{
    client_port::Interrupt,
    event::{SessionActivity, SessionEvent, SessionNotice, TurnEnd},
    journal::JournalRecord,
    memory::{ConversationView, MemoryMode, summary_request},
    session::Session,
    transcript,
};

/// An answer and its usage.
pub(super) struct ModelExchange {
    pub(super) reply: ModelReply,
    /// Estimated where the provider does not report it.
    pub(super) usage: TokenUsage,
    pub(super) cost: Option<TokenCost>,
}

impl Session {
    /// Requests the next answer; its text is forwarded as it arrives.
    #[tracing::instrument(
        name = "model_request",
        skip_all,
        fields(
            model = self.model.short_name(),
            provider = self.model.protocol().map(ProviderProtocol::as_str),
            input_tokens = Empty,
            output_tokens = Empty,
            error = Empty,
        )
    )]
    pub(super) async fn request_answer(&mut self) -> Result<ModelExchange, TurnEnd> {
        self.client.set_activity(SessionActivity::Thinking).await;
        self.summarize_if_needed().await?;
        let memory = self.options.memory;
        let (transcript, journal_writer) = self.log.transcript_and_journal();
        let ConversationView { messages, .. } = transcript.conversation_view(memory, &self.meter);
        debug_assert_eq!(transcript::check_messages(&messages).map_err(|e| e.to_string()), Ok(()));
        // Estimating reads the whole conversation, so it is skipped when no memory needs it.
        let estimated = (memory != MemoryMode::None).then(|| self.meter.estimate_tokens(&messages));
        let (tools, temperature) = (self.toolset.definitions(), self.options.temperature);
        let kept = Some(&self.kept_messages);
        let request = ModelRequest { messages: &messages, tools, temperature, kept };
        let mut partial_text = String::new();
        let answer =
            stream_reply(&*self.model, request, self.client.event_sender(), &mut partial_text);
        let exchange_result = self.client.run_until_interrupted(journal_writer, answer).await;
        drop(messages);
        let exchange_result = exchange_result.map_err(TurnEnd::from);
        let reply = exchange_result.and_then(|reply| reply.map_err(TurnEnd::ModelFailed));
        let reply = reply.inspect_err(|end| {
            Span::current().record("error", end.as_str());
            self.partial_reply = partial_text;
        })?;
        if let (Some(estimated), Some(usage)) = (estimated, &reply.usage) {
            self.meter.learn_from_report(estimated, usage.input_tokens);
        }
        let usage = reply.usage.unwrap_or_else(|| {
            let summary_messages = self.meter.estimate_tokens(self.log.transcript().messages());
            self.estimate_usage(self.toolset_tokens + estimated.unwrap_or(summary_messages), &reply)
        });
        Ok(self.record_exchange(reply, usage).await)
    }

    /// Has the model summarize everything since the last summary, at the user's request.
    pub(super) async fn summarize_on_request(&mut self) {
        self.summary_failed = false;
        self.client.set_deadline(self.usage_tracker.begin_turn());
        let transcript = self.log.transcript();
        let summary_range = transcript.summarized_count()..transcript.messages().len();
        if summary_range.is_empty() {
            self.client.emit(SessionEvent::Notice(SessionNotice::NothingToSummarize)).await;
        } else if let Err(why) = self.check_budget().await {
            self.report_summary_failure(why).await;
        } else if let Err(interrupt) = self.summarize_range(summary_range).await {
            self.report_summary_failure(TurnEnd::from(interrupt).as_str().to_owned()).await;
        }
        self.client.set_deadline(None);
    }

    /// Checks that tokens and money for a request are left.
    async fn check_budget(&mut self) -> Result<(), String> {
        self.check_price().map_err(|error| error.to_string())?;
        self.usage_tracker.check_spending().map_err(|budget| budget.to_string())?;
        self.account.check(&*self.model).await.map_err(|end| match end {
            TurnEnd::BudgetReached { limit } => limit.to_string(),
            TurnEnd::InputRefused(error) => error.to_string(),
            other => other.as_str().to_owned(),
        })
    }

    /// Requests a summary of the messages that would otherwise drop out of the model's view.
    /// Without a summary, the model sees only the newest part of the conversation.
    async fn summarize_if_needed(&mut self) -> Result<(), TurnEnd> {
        if self.summary_failed || !matches!(self.options.memory, MemoryMode::Summary { .. }) {
            return Ok(());
        }
        let view = self.log.transcript().conversation_view(self.options.memory, &self.meter);
        if let Some(range) = view.wants_summary {
            self.summarize_range(range).await?;
            self.usage_tracker
                .check_spending()
                .map_err(|what| TurnEnd::BudgetReached { limit: what })?;
        }
        Ok(())
    }

    /// Replaces a part of the conversation, and everything before it, with a summary.
    async fn summarize_range(&mut self, range: Range<usize>) -> Result<(), Interrupt> {
        self.client.set_activity(SessionActivity::Thinking).await;
        let (messages, through) = (range.len(), range.end - self.log.transcript().head_length());
        match self.request_summary(range).await? {
            Err(why) => self.report_summary_failure(why).await,
            Ok(ModelExchange { reply, usage, cost }) => {
                let text = reply.message.text;
                let record = JournalRecord::Summary { text: text.clone(), through, usage, cost };
                self.log.write_records(vec![record]).await;
                self.client.emit(SessionEvent::Summarized { messages, text }).await;
            }
        }
        Ok(())
    }

    #[tracing::instrument(
        name = "model_summary",
        skip_all,
        fields(
            model = self.model.short_name(),
            provider = self.model.protocol().map(ProviderProtocol::as_str),
            input_tokens = Empty,
            output_tokens = Empty,
            error = Empty,
        )
    )]
    async fn request_summary(
        &mut self,
        range: Range<usize>,
    ) -> Result<Result<ModelExchange, String>, Interrupt> {
        let transcript = self.log.transcript();
        let summary_messages = summary_request(transcript.summary(), &transcript.messages()[range]);
        debug_assert_eq!(
            transcript::check_messages(&summary_messages).map_err(|e| e.to_string()),
            Ok(())
        );
        let mut ignore_delta = |_| {};
        let request = ModelRequest { messages: &summary_messages, ..ModelRequest::default() };
        let answer = self.model.generate(request, &mut ignore_delta);
        let reply = match self.client.run_until_interrupted(self.log.journal_mut(), answer).await? {
            Ok(reply) => reply,
            Err(error) => {
                Span::current().record("error", "model-failed");
                return Ok(Err(error.to_string()));
            }
        };
        let usage = reply.usage;
        let usage = usage.unwrap_or_else(|| {
            self.estimate_usage(self.meter.estimate_tokens(&summary_messages), &reply)
        });
        let exchange = self.record_exchange(reply, usage).await;
        let is_blank = exchange.reply.message.text.trim().is_empty();
        Ok(if is_blank { Err(SessionNotice::AnswerEmpty.to_string()) } else { Ok(exchange) })
    }

    async fn report_summary_failure(&mut self, why: String) {
        self.summary_failed = true;
        self.client.emit(SessionEvent::Notice(SessionNotice::SummaryFailed { why })).await;
    }

    fn estimate_usage(&self, input_tokens: u64, reply: &ModelReply) -> TokenUsage {
        let output_tokens =
            self.meter.estimate_tokens(&[ChatMessage::Assistant(reply.message.clone())]);
        TokenUsage { input_tokens, output_tokens, ..TokenUsage::default() }
    }

    /// Enters an exchange into the ledger.
    async fn record_exchange(&mut self, reply: ModelReply, usage: TokenUsage) -> ModelExchange {
        let cost = self.model.price().map(|price| price.of(&usage));
        self.usage_tracker.record_usage(&usage, cost);
        self.account.charge(&usage, cost).await;
        Span::current().record("input_tokens", usage.input_tokens);
        Span::current().record("output_tokens", usage.output_tokens);
        ModelExchange { reply, usage, cost }
    }
}

/// Sends a request and forwards the text as it arrives. The text is also collected in `said`,
/// because an answer that is stopped never returns.
async fn stream_reply(
    model: &dyn ChatModel,
    request: ModelRequest<'_>,
    events: mpsc::Sender<SessionEvent>,
    partial_text: &mut String,
) -> Result<ModelReply, ModelError> {
    // The queue holds the output of one poll of the model: it is drained before the next.
    let (delta_sender, mut deltas) = mpsc::unbounded_channel();
    // The receiver lives in this function, so sending cannot fail.
    let mut on_delta = |delta: ReplyDelta| {
        match &delta {
            ReplyDelta::Text { text } => partial_text.push_str(text),
            // The next attempt starts again with the first word.
            ReplyDelta::Retry { .. } => partial_text.clear(),
            ReplyDelta::Reasoning { .. }
            | ReplyDelta::CallBegun { .. }
            | ReplyDelta::LeftOut(_) => {}
        }
        drop(delta_sender.send(SessionEvent::Delta(delta)));
    };
    let mut answer = model.generate(request, &mut on_delta);
    let reply = loop {
        tokio::select! {
            biased;
            Some(delta) = deltas.recv() => forward_event(delta, &events).await,
            reply = &mut answer => break reply,
        }
    };
    while let Ok(delta) = deltas.try_recv() {
        forward_event(delta, &events).await;
    }
    reply
}

async fn forward_event(delta: SessionEvent, events: &mpsc::Sender<SessionEvent>) {
    // Without a receiver the session is about to close.
    let _ = events.send(delta).await;
}
