//! Inputs that the user types while the session is busy.
//!
//! They are shown below the answer and sent one after another. A stop sends none of them: all of
//! them are then in the line, where the user can change them.

use sallyport_contract::text;
use sallyport_terminal::{
    editor::{InitialInput, PromptTicket, TypedAheadInput},
    style::StyledLine,
    typed_ahead::TypedAhead,
};

use super::{
    inputs::KeyboardInput,
    interactive::{ChatActivity, InteractiveChat, NextAction},
};

/// Most characters of the model's name in front of an input, as in the prompt.
const PROMPT_NAME_CHARS_MAX: usize = 32;

/// What the user typed ahead, and the request to the keyboard that reads more of it.
#[derive(Debug, Default)]
pub(super) struct TypingAhead {
    typed: TypedAhead,
    /// The open request. The keyboard then has what was typed.
    ticket: Option<PromptTicket>,
    is_withdrawn: bool,
    /// Whether the program ends once everything that is queued was answered.
    is_ended: bool,
    /// Whether the user stopped the current activity.
    is_stopped: bool,
}

impl TypingAhead {
    /// Records that the user stopped the current activity.
    pub(super) fn mark_stopped(&mut self) {
        self.is_stopped = true;
    }
}

impl InteractiveChat<'_> {
    /// Reads ahead while the session is busy and no question is open, and only then.
    pub(super) fn update_typing_ahead(&mut self) {
        let is_busy = self.activity != ChatActivity::Idle && self.questions.is_empty();
        let is_wanted = is_busy && self.line_ticket.is_none() && !self.typing_ahead.is_ended;
        match self.typing_ahead.ticket {
            None if is_wanted && self.next_action.is_none() => self.read_ahead(),
            Some(ticket) if !is_wanted && !self.typing_ahead.is_withdrawn => {
                self.typing_ahead.is_withdrawn = true;
                self.keyboard.withdraw_prompt(ticket);
            }
            _ => {}
        }
    }

    fn read_ahead(&mut self) {
        let typed = std::mem::take(&mut self.typing_ahead.typed);
        let (view, keyboard_input) = (self.view.clone(), self.keyboard_input.clone());
        let on_change = move |typed: &TypedAhead| view.set_typed_ahead(typed.clone());
        let reply = move |input| drop(keyboard_input.send(KeyboardInput::TypedAhead(input)));
        self.typing_ahead.is_withdrawn = false;
        self.typing_ahead.ticket = Some(self.keyboard.read_ahead(typed, on_change, reply));
    }

    pub(super) async fn handle_typed_ahead(&mut self, input: TypedAheadInput) {
        self.typing_ahead.ticket = None;
        self.typing_ahead.typed = input.typed;
        self.typing_ahead.is_ended |= input.is_end;
        self.read_next_input().await;
    }

    /// Handles the next queued input, or lets the user type one.
    pub(super) async fn read_next_input(&mut self) {
        while self.is_ready_for_input() {
            if std::mem::take(&mut self.typing_ahead.is_stopped) {
                self.typing_ahead.typed.take_back_all();
                self.typing_ahead.is_ended = false;
            }
            match self.typing_ahead.typed.take_first() {
                Some(line) => {
                    self.show_lines(&self.sent_lines(&line));
                    self.handle_line(line).await;
                }
                None if self.typing_ahead.is_ended => self.next_action = Some(NextAction::Leave),
                None => {
                    let line = self.typing_ahead.typed.take_line();
                    self.read_next_line(InitialInput::Text(line));
                }
            }
        }
    }

    fn is_ready_for_input(&self) -> bool {
        self.activity == ChatActivity::Idle
            && self.next_action.is_none()
            && self.line_ticket.is_none()
            && self.typing_ahead.ticket.is_none()
    }

    /// Shows an input as if it had been typed at the prompt.
    fn sent_lines(&self, input: &str) -> Vec<StyledLine> {
        let prompts = std::iter::once(self.prompt_text()).chain(std::iter::repeat("  ".to_owned()));
        let line = |(prompt, line): (String, &str)| {
            let mut styled = StyledLine::styled(prompt, super::view::DIM);
            styled.push(&text::escape_line(line), anstyle::Style::new());
            styled
        };
        prompts.zip(input.lines()).map(line).collect()
    }

    fn prompt_text(&self) -> String {
        format!("{}> ", text::escape_excerpt(&self.model_name, PROMPT_NAME_CHARS_MAX))
    }
}
