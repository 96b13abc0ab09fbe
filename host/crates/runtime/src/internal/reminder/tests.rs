//! Tests of reminders with a real store.

use sallyport_contract::{RequestedCall, ToolCallContext};
use sallyport_store::HostStore;
use serde_json::json;

use super::*;
use crate::internal::Services;

/// A store of reminders, and the user's current time.
struct Table {
    from: InternalCallContext,
    _folder: tempfile::TempDir,
}

impl Table {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let timers = HostStore::open(&folder.path().join("state")).unwrap().timers;
        let services = Services { timers: Some(timers), ..Services::default() };
        Self {
            from: InternalCallContext { user: "local".into(), now: Zoned::now(), services },
            _folder: folder,
        }
    }

    /// Calls a tool from a session.
    fn call(&self, session: &str, tool: &str, arguments: Value) -> CallReport {
        wait(ReminderTool.call_tool(&admitted(session, tool, arguments), &self.from))
    }

    /// Calls a tool that has to succeed.
    #[track_caller]
    fn done(&self, session: &str, tool: &str, arguments: Value) -> Value {
        match self.call(session, tool, arguments).outcome {
            Outcome::Completed(output) => output.data,
            other => panic!("{tool}: {other:?}"),
        }
    }

    /// Calls a tool that must fail with this message.
    #[track_caller]
    fn refused(&self, tool: &str, arguments: Value, outcome: &str, words: &str) {
        let report = self.call("s", tool, arguments);
        assert_eq!(report.outcome.as_str(), outcome, "{report:?}");
        let told = report.outcome.to_model_value().to_string();
        assert!(told.contains(words), "no {words:?} in {told}");
    }

    fn create(&self, session: &str, text: &str, when: &str) -> Value {
        self.done(session, CREATE, json!({ "text": text, "when": when }))
    }

    fn timer(&self) -> StoredTimer {
        let timers = self.from.services.timers.as_ref().unwrap();
        wait(timers.list_timers(&timer_owner(&self.from))).unwrap().remove(0)
    }
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

#[expect(clippy::disallowed_methods, reason = "these calls reach nothing but the tool under test")]
fn admitted(session: &str, tool: &str, arguments: Value) -> AdmittedCall {
    let context = ToolCallContext { session_id: session.into(), ..ToolCallContext::default() };
    let tool = format!("{NAME}.{tool}").parse().unwrap();
    let call = RequestedCall { context, tool, arguments: arguments.to_string() };
    AdmittedCall::new(call, arguments)
}

#[test]
fn the_tools_are_described_as_the_host_wants_it() {
    for tool in ReminderTool.tools() {
        sallyport_sandbox::metadata::check_and_trim_tool(tool).unwrap();
    }
    assert_eq!(ReminderTool.manifest().name, plugin_name());
}

#[test]
fn what_is_created_is_listed_and_cancelled() {
    let table = Table::new();
    let made = table.create("s", "call mum", "in 20 minutes");
    assert_eq!(
        (made["when"].as_str(), made["repeats"].as_bool()),
        (Some("in 20 minutes"), Some(false))
    );
    let list = table.done("s", LIST, json!({}));
    assert_eq!(list["reminders"], json!([made]));
    let gone = table.done("s", CANCEL, json!({ "reminder": made["id"] }));
    assert_eq!(gone["cancelled"]["text"], "call mum");
    assert_eq!(table.done("s", LIST, json!({}))["reminders"], json!([]));
}

