//! The rows below the arriving text: running calls, the status, and what the user types ahead.

use std::time::Duration;

use anstyle::{AnsiColor, Style};
use sallyport_contract::text;
use unicode_segmentation::UnicodeSegmentation;

use super::status::{StatusLine, format_elapsed, spinner_frame};
use crate::{columns::text_columns, style::StyledLine, typed_ahead::TypedAhead, wrap};

/// Most running calls with a row of their own. The rest is counted.
const CALL_ROWS_MAX: usize = 6;

/// Most queued inputs with a row of their own. The earlier ones are counted.
const QUEUED_ROWS_MAX: usize = 3;

/// In front of the line that is typed ahead.
const PROMPT: &str = "> ";

/// In front of a line whose beginning does not fit.
const CUT_MARK: &str = "…";

const DIM: Style = Style::new().dimmed();
const CYAN: Style = AnsiColor::Cyan.on_default();

/// A call that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningCall {
    /// The tool and its subject.
    pub text: String,
    /// Its progress, or what it waits for.
    pub detail: Option<String>,
    /// Its start, on the clock of
    /// [`TerminalScreen::advance_time`](super::TerminalScreen::advance_time).
    pub since: Duration,
}

/// The contents of the rows.
#[derive(Debug, Default)]
pub(super) struct BottomContents {
    pub(super) calls: Vec<RunningCall>,
    pub(super) status: Option<StatusLine>,
    pub(super) typed_ahead: TypedAhead,
}

/// The rows, none of them wider than the screen.
#[derive(Debug, Default)]
pub(super) struct BottomRows {
    pub(super) rows: Vec<StyledLine>,
    /// The cursor's column in the last row. `None` leaves it behind the row.
    pub(super) cursor_column: Option<usize>,
}

impl BottomContents {
    /// Lays out the rows at time `now`. They leave one column free for the cursor.
    pub(super) fn render_rows(&self, now: Duration, columns: usize) -> BottomRows {
        let width = columns.saturating_sub(1);
        let mut rows: Vec<_> =
            self.call_lines(now).iter().map(|line| cut_to_width(line, width)).collect();
        rows.extend(self.status.as_ref().map(|status| status.render_line(now, columns)));
        rows.extend(self.queued_lines().iter().map(|line| cut_to_width(line, width)));
        if self.typed_ahead.is_empty() {
            return BottomRows { rows, cursor_column: None };
        }
        let (row, cursor_column) = typed_row(&self.typed_ahead, width);
        rows.push(row);
        BottomRows { rows, cursor_column: Some(cursor_column) }
    }

    fn call_lines(&self, now: Duration) -> Vec<StyledLine> {
        let shown = self.calls.len().min(CALL_ROWS_MAX);
        let frame = spinner_frame(now);
        let lines = self.calls[..shown].iter().map(|call| {
            let detail = call.detail.as_deref().map(|detail| format!(" · {detail}"));
            let words = text::escape_line(&(call.text.clone() + &detail.unwrap_or_default()));
            let elapsed = format_elapsed(now.saturating_sub(call.since));
            StyledLine::styled(format!("{frame} {words} · {elapsed}"), DIM)
        });
        let more = count_line(self.calls.len() - shown, "more call");
        lines.chain(more).collect()
    }

    fn queued_lines(&self) -> Vec<StyledLine> {
        let queued = &self.typed_ahead.queued;
        let first = queued.len().saturating_sub(QUEUED_ROWS_MAX);
        let shown = queued[first..]
            .iter()
            .map(|input| StyledLine::styled(format!("queued: {}", text::escape_line(input)), DIM));
        let advice = (!queued.is_empty())
            .then(|| StyledLine::styled("Press Up to take back the last queued message.", DIM));
        count_line(first, "earlier message").into_iter().chain(shown).chain(advice).collect()
    }
}

fn count_line(count: usize, what: &str) -> Option<StyledLine> {
    match count {
        0 => None,
        1 => Some(StyledLine::styled(format!("… 1 {what}"), DIM)),
        count => Some(StyledLine::styled(format!("… {count} {what}s"), DIM)),
    }
}

fn cut_to_width(line: &StyledLine, width: usize) -> StyledLine {
    wrap::split_into_rows(line, width).swap_remove(0)
}

/// Lays out the typed line in one row, so that it never scrolls the screen. Returns the row and the
/// cursor's column in it.
fn typed_row(typed: &TypedAhead, width: usize) -> (StyledLine, usize) {
    let (before, after) = typed.line.split_at(typed.cursor);
    let room = width.saturating_sub(text_columns(PROMPT));
    let visible = end_within(&display_text(before), room);
    let mut row = StyledLine::styled(PROMPT, CYAN);
    row.push(&visible, Style::new());
    let cursor_column = row.width();
    row.push(&display_text(after), Style::new());
    (cut_to_width(&row, width), cursor_column.min(width))
}

/// Returns a typed text on one line. Line breaks are shown as arrows.
fn display_text(text: &str) -> String {
    text.split('\n').map(text::escape_line).collect::<Vec<_>>().join("↵")
}

/// Returns as much of the end of a text as fits into a width.
fn end_within(text: &str, width: usize) -> String {
    if text_columns(text) <= width {
        return text.to_owned();
    }
    let mut columns = text_columns(CUT_MARK);
    let kept = text.graphemes(true).rev().take_while(|grapheme| {
        columns += text_columns(grapheme);
        columns <= width
    });
    let kept_bytes: usize = kept.map(str::len).sum();
    format!("{CUT_MARK}{}", &text[text.len() - kept_bytes..])
}
