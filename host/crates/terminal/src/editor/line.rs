//! The line editor.

use std::{
    io::{self, Write},
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc::SyncSender,
    },
    time::{Duration, Instant},
};

use nu_ansi_term::{Color, Style};
use reedline::{
    ColumnarMenu, DefaultHinter, EditCommand, ExternalPrinter, HistoryItem, MenuBuilder, Reedline,
    ReedlineMenu, Signal,
};
use sallyport_contract::text;

use super::{
    completion::{CompletionNames, TabCompleter},
    external_editor::ExternalEditor,
    history::{PrivateHistory, remove_control_chars},
    mode::TerminalModes,
    prompt::InputPrompt,
    type_ahead::{TypeAheadReader, TypedAheadInput},
    typing::{ContinuationLines, EDIT, INTERRUPT, KeyStyle, MENU, MessageHighlighter},
};
use crate::{
    attach::LocalFiles,
    style::{ColourMode, StyledLine},
    typed_ahead::TypedAhead,
};

/// Most messages that wait to be shown above the line. Messages worth reading do not arrive faster.
const MESSAGES_WAITING_MAX: usize = 64;

/// Time within which a second Ctrl-C on an empty line counts, as in other programs for chats.
const SECOND_INTERRUPT_WAIT: Duration = Duration::from_secs(2);

/// A line that begins with it is not stored in the history, as in most shells.
pub(super) const HISTORY_EXCLUSION_PREFIX: &str = " ";

/// Shown after the first Ctrl-C on an empty line.
const LEAVE_ADVICE: &str = "Press Ctrl-C again to leave.";

/// Settings of the editor.
#[derive(Debug, Clone)]
pub struct EditorSettings {
    /// Private folder for the history and for messages in the external editor. It is created if it
    /// is missing. Without it neither is available.
    pub folder: Option<PathBuf>,
    /// The key bindings.
    pub keys: KeyStyle,
    /// Whether the line is coloured.
    pub colour: ColourMode,
    /// Command of the user's own editor, from `$VISUAL` or `$EDITOR`.
    pub editor: Option<String>,
    /// Files that `@` completes.
    pub local_files: LocalFiles,
}

/// The initial state of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InitialInput {
    /// The user continues this text.
    Text(String),
    /// This text opens in the external editor.
    ExternalEditor(String),
}

/// The result of reading a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineInput {
    /// The typed text, which may have several lines.
    Line(String),
    /// Ctrl-C on an empty line: twice for a message, once for other input.
    Interrupted,
    /// Ctrl-D on an empty line, or the terminal is gone.
    End,
    /// Ctrl-O on an empty line of a message: the user wants to see the last call.
    CallDetails,
    /// The question was withdrawn. Contains the text typed so far.
    Withdrawn(String),
}

/// Shows messages above the line that is being typed.
#[derive(Debug, Clone)]
pub struct MessagePrinter {
    sender: SyncSender<String>,
    colour: ColourMode,
}

impl MessagePrinter {
    /// Shows lines above the one that is being typed, or with the next one.
    ///
    /// Returns `false` and drops them if too many are waiting.
    pub fn print_lines(&self, lines: &[StyledLine]) -> bool {
        let lines: Vec<_> = lines.iter().map(|line| line.to_terminal_text(self.colour)).collect();
        self.sender.try_send(lines.join("\n")).is_ok()
    }
}

/// The line editor: one engine for messages, one for all other input.
pub(super) struct LineEditor {
    message_engine: Reedline,
    plain_engine: Reedline,
    type_ahead: TypeAheadReader,
    continuation_lines: ContinuationLines,
    external_editor: ExternalEditor,
    original: TerminalModes,
}

/// State that a [`LineEditor`] shares with other threads.
pub(super) struct SharedEditorState {
    pub(super) completion_names: Arc<Mutex<CompletionNames>>,
    pub(super) break_flag: Arc<AtomicBool>,
    pub(super) printer: ExternalPrinter<String>,
}

impl SharedEditorState {
    pub(super) fn new() -> Self {
        let printer = ExternalPrinter::new(MESSAGES_WAITING_MAX);
        Self { completion_names: Arc::default(), break_flag: Arc::default(), printer }
    }

