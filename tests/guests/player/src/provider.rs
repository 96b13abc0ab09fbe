//! A model that does what the last message says.

use crate::{
    Player,
    contract::{
        exports::sallyport::plugin::provider::{
            Answer, AnswerMessage, BusyService, Error, Finish, Generation, Guest, Message,
            ToolCall, ToolDefinition, Usage,
        },
        sallyport::plugin::{deltas, types::CallContext},
    },
    spin,
};

impl Guest for Player {
    fn generate(
        context: CallContext,
        history: Vec<Message>,
        tools: Vec<ToolDefinition>,
        settings: Generation,
    ) -> Result<Answer, Error> {
        let text = match history.last() {
            Some(Message::User(user)) => user.text.clone(),
            Some(Message::Tool(result)) => format!("say {}", result.data),
            _ => String::new(),
        };
        let (word, rest) = text.split_once(' ').unwrap_or((&text, ""));
        if let Some(error) = error(word, rest) {
            return Err(error);
        }
        Ok(match word {
            "say" => said(rest),
            "stream" => {
                rest.split_inclusive(' ').for_each(deltas::text);
                deltas::reasoning("hm");
                said(rest)
            }
            "forget" => {
                deltas::text(rest);
                said("")
            }
            "contradict" => {
                deltas::text("one thing");
                said("another")
            }
            "flood" => {
                (0..1_000_000).for_each(|_| deltas::text("words, words, words"));
                said("enough")
            }
            "stop_half_way" => {
                deltas::text("The answer is");
                spin()
            }
            "call" => calling(&["a"], rest),
            "call_twice" => calling(&["same", "same"], "{}"),
            "call_with" => calling(&["a"], &"x".repeat(rest.parse().unwrap_or_default())),
            "call_often" => calling(&vec!["a"; rest.parse().unwrap_or_default()], "{}"),
            "tell" => said(&told(&history, &tools, &settings)),
            "who" => said(&format!("{} {:?}", context.user_id, context.conversation_id)),
            "opaque" => Answer {
                message: AnswerMessage { opaque: Some(rest.to_owned()), ..message("kept") },
                ..said("")
            },
            "loop" => spin(),
            _ => core::arch::wasm32::unreachable(),
        })
    }
}

fn error(word: &str, text: &str) -> Option<Error> {
    let text = text.to_owned();
    match word {
        "credentials" => Some(Error::Credentials(text)),
        "unreachable" => Some(Error::Unreachable(text)),
        "busy" => {
            let retry_after_ms = text.parse().ok();
            Some(Error::Busy(BusyService { message: text, retry_after_ms, extra: None }))
        }
        "refused" => Some(Error::Refused(text)),
        "other" => Some(Error::Other(text)),
        _ => None,
    }
}

fn said(text: &str) -> Answer {
    let usage = Usage { input_tokens: 7, output_tokens: u64::MAX, extra: None };
    Answer {
        message: message(text),
        is_final: true,
        finish: Finish::Stop,
        usage: Some(usage),
        extra: None,
    }
}

fn message(text: &str) -> AnswerMessage {
    AnswerMessage { text: text.to_owned(), calls: Vec::new(), opaque: None, extra: None }
}

fn calling(ids: &[&str], arguments: &str) -> Answer {
    let call = |id: &&str| ToolCall {
        id: (*id).to_owned(),
        name: "no_such_tool".to_owned(),
        arguments: arguments.to_owned(),
        extra: None,
    };
    let calls = ids.iter().map(call).collect();
    let message = AnswerMessage { calls, ..message("") };
    Answer { message, is_final: true, finish: Finish::ToolCalls, ..said("") }
}

/// What it was given, for the test to look at.
fn told(history: &[Message], tools: &[ToolDefinition], settings: &Generation) -> String {
    let mut words = Vec::new();
    for message in history {
        words.push(match message {
            Message::System(text) => format!("system {text}"),
            Message::User(user) => {
                let files = user.attachments.iter();
                let names: Vec<_> = files.map(|file| file.name.as_deref().unwrap_or("-")).collect();
                format!("user {} {} {}", user.text, names.len(), names.join(","))
            }
            Message::Assistant(answer) => {
                let calls = answer.calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>();
                let opaque = answer.opaque.as_deref().unwrap_or("-");
                format!("assistant {} {} {opaque}", answer.text, calls.join(","))
            }
            Message::Tool(result) => {
                format!("tool {} {} {}", result.call_id, result.data, result.failed)
            }
            Message::Other(_) => "other".to_owned(),
        });
    }
    words.extend(tools.iter().map(|tool| format!("tool {} {}", tool.name, tool.parameters)));
    words
        .push(format!("{:?} {:?} {:?}", settings.model, settings.temperature, settings.tokens_max));
    words.join(" | ")
}
