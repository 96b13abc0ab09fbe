//! The line editor.

use std::{
    io::{self, Write},
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc::SyncSender,
    },
};

use nu_ansi_term::{Color, Style};
use reedline::{
    ColumnarMenu, DefaultHinter, EditCommand, ExternalPrinter, MenuBuilder, Reedline, ReedlineMenu,
    Signal,
};
use sallyport_contract::text;

use super::{
    complete::{Tab, Vocabulary},
    history::{PrivateHistory, clean},
    mode::Original,
    outside::Outside,
    prompt::Prompt,
    typing::{Continued, EDIT, INTERRUPT, KeyStyle, Look, MENU},
};
use crate::{
    attach::Disk,
    style::{Colour, Line},
};

/// Most messages that wait to be shown above the line. Messages worth reading do not arrive faster.
const MESSAGES_WAITING_MAX: usize = 64;

/// A line that begins with it is not stored in the history, as in most shells.
const FORGOTTEN_PREFIX: &str = " ";

/// Settings of the editor.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Private folder for the history and for messages in the external editor. It is created if it
    /// is missing. Without it neither is available.
    pub folder: Option<PathBuf>,
    /// The key bindings.
    pub keys: KeyStyle,
    /// Whether the line is coloured.
    pub colour: Colour,
    /// Command of the user's own editor, from `$VISUAL` or `$EDITOR`.
    pub editor: Option<String>,
    /// Files that `@` completes.
    pub disk: Disk,
}

/// The initial state of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begin {
    /// The user continues this text.
    With(String),
    /// This text opens in the external editor.
    Outside(String),
}

/// The result of reading a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// The typed text, which may have several lines.
    Line(String),
    /// Ctrl-C on an empty line.
    Interrupted,
    /// Ctrl-D on an empty line, or the terminal is gone.
    End,
    /// The question was withdrawn. Contains the text typed so far.
    Withdrawn(String),
}

/// Shows messages above the line that is being typed.
#[derive(Debug, Clone)]
pub struct Printer {
    sender: SyncSender<String>,
    colour: Colour,
}

impl Printer {
    /// Shows lines above the one that is being typed, or with the next one.
    ///
    /// Returns `false` and drops them if too many are waiting.
    pub fn print(&self, lines: &[Line]) -> bool {
        let lines: Vec<_> = lines.iter().map(|line| line.to_terminal(self.colour)).collect();
        self.sender.try_send(lines.join("\n")).is_ok()
    }
}

/// The line editor: one engine for messages, one for all other input.
pub(super) struct Editor {
    message: Reedline,
    aside: Reedline,
    continued: Continued,
    outside: Outside,
    original: Original,
}

/// State that an [`Editor`] shares with other threads.
pub(super) struct Shared {
    pub(super) words: Arc<Mutex<Vocabulary>>,
    pub(super) broken: Arc<AtomicBool>,
    pub(super) printer: ExternalPrinter<String>,
}

impl Shared {
    pub(super) fn new() -> Self {
        let printer = ExternalPrinter::new(MESSAGES_WAITING_MAX);
        Self { words: Arc::default(), broken: Arc::default(), printer }
    }

    pub(super) fn printer(&self, colour: Colour) -> Printer {
        Printer { sender: self.printer.sender(), colour }
    }
}

impl Editor {
    /// Creates an editor. Also returns notices about it.
    pub(super) fn new(settings: Settings, shared: Shared, original: Original) -> (Self, Vec<Line>) {
        let continued = Continued::default();
        let (history, notices) = history(&settings);
        let outside = Outside { command: settings.editor.clone(), folder: settings.folder.clone() };
        let engine = |broken| {
            Reedline::create()
                .with_ansi_colors(settings.colour == Colour::On)
                .with_edit_mode(settings.keys.edit_mode())
                .with_validator(Box::new(continued.clone()))
                .use_bracketed_paste(true)
                .with_break_signal(broken)
        };
        let aside = engine(Arc::clone(&shared.broken)).with_highlighter(Box::new(Plain));
        let message = engine(shared.broken)
            .with_highlighter(Box::new(Look))
            .with_history(Box::new(history))
            .with_history_exclusion_prefix(Some(FORGOTTEN_PREFIX.into()))
            .with_hinter(Box::new(DefaultHinter::default().with_style(dim())))
            .with_completer(Box::new(Tab { words: shared.words, disk: settings.disk }))
            .with_menu(menu())
            .with_quick_completions(true)
            .with_partial_completions(true)
            .with_external_printer(shared.printer);
        (Self { message, aside, continued, outside, original }, notices)
    }

