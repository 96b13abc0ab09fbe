//! Tracks the current activity for the status line.

use std::time::Duration;

use sallyport_contract::services::CallProgress;
use sallyport_model::{ReplyDelta, TokenUsage};
use sallyport_session::{SessionActivity, SessionEvent, ToolRef};
use sallyport_terminal::screen::{ContextFill, RunningCall, StatusActivity, StatusLine};

use crate::cli::call_display;

/// The current activity.
#[derive(Debug, Default)]
pub(super) struct ActivityTracker {
    activity: Option<StatusActivity>,
    since: Duration,
    tokens: u64,
    /// Tokens of the newest exchange with the model, which fill its context.
    context_tokens: u64,
    calls: Vec<TrackedCall>,
}

/// An unfinished call.
#[derive(Debug)]
struct TrackedCall {
    id: String,
    tool: ToolRef,
    row: RunningCall,
}

impl ActivityTracker {
    /// Updates the activity after a session event.
    pub(super) fn apply_event(&mut self, event: &SessionEvent, now: Duration) {
        match event {
            SessionEvent::State { state } => self.enter_state(*state, now),
            SessionEvent::Delta(delta) => self.apply_delta(delta, now),
            SessionEvent::MessageComplete { usage: Some(usage), .. } => {
                self.context_tokens = total_tokens(usage);
                self.tokens = self.tokens.saturating_add(self.context_tokens);
            }
            SessionEvent::CallRequested { call_id, tool, arguments } => {
                let text = call_display::call_text(tool, arguments);
                let row = RunningCall { text, detail: None, since: now };
                self.calls.push(TrackedCall { id: call_id.clone(), tool: tool.clone(), row });
            }
            SessionEvent::ArgumentsEdited { call_id, arguments } => {
                if let Some(call) = self.find_call(call_id) {
                    call.row.text = call_display::call_text(&call.tool, arguments);
                }
            }
            SessionEvent::CallFinished { call_id, .. } => {
                self.calls.retain(|call| call.id != *call_id);
            }
            SessionEvent::Progress { call_id, progress } => self.update_progress(call_id, progress),
            SessionEvent::TurnEnded { .. } => {
                *self = Self { context_tokens: self.context_tokens, ..Self::default() }
            }
            _ => {}
        }
    }

    /// Records that a running call waits for a host.
    pub(super) fn set_contacted_host(&mut self, call_id: &str, host: &str) {
        self.set_call_detail(call_id, format!("waits for {host}"));
    }

    /// Records the progress of a running call.
    fn update_progress(&mut self, call_id: &str, progress: &CallProgress) {
        self.set_call_detail(call_id, format_progress(progress));
    }

    fn set_call_detail(&mut self, call_id: &str, detail: String) {
        if let Some(call) = self.find_call(call_id) {
            call.row.detail = Some(detail);
        }
    }

    fn find_call(&mut self, call_id: &str) -> Option<&mut TrackedCall> {
        self.calls.iter_mut().find(|call| call.id == call_id)
    }

    /// Returns the calls that run. There are none while the session waits for the user.
    pub(super) fn running_calls(&self) -> Vec<RunningCall> {
        let is_calling = self.activity == Some(StatusActivity::Calling);
        let calls = self.calls.iter().filter(|_| is_calling);
        calls.map(|call| call.row.clone()).collect()
    }

    /// Returns the status, or `None` while the session waits for the user or while calls run, which
    /// have rows of their own. `window_tokens` is the size of the model's context, if it is known.
    pub(super) fn status(&self, window_tokens: Option<u64>) -> Option<StatusLine> {
        if !self.running_calls().is_empty() {
            return None;
        }
        let activity = self.activity.clone()?;
        let tokens = Some(self.tokens).filter(|tokens| *tokens > 0);
        let context = self.context_fill(window_tokens);
        Some(StatusLine { activity, since: self.since, tokens, context })
    }

    /// How full the context is after the newest answer.
    pub(super) fn context_fill(&self, window_tokens: Option<u64>) -> Option<ContextFill> {
        let used_tokens = self.context_tokens;
        let window_tokens = window_tokens.filter(|_| used_tokens > 0)?;
        Some(ContextFill { used_tokens, window_tokens })
    }

    fn enter_state(&mut self, state: SessionActivity, now: Duration) {
        match state {
            SessionActivity::Thinking => self.begin_activity(StatusActivity::Thinking, now),
            SessionActivity::Executing => self.enter_execution(now),
            SessionActivity::Ready | SessionActivity::WaitingForApproval => self.activity = None,
        }
    }

