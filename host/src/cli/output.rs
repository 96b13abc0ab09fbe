//! Everything that is printed goes through here.
//!
//! Standard output carries the answer of a command, standard error everything else. Text from
//! plugins, models and servers is made visible first, so that no control sequence of theirs reaches
//! the terminal, and errors, warnings and hints stay on one line each, so that no text of theirs looks
//! like another line of ours. Colour is left out when nobody would see it.
#![expect(clippy::disallowed_macros, reason = "this is the one place that prints")]

use std::io::{self, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice, eprint, eprintln, print, println};
use anstyle::{AnsiColor, Style};
use rustix::termios::QueueSelector;
use sallyport_contract::{services, text};
use serde_json::Value;

use super::{
    excerpt,
    exit::{Exit, Failure},
    neighbours,
};

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

    /// A line of the answer.
    pub(super) fn line(&self, line: &str) {
        println!("{}", text::visible(line));
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
        print!("{}", text::visible(piece));
        // A terminal that went away is noticed at the next line.
        let _ = io::stdout().flush();
    }

    /// A whole answer of a model.
    pub(super) fn answer(&self, answer: &str) {
        println!("{}", text::visible(answer));
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
        let _ = io::stderr().flush();
    }

    /// A JSON document.
    pub(super) fn json(&self, value: &Value) {
        println!("{}", text::visible_json(&format!("{value:#}")));
    }

    /// A JSON document on one line, for lists of them.
    pub(super) fn json_line(&self, value: &Value) {
        println!("{}", text::visible_json(&value.to_string()));
    }

    /// The raw stream, for generated text such as completions.
    pub(super) fn stdout(&self) -> impl Write {
        io::stdout()
    }

    /// A line beside the answer.
    pub(super) fn note(&self, line: &str) {
        eprintln!("{DIM}{}{DIM:#}", text::visible(line));
    }

    /// A piece beside the answer, without a line break.
    pub(super) fn aside(&self, piece: &str) {
        eprint!("{DIM}{}{DIM:#}", text::visible(piece));
        let _ = io::stderr().flush();
    }

    /// Something that is off but stops nothing.
    pub(super) fn warn(&self, message: &str) {
        eprintln!("{YELLOW}warning:{YELLOW:#} {}", text::one_line(message));
    }

    /// What a plugin says beside the answer. What is to be heard rings where somebody sits.
    pub(super) fn notice(&self, speaker: &str, words: &str, is_aloud: bool) {
        let bell = if is_aloud && self.stderr_is_terminal { "\u{7}" } else { "" };
        eprintln!("{bell}{CYAN}{speaker}:{CYAN:#} {}", text::one_line(words));
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
        let choice = AutoStream::choice(&io::stderr());
        self.stderr_is_terminal && choice != ColorChoice::Never
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
        // Nothing can be done when even this cannot be printed.
        let _ = error.print();
        if let Some(hint) = neighbours::hint(error) {
            self.hint(hint);
        }
        if error.use_stderr() { Exit::Usage } else { Exit::Done }
    }
}
