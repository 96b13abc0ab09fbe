//! Display of session events.

use sallyport_contract::{CallReport, Outcome, PolicyFix, services, text};
use sallyport_model::{ModelError, ReplyDelta};
use sallyport_session::{FrontEndCommand, SessionEvent, SessionNotice, TurnEnd, TurnUsage};
use sallyport_terminal::style::StyledLine;

use super::{
    approval_questions::PendingQuestion,
    call_details::FinishedCall,
    interactive::{ChatActivity, InteractiveChat},
    pictures, view,
};
use crate::cli::call_display;

/// Most characters of an input that are shown again.
const INPUT_CHARS_MAX: usize = 60;

impl InteractiveChat<'_> {
    pub(super) async fn handle_event(&mut self, event: SessionEvent) {
        self.activity_tracker.apply_event(&event, self.view.elapsed_time());
        self.open_calls.apply_event(&event);
        let is_end = self.is_activity_end(&event);
        match event {
            SessionEvent::Delta(delta) => self.show_delta(&delta),
            SessionEvent::MessageComplete { text, .. } => self.finish_answer(&text),
            SessionEvent::CallFinished { call_id, tool, report } => {
                let call = self.open_calls.take(&call_id, &tool);
                self.show_call(&call.text, &report);
                self.show_pictures(&report).await;
                self.finished_calls.add(FinishedCall { call, report });
            }
            SessionEvent::ApprovalNeeded { confirmation_id: id, position, request } => {
                self.add_question(PendingQuestion::new(id, position, request));
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

    /// Shows the status line and the running calls, unless the session is idle or a question is
    /// open.
    pub(super) fn show_status(&self) {
        if self.activity != ChatActivity::Idle && self.questions.is_empty() {
            self.view.set_status(self.activity_tracker.status(self.context_window));
            self.view.set_calls(self.activity_tracker.running_calls());
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
        self.read_next_input().await;
    }

    fn show_delta(&mut self, delta: &ReplyDelta) {
        match delta {
            ReplyDelta::Text { text: piece } => {
                self.is_streamed = true;
                self.view.show_text(piece);
            }
            ReplyDelta::Reasoning { text: piece } if self.settings.chat.show_reasoning => {
                self.view.show_reasoning(piece);
            }
            ReplyDelta::LeftOut(what) => self.show_lines(&[view::warning_line(&what.to_string())]),
            ReplyDelta::Reasoning { .. }
            | ReplyDelta::CallBegun { .. }
            | ReplyDelta::Retry { .. } => {}
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

    fn show_call(&mut self, call: &str, report: &CallReport) {
        let mut lines = view::call_line(call, report).fold_to_width(self.view.columns(), 2);
        if let Outcome::Denied(denial) = &report.outcome {
            lines.extend(fix_line(denial.fix.as_deref()));
        }
        self.show_lines(&lines);
    }

    /// Shows the pictures that a call returned, each with its name below it.
    async fn show_pictures(&self, report: &CallReport) {
        // The line editor would draw over a picture above the line.
        let protocol = self.picture_protocol.filter(|_| self.line_ticket.is_none());
        let space = self.view.picture_space();
        for picture in pictures::prepare_pictures(report, protocol, space).await {
            if let Some(codes) = &picture.codes {
                self.view.print_picture(codes);
            }
            let name = StyledLine::styled(picture.name, view::DIM);
            self.show_lines(&name.fold_to_width(self.view.columns(), 2));
        }
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
            self.show_lines(fix_line(fix.as_deref()).as_slice());
        }
    }
}

/// The command that would allow a denied action, if there is one.
fn fix_line(fix: Option<&PolicyFix>) -> Option<StyledLine> {
    Some(view::hint_line(&call_display::fix_text(fix?)))
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
