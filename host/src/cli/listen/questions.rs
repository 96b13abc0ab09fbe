//! Decides who answers the questions of a session that plugins attend.
//!
//! A UI answers if the policy allows it and if a user can be behind it: through a page or a
//! terminal. Lines from a pipe were written before the question. A UI never answers for a plugin's
//! role, because that plugin may be the UI itself, and never answers a question that does not fit
//! into its event. Without such a UI the terminal answers, and otherwise the call is denied.

use std::collections::{BTreeSet, VecDeque};

use sallyport_contract::ApprovalRequest;
use sallyport_policy::question::ROLE_PREFIX;
use sallyport_runtime::roles::ui;

/// The current source of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerSource {
    Ui,
    Terminal,
    Nobody,
}

/// The source of answers, and the open questions.
#[derive(Debug)]
pub(super) struct OpenQuestions {
    answer_source: AnswerSource,
    /// Questions that the UI shows.
    with_ui: BTreeSet<u64>,
    /// Questions at the terminal. The first one is shown.
    at_terminal: VecDeque<(u64, ApprovalRequest)>,
}

impl OpenQuestions {
    pub(super) fn new(answer_source: AnswerSource) -> Self {
        Self { answer_source, with_ui: BTreeSet::new(), at_terminal: VecDeque::new() }
    }

    /// Registers a question and returns who answers it.
    pub(super) fn open(&mut self, id: u64, request: &ApprovalRequest) -> AnswerSource {
        let is_of_role = request.call.tool.tool.as_str().starts_with(ROLE_PREFIX);
        match self.answer_source {
            AnswerSource::Ui if is_of_role || !ui::fits_in_event(request) => AnswerSource::Nobody,
            AnswerSource::Ui => {
                self.with_ui.insert(id);
                AnswerSource::Ui
            }
            AnswerSource::Terminal if request.needs_input() => AnswerSource::Nobody,
            AnswerSource::Terminal => {
                self.at_terminal.push_back((id, request.clone()));
                AnswerSource::Terminal
            }
            AnswerSource::Nobody => AnswerSource::Nobody,
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
    pub(super) fn has_terminal_question(&self) -> bool {
        !self.at_terminal.is_empty()
    }

    /// Returns the first question at the terminal.
    pub(super) fn first_terminal_question(&self) -> Option<&ApprovalRequest> {
        self.at_terminal.front().map(|(_, request)| request)
    }

    /// Takes the first question at the terminal.
    pub(super) fn take_first_question(&mut self) -> Option<(u64, ApprovalRequest)> {
        self.at_terminal.pop_front()
    }

    /// Records that the terminal cannot answer any more. Returns its open questions.
    pub(super) fn remove_terminal(&mut self) -> Vec<u64> {
        if self.answer_source == AnswerSource::Terminal {
            self.answer_source = AnswerSource::Nobody;
        }
        self.at_terminal.drain(..).map(|(id, _)| id).collect()
    }

    /// Records that the UI is gone and that nothing replaces it. Returns its open questions.
    pub(super) fn remove_ui(&mut self) -> BTreeSet<u64> {
        if self.answer_source == AnswerSource::Ui {
            self.answer_source = AnswerSource::Nobody;
        }
        std::mem::take(&mut self.with_ui)
    }
}
