//! A replacement for a language model, without network or weights.
//!
//! It matches the user's text with the names and descriptions of the tools, takes the arguments
//! from the sentence and phrases the results. The same input always gives the same output, which
//! suits a first try without a key, demonstrations and tests. It reads simple English and never
//! acts on a guess: a sentence with an unused word calls nothing.
//!
//! Suggested reading order: `language`, `sentence`, `tool`, `matching`, `params`,
//! `argument_extraction`, `result_text`.

mod argument_extraction;
mod help;
mod language;
mod matching;
mod params;
mod result_text;
mod sentence;
mod tool;

use std::{fmt, sync::Arc};

use sallyport_contract::BoxFuture;
use serde_json::Value;

use self::matching::{MatchDecision, ToolCallPlan, ToolCatalog};
use crate::{
    chat::{
        AssistantMessage, ChatMessage, FinishReason, ModelCallRequest, ModelError, ModelReply,
        ReplyDelta, TokenPrice, ToolResultMessage,
    },
    chat_model::{ChatModel, ModelRequest},
    prices::FREE,
};

/// Longest text that is read, in bytes. A longer one is not cut, because a call could then write
/// half of a pasted text.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// The worst that a call of a tool can do under the effective grant of its plugin. The claims of
/// the tool's author do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolReach {
    /// The call can neither change nor leak anything.
    Nothing,
    /// The call can change or leak something.
    ChangesOrLeaks,
}

/// Returns the reach of a tool, given the name that a model sees.
pub type ReachOf = Arc<dyn Fn(&str) -> ToolReach + Send + Sync>;

/// The built-in replacement for a model.
#[derive(Clone)]
pub struct OfflineMatcher {
    reach_of: ReachOf,
}

impl OfflineMatcher {
    /// Creates a matcher. It calls `reach` again for each message: the policy may change in
    /// between.
    pub fn new(reach_of: ReachOf) -> Self {
        Self { reach_of }
    }
}

impl Default for OfflineMatcher {
    /// Creates a matcher that assumes that every tool can change or leak something.
    fn default() -> Self {
        Self::new(Arc::new(|_: &str| ToolReach::ChangesOrLeaks))
    }
}

impl fmt::Debug for OfflineMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offline").finish_non_exhaustive()
    }
}

impl ChatModel for OfflineMatcher {
    fn name(&self) -> &str {
        "offline"
    }

    /// A limit of cost refuses a model without a known price. The matcher sends no request.
    fn price(&self) -> Option<TokenPrice> {
        Some(FREE)
    }

    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(ReplyDelta) + Send),
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(async move {
            let message = self.answer_request(request);
            if !message.text.is_empty() {
                on_delta(ReplyDelta::Text { text: message.text.clone() });
            }
            let finish =
                if message.calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
            Ok(ModelReply { message, finish, usage: None })
        })
    }
}

impl OfflineMatcher {
    fn answer_request(&self, request: ModelRequest<'_>) -> AssistantMessage {
        let results = last_results(request.messages);
        if !results.is_empty() {
            return text_message(result_text::phrase_results(&results));
        }
        let text = match request.messages.last() {
            Some(ChatMessage::User(user_message)) => user_message.text.as_str(),
            _ => "",
        };
        if text.len() > TEXT_BYTES_MAX {
            return text_message(help::too_long_message(TEXT_BYTES_MAX));
        }
        let catalog = ToolCatalog::new(request.tools, &*self.reach_of);
        let decision = match catalog.match_text(text) {
            MatchDecision::Nothing => continue_question(&catalog, request.messages, text),
            decision => decision,
        };
        match decision {
            MatchDecision::Call(calls) => call_message(&calls, request.messages),
            MatchDecision::Ask(plan) => text_message(match &plan.impossible_moment {
                Some(error) => help::impossible_moment_message(&plan, error),
                None => help::missing_arguments_question(&plan),
            }),
            MatchDecision::Nothing => text_message(help::help_text(&catalog, text)),
        }
    }
}

/// Reads a text that means nothing on its own as the answer to the last question. The question's
/// sentence and the answer must form one complete sentence.
fn continue_question<'c>(
    catalog: &'c ToolCatalog<'_>,
    messages: &[ChatMessage],
    answer: &str,
) -> MatchDecision<'c> {
    let [.., ChatMessage::User(user_message), ChatMessage::Assistant(question), _] = messages
    else {
        return MatchDecision::Nothing;
    };
    let is_answer = match catalog.match_text(&user_message.text) {
        MatchDecision::Ask(plan) => {
            question.calls.is_empty() && question.text == help::missing_arguments_question(&plan)
        }
        MatchDecision::Call(_) | MatchDecision::Nothing => false,
    };
    let is_meant = !language::is_retraction(answer);
    if !is_answer || !is_meant || user_message.text.len() + answer.len() > TEXT_BYTES_MAX {
        return MatchDecision::Nothing;
    }
    let user_message = user_message.text.trim_end_matches(['?', '.', '!']);
    let combined = [" ", " in "].map(|joint| format!("{user_message}{joint}{answer}"));
    let mut decisions = combined.iter().map(|text| catalog.match_text(text));
    let call = decisions
        .find(|decision| matches!(decision, MatchDecision::Call(calls) if calls.len() == 1));
    call.unwrap_or(MatchDecision::Nothing)
}

fn last_results(messages: &[ChatMessage]) -> Vec<&ToolResultMessage> {
    let mut results: Vec<&ToolResultMessage> = messages
        .iter()
        .rev()
        .map_while(|message| match message {
            ChatMessage::Tool(result) => Some(result),
            _ => None,
        })
        .collect();
    results.reverse();
    results
}

fn text_message(text: String) -> AssistantMessage {
    AssistantMessage { text, ..AssistantMessage::default() }
}

/// Creates the calls. Ids are numbered through the conversation, so that no two calls share one.
fn call_message(calls: &[ToolCallPlan<'_>], messages: &[ChatMessage]) -> AssistantMessage {
    let call_count: usize = messages
        .iter()
        .map(|message| match message {
            ChatMessage::Assistant(user_message) => user_message.calls.len(),
            _ => 0,
        })
        .sum();
    let request = |(n, plan): (usize, &ToolCallPlan<'_>)| ModelCallRequest {
        id: format!("offline_{}", call_count + n + 1),
        name: plan.tool.name.clone(),
        arguments: Value::Object(plan.arguments.clone()).to_string(),
    };
    let calls = calls.iter().enumerate().map(request).collect();
    AssistantMessage { calls, ..AssistantMessage::default() }
}
