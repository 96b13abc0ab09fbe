//! Tracks the current activity for the status line.

use std::time::Duration;

use sallyport_contract::{services::CallProgress, text};
use sallyport_model::{ReplyDelta, TokenUsage};
use sallyport_session::{SessionActivity, SessionEvent};
use sallyport_terminal::screen::{StatusActivity, StatusLine};

/// The current activity.
#[derive(Debug, Default)]
pub(super) struct ActivityTracker {
    activity: Option<StatusActivity>,
    since: Duration,
    tokens: u64,
    /// Unfinished calls, as id and tool.
    calls: Vec<(String, String)>,
}

impl ActivityTracker {
    /// Updates the activity after a session event.
    pub(super) fn apply_event(&mut self, event: &SessionEvent, now: Duration) {
        match event {
            SessionEvent::State(state) => self.enter_state(*state, now),
            SessionEvent::Delta(delta) => self.apply_delta(delta, now),
            SessionEvent::MessageComplete { usage: Some(usage), .. } => {
                self.tokens = self.tokens.saturating_add(total_tokens(usage));
            }
            SessionEvent::CallRequested { call_id, tool, .. } => {
                self.calls.push((call_id.clone(), tool.to_string()));
                if let Some(StatusActivity::Calling { .. }) = self.activity {
                    self.begin_activity(self.calling_activity(), now);
                }
            }
            SessionEvent::CallFinished { call_id, .. } => self.end_call(call_id, now),
            SessionEvent::Progress { call_id, progress } => self.update_progress(call_id, progress),
            SessionEvent::TurnEnded { .. } => *self = Self::default(),
            _ => {}
        }
    }

    /// Records that a running call waits for a host.
    pub(super) fn set_contacted_host(&mut self, call_id: &str, host: String, now: Duration) {
        let call = self.calls.iter().find(|(id, _)| id == call_id);
        if let Some((_, tool)) = call.filter(|_| self.activity.is_some()) {
            self.begin_activity(StatusActivity::Waiting { tool: tool.clone(), host }, now);
        }
    }

    /// Records the progress of a running call. The elapsed time continues.
    fn update_progress(&mut self, call_id: &str, progress: &CallProgress) {
        let call = self.calls.iter().find(|(id, _)| id == call_id);
        if let Some((_, tool)) = call.filter(|_| self.activity.is_some()) {
            self.activity =
                Some(StatusActivity::Other(format!("{tool}: {}", format_progress(progress))));
        }
    }

    /// Returns the status, or `None` while the session waits for the user.
    pub(super) fn status(&self) -> Option<StatusLine> {
        let activity = self.activity.clone()?;
        let tokens = Some(self.tokens).filter(|tokens| *tokens > 0);
        Some(StatusLine { activity, since: self.since, tokens })
    }

    fn enter_state(&mut self, state: SessionActivity, now: Duration) {
        match state {
            SessionActivity::Thinking => self.begin_activity(StatusActivity::Thinking, now),
            SessionActivity::Executing => self.begin_activity(self.calling_activity(), now),
            SessionActivity::Ready | SessionActivity::WaitingForApproval => self.activity = None,
        }
    }

