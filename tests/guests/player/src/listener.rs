//! A listener that does what the text of a signal says.

use crate::{
    Player,
    contract::{
        exports::sallyport::plugin::listener::{Guest, Reply, Signal},
        sallyport::plugin::{
            inbox::{self, Error, Input},
            types::{Blob, ToolError},
        },
    },
    spin,
};

impl Guest for Player {
    fn start() -> Result<(), ToolError> {
        Ok(())
    }

    fn stop() {}

    fn handle(connection: String, signal: Signal) -> Result<Vec<Reply>, ToolError> {
        let Signal::Text(text) = signal else { return Ok(vec![told(&connection, &signal)]) };
        match text.split_once(' ').unwrap_or((&text, "")) {
            ("submit", text) => Ok(vec![Reply::Text(submit(text))]),
            ("attach", text) => {
                let (media_type, data) = ("audio/wav".to_owned(), vec![0; 44]);
                let blob = Blob { media_type, data, name: None, extra: None };
                Ok(vec![Reply::Text(hand_in(text, vec![blob]))])
            }
            ("flood", _) => Ok(vec![Reply::Text(flood())]),
            ("large", _) => Ok(vec![Reply::Text(submit(&"x".repeat(100_000)))]),
            ("replies", count) => Ok(vec![Reply::Close; count.parse().unwrap_or_default()]),
            ("reply", bytes) => {
                Ok(vec![Reply::Text("x".repeat(bytes.parse().unwrap_or_default()))])
            }
            ("kinds", _) => Ok(vec![
                Reply::Text("text".to_owned()),
                Reply::Other("{}".to_owned()),
                Reply::Binary(vec![1, 2, 3]),
                Reply::Close,
            ]),
            ("fail", text) => Err(ToolError::Failed(text.to_owned())),
            ("loop", _) => spin(),
            ("trap", _) => core::arch::wasm32::unreachable(),
            _ => Ok(Vec::new()),
        }
    }
}

fn told(connection: &str, signal: &Signal) -> Reply {
    let text = match signal {
        Signal::Opened(opening) => format!("opened {}", opening.peer),
        Signal::Text(text) => format!("text {text}"),
        Signal::Binary(data) => format!("binary {}", data.len()),
        Signal::Answered(answer) => format!("answered {}", answer.text),
        Signal::Closed => "closed".to_owned(),
        Signal::Other(_) => "other".to_owned(),
    };
    Reply::Text(format!("{connection}: {text}"))
}

/// Hands in a text, and says what came of it.
pub(crate) fn submit(text: &str) -> String {
    hand_in(text, Vec::new())
}

fn hand_in(text: &str, attachments: Vec<Blob>) -> String {
    let (text, origin) = (text.to_owned(), Some("Ada".to_owned()));
    match inbox::submit(&Input { text, attachments, origin, extra: None }) {
        Ok(()) => "taken".to_owned(),
        Err(Error::NotGranted) => "not granted".to_owned(),
        Err(Error::Invalid(text)) => format!("invalid: {text}"),
        Err(Error::Full(text)) => format!("full: {text}"),
        Err(Error::Other(text)) => format!("other: {text}"),
    }
}

fn flood() -> String {
    let taken = (0..1000).filter(|number| submit(&format!("input {number}")) == "taken").count();
    format!("{taken} taken, then {}", submit("one more"))
}
