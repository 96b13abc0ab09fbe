//! Questions about calls, shown one card at a time.

use std::collections::VecDeque;

use sallyport_contract::{ApprovalAnswer, ApprovalRequest};
use sallyport_session::{CallPosition, FrontEndCommand};
use sallyport_terminal::{
    card::{ApprovalCard, ApprovalChoice, QuestionPosition as Place, format_editable},
    editor::{self, InitialInput, InputPrompt, LineInput, PromptTicket},
};

use super::{
    ears::Typed,
    person::{Chat, Next},
    view,
};

/// An open question.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) id: u64,
    pub(super) position: CallPosition,
    pub(super) request: ApprovalRequest,
}

/// All open questions. The first one is on the screen.
#[derive(Debug, Default)]
pub(super) struct Questions {
    open: VecDeque<Question>,
    /// The pending request to the keyboard about the first question.
    ticket: Option<PromptTicket>,
}

impl Questions {
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns the question on the screen if it has this id.
    fn shown(&self, id: u64) -> Option<&Question> {
        self.open.front().filter(|question| question.id == id)
    }
}

impl Chat<'_> {
    pub(super) fn take_question(&mut self, question: Question) {
        self.questions.open.push_back(question);
        if self.questions.open.len() == 1 {
            self.ask();
        }
    }

    /// Removes a question that needs no answer any more.
    pub(super) fn close_question(&mut self, id: u64) {
        let was_shown = self.questions.shown(id).is_some();
        self.questions.open.retain(|question| question.id != id);
        if !was_shown {
            return;
        }
        if let Some(ticket) = self.questions.ticket.take() {
            self.keyboard.withdraw_prompt(ticket);
        }
        self.ask();
        self.resume();
    }

    /// Shows the card of the first question.
    ///
    /// It interrupts a line that is being typed, because a question from a timer would otherwise
    /// wait until the line is complete.
    fn ask(&mut self) {
        let Some(Question { id, position, request }) = self.questions.open.front() else { return };
        if let Some(line) = self.line {
            self.keyboard.withdraw_prompt(line);
        }
        self.view.finish();
        let (id, typed) = (*id, self.typed.clone());
        let place = Place { index: position.index, count: position.count };
        let card = ApprovalCard::new(request.clone(), Some(place));
        let reply = move |answer| drop(typed.send(Typed::Key(id, answer)));
        self.questions.ticket = Some(self.keyboard.ask_card(card, reply));
    }

    pub(super) async fn take_key(&mut self, id: u64, answer: editor::CardAnswer) {
        let Some(arguments) = self.arguments(id) else { return };
        self.questions.ticket = None;
        match answer {
            editor::CardAnswer::Key(ApprovalChoice::Edit) => {
                self.inquire("arguments", arguments, move |input| Typed::Arguments(id, input));
            }
            editor::CardAnswer::Key(ApprovalChoice::NoBecause) => {
                let nothing = String::new();
                self.inquire("why not", nothing, move |input| Typed::Reason(id, input));
            }
            editor::CardAnswer::Key(choice) => self.answer(id, choice).await,
            editor::CardAnswer::Withdrawn => {}
            editor::CardAnswer::Gone => {
                self.next = Some(Next::Leave);
                self.send(FrontEndCommand::Cancel).await;
            }
        }
    }

    async fn answer(&mut self, id: u64, choice: ApprovalChoice) {
        let answer = match choice {
            ApprovalChoice::Once => ApprovalAnswer::Once,
            ApprovalChoice::Session => ApprovalAnswer::Session,
            ApprovalChoice::Always => ApprovalAnswer::Always,
            ApprovalChoice::Cancel => return self.send(FrontEndCommand::Cancel).await,
            _ => ApprovalAnswer::No { reason: None },
        };
        self.decide(id, answer).await;
    }

    /// Sends an answer. An approval is shown immediately. A denial shows in the outcome of the
    /// call.
    async fn decide(&mut self, id: u64, answer: ApprovalAnswer) {
        let words = yes(&answer);
        if let (Some(words), Some(question)) = (words, self.questions.shown(id)) {
            let tool = &question.request.call.tool;
            self.tell(&view::note(&format!("· {tool} {words}")));
        }
        self.send(FrontEndCommand::ProvideConfirmation { id, answer }).await;
    }

    /// Returns the arguments of a question's call, in the form in which they are edited.
    fn arguments(&self, id: u64) -> Option<String> {
        let question = self.questions.shown(id)?;
        Some(format_editable(&question.request.call.arguments))
    }

    /// Reads a line that the first question needs.
    fn inquire(
        &mut self,
        name: &str,
        initial: String,
        typed_as: impl FnOnce(LineInput) -> Typed + Send + 'static,
    ) {
        let typed = self.typed.clone();
        let prompt = InputPrompt::Aside { name: name.to_owned() };
        let reply = move |input| drop(typed.send(typed_as(input)));
        self.questions.ticket =
            Some(self.keyboard.read_line(prompt, InitialInput::With(initial), reply));
    }

    /// Takes edited arguments. Unchanged ones decide nothing, so the card is shown again.
    pub(super) async fn take_arguments(&mut self, id: u64, input: LineInput) {
        let Some(before) = self.arguments(id) else { return };
        self.questions.ticket = None;
        match input {
            LineInput::Line(arguments) if arguments.trim() != before.trim() => {
                self.send(FrontEndCommand::EditArguments { id, arguments }).await;
            }
            LineInput::Withdrawn(_) => {}
            LineInput::Line(_) | LineInput::Interrupted | LineInput::End => self.ask(),
        }
    }

    pub(super) async fn take_reason(&mut self, id: u64, input: LineInput) {
        if self.questions.shown(id).is_none() {
            return;
        }
        self.questions.ticket = None;
        match input {
            LineInput::Line(line) => {
                let reason = Some(line.trim().to_owned()).filter(|reason| !reason.is_empty());
                self.decide(id, ApprovalAnswer::No { reason }).await;
            }
            LineInput::Withdrawn(_) => {}
            LineInput::Interrupted | LineInput::End => self.ask(),
        }
    }
}

/// Describes an approval.
fn yes(answer: &ApprovalAnswer) -> Option<&'static str> {
    match answer {
        ApprovalAnswer::Once => Some("allowed once"),
        ApprovalAnswer::Session => Some("allowed for this session"),
        ApprovalAnswer::Always => Some("allowed always"),
        ApprovalAnswer::No { .. } | ApprovalAnswer::Nobody => None,
    }
}
