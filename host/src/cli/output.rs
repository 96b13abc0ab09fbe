//! All output of the program.
//!
//! Standard output carries the answer of a command and standard error everything else. Text from
//! plugins, models and servers is escaped first, so that none of their control sequences reaches
//! the terminal. Errors, warnings and hints stay on one line, so that foreign text cannot imitate
//! another message; a terminal that is too narrow shows the rest of the line indented. Colours are left out if they would not be visible.
//!
//! No method here fails. `finish` reports lost output once, at the end of the program.

use std::{
    fmt,
    io::{self, IsTerminal},
    os::fd::AsFd,
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
};

use anstream::ColorChoice;
use anstyle::{AnsiColor, Style};
use clap::builder::StyledStr;
use rustix::{io::Errno, termios::QueueSelector};
use sallyport_contract::{
    services,
    text::{self, ProseEscaper},
};
use sallyport_terminal::{
    listing::{ListRow, list_lines, table_lines},
    screen::TerminalSize,
    style::{ColourMode, StyledLine},
};
use serde_json::Value;

use super::{
    excerpt,
    exit::{CommandFailure, ExitStatus},
    plugin_notice::{notice_lines, notice_source},
    stream::{OutputStream, STDERR, STDOUT},
};

/// Prints to standard output.
macro_rules! print {
    ($($text:tt)*) => { STDOUT.write(format_args!($($text)*)) };
}

/// Prints a line to standard output.
macro_rules! println {
    ($($text:tt)*) => { STDOUT.write(format_args!("{}\n", format_args!($($text)*))) };
}

/// Prints to standard error.
macro_rules! eprint {
    ($($text:tt)*) => { STDERR.write(format_args!($($text)*)) };
}

/// Prints a line to standard error.
macro_rules! eprintln {
    ($($text:tt)*) => { STDERR.write(format_args!("{}\n", format_args!($($text)*))) };
}

/// Precedes each line of facts and of blocks.
const BLOCK_INDENT: &str = "    ";

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const RED: Style = AnsiColor::Red.on_default().bold();
const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
const CYAN: Style = AnsiColor::Cyan.on_default();

/// The standard output streams of the program.
#[derive(Debug, Clone, Copy)]
pub(super) struct CliOutput {
    /// Whether standard output is a terminal.
    pub(super) stdout_is_terminal: bool,
    /// Whether the user can be asked: standard input and standard error are terminals.
    pub(super) can_ask: bool,
    /// Whether standard error is a terminal.
    pub(super) stderr_is_terminal: bool,
}

impl CliOutput {
    pub(super) fn new() -> Self {
        let stderr_is_terminal = io::stderr().is_terminal();
        Self {
            stdout_is_terminal: io::stdout().is_terminal(),
            can_ask: io::stdin().is_terminal() && stderr_is_terminal,
            stderr_is_terminal,
        }
    }

    /// Prints a line of the answer, or the end of one that came in pieces.
    pub(super) fn print_line(&self, line: &str) {
        println!("{}{}", lock_answer_pieces().finish(), text::escape_multiline(line));
    }

    /// Prints sentences of the answer. At a terminal they are folded to its width.
    pub(super) fn print_text(&self, sentences: &str) {
        let columns = self.stdout_columns().unwrap_or(usize::MAX);
        let lines = message_lines("", sentences, Style::new());
        let lines = lines.iter().flat_map(|line| line.fold_message(columns));
        self.print_styled_lines(&lines.collect::<Vec<_>>());
    }

    /// Prints a heading within the answer.
    pub(super) fn print_heading(&self, text: &str) {
        println!("{BOLD}{text}{BOLD:#}");
    }

    /// Prints a list in columns. At a terminal it fits the width; elsewhere each row is one line.
    pub(super) fn print_list(&self, rows: &[ListRow]) {
        self.print_styled_lines(&list_lines(rows, self.stdout_columns()));
    }

    /// Prints lines with their styles.
    pub(super) fn print_styled_lines(&self, lines: &[StyledLine]) {
        for line in lines {
            println!("{}", line.to_terminal_text(ColourMode::On));
        }
    }

    /// Prints a table, whose columns have names. It fits the terminal as a list does.
    pub(super) fn print_table(&self, names: &[&str], rows: &[ListRow]) {
        self.print_styled_lines(&table_lines(names, rows, self.stdout_columns()));
    }

    /// Prints a piece of a model's answer as it arrives.
    pub(super) fn print_piece(&self, piece: &str) {
        print!("{}", lock_answer_pieces().push(piece));
    }

    /// Prints a whole answer of a model.
    pub(super) fn print_answer(&self, answer: &str) {
        println!("{}", text::escape_prose(answer));
    }

