//! Questions about calls, shown one card at a time.

use std::collections::VecDeque;

use sallyport_contract::{
    ApprovalAnswer, ApprovalRequest, ApprovalSubject, GrantAnswer, GrantScope,
};
use sallyport_runtime::file_write::file_write;
use sallyport_session::{CallPosition, FrontEndCommand};
use sallyport_terminal::{
    card::{ApprovalCard, ApprovalChoice, FileChange, QuestionPosition as Place, format_editable},
    editor::{self, InitialInput, InputPrompt, LineInput, PromptTicket},
};
use serde_json::Value;

use super::{
    form_questions::FilledFields,
    inputs::KeyboardInput,
    interactive::{InteractiveChat, NextAction},
    view,
};
use crate::cli::call_display;

/// An open question.
#[derive(Debug)]
pub(super) struct PendingQuestion {
    pub(super) id: u64,
    pub(super) position: CallPosition,
    pub(super) request: ApprovalRequest,
    /// The grant that the card shows, as an index of the choices.
    grant_choice: usize,
    /// The folder that the user has named for it.
    folder: Option<String>,
    /// The values that the user has filled in so far.
    pub(super) filled: FilledFields,
}

impl PendingQuestion {
    pub(super) fn new(id: u64, position: CallPosition, request: ApprovalRequest) -> Self {
        let filled = FilledFields::default();
        Self { id, position, request, grant_choice: 0, folder: None, filled }
    }
}

/// All open questions. The first one is on the screen.
#[derive(Debug, Default)]
pub(super) struct QuestionQueue {
    pending: VecDeque<PendingQuestion>,
    /// The pending request to the keyboard about the first question.
    ticket: Option<PromptTicket>,
}

impl QuestionQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Notes that the keyboard no longer reads anything for the question on the screen. Returns the
    /// question if it has this id.
    pub(super) fn take_input(&mut self, id: u64) -> Option<&mut PendingQuestion> {
        let shown = self.pending.front_mut().filter(|question| question.id == id)?;
        self.ticket = None;
        Some(shown)
    }

    /// Returns the question on the screen if it has this id.
    pub(super) fn shown_question(&self, id: u64) -> Option<&PendingQuestion> {
        self.pending.front().filter(|question| question.id == id)
    }
}

