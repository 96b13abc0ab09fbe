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

/// Messages that wait to be shown above the line. Nothing that a person should read comes faster.
const MESSAGES_WAITING_MAX: usize = 64;

/// A line that begins with it is not remembered, as in most shells.
const FORGOTTEN_PREFIX: &str = " ";

/// What the editor is made from.
#[derive(Debug, Clone)]
pub struct Settings {
    /// A private folder for the history and for messages that are edited elsewhere; made if it is
    /// not there. Without it there is neither.
    pub folder: Option<PathBuf>,
    /// Which keys it follows.
    pub keys: KeyStyle,
    /// Whether the line has colours.
    pub colour: Colour,
    /// The words of the person's own editor, from `$VISUAL` or `$EDITOR`.
    pub editor: Option<String>,
    /// Where `@` finds files.
    pub disk: Disk,
}

/// How a line begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begin {
    /// With this text, behind which the person types on.
    With(String),
    /// With this text in the person's own editor.
    Outside(String),
}

/// What came of reading a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A line, perhaps of several lines, as it was typed.
    Line(String),
    /// Ctrl-C on an empty line.
    Interrupted,
    /// Ctrl-D on an empty line, or the terminal is gone.
    End,
    /// The question was withdrawn; what was typed up to then.
    Withdrawn(String),
}

/// Shows messages above the line that is being typed.
#[derive(Debug, Clone)]
pub struct Printer {
    sender: SyncSender<String>,
    colour: Colour,
}

impl Printer {
    /// Shows lines above the one that is being typed, or with the next one. `false` when too many
    /// wait already, and these were not taken.
    pub fn print(&self, lines: &[Line]) -> bool {
        let lines: Vec<_> = lines.iter().map(|line| line.to_terminal(self.colour)).collect();
        self.sender.try_send(lines.join("\n")).is_ok()
    }
}

/// The line editor: one engine for messages, one for everything else.
pub(super) struct Editor {
    message: Reedline,
    aside: Reedline,
    continued: Continued,
    outside: Outside,
    original: Original,
}

/// What an [`Editor`] shares with others.
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
    /// An editor, and what is off about it.
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

    /// Reads a line. `withdrawn` says whether it is still wanted; `show` tells the person what went
    /// wrong with their own editor.
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
                // A search that was given up, or a signal for an earlier line.
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
        // Without its modes the terminal is read as it is.
        let _ = self.original.quiet();
        match edited {
            Ok(text) => fill(self.engine(prompt), &text),
            Err(error) => {
                below(self.engine(prompt));
                show(&[Line::plain(text::one_line(&error.to_string()))]);
            }
        }
    }
}

fn history(settings: &Settings) -> (PrivateHistory, Vec<Line>) {
    let Some(folder) = &settings.folder else { return (PrivateHistory::unkept(), Vec::new()) };
    match PrivateHistory::open(folder) {
        Ok(history) => (history, Vec::new()),
        Err(error) => {
            let folder = text::one_line(&folder.to_string_lossy());
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

/// Leaves the line that is on the screen, which the engine does only for one that is complete.
fn below(engine: &Reedline) {
    let rest = engine.current_buffer_contents().get(engine.current_insertion_point()..);
    let lines = 1 + rest.unwrap_or_default().matches('\n').count();
    // A terminal that is gone is noticed when it is read.
    let _ = io::stderr().write_all("\r\n".repeat(lines).as_bytes());
}

/// A line without highlights.
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

/// Marks the line that is being read as no longer wanted; it is looked at again at once.
pub(super) fn break_off(broken: &AtomicBool) {
    broken.store(true, Ordering::SeqCst);
}
