//! UIs: events go in, commands and drawings come out, as far as the policy lets them.

use std::sync::{Arc, Mutex};

use sallyport_contract::{
    ApprovalAnswer, CallReport,
    services::{SubmissionError, TextStyle, UiSession},
};
use sallyport_sandbox::roles::{
    UiActivity, UiEvent, UiMessage, UiMessageAuthor, UiTextFormat, UiToolCallRequest,
    UiToolCallResult,
};

use super::{LIMITS, admitted, refused, used, warden};
use crate::support::{Guarded, registry::told};

/// A session that keeps what it is told; question 7 is open until it is answered.
#[derive(Default)]
struct Session {
    log: Mutex<Vec<String>>,
    answered: Mutex<bool>,
}

impl Session {
    fn note(&self, text: String) {
        self.log.lock().unwrap().push(text);
    }

    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().drain(..).collect()
    }
}

impl UiSession for Session {
    fn submit_input(&self, text: String) -> Result<(), SubmissionError> {
        self.note(format!("submit {text}"));
        Ok(())
    }

    fn answer_question(
        &self,
        confirmation_id: u64,
        answer: ApprovalAnswer,
    ) -> Result<(), SubmissionError> {
        if confirmation_id != 7 || std::mem::replace(&mut *self.answered.lock().unwrap(), true) {
            return Err(SubmissionError::NoSuchQuestion);
        }
        self.note(format!("confirm {confirmation_id} {answer:?}"));
        Ok(())
    }

    fn cancel_turn(&self) -> Result<(), SubmissionError> {
        self.note("cancel".to_owned());
        Ok(())
    }

    fn print_text(&self, text: &str, style: TextStyle) {
        self.note(format!("print {style:?} {text}"));
    }

    fn set_status(&self, text: Option<&str>) {
        self.note(format!("status {text:?}"));
    }
}

fn event(player: &Guarded, session: &Arc<Session>, event: UiEvent) -> CallReport {
    let ui = player.plugin.create_ui(admitted(player, "ui"), Arc::clone(session) as _);
    player.wait(ui.handle_event(event))
}

fn line(player: &Guarded, session: &Arc<Session>, text: &str) -> CallReport {
    event(player, session, UiEvent::Line(text.to_owned()))
}

