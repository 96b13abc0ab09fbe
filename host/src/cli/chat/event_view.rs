//! Display of session events.

use sallyport_contract::{CallReport, Outcome, services, text};
use sallyport_model::{ModelError, ReplyDelta};
use sallyport_session::{
    FrontEndCommand, SessionEvent, SessionNotice, ToolRef, TurnEnd, TurnUsage,
};
use sallyport_terminal::{editor::InitialInput, style::StyledLine};

use super::{
    approval_questions::PendingQuestion,
    interactive::{ChatActivity, InteractiveChat},
    view,
};
use crate::cli::call_display;

/// Most characters of an input that are shown again.
const INPUT_CHARS_MAX: usize = 60;

/// Most characters of the reason why a call did not complete.
const REASON_CHARS_MAX: usize = 300;

impl InteractiveChat<'_> {
    pub(super) async fn handle_event(&mut self, event: SessionEvent) {
        self.activity_tracker.apply_event(&event, self.view.elapsed_time());
        let is_end = self.is_activity_end(&event);
        match event {
            SessionEvent::Delta(delta) => self.show_delta(&delta),
            SessionEvent::MessageComplete { text, .. } => self.finish_answer(&text),
            SessionEvent::CallFinished { tool, report, .. } => self.show_call(&tool, &report),
            SessionEvent::ApprovalNeeded { confirmation_id: id, position, request } => {
                self.add_question(PendingQuestion { id, position, request });
            }
            SessionEvent::ApprovalClosed { confirmation_id } => {
                self.close_question(confirmation_id)
            }
            SessionEvent::TurnEnded { reason, usage } => self.end_turn(&reason, usage),
            SessionEvent::Notice(notice) => {
                self.show_lines(&[view::warning_line(&notice.to_string())])
            }
            SessionEvent::Noticed { notice } => self.show_notice(&notice),
            event => self.show_lines(&change_lines(&event)),
        }
        self.show_status();
        if is_end {
            self.end_activity().await;
        }
    }

    /// Shows the status line, unless the user is typing or a question is open.
    pub(super) fn show_status(&self) {
        if self.activity != ChatActivity::Idle && self.questions.is_empty() {
            self.view.set_status(self.activity_tracker.status());
        }
    }

    /// Whether an event ends the current activity.
    fn is_activity_end(&self, event: &SessionEvent) -> bool {
        match self.activity {
            ChatActivity::Idle => false,
            ChatActivity::Turn { .. } => {
                matches!(
                    event,
                    SessionEvent::TurnEnded { .. } | SessionEvent::Notice(SessionNotice::NoTurn)
                )
            }
            ChatActivity::SessionOperation => matches!(
                event,
                SessionEvent::Undone { .. }
                    | SessionEvent::ModelChanged { .. }
                    | SessionEvent::Pinned { .. }
                    | SessionEvent::Summarized { .. }
                    | SessionEvent::Notice(
                        SessionNotice::NoTurn
                            | SessionNotice::NothingToSummarize
                            | SessionNotice::SummaryFailed { .. }
                    )
            ),
        }
    }

    /// Ends the current activity. The turn is pinned if that was requested. Otherwise the user can
    /// type again.
    async fn end_activity(&mut self) {
        self.view.finish();
        if self.activity == (ChatActivity::Turn { is_pinned: true }) && self.next_action.is_none() {
            self.activity = ChatActivity::SessionOperation;
            return self.send(FrontEndCommand::Pin).await;
        }
        self.activity = ChatActivity::Idle;
        if self.next_action.is_none() {
            self.read_next_line(InitialInput::Text(String::new()));
        }
    }

    fn show_delta(&mut self, delta: &ReplyDelta) {
        match delta {
            ReplyDelta::Text(piece) => {
                self.is_streamed = true;
                self.view.show_text(piece);
            }
            ReplyDelta::Reasoning(piece) if self.settings.chat.show_reasoning => {
                self.view.show_reasoning(piece);
            }
            ReplyDelta::LeftOut(what) => self.show_lines(&[view::warning_line(&what.to_string())]),
            ReplyDelta::Reasoning(_) | ReplyDelta::CallBegun { .. } | ReplyDelta::Retry { .. } => {}
        }
    }

    fn finish_answer(&mut self, text: &str) {
        if !std::mem::take(&mut self.is_streamed) && !text.is_empty() {
            self.view.show_text(text);
        }
        self.view.commit_text();
    }

    /// Shows a notice from a plugin. The bell rings for one that is to be spoken.
    fn show_notice(&self, notice: &services::PluginNotice) {
        self.show_lines(&view::notice_lines(notice));
        if notice.speech.is_some() {
            self.view.ring_bell();
        }
    }

    fn show_call(&mut self, tool: &ToolRef, report: &CallReport) {
        let mut words = format!("· {tool} {}", call_display::call_end_text(report));
        if let Some(reason) = call_display::failure_reason(&report.outcome)
            .filter(|_| has_extra_reason(&report.outcome))
        {
            words.push_str(&format!(": {}", text::escape_excerpt(&reason, REASON_CHARS_MAX)));
        }
        let mut lines = view::note_lines(&words);
        if let Outcome::Denied(denial) = &report.outcome {
            lines.extend(self.fix_lines(denial.fix.as_deref()));
        }
        self.show_lines(&lines);
    }

    /// The policy text that would allow a denied call, if there is one.
    fn fix_lines(&self, fix: Option<&str>) -> Vec<StyledLine> {
        let Some(fix) = fix else { return Vec::new() };
        let place = call_display::fix_location(fix, self.settings.policy.user_file());
        let hint = view::hint_line(&format!("to allow this, {place}:"));
        std::iter::once(hint).chain(view::block_lines(fix)).collect()
    }

    fn end_turn(&mut self, end: &TurnEnd, usage: TurnUsage) {
        self.last_turn = Some(usage);
        self.is_streamed = false;
        if matches!(end, TurnEnd::InputRefused(_)) {
            // A refused input leaves no turn to pin.
            self.activity = ChatActivity::Turn { is_pinned: false };
        }
        if let TurnEnd::Spoken { text } = end {
            self.view.show_text(text);
        }
        self.view.finish();
        self.show_lines(&turn_end_lines(end));
        if let TurnEnd::ModelFailed(ModelError::Denied { fix, .. }) = end {
            self.show_lines(&self.fix_lines(fix.as_deref()));
        }
    }
}

