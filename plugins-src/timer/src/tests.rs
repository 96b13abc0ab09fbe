//! Tests of setting, listing, cancelling and firing timers, with a simulated host.

use std::time::Duration;

use sallyport_sdk::{
    schedule::now_ms,
    testing::{self, Power},
};

use super::*;

fn granted() {
    testing::grant([Power::Schedule, Power::Notify, Power::State]);
}

fn set(seconds: u64, label: &str) -> Output {
    let arguments = json!({ "duration_seconds": seconds, "label": label });
    testing::call::<set_timer>(arguments).unwrap()
}

fn labels() -> Vec<Value> {
    let list = testing::call::<list_timers>(json!({})).unwrap().data;
    list["timers"].as_array().unwrap().iter().map(|timer| timer["label"].clone()).collect()
}

fn started(host_started_ms: u64) -> CallContext {
    CallContext { host_started_ms: Some(host_started_ms), ..CallContext::default() }
}

/// Lets time pass, fires the timers that are due, and returns their messages.
fn rung(seconds: u64, context: &CallContext) -> Vec<String> {
    for firing in testing::pass(Duration::from_secs(seconds)) {
        ring(firing, context).unwrap();
    }
    testing::noticed().into_iter().map(|message| message.text).collect()
}

#[test]
fn a_timer_that_is_set_says_so() {
    granted();
    for (seconds, label, speech) in [
        (480, "pasta", "Timer set for 8 minutes for pasta."),
        (60, " ", "Timer set for 1 minute."),
        (90, "tea", "Timer set for 1 minute 30 seconds for tea."),
        (1, " the\u{a0}egg ", "Timer set for 1 second for the\u{a0}egg."),
    ] {
        let output = set(seconds, label);
        assert_eq!(output.speech.as_deref(), Some(speech));
        assert_eq!(output.data["duration_seconds"], seconds);
        assert_eq!(output.data["remaining_seconds"], seconds);
        assert!(output.data["id"].as_str().is_some_and(|id| !id.is_empty()));
    }
}

#[test]
fn the_length_is_taken_under_both_of_its_names() {
    granted();
    for arguments in [
        json!({ "duration": 90 }),
        json!({ "duration_seconds": 90 }),
        json!({ "duration": 90, "duration_seconds": 90 }),
    ] {
        let output = testing::call::<set_timer>(arguments).unwrap();
        assert_eq!(output.data["duration_seconds"], 90);
    }
}

#[test]
fn a_timer_without_sense_is_refused() {
    granted();
    for arguments in [
        json!({ "duration_seconds": 0 }),
        json!({ "duration_seconds": -5 }),
        json!({ "duration_seconds": DURATION_SECONDS_MAX + 1 }),
        json!({ "duration": 0 }),
        json!({ "duration": 60, "duration_seconds": 61 }),
        json!({ "duration": "60" }),
        json!({ "duration_seconds": 1.5 }),
        json!({ "duration_seconds": 1, "label": "x".repeat(LABEL_CHARS_MAX + 1) }),
        json!({ "duration_seconds": 1, "label": "a\nb" }),
        json!({ "label": "pasta" }),
        json!({ "duration_seconds": 1, "sound": "loud" }),
    ] {
        let error = testing::call::<set_timer>(arguments).unwrap_err();
        assert_eq!(error.kind(), "invalid-arguments");
    }
    assert_eq!(labels(), [] as [Value; 0]);
}

#[test]
fn without_grants_nothing_is_set() {
    let error = testing::call::<set_timer>(json!({ "duration_seconds": 5 })).unwrap_err();
    assert_eq!(error.kind(), "denied");
}

#[test]
fn a_timer_rings_once_with_its_label() {
    granted();
    set(480, "pasta");
    set(60, "");
    let context = CallContext::default();
    assert_eq!(rung(60, &context), ["Your timer for 1 minute is done."]);
    assert_eq!(rung(419, &context), [] as [&str; 0]);
    assert_eq!(rung(1, &context), ["Your pasta timer is done."]);
    assert_eq!(rung(10_000, &context), [] as [&str; 0]);
}

