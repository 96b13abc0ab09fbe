//! Who answers the questions of a session that plugins attend.
//!
//! A UI answers when the policy lets it, and when somebody can be behind it: a page, or a terminal;
//! lines from a pipe were written before the question. No UI answers for a plugin in its role, since
//! that may be itself. The terminal answers where there is no such UI; else nobody does.

use std::collections::BTreeSet;

use sallyport_contract::ApprovalRequest;
use sallyport_policy::question::ROLE_PREFIX;

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
    /// The one at the terminal, and whether it can be answered for good.
    pub(super) at_terminal: Option<(u64, bool)>,
}

impl Questions {
    pub(super) fn new(answers: Answers) -> Self {
        Self { answers, with_ui: BTreeSet::new(), at_terminal: None }
    }

    /// Who is to answer a question.
    pub(super) fn open(&mut self, id: u64, request: &ApprovalRequest) -> Answers {
        let is_of_role = request.call.tool.tool.as_str().starts_with(ROLE_PREFIX);
        match self.answers {
            Answers::Ui if is_of_role => Answers::Nobody,
            Answers::Ui => {
                self.with_ui.insert(id);
                Answers::Ui
            }
            Answers::Terminal => {
                self.at_terminal = Some((id, request.rule.is_some()));
                Answers::Terminal
            }
            Answers::Nobody => Answers::Nobody,
        }
    }

    pub(super) fn close(&mut self, id: u64) {
        self.with_ui.remove(&id);
        self.at_terminal.take_if(|(open, _)| *open == id);
    }

    /// The UI is gone: from here on nobody answers in its place. Returns what it has left open.
    pub(super) fn without_ui(&mut self) -> BTreeSet<u64> {
        if self.answers == Answers::Ui {
            self.answers = Answers::Nobody;
        }
        std::mem::take(&mut self.with_ui)
    }
}