    fn apply_delta(&mut self, delta: &ReplyDelta, now: Duration) {
        match delta {
            ReplyDelta::Text(_) => self.begin_activity(StatusActivity::Answering, now),
            ReplyDelta::Reasoning(_) => self.begin_activity(StatusActivity::Thinking, now),
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

    fn end_call(&mut self, call_id: &str, now: Duration) {
        self.calls.retain(|(id, _)| id != call_id);
        if self.activity.is_some() && !self.calls.is_empty() {
            self.begin_activity(self.calling_activity(), now);
        }
    }

    fn calling_activity(&self) -> StatusActivity {
        StatusActivity::Calling { tools: self.calls.iter().map(|(_, tool)| tool.clone()).collect() }
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
    let message = progress.message.as_deref().map(text::escape_line);
    match (message, part) {
        (Some(message), Some(part)) => format!("{message}, {part}"),
        (Some(message), None) => message,
        (None, Some(part)) => part,
        (None, None) => "goes on".to_owned(),
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
    use sallyport_session::{ToolRef, TurnEnd, TurnUsage};

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
        tracker.status().map(|status| (status.activity, status.since.as_secs()))
    }

    fn calling(tools: &[&str]) -> StatusActivity {
        StatusActivity::Calling { tools: tools.iter().map(|tool| (*tool).to_owned()).collect() }
    }

    #[test]
    fn the_status_says_what_is_being_done() {
        let thinking = || SessionEvent::State(SessionActivity::Thinking);
        let words = |text: &str| SessionEvent::Delta(ReplyDelta::Text(text.to_owned()));
        let retry = SessionEvent::Delta(ReplyDelta::Retry {
            attempt: 2,
            wait: Duration::from_millis(2100),
            reason: "rate limited".to_owned(),
        });
        let again = StatusActivity::Other("retrying in 3 s: rate limited".to_owned());
        let executing = || SessionEvent::State(SessionActivity::Executing);
        let (a, b) = (requested("1", "a"), requested("2", "b"));
        let asked = SessionEvent::State(SessionActivity::WaitingForApproval);
        let rows = [
            (vec![], None),
            (vec![thinking()], Some((StatusActivity::Thinking, 0))),
            (vec![thinking(), words("x"), words("y")], Some((StatusActivity::Answering, 1))),
            (vec![thinking(), retry.clone()], Some((again, 1))),
            (vec![thinking(), retry, words("x")], Some((StatusActivity::Answering, 2))),
            (vec![executing(), a.clone()], Some((calling(&["a"]), 1))),
            (vec![a.clone(), b.clone(), executing()], Some((calling(&["a", "b"]), 2))),
            (vec![a.clone(), b, executing(), finished("1", "a")], Some((calling(&["b"]), 3))),
            (vec![a, executing(), asked], None),
        ];
        for (events, want) in rows {
            assert_eq!(after(&events), want, "{events:?}");
        }
    }

    #[test]
    fn a_call_says_how_far_it_has_come() {
        let after = |progress: CallProgress| {
            let mut tracker = ActivityTracker::default();
            tracker.apply_event(&SessionEvent::State(SessionActivity::Executing), Duration::ZERO);
            tracker.apply_event(&requested("1", "a"), Duration::from_secs(1));
            let event = SessionEvent::Progress { call_id: "1".to_owned(), progress };
            tracker.apply_event(&event, Duration::from_secs(5));
            tracker.status().map(|status| (status.activity, status.since.as_secs()))
        };
        let rows = [
            (Some(0.4), Some("half\nway"), "a: half\\nway, 40 %"),
            (Some(1.0), None, "a: 100 %"),
            (None, Some("reading"), "a: reading"),
            (None, None, "a: goes on"),
        ];
        for (part, message, want) in rows {
            let progress = CallProgress { fraction: part, message: message.map(str::to_owned) };
            assert_eq!(after(progress), Some((StatusActivity::Other(want.to_owned()), 1)));
        }
    }

    #[test]
    fn a_call_that_turns_to_a_host_waits_for_it() {
        let mut tracker = ActivityTracker::default();
        tracker.apply_event(&requested("1", "a"), Duration::ZERO);
        tracker.set_contacted_host("1", "early.example".to_owned(), Duration::ZERO);
        assert_eq!(tracker.status(), None, "the person is being asked");
        tracker.apply_event(&SessionEvent::State(SessionActivity::Executing), Duration::ZERO);
        tracker.set_contacted_host("2", "other.example".to_owned(), Duration::ZERO);
        assert_eq!(tracker.status().unwrap().activity, calling(&["a"]));
        tracker.set_contacted_host("1", "host.example".to_owned(), Duration::ZERO);
        let (tool, host) = ("a".to_owned(), "host.example".to_owned());
        assert_eq!(tracker.status().unwrap().activity, StatusActivity::Waiting { tool, host });
        let (reason, usage) = (TurnEnd::Cancelled, TurnUsage::default());
        tracker.apply_event(&SessionEvent::TurnEnded { reason, usage }, Duration::ZERO);
        tracker.set_contacted_host("1", "late.example".to_owned(), Duration::ZERO);
        assert_eq!(tracker.status(), None);
    }
}