    /// Reads a line unless `withdrawn` returns true. `show` displays errors of the external editor.
    ///
    /// # Errors
    ///
    /// The terminal cannot be read.
    pub(super) fn read(
        &mut self,
        prompt: &Prompt,
        begin: &Begin,
        withdrawn: &dyn Fn() -> bool,
        show: &mut dyn FnMut(&[Line]),
    ) -> io::Result<Input> {
        let (Begin::With(initial) | Begin::Outside(initial)) = begin;
        self.continued.forget();
        fill(self.engine(prompt), &clean(initial));
        if matches!(begin, Begin::Outside(_)) {
            self.edit_outside(prompt, show);
        }
        while !withdrawn() {
            let engine = self.engine(prompt);
            match engine.read_line(prompt)? {
                Signal::Success(text) => return Ok(Input::Line(self.continued.take_out(&text))),
                Signal::CtrlD => return Ok(Input::End),
                Signal::HostCommand(name) if name == EDIT => self.edit_outside(prompt, show),
                Signal::HostCommand(name) if name == INTERRUPT => {
                    if engine.current_buffer_contents().is_empty() {
                        below(engine);
                        return Ok(Input::Interrupted);
                    }
                    fill(engine, "");
                }
                // An abandoned search, or a signal for an earlier line.
                _ => {}
            }
        }
        let engine = self.engine(prompt);
        let text = engine.current_buffer_contents().to_owned();
        below(engine);
        fill(engine, "");
        Ok(Input::Withdrawn(text))
    }

    fn engine(&mut self, prompt: &Prompt) -> &mut Reedline {
        match prompt {
            Prompt::Message { .. } => &mut self.message,
            Prompt::Aside { .. } => &mut self.aside,
        }
    }

    fn edit_outside(&mut self, prompt: &Prompt, show: &mut dyn FnMut(&[Line])) {
        let text = self.engine(prompt).current_buffer_contents().to_owned();
        self.original.restore();
        let edited = self.outside.edit(&text);
        // On failure the terminal keeps its current modes.
        let _ = self.original.quiet();
        match edited {
            Ok(text) => fill(self.engine(prompt), &text),
            Err(error) => {
                below(self.engine(prompt));
                show(&[Line::plain(text::escape_line(&error.to_string()))]);
            }
        }
    }
}

fn history(settings: &Settings) -> (PrivateHistory, Vec<Line>) {
    let Some(folder) = &settings.folder else { return (PrivateHistory::unkept(), Vec::new()) };
    match PrivateHistory::open(folder) {
        Ok(history) => (history, Vec::new()),
        Err(error) => {
            let folder = text::escape_line(&folder.to_string_lossy());
            let notice = format!("lines are not remembered: {folder} cannot be used: {error}");
            (PrivateHistory::unkept(), vec![Line::plain(notice)])
        }
    }
}

fn menu() -> ReedlineMenu {
    let menu = ColumnarMenu::default()
        .with_name(MENU)
        .with_marker("> ")
        .with_text_style(Style::new())
        .with_selected_text_style(Style::new().reverse())
        .with_description_text_style(dim());
    ReedlineMenu::EngineCompleter(Box::new(menu))
}

fn dim() -> Style {
    Style::new().fg(Color::DarkGray)
}

fn fill(engine: &mut Reedline, text: &str) {
    engine.run_edit_commands(&[EditCommand::Clear, EditCommand::InsertString(text.to_owned())]);
}

/// Moves below the line on the screen. The engine does so only for a complete line.
fn below(engine: &Reedline) {
    let rest = engine.current_buffer_contents().get(engine.current_insertion_point()..);
    let lines = 1 + rest.unwrap_or_default().matches('\n').count();
    // The next read reports a terminal that is gone.
    let _ = io::stderr().write_all("\r\n".repeat(lines).as_bytes());
}

/// Highlighter that leaves the line unstyled.
struct Plain;

impl reedline::Highlighter for Plain {
    fn highlight(&self, line: &str, _cursor: usize) -> reedline::StyledText {
        let mut styled = reedline::StyledText::new();
        styled.push((Style::new(), line.to_owned()));
        styled
    }

    fn should_expand_abbr(&self, _: &str, _: usize, _: reedline::AbbrExpandContext) -> bool {
        false
    }
}

/// Interrupts the line that is being read, so that its withdrawal is checked immediately.
pub(super) fn break_off(broken: &AtomicBool) {
    broken.store(true, Ordering::SeqCst);
}
