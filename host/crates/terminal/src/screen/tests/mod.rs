//! Tests of the visible screen, on a terminal in memory.

mod bottom;
mod live;
mod property;
mod resizing;

use std::num::NonZero;

use super::*;
use crate::{markdown, wrap};

/// Lines of the terminal's scrollback.
const SCROLLBACK_LINES: usize = 10_000;

type Terminal = TerminalScreen<vt100::Parser>;

fn size(columns: u16, rows: u16) -> TerminalSize {
    TerminalSize::new(columns, rows)
}

fn terminal(columns: u16, rows: u16) -> Terminal {
    terminal_in(ColourMode::On, columns, rows)
}

fn terminal_in(colour: ColourMode, columns: u16, rows: u16) -> Terminal {
    let parser = vt100::Parser::new(count(rows), count(columns), SCROLLBACK_LINES);
    TerminalScreen::new(parser, size(columns, rows), colour)
}

impl<W: io::Write> TerminalScreen<W> {
    /// Writes plain text above the live region, with its own line breaks.
    fn print_note(&mut self, note: &str) -> io::Result<()> {
        let plain = |line| StyledLine::plain(sallyport_contract::text::escape_line(line));
        self.print_lines(&note.lines().map(plain).collect::<Vec<_>>())
    }
}

fn count(value: u16) -> NonZero<u16> {
    NonZero::new(value).unwrap()
}

fn thinking() -> Option<StatusLine> {
    Some(StatusLine {
        activity: StatusActivity::Thinking,
        since: Duration::ZERO,
        tokens: None,
        context: None,
    })
}

/// Resizes the terminal like its window would, then notifies the screen.
fn resize(screen: &mut Terminal, columns: u16, rows: u16) {
    screen.out.screen_mut().set_size(count(rows), count(columns));
    screen.resize(size(columns, rows)).unwrap();
}

/// Returns the visible rows, without blank ones at the end.
fn seen(screen: &Terminal) -> Vec<String> {
    let view = screen.out.screen();
    let (_, columns) = view.size();
    without_rest(view.rows(0, columns.get()).collect())
}

/// Returns all rows from the first that was written, without blank ones at the end.
fn everything(screen: &mut Terminal) -> Vec<String> {
    let view = screen.out.screen_mut();
    let (rows, columns) = (view.size().0.get().into(), view.size().1.get());
    view.set_scrollback(usize::MAX);
    let mut all = Vec::new();
    for offset in (1..=view.scrollback()).rev() {
        view.set_scrollback(offset);
        all.extend(view.rows(0, columns).take(1));
    }
    view.set_scrollback(0);
    all.extend(view.rows(0, columns).take(rows));
    without_rest(all)
}

fn without_rest(rows: Vec<String>) -> Vec<String> {
    let mut rows: Vec<_> = rows.iter().map(|row| row.trim_end().to_owned()).collect();
    let last = rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1);
    rows.truncate(last);
    rows
}

/// Returns the rows that a text takes in the end.
fn rendered(text: &str, columns: u16) -> Vec<String> {
    let lines = markdown::render_markdown(text, columns.into());
    let rows = lines.iter().flat_map(|line| wrap::split_into_rows(line, columns.into()));
    without_rest(rows.map(|row| row.text()).collect())
}
