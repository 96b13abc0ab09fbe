//! A replacement for a language model, without network or weights.
//!
//! It matches the user's text with the names and descriptions of the tools, takes the arguments
//! from the sentence and phrases the results. The same input always gives the same output, which
//! suits a first try without a key, demonstrations and tests. It reads simple English and never
//! acts on a guess: a sentence with an unused word calls nothing.
//!
//! Suggested reading order: `language`, `sentence`, `tool`, `decide`, `params`, `fill`, `phrase`.

mod about;
mod decide;
mod fill;
mod language;
mod params;
mod phrase;
mod sentence;
mod tool;

use std::{fmt, sync::Arc};

use sallyport_contract::BoxFuture;
use serde_json::Value;

use self::decide::{Catalogue, Decision, Plan};
use crate::chat::{
    AssistantMessage, CallRequest, ChatModel, Delta, Finish, Message, ModelError, Reply, Request,
    ToolResult,
};

/// Longest text that is read, in bytes. A longer one is not cut, because a call could then write
/// half of a pasted text.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// The worst that a call of a tool can do under the effective grant of its plugin. The claims of
/// the tool's author do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The call can neither change nor leak anything.
    Nothing,
    /// The call can change or leak something.
    ChangesOrLeaks,
}

/// Returns the reach of a tool, given the name that a model sees.
pub type ReachOf = Arc<dyn Fn(&str) -> Reach + Send + Sync>;

/// The built-in replacement for a model.
#[derive(Clone)]
pub struct Offline {
    reach: ReachOf,
}

impl Offline {
    /// Creates a matcher. It calls `reach` again for each message: the policy may change in
    /// between.
    pub fn new(reach: ReachOf) -> Self {
        Self { reach }
    }
}

impl Default for Offline {
    /// Creates a matcher that assumes that every tool can change or leak something.
    fn default() -> Self {
        Self::new(Arc::new(|_: &str| Reach::ChangesOrLeaks))
    }
}

impl fmt::Debug for Offline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offline").finish_non_exhaustive()
    }
}

impl ChatModel for Offline {
    fn name(&self) -> &str {
        "offline"
    }

    fn generate<'a>(
        &'a self,
        request: Request<'a>,
        on_delta: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let message = self.answer(request);
            if !message.text.is_empty() {
                on_delta(Delta::Text(message.text.clone()));
            }
            let finish = if message.calls.is_empty() { Finish::Stop } else { Finish::ToolCalls };
            Ok(Reply { message, finish, usage: None })
        })
    }
}

impl Offline {
    fn answer(&self, request: Request<'_>) -> AssistantMessage {
        let results = last_results(request.messages);
        if !results.is_empty() {
            return say(phrase::results(&results));
        }
        let text = match request.messages.last() {
            Some(Message::User(said)) => said.text.as_str(),
            _ => "",
        };
        if text.len() > TEXT_BYTES_MAX {
            return say(about::too_long(TEXT_BYTES_MAX));
        }
        let catalogue = Catalogue::new(request.tools, &*self.reach);
        let decision = match catalogue.decide(text) {
            Decision::Nothing => go_on(&catalogue, request.messages, text),
            decision => decision,
        };
        match decision {
            Decision::Call(calls) => call(&calls, request.messages),
            Decision::Ask(plan) => say(about::question(&plan)),
            Decision::Nothing => say(about::help(&catalogue, text)),
        }
    }
}

/// Reads a text that means nothing on its own as the answer to the last question. The question's
/// sentence and the answer must form one complete sentence.
fn go_on<'c>(catalogue: &'c Catalogue<'_>, messages: &[Message], answer: &str) -> Decision<'c> {
    let [.., Message::User(said), Message::Assistant(asked), _] = messages else {
        return Decision::Nothing;
    };
    let is_answer = match catalogue.decide(&said.text) {
        Decision::Ask(plan) => asked.calls.is_empty() && asked.text == about::question(&plan),
        Decision::Call(_) | Decision::Nothing => false,
    };
    let is_meant = !language::is_second_thought(answer);
    if !is_answer || !is_meant || said.text.len() + answer.len() > TEXT_BYTES_MAX {
        return Decision::Nothing;
    }
    let said = said.text.trim_end_matches(['?', '.', '!']);
    let whole = [" ", " in "].map(|joint| format!("{said}{joint}{answer}"));
    let mut decisions = whole.iter().map(|text| catalogue.decide(text));
    let call =
        decisions.find(|decision| matches!(decision, Decision::Call(calls) if calls.len() == 1));
    call.unwrap_or(Decision::Nothing)
}

fn last_results(messages: &[Message]) -> Vec<&ToolResult> {
    let mut results: Vec<&ToolResult> = messages
        .iter()
        .rev()
        .map_while(|message| match message {
            Message::Tool(result) => Some(result),
            _ => None,
        })
        .collect();
    results.reverse();
    results
}

fn say(text: String) -> AssistantMessage {
    AssistantMessage { text, ..AssistantMessage::default() }
}

/// Creates the calls. Ids are numbered through the conversation, so that no two calls share one.
fn call(calls: &[Plan<'_>], messages: &[Message]) -> AssistantMessage {
    let made: usize = messages
        .iter()
        .map(|message| match message {
            Message::Assistant(said) => said.calls.len(),
            _ => 0,
        })
        .sum();
    let request = |(n, plan): (usize, &Plan<'_>)| CallRequest {
        id: format!("offline_{}", made + n + 1),
        name: plan.tool.name.clone(),
        arguments: Value::Object(plan.arguments.clone()).to_string(),
    };
    let calls = calls.iter().enumerate().map(request).collect();
    AssistantMessage { calls, ..AssistantMessage::default() }
}