impl InteractiveChat<'_> {
    pub(super) fn add_question(&mut self, question: PendingQuestion) {
        self.questions.pending.push_back(question);
        if self.questions.pending.len() == 1 {
            self.show_question();
        }
    }

    /// Removes a question that needs no answer any more.
    pub(super) fn close_question(&mut self, id: u64) {
        let was_shown = self.questions.shown_question(id).is_some();
        self.questions.pending.retain(|question| question.id != id);
        if !was_shown {
            return;
        }
        if let Some(ticket) = self.questions.ticket.take() {
            self.keyboard.withdraw_prompt(ticket);
        }
        self.show_question();
        self.resume_line();
    }

    /// Shows the card of the first question.
    ///
    /// It interrupts a line that is being typed, because a question from a timer would otherwise
    /// wait until the line is complete.
    pub(super) fn show_question(&mut self) {
        let Some(PendingQuestion { id, position, request, grant_choice, folder, .. }) =
            self.questions.pending.front()
        else {
            return;
        };
        if let Some(line) = self.line_ticket {
            self.keyboard.withdraw_prompt(line);
        }
        self.view.finish();
        let (id, keyboard_input) = (*id, self.keyboard_input.clone());
        let place = Place { index: position.index, count: position.count };
        let change = file_write(&request.call, &self.roles.registry())
            .and_then(|write| Some(FileChange { old: write.old?, new: write.new }));
        let card = ApprovalCard::new(request.clone(), Some(place))
            .with_file_change(change)
            .with_call_text(call_display::call_text(&request.call.tool, &request.call.arguments))
            .with_grant_choice(*grant_choice, folder.clone());
        let reply = move |answer| drop(keyboard_input.send(KeyboardInput::Key(id, answer)));
        self.questions.ticket = Some(self.keyboard.ask_card(card, reply));
    }

    pub(super) async fn handle_answer_key(&mut self, id: u64, answer: editor::CardAnswer) {
        let Some(arguments) = self.editable_arguments(id) else { return };
        self.questions.ticket = None;
        match answer {
            editor::CardAnswer::Key(ApprovalChoice::Edit) => {
                self.read_question_input("arguments", arguments, move |input| {
                    KeyboardInput::Arguments(id, input)
                });
            }
            editor::CardAnswer::Key(ApprovalChoice::NameFolder) => {
                let nothing = String::new();
                self.read_question_input("folder", nothing, move |input| {
                    KeyboardInput::Folder(id, input)
                });
            }
            editor::CardAnswer::Key(ApprovalChoice::FillIn) => self.start_form(id),
            editor::CardAnswer::Key(ApprovalChoice::NoWithReason) => {
                let nothing = String::new();
                self.read_question_input("why not", nothing, move |input| {
                    KeyboardInput::Reason(id, input)
                });
            }
            editor::CardAnswer::Key(choice) => self.answer_question(id, choice).await,
            editor::CardAnswer::Withdrawn => {}
            editor::CardAnswer::TerminalGone => {
                self.next_action = Some(NextAction::Leave);
                self.send(FrontEndCommand::Cancel).await;
            }
        }
    }

    async fn answer_question(&mut self, id: u64, choice: ApprovalChoice) {
        let answer = match choice {
            ApprovalChoice::Wider => return self.show_next_grant(id),
            ApprovalChoice::Once => self.yes_answer(id, GrantScope::Once, ApprovalAnswer::Once),
            ApprovalChoice::Session => {
                self.yes_answer(id, GrantScope::Session, ApprovalAnswer::Session)
            }
            ApprovalChoice::Always => {
                self.yes_answer(id, GrantScope::Always, ApprovalAnswer::Always)
            }
            ApprovalChoice::Cancel => {
                self.show_lines(&view::note_lines("[c] cancelled the turn"));
                self.typing_ahead.mark_stopped();
                return self.send(FrontEndCommand::Cancel).await;
            }
            _ => ApprovalAnswer::No { reason: None },
        };
        self.send_answer(id, answer).await;
    }

    /// Shows the card again, with the next wider grant.
    fn show_next_grant(&mut self, id: u64) {
        let shown = self.questions.pending.front_mut().filter(|question| question.id == id);
        if let Some(question) = shown
            && let Some(asked) = question.request.grant_question()
        {
            question.grant_choice = (question.grant_choice + 1) % asked.choices.len().max(1);
        }
        self.show_question();
    }

    /// A yes to a question, with the choice that the card shows if it is about a grant.
    fn yes_answer(&self, id: u64, scope: GrantScope, other: ApprovalAnswer) -> ApprovalAnswer {
        let Some(question) = self.questions.shown_question(id) else { return other };
        match question.request.subject {
            ApprovalSubject::Grant(_) => {
                let (choice, folder) = (question.grant_choice, question.folder.clone());
                ApprovalAnswer::Grant(GrantAnswer { scope, choice, folder })
            }
            ApprovalSubject::Call | ApprovalSubject::Access { .. } | ApprovalSubject::Form(_) => {
                other
            }
        }
    }

    /// Sends an answer, and shows it below its card, where it stays.
    pub(super) async fn send_answer(&mut self, id: u64, answer: ApprovalAnswer) {
        if let (Some(words), Some(question)) =
            (answer_text(&answer), self.questions.shown_question(id))
        {
            let tool = &question.request.call.tool;
            self.show_lines(&view::note_lines(&format!("{words}: {tool}")));
        }
        self.send(FrontEndCommand::ProvideConfirmation { id, answer }).await;
    }

    /// Returns the arguments of a question's call, in the form in which they are edited.
    fn editable_arguments(&self, id: u64) -> Option<String> {
        let question = self.questions.shown_question(id)?;
        Some(format_editable(&question.request.call.arguments))
    }

    /// Reads a line that the first question needs.
    pub(super) fn read_question_input(
        &mut self,
        name: &str,
        initial: String,
        to_keyboard_input: impl FnOnce(LineInput) -> KeyboardInput + Send + 'static,
    ) {
        let keyboard_input = self.keyboard_input.clone();
        let prompt = InputPrompt::Other { name: name.to_owned() };
        let reply = move |input| drop(keyboard_input.send(to_keyboard_input(input)));
        self.questions.ticket =
            Some(self.keyboard.read_line(prompt, InitialInput::Text(initial), reply));
    }

    /// Takes edited arguments. Unchanged ones decide nothing, so the card is shown again. A mistake
    /// is shown, and the user can correct it.
    pub(super) async fn handle_edited_arguments(&mut self, id: u64, input: LineInput) {
        let Some(before) = self.editable_arguments(id) else { return };
        self.questions.ticket = None;
        match input {
            LineInput::Line(arguments) if arguments.trim().is_empty() => self.show_question(),
            LineInput::Line(arguments) if arguments.trim() != before.trim() => {
                let Some(mistake) = self.argument_mistake(id, &arguments) else {
                    return self.send(FrontEndCommand::EditArguments { id, arguments }).await;
                };
                self.show_lines(&[
                    view::error_line(&mistake),
                    view::hint_line(
                        "correct the arguments; Enter on an empty line shows the question again",
                    ),
                ]);
                self.read_question_input("arguments", arguments, move |input| {
                    KeyboardInput::Arguments(id, input)
                });
            }
            LineInput::Withdrawn(_) => {}
            // Only a line for a message shows call details.
            LineInput::Line(_)
            | LineInput::Interrupted
            | LineInput::End
            | LineInput::CallDetails => self.show_question(),
        }
    }

    /// Returns why edited arguments cannot be those of the call, if so.
    fn argument_mistake(&self, id: u64, arguments: &str) -> Option<String> {
        let tool = &self.questions.shown_question(id)?.request.call.tool;
        let value = match serde_json::from_str::<Value>(arguments) {
            Ok(value) if value.is_object() => value,
            Ok(_) => return Some("the arguments are not a JSON object".to_owned()),
            Err(error) => return Some(format!("the arguments are not JSON: {error}")),
        };
        let registry = self.roles.registry();
        let (entry, _) = registry.find_tool(tool).ok()?;
        let mistakes = entry.check_arguments(tool, &value).err()?;
        Some(format!("the arguments do not fit {tool}: {}", mistakes.join("; ")))
    }

    /// Takes the folder to grant, and shows the card with it. An empty line changes nothing.
    pub(super) fn handle_folder(&mut self, id: u64, input: LineInput) {
        let shown = self.questions.pending.front_mut().filter(|question| question.id == id);
        let Some(question) = shown else { return };
        self.questions.ticket = None;
        if let LineInput::Line(line) = &input
            && !line.trim().is_empty()
        {
            question.folder = Some(absolute_folder(line.trim()));
        }
        if !matches!(input, LineInput::Withdrawn(_)) {
            self.show_question();
        }
    }

    pub(super) async fn handle_denial_reason(&mut self, id: u64, input: LineInput) {
        if self.questions.shown_question(id).is_none() {
            return;
        }
        self.questions.ticket = None;
        match input {
            LineInput::Line(line) => {
                let reason = Some(line.trim().to_owned()).filter(|reason| !reason.is_empty());
                self.send_answer(id, ApprovalAnswer::No { reason }).await;
            }
            LineInput::Withdrawn(_) => {}
            LineInput::Interrupted | LineInput::End | LineInput::CallDetails => {
                self.show_question();
            }
        }
    }
}

