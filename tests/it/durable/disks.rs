//! Disks that fill up at different bytes, with timers, a secret and files at once.

use std::thread;

use super::stage::Stage;
use crate::support::disk::Disk;

/// How many disks fill up.
const DISKS: u64 = 25;

/// By how much more room each has than the one before: no multiple of what a file system counts in,
/// so that they end within records, heads and pages.
const STEP_BYTES: u64 = 2731;

/// Room for the database and its log of writes.
const DISK_BYTES: u64 = 2 << 20;

/// Most acts until a disk is full.
const ACTS_MAX: usize = 12;

/// Disks that are filled at the same time.
const AT_ONCE: u64 = 2;

/// Does one thing after another until one is refused, and then some more; returns whether one was.
fn fill_up(left_bytes: u64) -> Option<bool> {
    let stage = Stage::new();
    let disk = Disk::mount(&stage.home.path("state"), DISK_BYTES)?;
    stage.call(&stage.write()).ended(0);
    disk.fill(left_bytes);
    let (mut told, mut refused, mut set) = (Vec::new(), 0, 0);
    for number in 0..ACTS_MAX {
        let act = match number % 3 {
            0 => stage.fetch(),
            1 => stage.steps(&["bump count".to_owned(), "doing 3600000 tally".to_owned()]),
            _ => stage.write(),
        };
        let ran = stage.call(&act);
        assert!(!ran.stderr.contains("panicked"), "{left_bytes}: {ran:#?}");
        // What the host answers to the plugin is among what the plugin tells.
        set += usize::from(ran.code == 0 && ran.stdout.contains("\"t-"));
        match ran.code {
            0 => told.push(act),
            _ => refused += 1,
        }
        if refused > 2 {
            break;
        }
    }
    disk.make_room();
    stage.check();
    let records = stage.records();
    assert!(told.iter().all(|act| records.has(act)), "{left_bytes}: {told:?}");
    assert!(stage.timers_left() >= set, "{left_bytes}: a timer is lost");
    stage.call(&stage.fetch()).ended(0);
    stage.check();
    Some(refused > 0)
}

#[test]
fn twenty_five_disks_that_fill_up_leave_nothing_without_a_record() {
    let filled: Vec<Option<bool>> = thread::scope(|scope| {
        let some = |first: u64| {
            scope.spawn(move || {
                let numbers = (first..DISKS).step_by(AT_ONCE as usize);
                numbers.map(|number| fill_up(number * STEP_BYTES)).collect::<Vec<_>>()
            })
        };
        let all: Vec<_> = (0..AT_ONCE).map(some).collect();
        all.into_iter().flat_map(|some| some.join().unwrap()).collect()
    });
    // Where nobody may mount, it was said.
    assert!(filled.contains(&Some(true)) || filled.iter().all(Option::is_none), "none was full");
}
