//! The user's view: the screen, shared with the keyboard's thread.

use std::{
    io::{self, Stdout},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use anstyle::{AnsiColor, Style};
use sallyport_contract::{CallReport, Outcome, services::PluginNotice, text};
use sallyport_terminal::{
    picture::PictureSpace,
    screen::{RunningCall, StatusLine, TerminalScreen, TerminalSize},
    style::{ColourMode, StyledLine},
    typed_ahead::TypedAhead,
};

use crate::cli::{call_lines, plugin_notice};

pub(super) const DIM: Style = Style::new().dimmed();
const GREEN: Style = AnsiColor::Green.on_default();
const RED: Style = AnsiColor::Red.on_default().bold();
const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
const CYAN: Style = AnsiColor::Cyan.on_default();

/// The screen. Clones draw on the same one.
///
/// Errors are ignored: the next read reports a terminal that is gone.
#[derive(Debug, Clone)]
pub(super) struct ChatView {
    screen: Arc<Mutex<TerminalScreen<Stdout>>>,
    began: Instant,
}

impl ChatView {
    pub(super) fn new(colour: ColourMode) -> Self {
        let screen = TerminalScreen::new(io::stdout(), terminal_size(), colour);
        Self { screen: Arc::new(Mutex::new(screen)), began: Instant::now() }
    }

    /// Elapsed time on the clock of the spinner.
    pub(super) fn elapsed_time(&self) -> Duration {
        self.began.elapsed()
    }

    /// The current width of the terminal.
    pub(super) fn columns(&self) -> usize {
        terminal_size().columns()
    }

    /// Prints messages, folded to the width of the terminal.
    pub(super) fn print_lines(&self, lines: &[StyledLine]) {
        self.print_exact_lines(&self.fold_messages(lines));
    }

    /// Prints lines as they are, such as those of a card, whose policy text must stay whole.
    pub(super) fn print_exact_lines(&self, lines: &[StyledLine]) {
        self.draw_on_screen(|screen| screen.print_lines(lines));
    }

    /// Folds messages to the width of the terminal.
    pub(super) fn fold_messages(&self, lines: &[StyledLine]) -> Vec<StyledLine> {
        let columns = self.columns();
        lines.iter().flat_map(|line| line.fold_message(columns)).collect()
    }

    /// Shows the next piece of an answer.
    pub(super) fn show_text(&self, piece: &str) {
        self.draw_on_screen(|screen| screen.show_answer(piece));
    }

    /// Shows the next piece of the reasoning.
    pub(super) fn show_reasoning(&self, piece: &str) {
        self.draw_on_screen(|screen| screen.show_reasoning(piece));
    }

    /// Makes the arriving text final.
    pub(super) fn commit_text(&self) {
        self.draw_on_screen(TerminalScreen::finish_text);
    }

    /// Ends the text and removes the live region.
    pub(super) fn finish(&self) {
        self.draw_on_screen(TerminalScreen::finish);
    }

    pub(super) fn set_status(&self, status: Option<StatusLine>) {
        self.draw_on_screen(|screen| screen.set_status(status));
    }

    /// Shows the running calls, one per row.
    pub(super) fn set_calls(&self, calls: Vec<RunningCall>) {
        self.draw_on_screen(|screen| screen.set_calls(calls));
    }

    /// Shows what the user types ahead.
    pub(super) fn set_typed_ahead(&self, typed_ahead: TypedAhead) {
        self.draw_on_screen(|screen| screen.set_typed_ahead(typed_ahead));
    }

    /// Draws a picture.
    pub(super) fn print_picture(&self, codes: &str) {
        self.draw_on_screen(|screen| screen.print_picture(codes));
    }

    /// The space that a picture has.
    pub(super) fn picture_space(&self) -> PictureSpace {
        let size = rustix::termios::tcgetwinsize(io::stdout());
        let pixels = size.map_or((0, 0), |size| (size.ws_xpixel, size.ws_ypixel));
        PictureSpace::new(terminal_size(), pixels.0, pixels.1)
    }

    /// Rings the bell, for a notice that is to be spoken.
    pub(super) fn ring_bell(&self) {
        self.draw_on_screen(TerminalScreen::ring_bell);
    }

    pub(super) fn tick_spinner(&self) {
        let now = self.elapsed_time();
        self.draw_on_screen(|screen| screen.advance_time(now));
    }

    pub(super) fn resize(&self) {
        self.draw_on_screen(|screen| screen.resize(terminal_size()));
    }

    fn draw_on_screen(&self, draw: impl FnOnce(&mut TerminalScreen<Stdout>) -> io::Result<()>) {
        let _ = draw(&mut self.screen.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Returns the current size of the terminal.
fn terminal_size() -> TerminalSize {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    size.map_or(TerminalSize::new(0, 0), |size| TerminalSize::new(size.ws_col, size.ws_row))
}

/// Lines of secondary text, dimmed.
pub(super) fn note_lines(text: &str) -> Vec<StyledLine> {
    text.lines().map(|line| StyledLine::styled(text::escape_line(line), DIM)).collect()
}

pub(super) fn warning_line(message: &str) -> StyledLine {
    labeled_line("warning:", YELLOW, message)
}

pub(super) fn error_line(message: &str) -> StyledLine {
    labeled_line("error:", RED, message)
}

pub(super) fn hint_line(hint: &str) -> StyledLine {
    labeled_line("hint:", CYAN, hint)
}

/// The notice of a plugin. Each line starts with the plugin's name.
pub(super) fn notice_lines(notice: &PluginNotice) -> Vec<StyledLine> {
    let speaker = format!("{}:", plugin_notice::notice_source(notice));
    plugin_notice::notice_lines(notice)
        .iter()
        .map(|line| labeled_line(&speaker, CYAN, line))
        .collect()
}

/// The line about a finished call. Its mark is coloured.
pub(super) fn call_line(call: &str, report: &CallReport) -> StyledLine {
    let is_completed = matches!(report.outcome, Outcome::Completed(_));
    let style = if is_completed { GREEN } else { RED };
    let mut line = StyledLine::styled(call_lines::outcome_mark(&report.outcome), style);
    line.push(&format!(" {}", call_lines::call_end_words(call, report)), DIM);
    line
}

/// A name with its explanation, in two columns.
pub(super) fn pair_line(name: &str, width: usize, explanation: &str) -> StyledLine {
    let mut line = StyledLine::styled(format!("  {:width$}", text::escape_line(name)), CYAN);
    line.push(&format!("  {}", text::escape_line(explanation)), Style::new());
    line
}

/// A message that was given on the command line, as if it were typed.
pub(super) fn typed_lines(model: &str, message: &str) -> Vec<StyledLine> {
    let message = text::escape_multiline(message);
    let mut lines = message.lines();
    let mut first = StyledLine::styled(format!("{}> ", text::escape_line(model)), CYAN);
    first.push(lines.next().unwrap_or_default(), Style::new());
    std::iter::once(first).chain(lines.map(StyledLine::plain)).collect()
}

fn labeled_line(name: &str, style: Style, message: &str) -> StyledLine {
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
            note_lines(foreign),
            vec![
                warning_line(foreign),
                error_line(foreign),
                hint_line(foreign),
                pair_line(foreign, 4, foreign),
            ],
        ];
        for line in lines.concat() {
            let text = line.text();
            assert!(text.contains("\\u{1b}") && !text.contains(['\u{1b}', '\u{202e}']), "{text}");
        }
    }

    #[test]
    fn a_text_has_as_many_lines_as_it_had() {
        let texts = |lines: Vec<StyledLine>| lines.iter().map(StyledLine::text).collect::<Vec<_>>();
        assert_eq!(texts(note_lines("one\ntwo")), ["one", "two"]);
        assert_eq!(error_line("one\ntwo").text(), "error: one\\ntwo");
    }
}