    fn apply_delta(&mut self, delta: &ReplyDelta, now: Duration) {
        match delta {
            ReplyDelta::Text { .. } => self.begin_activity(StatusActivity::Answering, now),
            ReplyDelta::Reasoning { .. } => self.begin_activity(StatusActivity::Thinking, now),
            ReplyDelta::CallBegun { name } => {
                self.begin_activity(StatusActivity::Other(format!("preparing {name}")), now);
            }
            ReplyDelta::Retry { wait, reason, .. } => {
                let words = format!("retrying in {}: {reason}", format_seconds(*wait));
                self.begin_activity(StatusActivity::Other(words), now);
            }
            ReplyDelta::LeftOut(_) => {}
        }
    }

    /// Begins the execution of calls. The time that the user took to decide does not count.
    fn enter_execution(&mut self, now: Duration) {
        if self.activity.is_none() {
            self.calls.iter_mut().for_each(|call| call.row.since = now);
        }
        self.begin_activity(StatusActivity::Calling, now);
    }

    /// Starts an activity. One that is already current keeps its start time.
    fn begin_activity(&mut self, activity: StatusActivity, now: Duration) {
        if self.activity.as_ref() != Some(&activity) {
            (self.activity, self.since) = (Some(activity), now);
        }
    }
}

/// Total tokens read and written.
pub(super) fn total_tokens(usage: &TokenUsage) -> u64 {
    usage.input_tokens.saturating_add(usage.output_tokens)
}

/// Formats the progress of a call, such as `reading the file, 40 %`.
fn format_progress(progress: &CallProgress) -> String {
    // The part is a fraction of 1, so rounding is harmless.
    let part = progress.fraction.map(|part| format!("{:.0} %", part.clamp(0.0, 1.0) * 100.0));
    let message = progress.message.clone();
    match (message, part) {
        (Some(message), Some(part)) => format!("{message}, {part}"),
        (Some(message), None) => message,
        (None, Some(part)) => part,
        (None, None) => "running".to_owned(),
    }
}

/// Formats a wait in whole seconds, rounded up.
fn format_seconds(wait: Duration) -> String {
    let part = u64::from(wait.subsec_nanos() > 0);
    format!("{} s", wait.as_secs().saturating_add(part))
}

#[cfg(test)]
mod tests {
    use sallyport_contract::Outcome;
    use sallyport_session::{TurnEnd, TurnUsage};

    use super::*;

    fn requested(id: &str, tool: &str) -> SessionEvent {
        let (call_id, tool) = (id.to_owned(), ToolRef::Unknown(tool.to_owned()));
        SessionEvent::CallRequested { call_id, tool, arguments: "{}".to_owned() }
    }

    fn finished(id: &str, tool: &str) -> SessionEvent {
        let (call_id, tool) = (id.to_owned(), ToolRef::Unknown(tool.to_owned()));
        SessionEvent::CallFinished { call_id, tool, report: Outcome::Cancelled.into() }
    }

    /// Feeds events one second apart. Returns the final activity and its start.
    fn after(events: &[SessionEvent]) -> Option<(StatusActivity, u64)> {
        let mut tracker = ActivityTracker::default();
        for (second, event) in (0..).zip(events) {
            tracker.apply_event(event, Duration::from_secs(second));
        }
        tracker.status(None).map(|status| (status.activity, status.since.as_secs()))
    }

    /// Feeds events one second apart. Returns the rows of the calls.
    fn rows_after(events: &[SessionEvent]) -> Vec<String> {
        let mut tracker = ActivityTracker::default();
        for (second, event) in (0..).zip(events) {
            tracker.apply_event(event, Duration::from_secs(second));
        }
        call_rows(&tracker)
    }

    fn call_rows(tracker: &ActivityTracker) -> Vec<String> {
        let row = |call: &RunningCall| {
            format!("{} {:?} {}", call.text, call.detail, call.since.as_secs())
        };
        tracker.running_calls().iter().map(row).collect()
    }

    fn entered(state: SessionActivity) -> SessionEvent {
        SessionEvent::State { state }
    }

