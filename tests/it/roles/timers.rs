//! Timers: a plugin is told what fires, and holds nothing of another role meanwhile.

use sallyport_contract::{
    CallReport, Outcome,
    services::{DataOwner, StoredTimer, TimerFiring, TimerSchedule},
};

use super::{admitted, refused, warden};
use crate::support::{
    Guarded, Scripted,
    registry::{log, told},
};

fn firing(payload: &str) -> TimerFiring {
    let owner = DataOwner { plugin: "player".parse().unwrap(), user: "tester".to_owned() };
    let timer = StoredTimer {
        id: "t1".to_owned(),
        owner,
        schedule: TimerSchedule::Calendar { cron: "0 9 * * *".to_owned(), time_zone: None },
        next_ms: 2,
        label: None,
        payload: format!("\"{payload}\""),
        session_id: "s".to_owned(),
    };
    TimerFiring { timer, due_ms: 1, late: true, missed: 3, will_repeat: false }
}

fn fire(player: &Guarded, payload: &str) -> CallReport {
    player.wait(player.plugin.fire_timer(admitted(player, "timer"), firing(payload))).report
}

#[test]
fn a_plugin_is_told_what_fires() {
    let report = fire(&Guarded::by(warden("")), "tea");
    assert_eq!(report.outcome.as_str(), "completed");
    let line = log(&report)[0];
    assert!(line.starts_with("s tester/- t1 tea late=true missed=3 again=false"), "{line}");
    assert!(line.contains("0 9 * * *"), "{line}");
}

#[test]
fn a_callback_that_goes_wrong_is_an_outcome() {
    let player = Guarded::by(warden(super::LIMITS));
    for (payload, want) in [
        ("fail", "failed: the words of the timer"),
        ("trap", "failed: the plugin trapped"),
        ("loop", "timed-out"),
        ("tea", "completed"),
    ] {
        let report = fire(&player, payload);
        assert!(told(&report).starts_with(want), "{payload}: {}", told(&report));
    }
}

/// The timer counted as told, and a one-shot timer was gone although its plugin never ran.
#[test]
fn a_timer_of_a_plugin_whose_folder_is_missing_is_not_taken_as_told() {
    let folder = tempfile::tempdir().unwrap();
    let grant = format!(
        r#"fs = [{{ path = "{}", mount = "/data", access = "read" }}]"#,
        folder.path().display()
    );
    let requests =
        format!("{}\n[[request.fs]]\naccess = \"read\"\nwhy = \"tests\"\n", super::ROLES);
    let granted = format!("{}\n{grant}\n", super::GRANTS);
    let player = Guarded::by(Scripted::new("player", &requests, &granted));
    let fired = |player: &Guarded| {
        player.wait(player.plugin.fire_timer(admitted(player, "timer"), firing("tea"))).has_begun
    };
    assert!(fired(&player));
    drop(folder);
    assert!(!fired(&player));
}

#[test]
fn what_belongs_to_another_role_is_refused() {
    let report = fire(&Guarded::by(warden("")), "reach");
    assert_eq!(report.outcome, Outcome::Completed(Default::default()));
    assert_eq!(log(&report), ["submit: not granted", "confirm: not granted"]);
    let refused = refused(&report);
    for what in ["hand input to the session", "answer a question", "stream an answer", "draw"] {
        assert!(refused.contains(&format!("player may not {what}")), "{refused:?}");
    }
}
