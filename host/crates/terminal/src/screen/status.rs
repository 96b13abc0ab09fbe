//! The line that says what is being waited for, since when, and what it took so far.

use std::time::Duration;

use sallyport_contract::text;

use crate::{markdown, style::Line};

/// The spinner, one after the other.
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// How long each of them is shown, in milliseconds: alive, not nervous.
const FRAME_MS: u128 = 100;

/// Longest name that is shown, in characters.
const NAME_CHARS_MAX: usize = 40;

/// What is being done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Activity {
    /// The model was asked and has not said anything yet.
    Thinking,
    /// The model's answer arrives.
    Answering,
    /// Tools run.
    Calling {
        /// Their names.
        tools: Vec<String>,
    },
    /// A tool waits for somebody outside.
    Waiting {
        /// Its name.
        tool: String,
        /// The host that it asked.
        host: String,
    },
    /// Anything else, in words.
    Other(String),
}

/// What the status line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// What is being done.
    pub activity: Activity,
    /// When it began, on the clock of [`Screen::tick`](super::Screen::tick).
    pub since: Duration,
    /// Tokens that the turn took so far, where that is known.
    pub tokens: Option<u64>,
}

impl Status {
    /// Returns the line at a moment, narrower than the screen by the place of the cursor.
    pub(super) fn line(&self, now: Duration, columns: usize) -> Line {
        let frame = FRAMES[(now.as_millis() / FRAME_MS) as usize % FRAMES.len()];
        let mut words = format!("{frame} {}", self.activity.words());
        words.push_str(&format!(" · {}", elapsed(now.saturating_sub(self.since))));
        if let Some(tokens) = self.tokens {
            words.push_str(&format!(" · {} tokens", grouped(tokens)));
        }
        let line = Line::styled(words, anstyle::Style::new().dimmed());
        markdown::rows(&line, columns.saturating_sub(1)).swap_remove(0)
    }
}

impl Activity {
    fn words(&self) -> String {
        let name = |name: &str| text::excerpt(name, NAME_CHARS_MAX);
        match self {
            Self::Thinking => "thinking".to_owned(),
            Self::Answering => "answering".to_owned(),
            Self::Calling { tools } => match tools.as_slice() {
                [] => "calling tools".to_owned(),
                [one] => name(one),
                [first, rest @ ..] => format!("{} and {} more", name(first), rest.len()),
            },
            Self::Waiting { tool, host } => format!("{} waits for {}", name(tool), name(host)),
            Self::Other(words) => text::one_line(words),
        }
    }
}

/// Returns a time as a person says it.
fn elapsed(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} min {s:02} s"),
        (h, m, _) => format!("{h} h {m:02} min"),
    }
}

/// Returns a number with its digits in threes.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
