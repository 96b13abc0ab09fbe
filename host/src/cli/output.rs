//! All output of the program.
//!
//! Standard output carries the answer of a command and standard error everything else. Text from
//! plugins, models and servers is escaped first, so that none of their control sequences reaches
//! the terminal. Errors, warnings and hints stay on one line, so that foreign text cannot imitate
//! another message. Colours are left out if they would not be visible.
//!
//! No method here fails. `finish` reports lost output once, at the end of the program.

use std::{
    io::{self, IsTerminal},
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
};

use anstream::ColorChoice;
use anstyle::{AnsiColor, Style};
use rustix::{io::Errno, termios::QueueSelector};
use sallyport_contract::{
    services,
    text::{self, ProseEscaper},
};
use serde_json::Value;

use super::{
    excerpt,
    exit::{Exit, Failure},
    neighbours, show,
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

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const RED: Style = AnsiColor::Red.on_default().bold();
const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
const CYAN: Style = AnsiColor::Cyan.on_default();

/// The standard output streams of the program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Output {
    /// Whether standard output is a terminal.
    pub(super) stdout_is_terminal: bool,
    /// Whether the user can be asked: standard input and standard error are terminals.
    pub(super) can_ask: bool,
    /// Whether standard error is a terminal.
    pub(super) stderr_is_terminal: bool,
}

impl Output {
    pub(super) fn new() -> Self {
        let stderr_is_terminal = io::stderr().is_terminal();
        Self {
            stdout_is_terminal: io::stdout().is_terminal(),
            can_ask: io::stdin().is_terminal() && stderr_is_terminal,
            stderr_is_terminal,
        }
    }

    /// Prints a line of the answer, or the end of one that came in pieces.
    pub(super) fn line(&self, line: &str) {
        println!("{}{}", pieces().finish(), text::escape_multiline(line));
    }

    /// Prints a heading within the answer.
    pub(super) fn heading(&self, text: &str) {
        println!("{BOLD}{text}{BOLD:#}");
    }

    /// Prints a name with its explanation, in two columns.
    pub(super) fn pair(&self, name: &str, width: usize, text: &str) {
        println!("  {CYAN}{:width$}{CYAN:#}  {}", text::escape_line(name), text::escape_line(text));
    }

    /// Prints a piece of a model's answer as it arrives.
    pub(super) fn piece(&self, piece: &str) {
        print!("{}", pieces().push(piece));
    }

    /// Prints a whole answer of a model.
    pub(super) fn answer(&self, answer: &str) {
        println!("{}", text::escape_prose(answer));
    }

