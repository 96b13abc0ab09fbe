//! A UI that does what a line says.

use crate::{
    Player,
    contract::{
        exports::sallyport::plugin::ui::{Event, Guest},
        sallyport::plugin::{
            commands::{self, Decision, Error, UserInput},
            render::{self, Style},
        },
    },
    spin,
};

impl Guest for Player {
    fn on_event(event: Event) {
        let Event::Line(line) = event else { return show(&format!("{event:?}")) };
        match line.split_once(' ').unwrap_or((&line, "")) {
            ("submit", text) => show(&told(submit(text))),
            ("approve", id) => show(&decide(id, Decision::ApproveOnce)),
            ("approve_session", id) => show(&decide(id, Decision::ApproveForSession)),
            ("approve_always", id) => show(&decide(id, Decision::ApproveAlways)),
            ("deny", rest) => {
                let (id, why) = rest.split_once(' ').unwrap_or((rest, ""));
                show(&decide(id, Decision::Deny(why.to_owned())));
            }
            ("cancel", _) => show(&told(commands::cancel())),
            ("flood", _) => {
                let taken = (0..1000).filter(|_| submit("again").is_ok()).count();
                let answered = (0..1000).filter(|_| commands::cancel().is_ok()).count();
                show(&format!("{taken} taken, {answered} cancelled"));
            }
            ("draw", count) => {
                let page = "x".repeat(1000);
                (0..count.parse().unwrap_or_default()).for_each(|_: u32| show(&page));
            }
            ("status", text) => render::status(Some(text).filter(|text| !text.is_empty())),
            ("loop", _) => spin(),
            _ => core::arch::wasm32::unreachable(),
        }
    }
}

fn show(text: &str) {
    render::print(text, &Style::Strong);
}

fn submit(text: &str) -> Result<(), Error> {
    let text = text.to_owned();
    commands::submit_input(&UserInput { text, attachments: Vec::new(), extra: None })
}

/// Answers a question, and says what came of it.
pub(crate) fn decide(id: &str, decision: Decision) -> String {
    told(commands::provide_confirmation(id, &decision))
}

/// What came of a command, in words.
fn told(result: Result<(), Error>) -> String {
    match result {
        Ok(()) => "taken".to_owned(),
        Err(Error::NotGranted) => "not granted".to_owned(),
        Err(Error::NoSuchQuestion) => "no such question".to_owned(),
        Err(Error::Invalid(text)) => format!("invalid: {text}"),
        Err(Error::Full(text)) => format!("full: {text}"),
        Err(Error::Other(text)) => format!("other: {text}"),
    }
}
