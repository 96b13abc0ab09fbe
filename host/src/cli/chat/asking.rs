//! Questions about calls, shown one card at a time.

use std::collections::VecDeque;

use sallyport_contract::{ApprovalAnswer, ApprovalRequest};
use sallyport_session::{CallPosition, FrontEndCommand};
use sallyport_terminal::{
    card::{Card, Choice, Position as Place, editable},
    editor::{self, Begin, Input, Prompt, Ticket},
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
    ticket: Option<Ticket>,
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
            self.keyboard.withdraw(ticket);
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
            self.keyboard.withdraw(line);
        }
        self.view.finish();
        let (id, typed) = (*id, self.typed.clone());
        let place = Place { index: position.index, count: position.count };
        let card = Card::new(request.clone(), Some(place));
        let reply = move |answer| drop(typed.send(Typed::Key(id, answer)));
        self.questions.ticket = Some(self.keyboard.ask(card, reply));
    }

    pub(super) async fn take_key(&mut self, id: u64, answer: editor::Answer) {
        let Some(arguments) = self.arguments(id) else { return };
        self.questions.ticket = None;
        match answer {
            editor::Answer::Key(Choice::Edit) => {
                self.inquire("arguments", arguments, move |input| Typed::Arguments(id, input));
            }
            editor::Answer::Key(Choice::NoBecause) => {
                let nothing = String::new();
                self.inquire("why not", nothing, move |input| Typed::Reason(id, input));
            }
            editor::Answer::Key(choice) => self.answer(id, choice).await,
            editor::Answer::Withdrawn => {}
            editor::Answer::Gone => {
                self.next = Some(Next::Leave);
                self.send(FrontEndCommand::Cancel).await;
            }
        }
    }

    async fn answer(&mut self, id: u64, choice: Choice) {
        let answer = match choice {
            Choice::Once => ApprovalAnswer::Once,
            Choice::Session => ApprovalAnswer::Session,
            Choice::Always => ApprovalAnswer::Always,
            Choice::Cancel => return self.send(FrontEndCommand::Cancel).await,
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
        Some(editable(&question.request.call.arguments))
    }

    /// Reads a line that the first question needs.
    fn inquire(
        &mut self,
        name: &str,
        initial: String,
        typed_as: impl FnOnce(Input) -> Typed + Send + 'static,
    ) {
        let typed = self.typed.clone();
        let prompt = Prompt::Aside { name: name.to_owned() };
        let reply = move |input| drop(typed.send(typed_as(input)));
        self.questions.ticket = Some(self.keyboard.read(prompt, Begin::With(initial), reply));
    }

    /// Takes edited arguments. Unchanged ones decide nothing, so the card is shown again.
    pub(super) async fn take_arguments(&mut self, id: u64, input: Input) {
        let Some(before) = self.arguments(id) else { return };
        self.questions.ticket = None;
        match input {
            Input::Line(arguments) if arguments.trim() != before.trim() => {
                self.send(FrontEndCommand::EditArguments { id, arguments }).await;
            }
            Input::Withdrawn(_) => {}
            Input::Line(_) | Input::Interrupted | Input::End => self.ask(),
        }
    }

    pub(super) async fn take_reason(&mut self, id: u64, input: Input) {
        if self.questions.shown(id).is_none() {
            return;
        }
        self.questions.ticket = None;
        match input {
            Input::Line(line) => {
                let reason = Some(line.trim().to_owned()).filter(|reason| !reason.is_empty());
                self.decide(id, ApprovalAnswer::No { reason }).await;
            }
            Input::Withdrawn(_) => {}
            Input::Interrupted | Input::End => self.ask(),
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