/// Whether a reason adds to the outcome. A cancelled call has none.
fn has_extra_reason(outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::Completed(_) | Outcome::Cancelled)
}

/// Describes the end of a turn if its answer does not.
fn turn_end_lines(end: &TurnEnd) -> Vec<StyledLine> {
    match end {
        TurnEnd::Answered { .. } | TurnEnd::Spoken { .. } => Vec::new(),
        TurnEnd::BudgetReached { limit: what } => {
            vec![view::error_line(&format!("stopped: {what}"))]
        }
        TurnEnd::ModelFailed(error) => {
            let is_lifted = matches!(error, ModelError::Denied { fix: Some(_), .. });
            let hint = (!is_lifted).then(|| view::hint_line(&error.hint()));
            std::iter::once(view::error_line(&error.to_string())).chain(hint).collect()
        }
        TurnEnd::Cancelled => view::note_lines("cancelled"),
        TurnEnd::InputRefused(error) => {
            vec![view::error_line(&error.to_string()), view::hint_line(error.hint())]
        }
    }
}

/// Describes a change to the session.
fn change_lines(event: &SessionEvent) -> Vec<StyledLine> {
    match event {
        SessionEvent::Undone { text } => {
            view::note_lines(&format!("Took back: {}", text::escape_excerpt(text, INPUT_CHARS_MAX)))
        }
        SessionEvent::ModelChanged { name } => view::note_lines(&format!("Now talking to {name}.")),
        SessionEvent::Pinned { turn } => view::note_lines(&format!("Pinned turn {turn}.")),
        SessionEvent::Summarized { messages, .. } => {
            view::note_lines(&format!("Replaced {messages} messages with a summary."))
        }
        SessionEvent::ArgumentsEdited { .. } => view::note_lines("· arguments changed"),
        _ => Vec::new(),
    }
}
