//! The status line: the current activity, its elapsed time, and the tokens so far.

use std::time::Duration;

use sallyport_contract::text;

use crate::{markdown, style::StyledLine};

/// Frames of the spinner.
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Duration of a frame, in milliseconds.
const FRAME_MS: u128 = 100;

/// Longest name that is shown, in characters.
const NAME_CHARS_MAX: usize = 40;

/// The current activity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatusActivity {
    /// The model has not answered the request yet.
    Thinking,
    /// The model's answer is arriving.
    Answering,
    /// Tools are running.
    Calling {
        /// Their names.
        tools: Vec<String>,
    },
    /// A tool waits for an external host.
    Waiting {
        /// Name of the tool.
        tool: String,
        /// The host that it sent a request to.
        host: String,
    },
    /// Any other activity, in human-readable form.
    Other(String),
}

/// Contents of the status line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusLine {
    /// The current activity.
    pub activity: StatusActivity,
    /// Start of the activity, on the clock of
    /// [`TerminalScreen::advance_time`](super::TerminalScreen::advance_time).
    pub since: Duration,
    /// Tokens that the turn used so far, if known.
    pub tokens: Option<u64>,
}

impl StatusLine {
    /// Returns the line at time `now`. It leaves one column free for the cursor.
    pub(super) fn render_line(&self, now: Duration, columns: usize) -> StyledLine {
        let frame = FRAMES[(now.as_millis() / FRAME_MS) as usize % FRAMES.len()];
        let mut words = format!("{frame} {}", self.activity.display_text());
        words.push_str(&format!(" · {}", format_elapsed(now.saturating_sub(self.since))));
        if let Some(tokens) = self.tokens {
            words.push_str(&format!(" · {} tokens", format_grouped(tokens)));
        }
        let line = StyledLine::styled(words, anstyle::Style::new().dimmed());
        markdown::split_into_rows(&line, columns.saturating_sub(1)).swap_remove(0)
    }
}

impl StatusActivity {
    fn display_text(&self) -> String {
        let name = |name: &str| text::escape_excerpt(name, NAME_CHARS_MAX);
        match self {
            Self::Thinking => "thinking".to_owned(),
            Self::Answering => "answering".to_owned(),
            Self::Calling { tools } => match tools.as_slice() {
                [] => "calling tools".to_owned(),
                [one] => name(one),
                [first, rest @ ..] => format!("{} and {} more", name(first), rest.len()),
            },
            Self::Waiting { tool, host } => format!("{} waits for {}", name(tool), name(host)),
            Self::Other(words) => text::escape_line(words),
        }
    }
}

/// Formats a duration in human-readable form.
fn format_elapsed(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} min {s:02} s"),
        (h, m, _) => format!("{h} h {m:02} min"),
    }
}

/// Formats a number with digits grouped in threes.
fn format_grouped(number: u64) -> String {
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
