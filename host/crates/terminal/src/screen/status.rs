//! The status line: the current activity, its elapsed time, and the tokens so far.

use std::time::Duration;

use sallyport_contract::text;

use crate::{style::StyledLine, wrap};

/// Frames of the spinner.
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Duration of a frame, in milliseconds.
const FRAME_MS: u128 = 100;

/// The current activity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatusActivity {
    /// The model has not answered the request yet.
    Thinking,
    /// The model's answer is arriving.
    Answering,
    /// Tools are about to run. Those that run have rows of their own.
    Calling,
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
    /// How full the model's context is, if known.
    pub context: Option<ContextFill>,
}

/// The part of a model's context that the conversation fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextFill {
    /// Tokens of the newest request and its answer.
    pub used_tokens: u64,
    /// Tokens that the model can take.
    pub window_tokens: u64,
}

impl ContextFill {
    /// The part in percent, rounded up, so that only an empty context is 0 %. Estimates may exceed
    /// 100.
    pub fn percent(self) -> u64 {
        let percent = u128::from(self.used_tokens) * 100;
        let percent = percent.div_ceil(u128::from(self.window_tokens.max(1)));
        u64::try_from(percent).unwrap_or(u64::MAX)
    }
}

impl StatusLine {
    /// Returns the line at time `now`. It leaves one column free for the cursor.
    pub(super) fn render_line(&self, now: Duration, columns: usize) -> StyledLine {
        let mut words = format!("{} {}", spinner_frame(now), self.activity.display_text());
        words.push_str(&format!(" · {}", format_elapsed(now.saturating_sub(self.since))));
        if let Some(tokens) = self.tokens {
            words.push_str(&format!(" · {} tokens", format_grouped(tokens)));
        }
        if let Some(context) = self.context {
            words.push_str(&format!(" · ctx {} %", context.percent()));
        }
        let line = StyledLine::styled(words, anstyle::Style::new().dimmed());
        wrap::split_into_rows(&line, columns.saturating_sub(1)).swap_remove(0)
    }
}

impl StatusActivity {
    fn display_text(&self) -> String {
        match self {
            Self::Thinking => "thinking".to_owned(),
            Self::Answering => "answering".to_owned(),
            Self::Calling => "calling tools".to_owned(),
            Self::Other(words) => text::escape_line(words),
        }
    }
}

/// Returns the frame of the spinner at time `now`.
pub(super) fn spinner_frame(now: Duration) -> &'static str {
    FRAMES[(now.as_millis() / FRAME_MS) as usize % FRAMES.len()]
}

/// Formats a duration in human-readable form.
pub(super) fn format_elapsed(time: Duration) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fill_of_the_context_is_never_less_than_it_is() {
        let rows = [
            (0, 8000, 0),
            (1, 8000, 1),
            (960, 8000, 12),
            (961, 8000, 13),
            (8000, 8000, 100),
            (9000, 8000, 113),
            (u64::MAX, 1, u64::MAX),
            (0, 0, 0),
        ];
        for (used_tokens, window_tokens, want) in rows {
            let fill = ContextFill { used_tokens, window_tokens };
            assert_eq!(fill.percent(), want, "{fill:?}");
        }
    }

    #[test]
    fn the_status_line_fits_every_width() {
        let status = StatusLine {
            activity: StatusActivity::Other("\u{1b}[2J\u{202e}".repeat(20)),
            since: Duration::ZERO,
            tokens: Some(1234),
            context: Some(ContextFill { used_tokens: 960, window_tokens: 8000 }),
        };
        for columns in [1, 40, 80, 120] {
            let line = status.render_line(Duration::from_secs(61), columns);
            assert!(line.width() < columns.max(2), "{columns}: {}", line.text());
        }
        let short = StatusLine { activity: StatusActivity::Thinking, ..status };
        let line = short.render_line(Duration::from_secs(5), 80).text();
        assert!(line.ends_with("thinking · 5 s · 1,234 tokens · ctx 12 %"), "{line}");
    }
}