    pub(super) fn create_printer(&self, colour: ColourMode) -> MessagePrinter {
        MessagePrinter { sender: self.printer.sender(), colour }
    }
}

impl LineEditor {
    /// Creates an editor. Also returns notices about it.
    pub(super) fn new(
        settings: EditorSettings,
        shared: SharedEditorState,
        original: TerminalModes,
    ) -> (Self, Vec<StyledLine>) {
        let continuation_lines = ContinuationLines::default();
        let (history, notices) = open_history(&settings);
        let external_editor =
            ExternalEditor { command: settings.editor.clone(), folder: settings.folder.clone() };
        let engine = |break_flag| {
            Reedline::create()
                .with_ansi_colors(settings.colour == ColourMode::On)
                .with_edit_mode(settings.keys.edit_mode())
                .with_validator(Box::new(continuation_lines.clone()))
                .use_bracketed_paste(true)
                .with_break_signal(break_flag)
        };
        let plain_engine =
            engine(Arc::clone(&shared.break_flag)).with_highlighter(Box::new(PlainHighlighter));
        let message_engine = engine(shared.break_flag)
            .with_highlighter(Box::new(MessageHighlighter))
            .with_history(Box::new(history))
            .with_history_exclusion_prefix(Some(HISTORY_EXCLUSION_PREFIX.into()))
            .with_hinter(Box::new(DefaultHinter::default().with_style(dim_style())))
            .with_completer(Box::new(TabCompleter {
                completion_names: shared.completion_names,
                local_files: settings.local_files,
            }))
            .with_menu(completion_menu())
            .with_quick_completions(true)
            .with_partial_completions(true)
            .with_external_printer(shared.printer);
        let type_ahead = TypeAheadReader::new(settings.keys);
        let editor = Self {
            message_engine,
            plain_engine,
            type_ahead,
            continuation_lines,
            external_editor,
            original,
        };
        (editor, notices)
    }

    /// Reads what the user types ahead: see [`TypeAheadReader::read_ahead`].
    pub(super) fn read_ahead(
        &mut self,
        typed: TypedAhead,
        withdrawn: &dyn Fn() -> bool,
        on_change: &mut dyn FnMut(&TypedAhead),
    ) -> TypedAheadInput {
        let Self { type_ahead, message_engine, original, .. } = self;
        type_ahead.read_ahead(typed, original, withdrawn, message_engine, on_change)
    }

    /// Reads a line unless `withdrawn` returns true. `show` displays errors of the external editor.
    ///
    /// # Errors
    ///
    /// The terminal cannot be read.
    pub(super) fn read_line(
        &mut self,
        prompt: &InputPrompt,
        initial_input: &InitialInput,
        withdrawn: &dyn Fn() -> bool,
        line_sink: &mut dyn FnMut(&[StyledLine]),
    ) -> io::Result<LineInput> {
        let (InitialInput::Text(initial) | InitialInput::ExternalEditor(initial)) = initial_input;
        self.continuation_lines.clear_lines();
        replace_buffer(self.engine_for_prompt(prompt), &remove_control_chars(initial));
        if matches!(initial_input, InitialInput::ExternalEditor(_)) {
            self.edit_externally(prompt, line_sink);
        }
        let mut interrupted: Option<Instant> = None;
        while !withdrawn() {
            let engine = self.engine_for_prompt(prompt);
            match engine.read_line(prompt)? {
                Signal::Success(text) => {
                    return Ok(LineInput::Line(self.continuation_lines.remove_backslashes(&text)));
                }
                Signal::CtrlD => return Ok(LineInput::End),
                Signal::HostCommand(name) if name == EDIT => {
                    if wants_call_details(engine, prompt) {
                        move_below_line(engine);
                        return Ok(LineInput::CallDetails);
                    }
                    self.edit_externally(prompt, line_sink)
                }
                Signal::HostCommand(name) if name == INTERRUPT => {
                    if !engine.current_buffer_contents().is_empty() {
                        clear_line(engine, prompt);
                        continue;
                    }
                    move_below_line(engine);
                    let is_second =
                        interrupted.is_some_and(|at| at.elapsed() < SECOND_INTERRUPT_WAIT);
                    if is_second || matches!(prompt, InputPrompt::Other { .. }) {
                        return Ok(LineInput::Interrupted);
                    }
                    interrupted = Some(Instant::now());
                    line_sink(&[StyledLine::plain(LEAVE_ADVICE)]);
                }
                // An abandoned search, or a signal for an earlier line.
                _ => {}
            }
        }
        let engine = self.engine_for_prompt(prompt);
        let text = engine.current_buffer_contents().to_owned();
        move_below_line(engine);
        replace_buffer(engine, "");
        Ok(LineInput::Withdrawn(text))
    }

