//! Timers that end at the same moment: every one is told, whatever limits are in between.

use std::{
    collections::BTreeSet,
    thread,
    time::{Duration, Instant},
};

use sallyport_contract::{
    LOCAL_USER,
    services::{DataOwner, TimerRequest, TimerSchedule},
};
use sallyport_store::{HostStore, SessionFilter};
use serde_json::json;

use crate::support::{Home, Running, living::REQUESTS, patience::wait};

/// Longest wait until all is told: a plugin that may say little needs the next minutes for the
/// rest.
const PATIENCE: Duration = Duration::from_secs(280);

const POLICY: &str = r#"
[plugin.timer]
schedule = { timers = 2000 }
notify = true
state = true
[plugin.living]
schedule = { timers = 2000 }
notify = { per-minute = 2 }
[plugin.second]
schedule = true
notify = true
state = true
"#;

fn home() -> Home {
    let second = crate::support::home::plugin_component("timer");
    let requests = "[[request.schedule]]\nwhy = \"t\"\n[[request.notify]]\nwhy = \"t\"\n\
                    [[request.state]]\nwhy = \"t\"\n";
    let manifest = crate::support::home::manifest("second", requests);
    Home::new()
        .plugins(&["timer"])
        .guest("living", REQUESTS)
        .component("second", &manifest, &second)
        .policy(POLICY)
}

/// Sets timers of one owner that are all due at once, while no host runs.
fn set(home: &Home, plugin: &str, names: impl Iterator<Item = String>) {
    let store = HostStore::open(&home.path("state")).unwrap();
    let owner = DataOwner { plugin: plugin.parse().unwrap(), user: "local".to_owned() };
    for name in names {
        let payload = match plugin {
            "living" => json!(format!("tell_{name}.")),
            "reminder" => json!({ "text": format!("{name}.") }),
            _ => json!({ "seconds": 5, "number": 1, "set_ms": 1 }),
        };
        let plan = TimerRequest {
            schedule: TimerSchedule::InMs(1),
            label: Some(name),
            payload: payload.to_string(),
            session_id: "s-before".to_owned(),
            interval_ms_min: 0,
            timers_max: u32::MAX,
        };
        wait(store.timers.add_timer(&owner, plan)).unwrap();
    }
}

fn names(of: &str, count: usize) -> impl Iterator<Item = String> {
    (0..count).map(move |n| format!("{of}{n}e"))
}

/// Which of the names stand in what was said.
fn told(said: &str, names: impl Iterator<Item = String>) -> BTreeSet<String> {
    names.filter(|name| said.contains(name.as_str())).collect()
}

/// Opens a conversation and waits until all names were told.
#[track_caller]
fn all_are_told(home: &Home, all: &[String]) -> String {
    let mut host = Running::start(home, &["chat"]);
    let begin = Instant::now();
    while told(&host.said().1, all.iter().cloned()).len() < all.len() {
        let missing = || {
            let said = host.said();
            let told = told(&said.1, all.iter().cloned());
            let missing: Vec<_> = all.iter().filter(|name| !told.contains(*name)).collect();
            format!("{} missing: {missing:?} in {}", missing.len(), said.1)
        };
        assert!(begin.elapsed() < PATIENCE, "{}", missing());
        thread::sleep(Duration::from_millis(50));
    }
    let (code, _, stderr) = host.ends();
    assert_eq!(code, 0, "{stderr}");
    stderr
}

fn timers_left(home: &Home) -> usize {
    wait(HostStore::open(&home.path("state")).unwrap().timers.all()).unwrap().len()
}

#[test]
fn timers_that_end_together_are_all_told() {
    for rows in [
        &[("timer", 25)][..],
        &[("timer", 300), ("second", 60)],
        &[("reminder", 256)],
        // It passes over what it is told, and says nothing of it itself.
        &[("living", 40)],
    ] {
        let home = home();
        let mut all = Vec::new();
        for (plugin, count) in rows {
            set(&home, plugin, names(plugin, *count));
            all.extend(names(plugin, *count));
        }
        let said = all_are_told(&home, &all);
        assert!(!said.contains("failed") && !said.contains("no longer"), "{said}");
        for name in &all {
            assert_eq!(said.matches(name.as_str()).count(), 1, "{name} in {said}");
        }
        assert_eq!(timers_left(&home), 0, "{rows:?}");
        // Each is said with the name of its plugin before it.
        for line in said.lines().filter(|line| all.iter().any(|name| line.contains(name))) {
            assert!(
                rows.iter().any(|(plugin, _)| line.contains(&format!("{plugin} says"))),
                "{line}"
            );
        }
    }
}

#[test]
fn a_list_for_programs_has_all_timers() {
    let home = home();
    set(&home, "timer", names("timer", 45));
    let listed = home.run(&["timer", "list", "--output", "json"]).ended(0).json();
    assert_eq!(listed.as_array().unwrap().len(), 45);
    home.run(&["timer", "list"]).ended(0).remarks(&["25 more; show them with --all"]);
}

#[test]
fn timers_that_end_together_within_a_limit_of_one_come_in_few_messages() {
    let home = home().policy(POLICY.replace("notify = true", "notify = { per-minute = 1 }"));
    set(&home, "timer", names("timer", 25));
    let all: Vec<String> = names("timer", 25).collect();
    all_are_told(&home, &all);
    let store = HostStore::open(&home.path("state")).unwrap();
    let session = wait(store.sessions.latest_session(LOCAL_USER, None)).unwrap().unwrap();
    let records = wait(store.sessions.read_page(&session, 0)).unwrap();
    let noticed = records.iter().filter(|record| record.kind == "noticed");
    assert!(noticed.count() <= 2);
}

#[test]
fn timers_that_were_firing_when_the_host_was_killed_are_told_by_the_next() {
    let home = home();
    set(&home, "timer", names("timer", 60));
    let all: Vec<String> = names("timer", 60).collect();
    let mut said = String::new();
    for _ in 0..3 {
        let host = Running::start(&home, &["chat"]);
        let begin = Instant::now();
        while told(&host.said().1, all.iter().cloned()).is_empty() && begin.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(1));
        }
        said.push_str(&host.said().1);
        // Dropped, it is killed.
        drop(host);
    }
    // A session that recorded a message has it, also if it was killed before it printed it.
    let store = HostStore::open(&home.path("state")).unwrap();
    for session in wait(store.sessions.list(SessionFilter::of_user(LOCAL_USER))).unwrap() {
        for record in wait(store.sessions.read_page(&session, 0)).unwrap() {
            said.push_str(&record.body);
        }
    }
    let rest: Vec<String> =
        all.iter().filter(|name| !said.contains(name.as_str())).cloned().collect();
    all_are_told(&home, &rest);
    assert_eq!(timers_left(&home), 0);
}