    /// Prints whole lines that a plugin draws, styled by their meaning.
    pub(super) fn print_drawn(&self, drawn: &str, meaning: services::TextStyle) {
        let style = match meaning {
            services::TextStyle::Plain => Style::new(),
            services::TextStyle::Strong => BOLD,
            services::TextStyle::Faint => DIM,
            services::TextStyle::Warning => YELLOW,
            services::TextStyle::Failure => RED,
        };
        for line in text::escape_multiline(drawn).lines() {
            println!("{style}{line}{style:#}");
        }
    }

    /// Replaces the status line, or erases it. It is cut to one row, because only one is erased.
    pub(super) fn set_status(&self, words: Option<&str>) {
        // A line that reaches the last column would wrap, and the mark of a cut needs one more.
        let room = self.stderr_columns().unwrap_or(usize::MAX).saturating_sub(2);
        let words = words.map(|words| text::escape_excerpt(words, room)).unwrap_or_default();
        eprint!("\r\u{1b}[2K{DIM}{words}{DIM:#}");
    }

    /// Prints a JSON document.
    pub(super) fn print_json(&self, value: &Value) {
        println!("{}", text::escape_json(&format!("{value:#}")));
    }

    /// Prints a JSON document on one line, for lists.
    pub(super) fn print_json_line(&self, value: &Value) {
        println!("{}", text::escape_json(&value.to_string()));
    }

    /// Prints generated text, such as completions, unchanged.
    pub(super) fn print_generated(&self, text: &[u8]) {
        STDOUT.write_bytes(text);
    }

    /// Prints a line that is not part of the answer.
    pub(super) fn print_note(&self, line: &str) {
        self.print_message("", line, DIM);
    }

    /// Prints lines to standard error, folded if it is a terminal. An address stays whole.
    fn print_message(&self, indent: &str, message: &str, style: Style) {
        let columns = self.stderr_columns().unwrap_or(usize::MAX);
        let lines = message_lines(indent, message, style);
        for line in lines.iter().flat_map(|line| line.fold_note(columns)) {
            eprintln!("{}", line.to_terminal_text(ColourMode::On));
        }
    }

    /// Prints one line to standard error after a word that says what it is, folded if it is a
    /// terminal.
    fn print_marked(&self, mark: &str, style: Style, message: &str) {
        let mut line = StyledLine::styled(mark, style);
        line.push(&format!(" {}", text::escape_line(message)), Style::new());
        for line in line.fold_message(self.stderr_columns().unwrap_or(usize::MAX)) {
            eprintln!("{}", line.to_terminal_text(ColourMode::On));
        }
    }

    /// Prints text that is not part of the answer, without a line break.
    pub(super) fn print_note_piece(&self, piece: &str) {
        eprint!("{DIM}{}{DIM:#}", text::escape_multiline(piece));
    }

    /// Prints a warning.
    pub(super) fn print_warning(&self, message: &str) {
        self.print_marked("warning:", YELLOW, message);
    }

    /// Prints the notice of a plugin, with the plugin's name in front of each line.
    ///
    /// At a terminal the bell rings for a notice that is to be spoken.
    pub(super) fn print_notice(&self, notice: &services::PluginNotice) {
        let mut bell = "";
        if notice.speech.is_some() && self.stderr_is_terminal {
            bell = "\u{7}";
        }
        let speaker = notice_source(notice);
        for line in notice_lines(notice) {
            eprint!("{bell}");
            self.print_marked(&format!("{speaker}:"), CYAN, &line);
            bell = "";
        }
    }

    /// Prints a question that waits for the user.
    pub(super) fn print_question(&self, question: &str) {
        self.print_marked("approval:", YELLOW, question);
    }

    /// Discards input typed before a question was visible. It was not meant as the answer.
    pub(super) fn discard_typed_input(&self) {
        // Errors are ignored: without a terminal there are no questions.
        let _ = rustix::termios::tcflush(io::stdin(), QueueSelector::IFlush);
    }

    /// Whether all output to standard error was written. A question that could not be shown counts
    /// as unanswered.
    pub(super) fn is_stderr_intact(&self) -> bool {
        STDERR.write_error().is_none()
    }

    /// Prints an indented line of facts.
    pub(super) fn print_detail(&self, line: &str) {
        self.print_message(BLOCK_INDENT, line, Style::new());
    }

    /// Prints an indented block for copying, such as policy lines. It is not folded, so that a
    /// terminal copies its lines whole.
    pub(super) fn print_block(&self, block: &str) {
        for line in block.lines() {
            eprintln!("{BLOCK_INDENT}{}", text::escape_multiline(line));
        }
    }

    /// Prints a hint on how to fix a problem.
    pub(super) fn print_hint(&self, hint: &str) {
        self.print_marked("hint:", CYAN, hint);
    }

    /// Whether standard error is a terminal with colours enabled.
    fn has_stderr_colours(&self) -> bool {
        self.stderr_is_terminal && STDERR.colour_choice() != ColorChoice::Never
    }

