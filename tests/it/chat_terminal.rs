//! A conversation at a terminal: what is typed, what is seen, and how it ends.

mod calls;
mod grants;
mod keys;
mod looks;
mod questions;
mod sessions;
mod stops;
mod typed_ahead;
mod undo;

use serde_json::json;

use crate::support::{Home, OpenAi, Person, Reply, warden::requests};

/// Ctrl-C and Ctrl-D.
const INTERRUPT: &str = "\u{3}";
const END: &str = "\u{4}";

/// What stands in front of a line that is typed.
const PROMPT: &str = "openai/m>";

/// A home with a model that follows a script, and the guest that does whatever it is told.
fn home(model: &OpenAi) -> Home {
    Home::new()
        .guest("hostile", &requests(&["GET https://hostile.example/"]))
        .env("OPENAI_BASE_URL", model.base_url())
        .env("OPENAI_API_KEY", "k")
}

/// Begins a conversation.
#[track_caller]
fn chat(home: &Home) -> Person {
    chat_with(home, &[])
}

#[track_caller]
fn chat_with(home: &Home, flags: &[&str]) -> Person {
    let person = Person::start(home, &[&["chat", "--model", "m"], flags].concat());
    person.sees_last(PROMPT);
    person
}

/// The screen from the first prompt on, without what differs from run to run.
fn told(person: &Person) -> String {
    let screen = person.screen();
    let from = screen.find(PROMPT).unwrap_or_default();
    let lines = screen[from..].lines().map(|line| {
        let line = cut(line, "--session ", "ID");
        let line = without_time(&line);
        line.split_inclusive([' ', '"']).map(digest).collect::<String>()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A digest changes whenever the guest is built.
fn digest(word: &str) -> String {
    let digits = word.trim_end_matches([' ', '"']);
    let is_digest = digits.len() >= 12 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_digest { word.replace(digits, "DIGEST") } else { word.to_owned() }
}

/// The line about a finished call ends with its time.
fn without_time(line: &str) -> String {
    match line.rsplit_once(" · ") {
        Some((head, time)) if line.starts_with('✓') && time.ends_with('s') => {
            format!("{head} · TIME")
        }
        _ => line.to_owned(),
    }
}

fn cut(line: &str, before: &str, name: &str) -> String {
    match line.split_once(before) {
        Some((head, _)) => format!("{head}{before}{name}"),
        None => line.to_owned(),
    }
}

/// A script in which the model has the guest say something again, and then says that all is done.
fn echoing() -> Vec<Reply> {
    vec![Reply::call("a", "hostile__echo", &json!({ "text": "hi" })), Reply::Text("All done.")]
}