#[test]
fn a_ui_is_told_every_event() {
    let (player, session) = (Guarded::by(warden("")), Arc::default());
    let message = UiMessage {
        author: UiMessageAuthor::Assistant,
        content: "hello".to_owned(),
        format: UiTextFormat::Markdown,
        origin: None,
    };
    let request = UiToolCallRequest {
        confirmation_id: 7,
        call_id: "call-3".to_owned(),
        tool: "files.write".to_owned(),
        arguments: "{}".to_owned(),
        security_warning: Some("it can write".to_owned()),
        extra: None,
    };
    let result = UiToolCallResult {
        call_id: "call-3".to_owned(),
        tool: "files.write".to_owned(),
        outcome: "denied".to_owned(),
        data: "null".to_owned(),
    };
    for (told, words) in [
        (UiEvent::NewMessage(message), &["NewMessage", "Assistant", "hello", "Markdown"][..]),
        (UiEvent::Delta("he".to_owned()), &["Delta", "he"]),
        (UiEvent::ToolCallRequested(request), &["files.write", "7", "call-3", "it can write"]),
        (UiEvent::ConfirmationClosed(7), &["ConfirmationClosed", "7"]),
        (UiEvent::ToolCallFinished(result), &["files.write", "call-3", "denied"]),
        (UiEvent::ReadyForInput, &["ReadyForInput"]),
        (UiEvent::StateChanged(UiActivity::WaitingForApproval), &["WaitingForApproval"]),
        (UiEvent::Other(r#"{"type":"session"}"#.to_owned()), &["Other", "session"]),
    ] {
        assert_eq!(event(&player, &session, told).outcome.as_str(), "completed");
        let drawn = session.log().remove(0);
        assert!(words.iter().all(|word| drawn.contains(word)), "{drawn}");
    }
}

#[test]
fn a_ui_submits_answers_cancels_and_draws() {
    let (player, session) = (Guarded::by(warden("")), Arc::default());
    let check = |told: &str, want: &[&str], noted: &[&str]| {
        let report = line(&player, &session, told);
        assert_eq!(session.log(), want, "{told}");
        assert_eq!(used(&report), noted, "{told}");
    };
    check("submit hello", &["submit hello", "print Strong taken"], &["input (5 bytes)"]);
    check("submit ", &["print Strong invalid: the input is empty"], &[]);
    check("approve 8", &["print Strong no such question"], &[]);
    check("approve 7", &["confirm 7 Once", "print Strong taken"], &["question 7: approved"]);
    check("approve 7", &["print Strong no such question"], &[]);
    check("cancel", &["cancel", "print Strong taken"], &["ended the turn"]);
    check("status thinking", &["status Some(\"thinking\")"], &[]);
    check("status ", &["status None"], &[]);
}

#[test]
fn a_no_keeps_its_reason_and_a_yes_for_more_than_once_is_not_taken() {
    let (player, session) = (Guarded::by(warden("")), Arc::default());
    for told in ["approve_session 7", "approve_always 7"] {
        let report = line(&player, &session, told);
        assert_eq!(session.log(), ["print Strong not granted"]);
        assert_eq!(refused(&report), ["player may not answer for more than once"]);
    }
    line(&player, &session, "approve seven");
    assert_eq!(session.log(), ["print Strong no such question"]);
    line(&player, &session, "deny 7 not on a Sunday");
    let reason = "confirm 7 No { reason: Some(\"not on a Sunday\") }";
    assert_eq!(session.log(), [reason, "print Strong taken"], "the question was still open");
}

#[test]
fn what_the_policy_does_not_grant_is_refused() {
    let (player, session) = (Guarded::by(warden("")), Arc::default());
    player.warden.change("[plugin.player]\nui = true\n");
    let report = line(&player, &session, "approve 7");
    assert_eq!(session.log(), ["print Strong not granted"]);
    assert_eq!(refused(&report), ["player may not answer a question"]);
    assert_eq!(line(&player, &session, "submit hello").outcome.as_str(), "completed");
    assert_eq!(session.log(), ["submit hello", "print Strong taken"]);
    player.warden.change("");
    let report = line(&player, &session, "submit hello");
    assert_eq!(session.log(), [""; 0], "nothing is drawn either");
    let want = ["player may not hand input to the session", "player may not draw"];
    assert_eq!(refused(&report), want);
}

#[test]
fn floods_end() {
    let (player, session) = (Guarded::by(warden(LIMITS)), Arc::default());
    line(&player, &session, "flood");
    let log = session.log();
    assert_eq!(log.iter().filter(|entry| *entry == "submit again").count(), 16);
    assert_eq!(log.iter().filter(|entry| *entry == "cancel").count(), 64);
    assert_eq!(log.last().unwrap(), "print Strong 16 taken, 64 cancelled");
    line(&player, &session, "draw 1000");
    assert_eq!(session.log().len(), 64, "64 KiB, each drawing a little more than its text");
}

#[test]
fn a_ui_that_breaks_costs_that_run_only() {
    let (player, session) = (Guarded::by(warden(LIMITS)), Arc::default());
    assert!(told(&line(&player, &session, "trap")).starts_with("failed: the plugin trapped"));
    assert_eq!(line(&player, &session, "loop").outcome.as_str(), "timed-out");
    assert_eq!(line(&player, &session, "status on").outcome.as_str(), "completed");
}

#[test]
fn no_secret_is_drawn_or_submitted() {
    let secret = "hunter2-hunter2-hunter2";
    let player = Guarded::by(warden("").secret("key", Ok(secret)));
    let session = Arc::default();
    for told in ["submit", "status"] {
        line(&player, &session, &format!("{told} {secret}"));
    }
    event(&player, &session, UiEvent::Delta(secret.to_owned()));
    let log = format!("{:?}", session.log());
    assert!(!log.contains("hunter2"), "{log}");
}