    /// Prints a failure with its hint. Returns the exit code.
    pub(super) fn print_failure(&self, failure: &CommandFailure) -> ExitStatus {
        self.print_error(&failure.message);
        let drawn = failure.location.as_ref().filter(|_| self.has_stderr_colours());
        if let Some(drawn) = drawn.and_then(excerpt::draw_excerpt) {
            eprint!("{drawn}");
        }
        if let Some(hint) = &failure.hint {
            self.print_hint(hint);
        }
        failure.exit
    }

    /// Prints an error.
    pub(super) fn print_error(&self, message: &str) {
        self.print_marked("error:", RED, message);
    }

    /// Prints a message of clap: help and version as answers, everything else as errors.
    pub(super) fn print_clap_message(&self, error: &clap::Error) -> ExitStatus {
        let words = error.render();
        match error.use_stderr() {
            true => eprint!("{}", words.ansi()),
            false => print!("{}", words.ansi()),
        }
        if error.use_stderr() { ExitStatus::Usage } else { ExitStatus::Done }
    }

    /// Prints the help of a command as an answer.
    pub(super) fn print_help(&self, help: &StyledStr) {
        print!("{}", help.ansi());
    }

    /// Prints the help of a command because the command line is incomplete.
    pub(super) fn print_missing_command(&self, help: &StyledStr) -> ExitStatus {
        eprint!("{}", help.ansi());
        ExitStatus::Usage
    }

    /// Returns the width of standard output in columns if it is a terminal.
    pub(super) fn stdout_columns(&self) -> Option<usize> {
        self.stdout_is_terminal.then(|| terminal_columns(&io::stdout())).flatten()
    }

    /// Returns the width of standard error in columns if it is a terminal.
    pub(super) fn stderr_columns(&self) -> Option<usize> {
        self.stderr_is_terminal.then(|| terminal_columns(&io::stderr())).flatten()
    }

    /// Reports that standard output cannot be written.
    pub(super) fn print_write_error(&self, error: &io::Error) {
        self.print_error(&format!("cannot write the output: {error}"));
        self.print_hint("free space where standard output goes, or redirect it");
    }

    /// Reports lost output. Returns the exit code: the command's own, unless it would hide that
    /// output is missing.
    pub(super) fn finish(&self, exit: ExitStatus) -> ExitStatus {
        let is_fine = matches!(exit, ExitStatus::Done | ExitStatus::Interrupted);
        let stdout = stream_loss(&STDOUT, self.stdout_is_terminal);
        if let Some(StreamLoss::Failed(error)) = stdout {
            self.print_write_error(error);
        }
        let stderr = stream_loss(&STDERR, self.stderr_is_terminal);
        match (stdout, stderr) {
            (Some(StreamLoss::Failed(_)), _) | (_, Some(StreamLoss::Failed(_))) if is_fine => {
                ExitStatus::Failed
            }
            // A closed pipe is a normal end, because `| head` ends the program this way.
            (Some(StreamLoss::ReaderGone), _) if is_fine => ExitStatus::Done,
            _ => exit,
        }
    }
}

/// A number of things, by the name of one: `1 session`, `2 sessions`.
pub(super) fn format_count<N: fmt::Display + PartialEq + From<u8>>(count: N, what: &str) -> String {
    if count == N::from(1) { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Escapes sentences, each line after an indent.
fn message_lines(indent: &str, sentences: &str, style: Style) -> Vec<StyledLine> {
    let escaped = text::escape_multiline(sentences);
    let lines =
        escaped.split('\n').map(|line| StyledLine::styled(format!("{indent}{line}"), style));
    lines.collect()
}

fn terminal_columns(stream: &impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok().filter(|size| size.ws_col > 0)?;
    Some(TerminalSize::new(size.ws_col, size.ws_row).columns())
}

/// Text of a model that arrives in pieces on standard output.
fn lock_answer_pieces() -> MutexGuard<'static, ProseEscaper> {
    static PIECES: LazyLock<Mutex<ProseEscaper>> = LazyLock::new(Mutex::default);
    PIECES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until standard output is lost. Further work would have no reader.
pub(super) async fn wait_for_stdout_loss() {
    STDOUT.wait_for_loss().await;
}

/// The reason why a stream was lost.
#[derive(Clone, Copy)]
enum StreamLoss {
    /// The reader is gone: a closed pipe, or a terminal that hung up.
    ReaderGone,
    /// A write failed.
    Failed(&'static io::Error),
}

fn stream_loss(stream: &'static OutputStream, is_terminal: bool) -> Option<StreamLoss> {
    let error = stream.write_error()?;
    let has_hung_up = is_terminal && Errno::from_io_error(error) == Some(Errno::IO);
    match error.kind() == io::ErrorKind::BrokenPipe || has_hung_up {
        true => Some(StreamLoss::ReaderGone),
        false => Some(StreamLoss::Failed(error)),
    }
}
