//! Everything that is printed goes through here.
//!
//! Standard output carries the answer of a command, standard error everything else. Text from
//! plugins, models and servers is made visible first, so that no control sequence of theirs reaches
//! the terminal, and errors, warnings and hints stay on one line each, so that no text of theirs looks
//! like another line of ours. Colour is left out when nobody would see it.
//!
//! Nothing here fails: what could not be written is told once, at the end of the program (`finish`).

use std::{
    io::{self, IsTerminal},
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
};

use anstream::ColorChoice;
use anstyle::{AnsiColor, Style};
use rustix::{io::Errno, termios::QueueSelector};
use sallyport_contract::{
    services,
    text::{self, Prose},
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

/// The two streams of the program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Output {
    /// Whether somebody watches standard output.
    pub(super) stdout_is_terminal: bool,
    /// Whether somebody can be asked: both ends of the conversation are a terminal.
    pub(super) can_ask: bool,
    /// Whether somebody watches standard error.
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

    /// A line of the answer, or the end of one that came in pieces.
    pub(super) fn line(&self, line: &str) {
        println!("{}{}", pieces().finish(), text::visible(line));
    }

    /// A heading within the answer.
    pub(super) fn heading(&self, text: &str) {
        println!("{BOLD}{text}{BOLD:#}");
    }

    /// A name with its explanation, in two columns.
    pub(super) fn pair(&self, name: &str, width: usize, text: &str) {
        println!("  {CYAN}{:width$}{CYAN:#}  {}", text::one_line(name), text::one_line(text));
    }

    /// A piece of a model's answer, while it arrives.
    pub(super) fn piece(&self, piece: &str) {
        print!("{}", pieces().push(piece));
    }

    /// A whole answer of a model.
    pub(super) fn answer(&self, answer: &str) {
        println!("{}", text::prose(answer));
    }

    /// What a plugin draws: whole lines, in one of a few meanings.
    pub(super) fn drawn(&self, drawn: &str, meaning: services::Style) {
        let style = match meaning {
            services::Style::Plain => Style::new(),
            services::Style::Strong => BOLD,
            services::Style::Faint => DIM,
            services::Style::Warning => YELLOW,
            services::Style::Failure => RED,
        };
        for line in text::visible(drawn).lines() {
            println!("{style}{line}{style:#}");
        }
    }

    /// Words that stand in the last line until there are others, or none.
    pub(super) fn status(&self, words: Option<&str>) {
        let words = words.map(text::one_line).unwrap_or_default();
        eprint!("\r\u{1b}[2K{DIM}{words}{DIM:#}");
    }

    /// A JSON document.
    pub(super) fn json(&self, value: &Value) {
        println!("{}", text::visible_json(&format!("{value:#}")));
    }

    /// A JSON document on one line, for lists of them.
    pub(super) fn json_line(&self, value: &Value) {
        println!("{}", text::visible_json(&value.to_string()));
    }

    /// Generated text such as completions, as it is.
    pub(super) fn generated(&self, text: &[u8]) {
        STDOUT.write_bytes(text);
    }

    /// A line beside the answer.
    pub(super) fn note(&self, line: &str) {
        eprintln!("{DIM}{}{DIM:#}", text::visible(line));
    }

    /// A piece beside the answer, without a line break.
    pub(super) fn aside(&self, piece: &str) {
        eprint!("{DIM}{}{DIM:#}", text::visible(piece));
    }

    /// Something that is off but stops nothing.
    pub(super) fn warn(&self, message: &str) {
        eprintln!("{YELLOW}warning:{YELLOW:#} {}", text::one_line(message));
    }

    /// What a plugin says beside the answer, with its name before each line. What is to be heard rings
    /// where somebody sits.
    pub(super) fn notice(&self, notice: &services::Notice) {
        let mut bell = "";
        if notice.speech.is_some() && self.stderr_is_terminal {
            bell = "\u{7}";
        }
        let speaker = show::speaker(notice);
        for line in show::lines(notice) {
            eprintln!("{bell}{CYAN}{speaker}:{CYAN:#} {}", text::one_line(&line));
            bell = "";
        }
    }

    /// Something that waits for the person.
    pub(super) fn question(&self, question: &str) {
        eprintln!("{YELLOW}approval:{YELLOW:#} {}", text::one_line(question));
    }

    /// Forgets what was typed before a question was on the screen: it was not meant for it.
    pub(super) fn forget_typed(&self) {
        // Without a terminal nobody is asked.
        let _ = rustix::termios::tcflush(io::stdin(), QueueSelector::IFlush);
    }

    /// Whether all that was printed to standard error so far could be seen: a question that could not
    /// be shown is answered by nobody.
    pub(super) fn is_seen(&self) -> bool {
        STDERR.loss().is_none()
    }

    /// A block of text to be copied, such as a policy line.
    pub(super) fn block(&self, block: &str) {
        for line in block.lines() {
            eprintln!("    {}", text::visible(line));
        }
    }

    /// What to do about something.
    pub(super) fn hint(&self, hint: &str) {
        eprintln!("{CYAN}hint:{CYAN:#} {}", text::one_line(hint));
    }

    /// Whether somebody watches standard error who wants it in colours.
    fn stderr_is_colourful(&self) -> bool {
        self.stderr_is_terminal && STDERR.colours() != ColorChoice::Never
    }

    /// An error with its way out, and the code to end with.
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

    /// An error.
    pub(super) fn error(&self, message: &str) {
        eprintln!("{RED}error:{RED:#} {}", text::one_line(message));
    }

    /// What clap has to say: help and version are answers, the rest are errors.
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

    /// Tells what could not be written, and returns the code to end with: that of the command, unless
    /// it would hide that somebody has not seen all of the output.
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
            // It was stopped because nobody reads any more, which is how `| head` ends it.
            (Some(Loss::ReaderGone), _) if is_fine => Exit::Done,
            _ => exit,
        }
    }
}

/// The text of a model that arrives in pieces at standard output.
fn pieces() -> MutexGuard<'static, Prose> {
    static PIECES: LazyLock<Mutex<Prose>> = LazyLock::new(Mutex::default);
    PIECES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until nobody can see what is printed to standard output: what goes on then is for nobody.
pub(super) async fn stdout_is_lost() {
    STDOUT.lost().await;
}

/// How a stream came to its end.
#[derive(Clone, Copy)]
enum Loss {
    /// Whoever read it has gone: a closed pipe, or a terminal that hung up.
    ReaderGone,
    /// It could not be written.
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
