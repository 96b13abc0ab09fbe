//! A program that is killed at any moment loses nothing of what plugins keep and plan: no value is
//! torn, no firing is lost, and one that comes twice says so.

use std::{collections::BTreeMap, process::Child, thread, time::Duration};

use serde_json::{Value, json};

use crate::support::{Home, Running, dice::Dice, living::REQUESTS, patience::until_so};

/// How often the program is killed.
const KILLS: u64 = 50;

/// The moments are the same in each run of the test; what the program does at them is not.
const SEED: u64 = 0x7131_2a95;

/// Timers that are set before each kill: so many that a kill often hits a firing.
const TIMERS: usize = 24;

/// Longest wait until the kill.
const LIFE_MS_MAX: u64 = 600;

/// Keys that the guest is asked for at a time.
const KEYS_AT_A_TIME: usize = 100;

const POLICY: &str = "[plugin.living]\nstate = true\nschedule = { timers = 512 }\n\
                      [[rule]]\ntool = \"living.acts\"\ndecision = \"allow\"\n";

/// A session in which nobody says anything, and timers fire.
fn listener(home: &Home) -> Running {
    Running::start(home, &["chat", "--model", "offline"])
}

/// Counts, and sets timers that fire some tens of milliseconds apart.
fn steps(dice: &mut Dice) -> Value {
    let timers = (0..TIMERS).map(|_| format!("doing {} tally", dice.roll(LIFE_MS_MAX)));
    let bump = ["bump count".to_owned()];
    json!({ "steps": bump.iter().cloned().chain(timers).chain(bump.clone()).collect::<Vec<_>>() })
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Everything that the guest keeps, by key.
fn kept(home: &Home) -> BTreeMap<String, String> {
    let keys = home.run(&["state", "list", "living", "--output", "json"]).ended(0).json();
    let keys: Vec<&str> =
        keys.as_array().unwrap().iter().map(|key| key.as_str().unwrap()).collect();
    keys.chunks(KEYS_AT_A_TIME).flat_map(|keys| values(home, keys)).collect()
}

fn values(home: &Home, keys: &[&str]) -> Vec<(String, String)> {
    let steps: Vec<String> = keys.iter().map(|key| format!("get {key}")).collect();
    let told = home.run(&["call", "living.acts", &json!({ "steps": steps }).to_string()]);
    let told = told.ended(0).json();
    let values = told.as_array().unwrap().iter().map(|told| told.as_str().unwrap());
    // Behind a value stands its version.
    let values = values.map(|told| told.rsplit_once(" v").unwrap().0.to_owned());
    keys.iter().map(|key| (*key).to_owned()).zip(values).collect()
}

fn no_timer_is_left(home: &Home) -> bool {
    home.run(&["timer", "list", "--output", "json"]).ended(0).json() == json!([])
}

#[test]
fn a_killed_program_tears_loses_and_doubles_nothing() {
    let home = Home::new().guest("living", REQUESTS).policy(POLICY);
    let mut dice = Dice(SEED);
    let (mut set, mut counted, mut begun) = (Vec::new(), 0, 0);
    for _ in 0..KILLS {
        let listener = listener(&home);
        let arguments = steps(&mut dice).to_string();
        let call = ["call", "living.acts", &arguments, "--output", "json"];
        begun += 2;
        if dice.roll(3) == 0 {
            let child = home.start(&call);
            thread::sleep(Duration::from_millis(dice.roll(LIFE_MS_MAX / 2)));
            kill(child);
        } else {
            counted += 2;
            set.extend(ids(&home.run(&call).ended(0).json()));
        }
        thread::sleep(Duration::from_millis(dice.roll(LIFE_MS_MAX)));
        drop(listener);
    }
    let last = listener(&home);
    until_so("the last firing", || no_timer_is_left(&home));
    drop(last);
    let kept = kept(&home);
    let count: u64 = kept["count"].parse().unwrap();
    assert!((counted..=begun).contains(&count), "{counted} ≤ {count} ≤ {begun}");
    for id in set {
        assert!(kept.contains_key(&format!("fired-{id}")), "{id} never fired");
    }
    let again = kept.values().filter(|marks| marks.contains("fal")).count();
    assert!(again > 0, "no kill hit a firing");
    let tallies = kept.iter().filter(|(key, _)| key.starts_with("fired-"));
    tallies.for_each(|(key, marks)| check(key, marks));
}

/// The ids of the timers that a call has set.
fn ids(told: &Value) -> Vec<String> {
    let steps = told["result"]["data"].as_array().or(told["result"].as_array()).unwrap();
    let words = steps.iter().filter_map(|step| step.as_str()?.split(' ').next());
    words.filter(|word| word.starts_with("t-")).map(str::to_owned).collect()
}

/// Each firing has left `f`, and beside it `a` when it was said to come again and `l` for late.
/// Only the first may lack the `a`, and what comes again is late.
fn check(key: &str, marks: &str) {
    for (number, firing) in marks.split_whitespace().enumerate() {
        let is_marked = firing == "fal";
        let is_first = number == 0 && ["f", "fl", "fal"].contains(&firing);
        assert!(is_marked || is_first, "{key}: {marks}");
    }
    assert!(marks.starts_with('f') && marks.ends_with(' '), "{key}: {marks:?}");
}