    fn engine_for_prompt(&mut self, prompt: &InputPrompt) -> &mut Reedline {
        match prompt {
            InputPrompt::Message { .. } => &mut self.message_engine,
            InputPrompt::Other { .. } => &mut self.plain_engine,
        }
    }

    fn edit_externally(&mut self, prompt: &InputPrompt, line_sink: &mut dyn FnMut(&[StyledLine])) {
        let text = self.engine_for_prompt(prompt).current_buffer_contents().to_owned();
        self.original.restore();
        let edited = self.external_editor.edit_text(&text);
        // On failure the terminal keeps its current modes.
        let _ = self.original.disable_echo();
        match edited {
            Ok(text) => replace_buffer(self.engine_for_prompt(prompt), &text),
            Err(error) => {
                move_below_line(self.engine_for_prompt(prompt));
                line_sink(&[StyledLine::plain(text::escape_line(&error.to_string()))]);
            }
        }
    }
}

fn open_history(settings: &EditorSettings) -> (PrivateHistory, Vec<StyledLine>) {
    let Some(folder) = &settings.folder else { return (PrivateHistory::in_memory(), Vec::new()) };
    match PrivateHistory::open(folder) {
        Ok(history) => (history, Vec::new()),
        Err(error) => {
            let folder = text::escape_line(&folder.to_string_lossy());
            let notice = format!("the history is off: cannot use {folder}: {error}");
            (PrivateHistory::in_memory(), vec![StyledLine::plain(notice)])
        }
    }
}

fn completion_menu() -> ReedlineMenu {
    let menu = ColumnarMenu::default()
        .with_name(MENU)
        .with_marker("> ")
        .with_text_style(Style::new())
        .with_selected_text_style(Style::new().reverse())
        .with_description_text_style(dim_style());
    ReedlineMenu::EngineCompleter(Box::new(menu))
}

fn dim_style() -> Style {
    Style::new().fg(Color::DarkGray)
}

pub(super) fn replace_buffer(engine: &mut Reedline, text: &str) {
    engine.run_edit_commands(&[EditCommand::Clear, EditCommand::InsertString(text.to_owned())]);
}

/// Clears the line. Up brings a message back, because Ctrl-C may have been meant for an answer that
/// just ended, after which the line is what was typed ahead.
fn clear_line(engine: &mut Reedline, prompt: &InputPrompt) {
    let text = engine.current_buffer_contents().to_owned();
    replace_buffer(engine, "");
    let is_message = matches!(prompt, InputPrompt::Message { .. });
    if is_message && !text.starts_with(HISTORY_EXCLUSION_PREFIX) && !text.trim().is_empty() {
        // The history in memory has it even if its file cannot be written.
        let _ = engine.history_mut().save(HistoryItem::from_command_line(text));
    }
}

/// Whether Ctrl-O means the last call, because there is no message to edit.
fn wants_call_details(engine: &Reedline, prompt: &InputPrompt) -> bool {
    matches!(prompt, InputPrompt::Message { .. }) && engine.current_buffer_contents().is_empty()
}

/// Moves below the line on the screen. The engine does so only for a complete line.
fn move_below_line(engine: &Reedline) {
    let rest = engine.current_buffer_contents().get(engine.current_insertion_point()..);
    let lines = 1 + rest.unwrap_or_default().matches('\n').count();
    // The next read reports a terminal that is gone.
    let _ = io::stderr().write_all("\r\n".repeat(lines).as_bytes());
}

/// Highlighter that leaves the line unstyled.
struct PlainHighlighter;

impl reedline::Highlighter for PlainHighlighter {
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
pub(super) fn interrupt_reading(break_flag: &AtomicBool) {
    break_flag.store(true, Ordering::SeqCst);
}