#[test]
fn all_that_is_listed_is_said() {
    let table = Table::new();
    let said = || match table.call("s", LIST, json!({})).outcome {
        Outcome::Completed(output) => output.speech.unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(said(), "No reminders.");
    table.create("s", "call mum", "in 20 minutes");
    assert_eq!(said(), "There is one reminder, \"call mum\" in 20 minutes.");
    table.create("s", "sing", "in 30 minutes");
    let both = "There are 2 reminders: \"call mum\" in 20 minutes, \"sing\" in 30 minutes.";
    assert_eq!(said(), both);
    (0..9).for_each(|n| drop(table.create("s", &format!("number {n}"), "in 40 minutes")));
    assert!(said().ends_with(" and 1 more."), "{}", said());
}

#[test]
fn a_repetition_is_told_as_one() {
    let made = Table::new().create("s", "stand up", "every weekday at 8:30");
    assert_eq!(made["when"], "every weekday at 08:30");
    assert_eq!(made["repeats"], true);
    assert!(made["next"].as_str().is_some_and(|at| at.contains("T08:30:00")), "{made}");
}

#[test]
fn words_find_a_reminder_of_this_conversation_first() {
    let table = Table::new();
    table.create("other", "call the dentist", "in 1 hour");
    table.create("s", "Call Mum", "in 2 hours");
    let gone = table.done("s", CANCEL, json!({ "reminder": "call" }));
    assert_eq!(gone["cancelled"]["text"], "Call Mum");
    let gone = table.done("s", CANCEL, json!({ "reminder": "dentist" }));
    assert_eq!(gone["cancelled"]["in_this_conversation"], false);
    table.create("s", "buy milk", "in 1 hour");
    table.create("s", "buy bread", "in 2 hours");
    table.refused(CANCEL, json!({ "reminder": "buy" }), "failed", "several reminders fit");
    table.refused(
        CANCEL,
        json!({ "reminder": "sing" }),
        "failed",
        "there is no reminder \\\"sing\\\"",
    );
    assert_eq!(table.done("s", LIST, json!({}))["reminders"].as_array().unwrap().len(), 2);
}

#[test]
fn a_time_that_cannot_be_is_said() {
    let rows = [
        ("when the cows come home", "not understood as a time"),
        ("2001-01-01 10:00", "in the past"),
        ("every 2 seconds", "at least 1m are needed"),
    ];
    for (when, words) in rows {
        let arguments = json!({ "text": "x", "when": when });
        Table::new().refused(CREATE, arguments, "invalid-arguments", words);
    }
}

#[test]
fn there_is_an_end_to_reminders() {
    let table = Table::new();
    for n in 0..REMINDERS_MAX {
        table.create("s", &format!("number {n}"), "tomorrow at noon");
    }
    let arguments = json!({ "text": "one more", "when": "tomorrow" });
    table.refused(CREATE, arguments, "failed", "256 reminders already");
    table.refused(CANCEL, json!({ "reminder": "sing" }), "failed", "and 246 more");
    table.refused(CANCEL, json!({ "reminder": "number" }), "failed", "and 246 more; name one");
}

#[test]
fn a_host_without_timers_says_so() {
    let from = InternalCallContext { services: Services::default(), ..Table::new().from };
    let report = wait(ReminderTool.call_tool(&admitted("s", LIST, json!({})), &from));
    assert!(
        matches!(&report.outcome, Outcome::Failed(failure) if failure.kind == FailureKind::Unavailable)
    );
}

#[test]
fn what_fires_goes_back_to_its_conversation() {
    let table = Table::new();
    table.create("s-1", "call mum", "in 20 minutes");
    let firing = |missed, again, late| {
        let timer = table.timer();
        let due_ms = timer.next_ms;
        TimerFiring { timer, due_ms, late, missed, will_repeat: again }
    };
    let rows = [
        (firing(0, false, false), "Reminder: call mum"),
        (firing(0, true, true), "Reminder: call mum (it may have been said already)"),
        (firing(1, false, true), "Reminder: call mum (it was missed once more)"),
        (firing(3, false, true), "Reminder: call mum (it was missed 3 more times)"),
    ];
    for (firing, text) in rows {
        let notice = crate::internal::firing_notice(&firing).unwrap();
        assert_eq!((notice.text.as_str(), notice.late), (text, firing.late));
        assert_eq!(
            (notice.session_id.as_str(), notice.audience),
            ("s-1", NoticeAudience::Conversation)
        );
        assert_eq!(notice.speech.as_deref(), Some("call mum"));
    }
    let mut strange = firing(0, false, false);
    strange.timer.payload = "{".into();
    assert_eq!(ReminderTool.firing_notice(&strange).text, "Reminder: call mum");
    strange.timer.owner.plugin = "timer".parse().unwrap();
    assert_eq!(crate::internal::firing_notice(&strange), None);
}
