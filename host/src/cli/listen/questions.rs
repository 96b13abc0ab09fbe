//! Who answers the questions of a session that plugins attend.
//!
//! A UI answers when the policy lets it, and when somebody can be behind it: a page, or a terminal;
//! lines from a pipe were written before the question. No UI answers for a plugin in its role, since
//! that may be itself, nor a question that cannot be told to it whole. The terminal answers where there is no such UI; else nobody does.

use std::collections::{BTreeSet, VecDeque};

use sallyport_contract::ApprovalRequest;
use sallyport_policy::question::ROLE_PREFIX;
use sallyport_runtime::roles::ui;

/// Who can answer at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answers {
    Ui,
    Terminal,
    Nobody,
}

/// Who can answer, and what is open.
#[derive(Debug)]
pub(super) struct Questions {
    answers: Answers,
    /// Those that the UI has.
    with_ui: BTreeSet<u64>,
    /// Those at the terminal, of which the first is shown.
    at_terminal: VecDeque<(u64, ApprovalRequest)>,
}

impl Questions {
    pub(super) fn new(answers: Answers) -> Self {
        Self { answers, with_ui: BTreeSet::new(), at_terminal: VecDeque::new() }
    }

    /// Who is to answer a question.
    pub(super) fn open(&mut self, id: u64, request: &ApprovalRequest) -> Answers {
        let is_of_role = request.call.tool.tool.as_str().starts_with(ROLE_PREFIX);
        match self.answers {
            Answers::Ui if is_of_role || !ui::fits(request) => Answers::Nobody,
            Answers::Ui => {
                self.with_ui.insert(id);
                Answers::Ui
            }
            Answers::Terminal => {
                self.at_terminal.push_back((id, request.clone()));
                Answers::Terminal
            }
            Answers::Nobody => Answers::Nobody,
        }
    }

    pub(super) fn close(&mut self, id: u64) {
        self.with_ui.remove(&id);
        self.at_terminal.retain(|(open, _)| *open != id);
    }

    /// Whether a question is the first at the terminal.
    pub(super) fn is_first(&self, id: u64) -> bool {
        self.at_terminal.front().is_some_and(|(first, _)| *first == id)
    }

    /// Whether a question waits at the terminal.
    pub(super) fn is_asking(&self) -> bool {
        !self.at_terminal.is_empty()
    }

    /// The first question at the terminal.
    pub(super) fn asked(&self) -> Option<&ApprovalRequest> {
        self.at_terminal.front().map(|(_, request)| request)
    }

    /// Takes the first question at the terminal, to be answered.
    pub(super) fn take_asked(&mut self) -> Option<(u64, ApprovalRequest)> {
        self.at_terminal.pop_front()
    }

    /// Nobody sits at the terminal any more. Returns the questions that stand there.
    pub(super) fn without_terminal(&mut self) -> Vec<u64> {
        if self.answers == Answers::Terminal {
            self.answers = Answers::Nobody;
        }
        self.at_terminal.drain(..).map(|(id, _)| id).collect()
    }

    /// The UI is gone: from here on nobody answers in its place. Returns what it has left open.
    pub(super) fn without_ui(&mut self) -> BTreeSet<u64> {
        if self.answers == Answers::Ui {
            self.answers = Answers::Nobody;
        }
        std::mem::take(&mut self.with_ui)
    }
}
