//! Display of session events.

use sallyport_contract::{CallReport, Outcome, services, text};
use sallyport_model::{ModelError, ReplyDelta};
use sallyport_session::{
    FrontEndCommand, SessionEvent, SessionNotice, ToolRef, TurnEnd, TurnUsage,
};
use sallyport_terminal::{editor::InitialInput, style::StyledLine};

use super::{
    asking::Question,
    person::{Chat, Doing},
    view,
};
use crate::cli::show;

/// Most characters of an input that are shown again.
const INPUT_CHARS_MAX: usize = 60;

/// Most characters of the reason why a call did not complete.
const REASON_CHARS_MAX: usize = 300;

impl Chat<'_> {
    pub(super) async fn hear(&mut self, event: SessionEvent) {
        self.waiting.heed(&event, self.view.now());
        let is_end = self.is_end(&event);
        match event {
            SessionEvent::Delta(delta) => self.show_piece(&delta),
            SessionEvent::MessageComplete { text, .. } => self.complete(&text),
            SessionEvent::CallFinished { tool, report, .. } => self.show_call(&tool, &report),
            SessionEvent::ApprovalNeeded { confirmation_id: id, position, request } => {
                self.take_question(Question { id, position, request });
            }
            SessionEvent::ApprovalClosed { confirmation_id } => {
                self.close_question(confirmation_id)
            }
            SessionEvent::TurnEnded { reason, usage } => self.end_turn(&reason, usage),
            SessionEvent::Notice(notice) => self.tell(&[view::warning(&notice.to_string())]),
            SessionEvent::Noticed { notice } => self.announce(&notice),
            event => self.tell(&changed(&event)),
        }
        self.show_waiting();
        if is_end {
            self.rest().await;
        }
    }

    /// Shows the status line, unless the user is typing or a question is open.
    pub(super) fn show_waiting(&self) {
        if self.doing != Doing::Nothing && self.questions.is_empty() {
            self.view.status(self.waiting.status());
        }
    }

    /// Whether an event ends the current activity.
    fn is_end(&self, event: &SessionEvent) -> bool {
        match self.doing {
            Doing::Nothing => false,
            Doing::Turn { .. } => {
                matches!(
                    event,
                    SessionEvent::TurnEnded { .. } | SessionEvent::Notice(SessionNotice::NoTurn)
                )
            }
            Doing::Errand => matches!(
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
    async fn rest(&mut self) {
        self.view.finish();
        if self.doing == (Doing::Turn { is_pinned: true }) && self.next.is_none() {
            self.doing = Doing::Errand;
            return self.send(FrontEndCommand::Pin).await;
        }
        self.doing = Doing::Nothing;
        if self.next.is_none() {
            self.listen(InitialInput::With(String::new()));
        }
    }

    fn show_piece(&mut self, delta: &ReplyDelta) {
        match delta {
            ReplyDelta::Text(piece) => {
                self.is_streamed = true;
                self.view.text(piece);
            }
            ReplyDelta::Reasoning(piece) if self.settings.chat.show_reasoning => {
                self.view.reasoning(piece);
            }
            ReplyDelta::LeftOut(what) => self.tell(&[view::warning(&what.to_string())]),
            ReplyDelta::Reasoning(_) | ReplyDelta::CallBegun { .. } | ReplyDelta::Retry { .. } => {}
        }
    }

    fn complete(&mut self, text: &str) {
        if !std::mem::take(&mut self.is_streamed) && !text.is_empty() {
            self.view.text(text);
        }
        self.view.settle();
    }

    /// Shows a notice from a plugin. The bell rings for one that is to be spoken.
    fn announce(&self, notice: &services::PluginNotice) {
        self.tell(&view::noticed(notice));
        if notice.speech.is_some() {
            self.view.ring();
        }
    }

    fn show_call(&mut self, tool: &ToolRef, report: &CallReport) {
        let mut words = format!("· {tool} {}", show::ending(report));
        if let Some(reason) = show::reason(&report.outcome).filter(|_| says_more(&report.outcome)) {
            words.push_str(&format!(": {}", text::escape_excerpt(&reason, REASON_CHARS_MAX)));
        }
        let mut lines = view::note(&words);
        if let Outcome::Denied(denial) = &report.outcome {
            lines.extend(self.fix(denial.fix.as_deref()));
        }
        self.tell(&lines);
    }

    /// The policy text that would allow a denied call, if there is one.
    fn fix(&self, fix: Option<&str>) -> Vec<StyledLine> {
        let Some(fix) = fix else { return Vec::new() };
        let place = show::where_to_put(fix, self.settings.policy.user_file());
        let hint = view::hint(&format!("to allow this, {place}:"));
        std::iter::once(hint).chain(view::block(fix)).collect()
    }

    fn end_turn(&mut self, end: &TurnEnd, usage: TurnUsage) {
        self.last_turn = Some(usage);
        self.is_streamed = false;
        if matches!(end, TurnEnd::InputRefused(_)) {
            // A refused input leaves no turn to pin.
            self.doing = Doing::Turn { is_pinned: false };
        }
        if let TurnEnd::Spoken { text } = end {
            self.view.text(text);
        }
        self.view.finish();
        self.tell(&ending(end));
        if let TurnEnd::ModelFailed(ModelError::Denied { fix, .. }) = end {
            self.tell(&self.fix(fix.as_deref()));
        }
    }
}

/// Whether a reason adds to the outcome. A cancelled call has none.
fn says_more(outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::Completed(_) | Outcome::Cancelled)
}

/// Describes the end of a turn if its answer does not.
fn ending(end: &TurnEnd) -> Vec<StyledLine> {
    match end {
        TurnEnd::Answered { .. } | TurnEnd::Spoken { .. } => Vec::new(),
        TurnEnd::BudgetReached { what } => vec![view::error(&format!("stopped: {what}"))],
        TurnEnd::ModelFailed(error) => {
            let is_lifted = matches!(error, ModelError::Denied { fix: Some(_), .. });
            let hint = (!is_lifted).then(|| view::hint(&error.hint()));
            std::iter::once(view::error(&error.to_string())).chain(hint).collect()
        }
        TurnEnd::Cancelled => view::note("cancelled"),
        TurnEnd::InputRefused(error) => {
            vec![view::error(&error.to_string()), view::hint(error.hint())]
        }
    }
}

/// Describes a change to the session.
fn changed(event: &SessionEvent) -> Vec<StyledLine> {
    match event {
        SessionEvent::Undone { text } => {
            view::note(&format!("Took back: {}", text::escape_excerpt(text, INPUT_CHARS_MAX)))
        }
        SessionEvent::ModelChanged { name } => view::note(&format!("Now talking to {name}.")),
        SessionEvent::Pinned { turn } => view::note(&format!("Pinned turn {turn}.")),
        SessionEvent::Summarized { messages, .. } => {
            view::note(&format!("Replaced {messages} messages with a summary."))
        }
        SessionEvent::ArgumentsEdited { .. } => view::note("· arguments changed"),
        _ => Vec::new(),
    }
}