#[test]
fn it_is_said_aloud_and_to_the_user_wherever_they_are() {
    granted();
    set(1, "egg");
    let firing = testing::pass(Duration::from_secs(1)).remove(0);
    ring(firing, &CallContext::default()).unwrap();
    let message = testing::noticed().remove(0);
    assert_eq!(message.speech.as_deref(), Some("Your egg timer is done."));
    assert_eq!(message.audience, Audience::User);
}

#[test]
fn what_is_late_says_how_late_and_what_comes_again_says_so() {
    granted();
    set(60, "pasta");
    assert_eq!(
        rung(60 + 300, &CallContext::default()),
        ["Your pasta timer is done, 5 minutes late."]
    );
    set(60, "tea");
    let mut firing = testing::pass(Duration::from_secs(61)).remove(0);
    (firing.late, firing.again) = (true, true);
    ring(firing, &CallContext::default()).unwrap();
    let said = "Your tea timer is done, 1 second late. You may have heard this before.";
    assert_eq!(testing::noticed()[0].text, said);
}

#[test]
fn timers_are_cancelled_by_label_or_the_most_recent_first() {
    granted();
    for (seconds, label) in [(300, "Pasta"), (100, "tea"), (200, "ÄPFEL"), (400, "")] {
        set(seconds, label);
    }
    assert_eq!(labels(), [json!("tea"), json!("ÄPFEL"), json!("Pasta"), Value::Null]);
    for (arguments, speech) in [
        (json!({ "label": "pasta" }), "The Pasta timer is cancelled."),
        (json!({ "label": " äpfel " }), "The ÄPFEL timer is cancelled."),
        (json!({}), "The timer for 6 minutes 40 seconds is cancelled."),
        (json!({ "label": "" }), "The tea timer is cancelled."),
    ] {
        let output = testing::call::<cancel_timer>(arguments).unwrap();
        assert_eq!(output.speech.as_deref(), Some(speech));
    }
    for arguments in [json!({}), json!({ "label": "tea" })] {
        let error = testing::call::<cancel_timer>(arguments).unwrap_err();
        assert_eq!(error, ToolError::NotFound("No matching timer found".to_owned()));
    }
}

#[test]
fn of_two_timers_with_one_label_the_later_one_is_cancelled() {
    granted();
    set(100, "egg");
    set(50, "egg");
    testing::call::<cancel_timer>(json!({ "label": "egg" })).unwrap();
    let list = testing::call::<list_timers>(json!({})).unwrap().data;
    assert_eq!(list["timers"][0]["duration_seconds"], 100);
}

#[test]
fn the_list_tells_what_is_left() {
    granted();
    let speech = || testing::call::<list_timers>(json!({})).unwrap().speech.unwrap();
    assert_eq!(speech(), "There are no timers.");
    set(480, "pasta");
    testing::pass(Duration::from_millis(1_500));
    assert_eq!(speech(), "The pasta timer has 7 minutes 59 seconds left.");
    set(60, "");
    set(120, "tea");
    assert_eq!(
        speech(),
        "There are 3 timers: the timer for 1 minute has 1 minute left, the tea timer has 2 minutes \
         left, and the pasta timer has 7 minutes 59 seconds left."
    );
}

#[test]
fn timers_that_are_not_kept_end_with_their_host() {
    granted();
    testing::settings(json!({ "keep": false }));
    let same_host = started(now_ms() - 1);
    set(10, "egg");
    assert_eq!(rung(10, &same_host).len(), 1);

    set(10, "rings in the next host");
    set(20, "is listed in the next host");
    let next_host = started(now_ms() + 1);
    assert_eq!(rung(10, &next_host), [] as [&str; 0]);
    assert_eq!(list_timers(&next_host).unwrap().data.timers, []);
    assert_eq!(rung(20, &next_host), [] as [&str; 0]);

    let silent = CallContext::default();
    set(10, "in time");
    set(20, "late");
    assert_eq!(rung(10, &silent).len(), 1);
    assert_eq!(rung(3_600, &silent), [] as [&str; 0]);
}
