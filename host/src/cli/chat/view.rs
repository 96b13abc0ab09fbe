//! The user's view: the screen, shared with the keyboard's thread.

use std::{
    io::{self, Stdout},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use anstyle::{AnsiColor, Style};
use sallyport_contract::{services::PluginNotice, text};
use sallyport_terminal::{
    screen::{Look, Screen, Size, Status},
    style::{Colour, Line},
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
    screen: Arc<Mutex<Screen<Stdout>>>,
    began: Instant,
}

impl View {
    pub(super) fn new(colour: Colour) -> Self {
        let screen = Screen::new(io::stdout(), size(), Look::Live(colour));
        Self { screen: Arc::new(Mutex::new(screen)), began: Instant::now() }
    }

    /// Elapsed time on the clock of the spinner.
    pub(super) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    pub(super) fn print(&self, lines: &[Line]) {
        self.draw(|screen| screen.print(lines));
    }

    /// Shows the next piece of an answer.
    pub(super) fn text(&self, piece: &str) {
        self.draw(|screen| screen.text(piece));
    }

    /// Shows the next piece of the reasoning.
    pub(super) fn reasoning(&self, piece: &str) {
        self.draw(|screen| screen.reasoning(piece));
    }

    /// Makes the arriving text final.
    pub(super) fn settle(&self) {
        self.draw(Screen::settle);
    }

    /// Ends the text and removes the live region.
    pub(super) fn finish(&self) {
        self.draw(Screen::finish);
    }

    pub(super) fn status(&self, status: Option<Status>) {
        self.draw(|screen| screen.status(status));
    }

    /// Rings the bell, for a notice that is to be spoken.
    pub(super) fn ring(&self) {
        self.draw(Screen::ring);
    }

    pub(super) fn tick(&self) {
        let now = self.now();
        self.draw(|screen| screen.tick(now));
    }

    pub(super) fn resize(&self) {
        self.draw(|screen| screen.resize(size()));
    }

    fn draw(&self, draw: impl FnOnce(&mut Screen<Stdout>) -> io::Result<()>) {
        let _ = draw(&mut self.screen.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Returns the current size of the terminal.
fn size() -> Size {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    size.map_or(Size::new(0, 0), |size| Size::new(size.ws_col, size.ws_row))
}

/// Lines of secondary text, dimmed.
pub(super) fn note(text: &str) -> Vec<Line> {
    text.lines().map(|line| Line::styled(text::escape_line(line), DIM)).collect()
}

pub(super) fn warning(message: &str) -> Line {
    named("warning:", YELLOW, message)
}

pub(super) fn error(message: &str) -> Line {
    named("error:", RED, message)
}

pub(super) fn hint(hint: &str) -> Line {
    named("hint:", CYAN, hint)
}

/// The notice of a plugin. Each line starts with the plugin's name.
pub(super) fn noticed(notice: &PluginNotice) -> Vec<Line> {
    let speaker = format!("{}:", show::speaker(notice));
    show::lines(notice).iter().map(|line| named(&speaker, CYAN, line)).collect()
}

/// A name with its explanation, in two columns.
pub(super) fn pair(name: &str, width: usize, explanation: &str) -> Line {
    let mut line = Line::styled(format!("  {:width$}", text::escape_line(name)), CYAN);
    line.push(&format!("  {}", text::escape_line(explanation)), Style::new());
    line
}

/// Indented text for copying, such as policy rules.
pub(super) fn block(block: &str) -> Vec<Line> {
    block.lines().map(|line| Line::plain(format!("    {}", text::escape_line(line)))).collect()
}

fn named(name: &str, style: Style, message: &str) -> Line {
    let mut line = Line::styled(name, style);
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
        let texts = |lines: Vec<Line>| lines.iter().map(Line::text).collect::<Vec<_>>();
        assert_eq!(texts(note("one\ntwo")), ["one", "two"]);
        assert_eq!(texts(block("[[rule]]\nx = 1\n")), ["    [[rule]]", "    x = 1"]);
        assert_eq!(error("one\ntwo").text(), "error: one\\ntwo");
    }
}
