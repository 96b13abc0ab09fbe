//! The settings of a request: the token limit, the temperature and the thinking.
//!
//! The provider requires a limit with every request. Older models take a number of tokens for their
//! thinking, newer ones an effort level.

use serde_json::{Map, Value, json};

use super::request::is_thinking;
use crate::{
    chat::ChatMessage,
    endpoint::{ModelEndpoint, ReasoningEffort},
    fit::conversation::provider_form,
};

/// Most tokens of one answer if no limit is set. All current models accept this many, and no answer
/// needs nearly as many.
const OUTPUT_TOKENS_MAX: u32 = 32_000;

/// Models with a lower limit on their answers, and that limit.
const SHORT_OUTPUT_MODELS: [(&str, u32); 4] = [
    ("claude-3-5", 8192),
    ("claude-3-opus", 4096),
    ("claude-3-sonnet", 4096),
    ("claude-3-haiku", 4096),
];

/// Models that take a number of tokens for their thinking. All later models take an effort level,
/// and most of them nothing else.
const THINKING_BUDGET_MODELS: [&str; 9] = [
    "claude-3",
    "claude-sonnet-4-0",
    "claude-sonnet-4-2",
    "claude-sonnet-4-5",
    "claude-opus-4-0",
    "claude-opus-4-1",
    "claude-opus-4-2",
    "claude-opus-4-5",
    "claude-haiku-4-5",
];

/// Fewest thinking tokens that a request can ask for.
const THINKING_TOKENS_MIN: u32 = 1024;

/// Returns the fields of a body that depend on the model and the settings.
pub(super) fn tuning_fields(
    endpoint: &ModelEndpoint,
    messages: &[ChatMessage],
) -> Map<String, Value> {
    let tokens_max =
        endpoint.output_tokens_max.unwrap_or_else(|| default_output_tokens(&endpoint.model));
    let mut fields = match endpoint.effort {
        Some(effort) if !has_thinking_budget(&endpoint.model) => thinking_by_effort(effort),
        Some(effort) if can_think_in_turn(messages, &endpoint.origin()) => {
            thinking_by_budget(effort, tokens_max)
        }
        _ => Map::new(),
    };
    // A model that thinks does not take a temperature.
    if let Some(temperature) = endpoint.temperature.filter(|_| fields.is_empty()) {
        fields.insert("temperature".to_owned(), json!(temperature));
    }
    fields.insert("max_tokens".to_owned(), json!(tokens_max));
    fields
}

fn default_output_tokens(model: &str) -> u32 {
    let short = SHORT_OUTPUT_MODELS.iter().find(|(name, _)| model.contains(name));
    short.map_or(OUTPUT_TOKENS_MAX, |(_, tokens_max)| *tokens_max)
}

fn has_thinking_budget(model: &str) -> bool {
    THINKING_BUDGET_MODELS.iter().any(|name| model.contains(name))
}

/// Asks for a summary: some models do not show their thinking unless asked to.
fn thinking_by_effort(effort: ReasoningEffort) -> Map<String, Value> {
    let thinking = json!({ "type": "adaptive", "display": "summarized" });
    let effort = json!({ "effort": effort.as_str() });
    Map::from_iter([("thinking".to_owned(), thinking), ("output_config".to_owned(), effort)])
}

/// Leaves half of a short answer for its text. An answer too short for both gets no thinking.
fn thinking_by_budget(effort: ReasoningEffort, tokens_max: u32) -> Map<String, Value> {
    let effort_tokens = match effort {
        ReasoningEffort::Low => 2048,
        ReasoningEffort::Medium => 8192,
        ReasoningEffort::High => 24_576,
    };
    let budget = (tokens_max / 2).min(effort_tokens).max(THINKING_TOKENS_MIN);
    if budget >= tokens_max {
        return Map::new();
    }
    let thinking = json!({ "type": "enabled", "budget_tokens": budget });
    Map::from_iter([("thinking".to_owned(), thinking)])
}

