//! Reads what the user types while the program is busy, and draws nothing itself.
//!
//! The keys have their usual meanings, because the editor's own bindings and its buffer are used.
//! Only what belongs to one line at a time works: no history, completion or external editor.

use std::{io, time::Duration};

use crossterm::{
    event::{self, DisableBracketedPaste, EnableBracketedPaste},
    execute,
    terminal::{disable_raw_mode, enable_raw_mode},
};
use reedline::{
    EditCommand, EditMode, HistoryItem, Reedline, ReedlineEvent as KeyMeaning, ReedlineRawEvent,
};

use super::{
    line::{HISTORY_EXCLUSION_PREFIX, replace_buffer},
    mode::TerminalModes,
    typing::{KeyStyle, ends_with_continuation},
};
use crate::typed_ahead::TypedAhead;

/// Interval of checks whether the next line is to be read. The prompt appears at most this much
/// later.
const WITHDRAWAL_POLL_INTERVAL: Duration = Duration::from_millis(30);

/// What was typed ahead, and how it ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TypedAheadInput {
    /// What was typed.
    pub typed: TypedAhead,
    /// Whether Ctrl-D on an empty line ended it, or the terminal is gone.
    pub is_end: bool,
}

/// What a key did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyEffect {
    None,
    Changed,
    End,
}

/// Reads keys into a buffer.
pub(super) struct TypeAheadReader {
    buffer: Reedline,
    keys: Box<dyn EditMode>,
}

impl TypeAheadReader {
    pub(super) fn new(keys: KeyStyle) -> Self {
        Self { buffer: Reedline::create(), keys: keys.edit_mode() }
    }

    /// Reads keys until `withdrawn` returns true or the user ends the input.
    ///
    /// `on_change` is called with every new state, and at the end with an empty one. Complete
    /// inputs are added to the history of `message_engine`.
    pub(super) fn read_ahead(
        &mut self,
        typed: TypedAhead,
        original: &TerminalModes,
        withdrawn: &dyn Fn() -> bool,
        message_engine: &mut Reedline,
        on_change: &mut dyn FnMut(&TypedAhead),
    ) -> TypedAheadInput {
        let mut input = TypedAheadInput { typed, is_end: false };
        let read = self.read_keys(&mut input, original, withdrawn, message_engine, on_change);
        input.is_end |= read.is_err();
        // The rows have to be gone before anything else is drawn on this thread.
        on_change(&TypedAhead::default());
        input
    }

    fn read_keys(
        &mut self,
        input: &mut TypedAheadInput,
        original: &TerminalModes,
        withdrawn: &dyn Fn() -> bool,
        message_engine: &mut Reedline,
        on_change: &mut dyn FnMut(&TypedAhead),
    ) -> io::Result<()> {
        let _mode = TypeAheadMode::enable(original)?;
        self.fill_buffer(&mut input.typed);
        on_change(&input.typed);
        while !input.is_end && !withdrawn() {
            if !event::poll(WITHDRAWAL_POLL_INTERVAL)? {
                continue;
            }
            let Ok(key) = ReedlineRawEvent::try_from(event::read()?) else { continue };
            let meaning = self.keys.parse_event(key);
            match self.apply(meaning, &mut input.typed, message_engine) {
                KeyEffect::None => {}
                KeyEffect::Changed => on_change(&input.typed),
                KeyEffect::End => input.is_end = true,
            }
        }
        Ok(())
    }

    fn apply(
        &mut self,
        meaning: KeyMeaning,
        typed: &mut TypedAhead,
        message_engine: &mut Reedline,
    ) -> KeyEffect {
        match meaning {
            KeyMeaning::Edit(commands) => self.edit(&commands, typed),
            KeyMeaning::Left => self.edit(&[EditCommand::MoveLeft { select: false }], typed),
            KeyMeaning::Right => self.edit(&[EditCommand::MoveRight { select: false }], typed),
            KeyMeaning::Up | KeyMeaning::PreviousHistory => self.take_back(typed),
            KeyMeaning::Enter | KeyMeaning::Submit | KeyMeaning::SubmitOrNewline => {
                self.submit(typed, message_engine)
            }
            KeyMeaning::CtrlD if typed.line.is_empty() => KeyEffect::End,
            KeyMeaning::CtrlD => self.edit(&[EditCommand::Delete], typed),
            KeyMeaning::Multiple(meanings) => {
                let effects =
                    meanings.into_iter().map(|one| self.apply(one, typed, message_engine));
                effects.fold(KeyEffect::None, KeyEffect::or)
            }
            KeyMeaning::UntilFound(meanings) => meanings
                .into_iter()
                .map(|one| self.apply(one, typed, message_engine))
                .find(|effect| *effect != KeyEffect::None)
                .unwrap_or(KeyEffect::None),
            _ => KeyEffect::None,
        }
    }

    fn edit(&mut self, commands: &[EditCommand], typed: &mut TypedAhead) -> KeyEffect {
        self.buffer.run_edit_commands(commands);
        typed.line = self.buffer.current_buffer_contents().to_owned();
        typed.cursor = self.buffer.current_insertion_point();
        KeyEffect::Changed
    }

    /// Queues the line, unless it continues on the next one. A blank line is not queued.
    fn submit(&mut self, typed: &mut TypedAhead, message_engine: &mut Reedline) -> KeyEffect {
        if ends_with_continuation(&typed.line) {
            let to_end = EditCommand::MoveToEnd { select: false };
            return self.edit(&[to_end, EditCommand::Backspace, EditCommand::InsertNewline], typed);
        }
        let line = typed.take_line();
        if !line.trim().is_empty() {
            if !line.starts_with(HISTORY_EXCLUSION_PREFIX) {
                // The history's file may be full or gone. The line is sent all the same.
                let _ = message_engine
                    .history_mut()
                    .save(HistoryItem::from_command_line(line.as_str()));
            }
            typed.queued.push(line);
        }
        self.fill_buffer(typed);
        KeyEffect::Changed
    }

    fn take_back(&mut self, typed: &mut TypedAhead) -> KeyEffect {
        if !typed.take_back_last() {
            return KeyEffect::None;
        }
        self.fill_buffer(typed);
        KeyEffect::Changed
    }

    fn fill_buffer(&mut self, typed: &mut TypedAhead) {
        replace_buffer(&mut self.buffer, &typed.line);
        typed.cursor = self.buffer.current_insertion_point();
    }
}

impl KeyEffect {
    fn or(self, other: Self) -> Self {
        if other == Self::None { self } else { other }
    }
}

/// Guard that has single keys and pasted texts delivered. Ctrl-C stays a signal.
struct TypeAheadMode<'a>(&'a TerminalModes);

impl<'a> TypeAheadMode<'a> {
    fn enable(original: &'a TerminalModes) -> io::Result<Self> {
        // Without it, the decoder of keys would take Ctrl-J for Enter.
        enable_raw_mode()?;
        let mode = Self(original);
        original.disable_echo()?;
        execute!(io::stderr(), EnableBracketedPaste)?;
        Ok(mode)
    }
}

impl Drop for TypeAheadMode<'_> {
    fn drop(&mut self) {
        let _ = execute!(io::stderr(), DisableBracketedPaste);
        let _ = disable_raw_mode();
        // The next read reports a terminal that is gone.
        let _ = self.0.disable_echo();
    }
}
