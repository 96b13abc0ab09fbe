//! Killed at any moment, the program has done nothing without a record and lost nothing that it had
//! told, with timers, a secret and files at once.

use std::{process::Child, thread, time::Duration};

use super::stage::{Act, Stage};
use crate::support::{dice::Dice, patience::until_so};

/// How often the program is killed.
const KILLS: usize = 100;

/// The moments are the same in each run of the test; what the program does at them is not.
const SEED: u64 = 0x2b99_2ddf;

/// Longest wait until a kill.
const LIFE_MS_MAX: u64 = 300;

/// Kills between which the listener goes on, so that timers fire in a program that lives.
const KILLS_OF_LISTENER: usize = 4;

fn kill(mut child: Child) -> bool {
    let has_ended = child.try_wait().unwrap().is_some_and(|status| status.success());
    let _ = child.kill();
    child.wait().unwrap();
    has_ended
}

/// Counts, and sets a timer that fires soon.
fn steps(dice: &mut Dice) -> [String; 2] {
    ["bump count".to_owned(), format!("doing {} tally", dice.roll(LIFE_MS_MAX))]
}

#[test]
fn a_hundred_kills_leave_nothing_without_a_record_and_lose_nothing() {
    let stage = Stage::new();
    stage.call(&stage.write()).ended(0);
    let mut dice = Dice(SEED);
    let mut listener = stage.listener();
    let (mut begun, mut told): (u64, Vec<Act>) = (0, Vec::new());
    for number in 0..KILLS {
        let act = match number % 3 {
            0 => stage.fetch(),
            1 => stage.write(),
            _ => stage.steps(&steps(&mut dice)),
        };
        begun += u64::from(act.tool == "living.acts");
        let child = stage.start(&act);
        thread::sleep(Duration::from_millis(dice.roll(LIFE_MS_MAX)));
        if kill(child) {
            told.push(act);
        }
        if number % KILLS_OF_LISTENER == 0 {
            drop(std::mem::replace(&mut listener, stage.listener()));
        }
    }
    until_so("the last firing", || stage.timers_left() == 0);
    drop(listener);
    stage.check();
    assert!(!told.is_empty() && told.len() < KILLS, "{} of {KILLS} were told", told.len());
    check_told(&stage, &told, begun);
}

/// What a program has told before it was killed, or ended, is there.
fn check_told(stage: &Stage, told: &[Act], begun: u64) {
    let records = stage.records();
    for act in told {
        assert!(records.has(act), "{act:?}");
        assert!(act.tool == "living.acts" || stage.is_done(act), "{act:?}");
    }
    let kept = stage.kept();
    let counted = told.iter().filter(|act| act.tool == "living.acts").count() as u64;
    let count = kept.iter().find(|(key, _)| key == "count");
    let count: u64 = count.map_or(0, |(_, value)| value.parse().unwrap());
    assert!((counted..=begun).contains(&count), "{counted} ≤ {count} ≤ {begun}");
    let fired = kept.iter().filter(|(key, _)| key.starts_with("fired-"));
    let fired: Vec<usize> = fired.map(|(_, marks)| marks.split_whitespace().count()).collect();
    assert!(fired.len() as u64 >= counted, "{} of {counted} timers fired", fired.len());
    let runs = records.count("role:timer");
    assert!(runs >= fired.iter().sum(), "{fired:?} firings, {runs} records");
}