/// Returns true if the model can think in the current turn. A model that counts its thinking tokens
/// can continue to think about results of tools only if it thought before it called them. A turn
/// that another model began has no such thinking.
fn can_think_in_turn(messages: &[ChatMessage], origin: &str) -> bool {
    let turn = messages.iter().rev().take_while(|message| !matches!(message, ChatMessage::User(_)));
    let mut answers = turn.filter_map(|message| match message {
        ChatMessage::Assistant(chat_message) => Some(chat_message),
        _ => None,
    });
    answers.all(|chat_message| {
        let first = provider_form(chat_message, origin).and_then(|own| own.pointer("/content/0"));
        first.is_some_and(is_thinking)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        chat::{AssistantMessage, OpaqueMessage},
        protocol::ProviderProtocol,
    };

    fn endpoint(model: &str) -> ModelEndpoint {
        ModelEndpoint::new(ProviderProtocol::Anthropic, "https://x", model)
    }

    #[track_caller]
    fn check(endpoint: &ModelEndpoint, messages: &[ChatMessage], want: Value) {
        assert_eq!(Value::Object(tuning_fields(endpoint, messages)), want);
    }

    #[test]
    fn every_request_has_a_limit() {
        let rows = [
            ("claude-opus-4-7", 32_000),
            ("claude-haiku-4-5-20251001", 32_000),
            ("claude-3-5-haiku-latest", 8192),
            ("claude-3-haiku-20240307", 4096),
            ("anything", 32_000),
        ];
        for (model, want) in rows {
            check(&endpoint(model), &[], json!({ "max_tokens": want }));
            let set = ModelEndpoint { output_tokens_max: Some(7), ..endpoint(model) };
            check(&set, &[], json!({ "max_tokens": 7 }));
        }
    }

    #[test]
    fn thinking_is_asked_for_as_the_model_takes_it() {
        let with = |model: &str, effort: ReasoningEffort, tokens_max: u32| ModelEndpoint {
            effort: Some(effort),
            output_tokens_max: Some(tokens_max),
            temperature: Some(0.5),
            ..endpoint(model)
        };
        for model in ["claude-sonnet-4-6", "claude-opus-4-7", "claude-opus-6"] {
            check(
                &with(model, ReasoningEffort::Low, 64),
                &[],
                json!({
                    "max_tokens": 64, "output_config": { "effort": "low" },
                    "thinking": { "type": "adaptive", "display": "summarized" },
                }),
            );
        }
        let rows = [
            (ReasoningEffort::Low, 32_000, Some(2048)),
            (ReasoningEffort::Medium, 32_000, Some(8192)),
            (ReasoningEffort::High, 64_000, Some(24_576)),
            (ReasoningEffort::High, 32_000, Some(16_000)),
            (ReasoningEffort::High, 1025, Some(1024)),
            (ReasoningEffort::High, 1024, None),
        ];
        for model in ["claude-3-7-sonnet-20250219", "claude-sonnet-4-20250514", "claude-haiku-4-5"]
        {
            for (effort, tokens_max, budget) in rows {
                let want = match budget {
                    Some(budget) => json!({
                        "max_tokens": tokens_max,
                        "thinking": { "type": "enabled", "budget_tokens": budget },
                    }),
                    None => json!({ "max_tokens": tokens_max, "temperature": 0.5 }),
                };
                check(&with(model, effort, tokens_max), &[], want);
            }
        }
    }

    #[test]
    fn a_turn_that_began_without_thoughts_goes_on_without_them() {
        let endpoint =
            ModelEndpoint { effort: Some(ReasoningEffort::Low), ..endpoint("claude-haiku-4-5") };
        let chat_message = |block: &str, origin: &str| {
            let body = json!({ "role": "assistant", "content": [{ "type": block }] });
            let opaque = Some(OpaqueMessage { origin: origin.to_owned(), body });
            ChatMessage::Assistant(AssistantMessage { opaque, ..AssistantMessage::default() })
        };
        let own = "anthropic/claude-haiku-4-5";
        let rows = [
            (vec![chat_message("text", own), ChatMessage::user("x")], true),
            (vec![ChatMessage::user("x"), chat_message("thinking", own)], true),
            (vec![ChatMessage::user("x"), chat_message("redacted_thinking", own)], true),
            (vec![ChatMessage::user("x"), chat_message("thinking", "anthropic/other")], false),
            (
                vec![
                    ChatMessage::user("x"),
                    chat_message("tool_use", own),
                    chat_message("thinking", own),
                ],
                false,
            ),
        ];
        for (messages, want) in rows {
            assert_eq!(
                tuning_fields(&endpoint, &messages).contains_key("thinking"),
                want,
                "{messages:?}"
            );
        }
    }
}
