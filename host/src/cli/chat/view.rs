//! The user's view: the screen, shared with the keyboard's thread.

use std::{
    io::{self, Stdout},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use anstyle::{AnsiColor, Style};
use sallyport_contract::{services::PluginNotice, text};
use sallyport_terminal::{
    screen::{OutputCapabilities, StatusLine, TerminalScreen, TerminalSize},
    style::{ColourMode, StyledLine},
};

use crate::cli::show;

const DIM: Style = Style::new().dimmed();
const RED: Style = AnsiColor::Red.on_default().bold();
const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
const CYAN: Style = AnsiColor::Cyan.on_default();

/// The screen. Clones draw on the same one.
///
/// Errors are ignored: the next read reports a terminal that is gone.
#[derive(Debug, Clone)]
pub(super) struct View {
    screen: Arc<Mutex<TerminalScreen<Stdout>>>,
    began: Instant,
}

impl View {
    pub(super) fn new(colour: ColourMode) -> Self {
        let screen = TerminalScreen::new(io::stdout(), size(), OutputCapabilities::Live(colour));
        Self { screen: Arc::new(Mutex::new(screen)), began: Instant::now() }
    }

    /// Elapsed time on the clock of the spinner.
    pub(super) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    pub(super) fn print(&self, lines: &[StyledLine]) {
        self.draw(|screen| screen.print_lines(lines));
    }

    /// Shows the next piece of an answer.
    pub(super) fn text(&self, piece: &str) {
        self.draw(|screen| screen.show_answer(piece));
    }

    /// Shows the next piece of the reasoning.
    pub(super) fn reasoning(&self, piece: &str) {
        self.draw(|screen| screen.show_reasoning(piece));
    }

    /// Makes the arriving text final.
    pub(super) fn settle(&self) {
        self.draw(TerminalScreen::finish_text);
    }

    /// Ends the text and removes the live region.
    pub(super) fn finish(&self) {
        self.draw(TerminalScreen::finish);
    }

    pub(super) fn status(&self, status: Option<StatusLine>) {
        self.draw(|screen| screen.set_status(status));
    }

    /// Rings the bell, for a notice that is to be spoken.
    pub(super) fn ring(&self) {
        self.draw(TerminalScreen::ring_bell);
    }

    pub(super) fn tick(&self) {
        let now = self.now();
        self.draw(|screen| screen.advance_time(now));
    }

    pub(super) fn resize(&self) {
        self.draw(|screen| screen.resize(size()));
    }

    fn draw(&self, draw: impl FnOnce(&mut TerminalScreen<Stdout>) -> io::Result<()>) {
        let _ = draw(&mut self.screen.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Returns the current size of the terminal.
fn size() -> TerminalSize {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    size.map_or(TerminalSize::new(0, 0), |size| TerminalSize::new(size.ws_col, size.ws_row))
}

/// Lines of secondary text, dimmed.
pub(super) fn note(text: &str) -> Vec<StyledLine> {
    text.lines().map(|line| StyledLine::styled(text::escape_line(line), DIM)).collect()
}

pub(super) fn warning(message: &str) -> StyledLine {
    named("warning:", YELLOW, message)
}

pub(super) fn error(message: &str) -> StyledLine {
    named("error:", RED, message)
}

pub(super) fn hint(hint: &str) -> StyledLine {
    named("hint:", CYAN, hint)
}

/// The notice of a plugin. Each line starts with the plugin's name.
pub(super) fn noticed(notice: &PluginNotice) -> Vec<StyledLine> {
    let speaker = format!("{}:", show::speaker(notice));
    show::lines(notice).iter().map(|line| named(&speaker, CYAN, line)).collect()
}

/// A name with its explanation, in two columns.
pub(super) fn pair(name: &str, width: usize, explanation: &str) -> StyledLine {
    let mut line = StyledLine::styled(format!("  {:width$}", text::escape_line(name)), CYAN);
    line.push(&format!("  {}", text::escape_line(explanation)), Style::new());
    line
}

/// Indented text for copying, such as policy rules.
pub(super) fn block(block: &str) -> Vec<StyledLine> {
    block
        .lines()
        .map(|line| StyledLine::plain(format!("    {}", text::escape_line(line))))
        .collect()
}

fn named(name: &str, style: Style, message: &str) -> StyledLine {
    let mut line = StyledLine::styled(name, style);
    line.push(&format!(" {}", text::escape_line(message)), Style::new());
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_gets_into_a_line() {
        let foreign = "a\u{1b}[2J\u{202e}b";
        let lines = [
            note(foreign),
            vec![warning(foreign), error(foreign), hint(foreign), pair(foreign, 4, foreign)],
            block(foreign),
        ];
        for line in lines.concat() {
            let text = line.text();
            assert!(text.contains("\\u{1b}") && !text.contains(['\u{1b}', '\u{202e}']), "{text}");
        }
    }

    #[test]
    fn a_text_has_as_many_lines_as_it_had() {
        let texts = |lines: Vec<StyledLine>| lines.iter().map(StyledLine::text).collect::<Vec<_>>();
        assert_eq!(texts(note("one\ntwo")), ["one", "two"]);
        assert_eq!(texts(block("[[rule]]\nx = 1\n")), ["    [[rule]]", "    x = 1"]);
        assert_eq!(error("one\ntwo").text(), "error: one\\ntwo");
    }
}