/// A folder as a policy can name it: absolute, or below the home folder.
fn absolute_folder(typed: &str) -> String {
    if typed.starts_with('~') {
        return typed.to_owned();
    }
    let absolute = std::path::absolute(typed).ok();
    let text = absolute.and_then(|path| path.into_os_string().into_string().ok());
    text.unwrap_or_else(|| typed.to_owned())
}

/// Describes an answer, after the key that gave it.
fn answer_text(answer: &ApprovalAnswer) -> Option<&'static str> {
    match answer {
        ApprovalAnswer::Grant(GrantAnswer { scope: GrantScope::Once, .. }) => {
            Some("[y] granted once")
        }
        ApprovalAnswer::Grant(GrantAnswer { scope: GrantScope::Session, .. }) => {
            Some("[s] granted for this session")
        }
        ApprovalAnswer::Grant(GrantAnswer { scope: GrantScope::Always, .. }) => {
            Some("[a] granted always")
        }
        ApprovalAnswer::Form(_) => Some("[f] filled in"),
        ApprovalAnswer::Once => Some("[y] allowed once"),
        ApprovalAnswer::Session => Some("[s] allowed for this session"),
        ApprovalAnswer::Always => Some("[a] allowed always"),
        ApprovalAnswer::No { reason: None } => Some("[n] denied"),
        ApprovalAnswer::No { reason: Some(_) } => Some("[r] denied with a reason"),
        ApprovalAnswer::Nobody => None,
    }
}