    #[test]
    fn the_status_says_what_is_being_done() {
        let thinking = || entered(SessionActivity::Thinking);
        let words = |text: &str| SessionEvent::Delta(ReplyDelta::Text { text: text.to_owned() });
        let retry = SessionEvent::Delta(ReplyDelta::Retry {
            attempt: 2,
            wait: Duration::from_millis(2100),
            reason: "rate limited".to_owned(),
        });
        let again = StatusActivity::Other("retrying in 3 s: rate limited".to_owned());
        let executing = || entered(SessionActivity::Executing);
        let rows = [
            (vec![], None),
            (vec![thinking()], Some((StatusActivity::Thinking, 0))),
            (vec![thinking(), words("x"), words("y")], Some((StatusActivity::Answering, 1))),
            (vec![thinking(), retry.clone()], Some((again, 1))),
            (vec![thinking(), retry, words("x")], Some((StatusActivity::Answering, 2))),
            (vec![executing()], Some((StatusActivity::Calling, 0))),
            (vec![executing(), requested("1", "a")], None),
            (
                vec![executing(), requested("1", "a"), finished("1", "a")],
                Some((StatusActivity::Calling, 0)),
            ),
            (vec![executing(), entered(SessionActivity::WaitingForApproval)], None),
        ];
        for (events, want) in rows {
            assert_eq!(after(&events), want, "{events:?}");
        }
    }

    #[test]
    fn every_running_call_has_a_row() {
        let executing = || entered(SessionActivity::Executing);
        let asked = || entered(SessionActivity::WaitingForApproval);
        let (a, b) = (requested("1", "a"), requested("2", "b"));
        let rows: [(Vec<SessionEvent>, &[&str]); 5] = [
            (vec![executing(), a.clone()], &["a None 1"]),
            (vec![executing(), a.clone(), b.clone()], &["a None 1", "b None 2"]),
            (vec![executing(), a.clone(), b, finished("1", "a")], &["b None 2"]),
            (vec![executing(), a.clone(), asked()], &[]),
            (vec![executing(), a, asked(), executing()], &["a None 3"]),
        ];
        for (events, want) in rows {
            assert_eq!(rows_after(&events), want, "{events:?}");
        }
    }

    #[test]
    fn a_call_says_how_far_it_has_come_and_what_it_waits_for() {
        let rows = [
            (Some(0.4), Some("half\nway"), "half\nway, 40 %"),
            (Some(1.0), None, "100 %"),
            (None, Some("reading"), "reading"),
            (None, None, "running"),
        ];
        let mut tracker = ActivityTracker::default();
        tracker.apply_event(&entered(SessionActivity::Executing), Duration::ZERO);
        tracker.apply_event(&requested("1", "a"), Duration::from_secs(1));
        for (fraction, message, want) in rows {
            let progress = CallProgress { fraction, message: message.map(str::to_owned) };
            let event = SessionEvent::Progress { call_id: "1".to_owned(), progress };
            tracker.apply_event(&event, Duration::from_secs(5));
            assert_eq!(call_rows(&tracker), [format!("a {:?} 1", Some(want))]);
        }
        tracker.set_contacted_host("2", "other.example");
        tracker.set_contacted_host("1", "host.example");
        assert_eq!(call_rows(&tracker), ["a Some(\"waits for host.example\") 1"]);
        let (reason, usage) = (TurnEnd::Cancelled, TurnUsage::default());
        tracker.apply_event(&SessionEvent::TurnEnded { reason, usage }, Duration::ZERO);
        tracker.set_contacted_host("1", "late.example");
        assert!(call_rows(&tracker).is_empty());
    }

    #[test]
    fn the_context_is_as_full_as_the_newest_exchange_and_stays_so() {
        let complete = |input_tokens, output_tokens| SessionEvent::MessageComplete {
            usage: Some(TokenUsage { input_tokens, output_tokens, ..TokenUsage::default() }),
            text: String::new(),
        };
        let mut tracker = ActivityTracker::default();
        assert_eq!(tracker.context_fill(Some(8000)), None, "nothing is known yet");
        tracker.apply_event(&complete(400, 60), Duration::ZERO);
        tracker.apply_event(&complete(900, 60), Duration::ZERO);
        let (reason, usage) = (TurnEnd::Cancelled, TurnUsage::default());
        tracker.apply_event(&SessionEvent::TurnEnded { reason, usage }, Duration::ZERO);
        let thinking = SessionEvent::State { state: SessionActivity::Thinking };
        tracker.apply_event(&thinking, Duration::ZERO);
        let status = tracker.status(Some(8000)).unwrap();
        let fill = ContextFill { used_tokens: 960, window_tokens: 8000 };
        assert_eq!((status.context, status.tokens), (Some(fill), None));
        assert_eq!(tracker.status(None).unwrap().context, None);
    }
}
