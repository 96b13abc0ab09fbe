//! Key bindings, highlighting of the typed line, and the rule for when it is complete.

use std::sync::{Arc, Mutex, PoisonError};

use crossterm::event::{Event, KeyCode, KeyModifiers};
use nu_ansi_term::{Color, Style};
use reedline::{
    AbbrExpandContext, EditCommand, EditMode, Emacs, Highlighter, Keybindings, PromptEditMode,
    ReedlineEvent, ReedlineRawEvent, StyledText, ValidationResult, Validator, Vi,
    default_emacs_keybindings, default_vi_insert_keybindings, default_vi_normal_keybindings,
    default_vi_visual_keybindings,
};

use super::history::remove_control_chars;
use crate::slash;

/// Name of the menu that Tab opens.
pub(super) const MENU: &str = "offers";

/// Host command that the engine returns for Ctrl-C.
pub(super) const INTERRUPT: &str = "interrupt";

/// Host command that the engine returns for the external editor.
pub(super) const EDIT: &str = "edit";

/// The editor's own keys with their meaning, for the help.
pub const KEYS: &[(&str, &str)] = &[
    ("Tab", "complete a command, its argument, or a file after @"),
    ("Alt-Enter, Ctrl-J", "start a new line (or end the line with \\)"),
    ("Ctrl-O", "write the message in your editor; on an empty line: show the last call"),
    ("Up, Down, Ctrl-R", "browse and search earlier messages"),
    ("Up, while an answer arrives", "take back the last message that you typed ahead"),
    ("Ctrl-C", "clear the line; stop the answer; twice on an empty line: leave"),
    ("Ctrl-D", "leave"),
];

/// Style of the key bindings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyStyle {
    /// The keys of emacs and most shells.
    #[default]
    Emacs,
    /// The keys of vi.
    Vi,
}

impl KeyStyle {
    pub(super) fn edit_mode(self) -> Box<dyn EditMode> {
        match self {
            Self::Emacs => {
                Box::new(PasteSanitizer(Emacs::new(add_keybindings(default_emacs_keybindings()))))
            }
            Self::Vi => Box::new(PasteSanitizer(Vi::new(
                add_keybindings(default_vi_insert_keybindings()),
                add_keybindings(default_vi_normal_keybindings()),
                add_keybindings(default_vi_visual_keybindings()),
            ))),
        }
    }
}

fn add_keybindings(mut keys: Keybindings) -> Keybindings {
    let event = |name: &str| ReedlineEvent::ExecuteHostCommand(name.to_owned());
    // During a history search `Multiple` does not apply, so Ctrl-C ends the search.
    let interrupt = ReedlineEvent::UntilFound(vec![
        ReedlineEvent::Multiple(vec![ReedlineEvent::Esc, event(INTERRUPT)]),
        ReedlineEvent::CtrlC,
    ]);
    let complete =
        ReedlineEvent::UntilFound(vec![ReedlineEvent::Menu(MENU.into()), ReedlineEvent::MenuNext]);
    let newline = ReedlineEvent::Edit(vec![EditCommand::InsertNewline]);
    let open_editor = ReedlineEvent::Multiple(vec![ReedlineEvent::Esc, event(EDIT)]);
    keys.add_binding(KeyModifiers::CONTROL, KeyCode::Char('c'), interrupt);
    keys.add_binding(KeyModifiers::CONTROL, KeyCode::Char('o'), open_editor);
    keys.add_binding(KeyModifiers::CONTROL, KeyCode::Char('j'), newline.clone());
    keys.add_binding(KeyModifiers::ALT, KeyCode::Enter, newline);
    keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, complete);
    keys.add_binding(KeyModifiers::SHIFT, KeyCode::BackTab, ReedlineEvent::MenuPrevious);
    keys.add_binding(KeyModifiers::NONE, KeyCode::BackTab, ReedlineEvent::MenuPrevious);
    keys
}

/// Removes control characters from pasted text. The engine paints it unchanged.
struct PasteSanitizer<M>(M);

impl<M: EditMode> EditMode for PasteSanitizer<M> {
    fn parse_event(&mut self, event: ReedlineRawEvent) -> ReedlineEvent {
        match event.into() {
            Event::Paste(text) => {
                ReedlineEvent::Edit(vec![EditCommand::InsertString(remove_control_chars(&text))])
            }
            event => ReedlineRawEvent::try_from(event)
                .map_or(ReedlineEvent::None, |event| self.0.parse_event(event)),
        }
    }

    fn edit_mode(&self) -> PromptEditMode {
        self.0.edit_mode()
    }
}

/// Highlighter for commands and mentions.
pub(super) struct MessageHighlighter;

impl Highlighter for MessageHighlighter {
    fn highlight(&self, line: &str, _cursor: usize) -> StyledText {
        let mut styled = StyledText::new();
        for (index, piece) in line.split_inclusive(char::is_whitespace).enumerate() {
            styled.push((word_style(piece.trim_end(), index == 0), piece.to_owned()));
        }
        styled
    }

    /// Never expands `!`: messages for a model are not shell commands.
    fn should_expand_abbr(&self, _: &str, _: usize, _: AbbrExpandContext) -> bool {
        false
    }
}

fn word_style(word: &str, is_first: bool) -> Style {
    let command = word.strip_prefix('/').filter(|_| is_first);
    match command {
        Some(command) if slash::find_command(command).is_some() => Style::new().fg(Color::Cyan),
        _ if word.len() > 1 && word.starts_with('@') => Style::new().fg(Color::Cyan),
        _ => Style::new(),
    }
}

/// Whether a backslash at the end continues a message on the next line.
pub(super) fn ends_with_continuation(message: &str) -> bool {
    let backslashes = message.bytes().rev().take_while(|byte| *byte == b'\\').count();
    !backslashes.is_multiple_of(2)
}

/// Lines of the typed message that a backslash continues.
///
/// Only lines that ended with Enter are recorded here, so pasted lines keep their backslash.
#[derive(Debug, Clone, Default)]
pub(super) struct ContinuationLines(Arc<Mutex<Vec<String>>>);

impl ContinuationLines {
    /// Forgets the lines of a message that was not sent.
    pub(super) fn clear_lines(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Returns the message without the backslashes that continue its lines.
    pub(super) fn remove_backslashes(&self, message: &str) -> String {
        let lines = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut pieces: Vec<&str> = message.split('\n').collect();
        let last = pieces.len() - 1;
        for piece in pieces.iter_mut().take(last) {
            if lines.iter().any(|line| line == piece) {
                *piece = &piece[..piece.len() - 1];
            }
        }
        pieces.join("\n")
    }
}

impl Validator for ContinuationLines {
    fn validate(&self, line: &str) -> ValidationResult {
        if !ends_with_continuation(line) {
            return ValidationResult::Complete;
        }
        let last = line.rsplit('\n').next().unwrap_or(line);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(last.to_owned());
        ValidationResult::Incomplete
    }
}
