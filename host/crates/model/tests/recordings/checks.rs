//! The comparisons, and every difference found.

use std::{collections::HashSet, fmt::Debug};

use sallyport_model::{
    ChatMessage, FinishReason, ModelCallRequest, ModelError, ModelReply, ReplyDelta,
};
use serde_json::Value;

use crate::{
    cassettes::Exchange,
    normal::{self, canonical},
    play::Seen,
    wires::Heard,
};

/// All differences of a run, because the first one would hide the others.
#[derive(Default)]
pub(crate) struct Differences(Vec<String>);

impl Differences {
    #[track_caller]
    pub(crate) fn assert_none(&self) {
        assert!(self.0.is_empty(), "{} differences:\n{}", self.0.len(), self.0.join("\n"));
    }

    fn equal<T: PartialEq + Debug>(&mut self, exchange: &Exchange, what: &str, ours: T, theirs: T) {
        if ours != theirs {
            let file = &exchange.file;
            self.0.push(format!("{file}: {what}\n    ours   {ours:?}\n    theirs {theirs:?}"));
        }
    }

    /// Compares the request that was sent with the recorded one. Returns the number of encrypted
    /// parts of earlier answers that were sent back.
    pub(crate) fn in_request(
        &mut self,
        exchange: &Exchange,
        seen: &Seen,
        replayed: usize,
    ) -> usize {
        let (wire, theirs, ours) = (exchange.wire, &exchange.request, &seen.body);
        self.equal(exchange, "path", seen.path.split('?').next(), Some(exchange.path.as_str()));
        let mut tools = wire.tools(theirs);
        // A tool that takes no object cannot be defined here, so it is sent to no provider.
        tools.retain(|tool| tool.parameters["type"] == "object");
        self.equal(exchange, "tools", wire.tools(ours), tools);
        self.equal(
            exchange,
            "conversation",
            normal::conversation(wire, ours).map(trimmed),
            normal::conversation(wire, theirs).map(trimmed),
        );
        self.equal(exchange, "form", wire.is_well_formed(ours), true);
        let kept = wire.kept(theirs);
        if replayed == 0 || kept.is_empty() {
            return 0;
        }
        let count = kept.len();
        self.equal(exchange, "sealed parts", wire.kept(ours), kept);
        count
    }

    /// Compares the reply of the adapter with the recording.
    pub(crate) fn in_reply(
        &mut self,
        exchange: &Exchange,
        reply: &ModelReply,
        deltas: &[ReplyDelta],
    ) {
        let Heard { text, calls, finish, usage } = exchange.wire.heard(&exchange.body);
        let message = &reply.message;
        let ids: HashSet<&str> = message.calls.iter().map(|call| call.id.as_str()).collect();
        self.equal(exchange, "status", exchange.status, 200);
        self.equal(exchange, "ids", ids.len(), message.calls.len());
        self.equal(exchange, "an empty id", ids.contains(""), false);
        self.equal(exchange, "text", message.text.as_str(), &text);
        self.equal(exchange, "calls", written(&message.calls), calls);
        self.equal(exchange, "finish", &reply.finish, &finish);
        let got = reply.usage.map(|usage| (usage.input_tokens, usage.output_tokens));
        self.equal(exchange, "usage", got, usage);
        if let Some(own_form) = exchange.wire.own_form(&exchange.body) {
            let kept = message.opaque.as_ref().map(|opaque| &opaque.body);
            self.equal(exchange, "own form", kept, Some(&own_form));
        }
        self.in_deltas(exchange, reply, deltas);
    }

    /// Compares the deltas of an answer with its reply.
    fn in_deltas(&mut self, exchange: &Exchange, reply: &ModelReply, deltas: &[ReplyDelta]) {
        let (mut text, mut begun) = (String::new(), Vec::new());
        for delta in deltas {
            match delta {
                ReplyDelta::Text { text: piece } => text.push_str(piece),
                ReplyDelta::CallBegun { name } => begun.push(name.as_str()),
                ReplyDelta::Reasoning { .. }
                | ReplyDelta::LeftOut(_)
                | ReplyDelta::Retry { .. } => {}
            }
        }
        self.equal(exchange, "deltas", text.as_str(), &reply.message.text);
        let calls: Vec<&str> = reply.message.calls.iter().map(|call| call.name.as_str()).collect();
        if !begun.is_empty() && reply.finish != FinishReason::Length {
            self.equal(exchange, "calls begun", begun, calls);
        }
    }

    /// Compares a refusal by its status and the service's message.
    pub(crate) fn in_refusal(&mut self, exchange: &Exchange, error: &ModelError) {
        let status = match error {
            // Some services report an unusable key with another status.
            ModelError::Credentials { .. } if matches!(exchange.status, 400 | 403) => {
                exchange.status
            }
            ModelError::Credentials { .. } => 401,
            ModelError::RateLimited { .. } => 429,
            ModelError::Refused { status, .. } => *status,
            ModelError::TooLong { .. } if matches!(exchange.status, 400 | 413) => exchange.status,
            _ => 0,
        };
        self.equal(exchange, &format!("refusal: {error:?}"), status, exchange.status);
        let body: Value = serde_json::from_str(&exchange.body).unwrap_or_default();
        let message = body.pointer("/error/message").unwrap_or(&body["message"]).as_str();
        let shown = message.is_some_and(|message| error.to_string().contains(message));
        self.equal(exchange, &format!("words of {error}"), shown, true);
    }
}

fn written(calls: &[ModelCallRequest]) -> Vec<(String, String)> {
    calls.iter().map(|call| (call.name.clone(), canonical(&call.arguments))).collect()
}

/// Clients trim the messages that they repeat.
fn trimmed(mut messages: Vec<ChatMessage>) -> Vec<ChatMessage> {
    for message in &mut messages {
        if let ChatMessage::Assistant(said) = message {
            said.text = said.text.trim().to_owned();
        }
    }
    messages
}