    /// Prints whole lines that a plugin draws, styled by their meaning.
    pub(super) fn drawn(&self, drawn: &str, meaning: services::TextStyle) {
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

    /// Replaces the status line, or erases it.
    pub(super) fn status(&self, words: Option<&str>) {
        let words = words.map(text::escape_line).unwrap_or_default();
        eprint!("\r\u{1b}[2K{DIM}{words}{DIM:#}");
    }

    /// Prints a JSON document.
    pub(super) fn json(&self, value: &Value) {
        println!("{}", text::escape_json(&format!("{value:#}")));
    }

    /// Prints a JSON document on one line, for lists.
    pub(super) fn json_line(&self, value: &Value) {
        println!("{}", text::escape_json(&value.to_string()));
    }

    /// Prints generated text, such as completions, unchanged.
    pub(super) fn generated(&self, text: &[u8]) {
        STDOUT.write_bytes(text);
    }

    /// Prints a line that is not part of the answer.
    pub(super) fn note(&self, line: &str) {
        eprintln!("{DIM}{}{DIM:#}", text::escape_multiline(line));
    }

    /// Prints text that is not part of the answer, without a line break.
    pub(super) fn aside(&self, piece: &str) {
        eprint!("{DIM}{}{DIM:#}", text::escape_multiline(piece));
    }

    /// Prints a warning.
    pub(super) fn warn(&self, message: &str) {
        eprintln!("{YELLOW}warning:{YELLOW:#} {}", text::escape_line(message));
    }

    /// Prints the notice of a plugin, with the plugin's name in front of each line.
    ///
    /// At a terminal the bell rings for a notice that is to be spoken.
    pub(super) fn notice(&self, notice: &services::PluginNotice) {
        let mut bell = "";
        if notice.speech.is_some() && self.stderr_is_terminal {
            bell = "\u{7}";
        }
        let speaker = show::speaker(notice);
        for line in show::lines(notice) {
            eprintln!("{bell}{CYAN}{speaker}:{CYAN:#} {}", text::escape_line(&line));
            bell = "";
        }
    }

    /// Prints a question that waits for the user.
    pub(super) fn question(&self, question: &str) {
        eprintln!("{YELLOW}approval:{YELLOW:#} {}", text::escape_line(question));
    }

    /// Discards input typed before a question was visible. It was not meant as the answer.
    pub(super) fn forget_typed(&self) {
        // Errors are ignored: without a terminal there are no questions.
        let _ = rustix::termios::tcflush(io::stdin(), QueueSelector::IFlush);
    }

    /// Whether all output to standard error was written. A question that could not be shown counts
    /// as unanswered.
    pub(super) fn is_seen(&self) -> bool {
        STDERR.loss().is_none()
    }

    /// Prints an indented block for copying, such as policy lines.
    pub(super) fn block(&self, block: &str) {
        for line in block.lines() {
            eprintln!("    {}", text::escape_multiline(line));
        }
    }

    /// Prints a hint on how to fix a problem.
    pub(super) fn hint(&self, hint: &str) {
        eprintln!("{CYAN}hint:{CYAN:#} {}", text::escape_line(hint));
    }

    /// Whether standard error is a terminal with colours enabled.
    fn stderr_is_colourful(&self) -> bool {
        self.stderr_is_terminal && STDERR.colours() != ColorChoice::Never
    }

    /// Prints a failure with its hint. Returns the exit code.
    pub(super) fn failure(&self, failure: &Failure) -> Exit {
        self.error(&failure.message);
        let drawn = failure.place.as_ref().filter(|_| self.stderr_is_colourful());
        if let Some(drawn) = drawn.and_then(excerpt::draw) {
            eprint!("{drawn}");
        }
        if let Some(hint) = &failure.hint {
            self.hint(hint);
        }
        failure.exit
    }

    /// Prints an error.
    pub(super) fn error(&self, message: &str) {
        eprintln!("{RED}error:{RED:#} {}", text::escape_line(message));
    }

    /// Prints a message of clap: help and version as answers, everything else as errors.
    pub(super) fn usage(&self, error: &clap::Error) -> Exit {
        let words = error.render();
        match error.use_stderr() {
            true => eprint!("{}", words.ansi()),
            false => print!("{}", words.ansi()),
        }
        if let Some(hint) = neighbours::hint(error) {
            self.hint(hint);
        }
        if error.use_stderr() { Exit::Usage } else { Exit::Done }
    }

    /// Reports lost output. Returns the exit code: the command's own, unless it would hide that
    /// output is missing.
    pub(super) fn finish(&self, exit: Exit) -> Exit {
        let is_fine = matches!(exit, Exit::Done | Exit::Interrupted);
        let stdout = loss(&STDOUT, self.stdout_is_terminal);
        if let Some(Loss::Failed(error)) = stdout {
            self.error(&format!("cannot write the output: {error}"));
            self.hint("free space where standard output goes, or redirect it");
        }
        let stderr = loss(&STDERR, self.stderr_is_terminal);
        match (stdout, stderr) {
            (Some(Loss::Failed(_)), _) | (_, Some(Loss::Failed(_))) if is_fine => Exit::Failed,
            // A closed pipe is a normal end, because `| head` ends the program this way.
            (Some(Loss::ReaderGone), _) if is_fine => Exit::Done,
            _ => exit,
        }
    }
}

/// Text of a model that arrives in pieces on standard output.
fn pieces() -> MutexGuard<'static, ProseEscaper> {
    static PIECES: LazyLock<Mutex<ProseEscaper>> = LazyLock::new(Mutex::default);
    PIECES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until standard output is lost. Further work would have no reader.
pub(super) async fn stdout_is_lost() {
    STDOUT.lost().await;
}

/// The reason why a stream was lost.
#[derive(Clone, Copy)]
enum Loss {
    /// The reader is gone: a closed pipe, or a terminal that hung up.
    ReaderGone,
    /// A write failed.
    Failed(&'static io::Error),
}

fn loss(stream: &'static OutputStream, is_terminal: bool) -> Option<Loss> {
    let error = stream.loss()?;
    let has_hung_up = is_terminal && Errno::from_io_error(error) == Some(Errno::IO);
    match error.kind() == io::ErrorKind::BrokenPipe || has_hung_up {
        true => Some(Loss::ReaderGone),
        false => Some(Loss::Failed(error)),
    }
}
