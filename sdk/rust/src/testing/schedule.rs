//! Timers in memory, and a clock that only tests move.

use std::{
    cell::{Cell, RefCell},
    time::Duration,
};

use serde_json::Value;

use super::{Power, is_granted};
use crate::schedule::{Firing, Moment, ScheduleError, Timer};

/// The start time of every test: a Sunday in November 2026.
const START_MS: u64 = 1_795_305_600_000;

/// A firing that is more overdue than this is late, in milliseconds.
const LATE_MS: u64 = 2_000;

/// Most timers of a plugin under a policy with `schedule = true` and no limit of its own.
const TIMERS_MAX: usize = 64;

/// The assumed interval of a calendar.
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

#[derive(Default)]
struct Timers {
    set: Vec<Timer>,
    last_id: u64,
}

thread_local! {
    static NOW_MS: Cell<u64> = const { Cell::new(START_MS) };
    static TIMERS: RefCell<Timers> = RefCell::default();
}

pub(crate) fn now_ms() -> u64 {
    NOW_MS.get()
}

pub(super) fn in_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

pub(crate) fn add(
    moment: Moment,
    label: Option<&str>,
    payload: Value,
) -> Result<Timer, ScheduleError> {
    with(|timers| {
        let next_ms = first_ms(&moment)?;
        if timers.set.len() >= TIMERS_MAX {
            let reason = format!("at most {TIMERS_MAX} are allowed");
            return Err(ScheduleError::QuotaReached { reason });
        }
        timers.last_id += 1;
        let id = format!("timer-{}", timers.last_id);
        let timer = Timer { id, moment, next_ms, label: label.map(str::to_owned), payload };
        timers.set.push(timer.clone());
        Ok(timer)
    })
}

pub(crate) fn cancel(id: &str) -> Result<bool, ScheduleError> {
    with(|timers| {
        let before = timers.set.len();
        timers.set.retain(|timer| timer.id != id);
        Ok(timers.set.len() < before)
    })
}

pub(crate) fn list() -> Result<Vec<Timer>, ScheduleError> {
    with(|timers| {
        let mut set = timers.set.clone();
        set.sort_by_key(|timer| timer.next_ms);
        Ok(set)
    })
}

pub(super) fn pass(time: Duration) -> Vec<Firing> {
    let now_ms = now_ms().saturating_add(in_ms(time));
    NOW_MS.set(now_ms);
    TIMERS.with_borrow_mut(|timers| {
        timers.set.sort_by_key(|timer| timer.next_ms);
        let (due, later) = timers.set.drain(..).partition(|timer| timer.next_ms <= now_ms);
        timers.set = later;
        let due: Vec<Timer> = due;
        let firings: Vec<Firing> = due.into_iter().map(|timer| fire(timer, now_ms)).collect();
        let again = firings.iter().filter(|firing| firing.timer.moment.is_repeated());
        timers.set.extend(again.map(|firing| firing.timer.clone()));
        firings
    })
}

fn with<R>(work: impl FnOnce(&mut Timers) -> Result<R, ScheduleError>) -> Result<R, ScheduleError> {
    if !is_granted(Power::Schedule) {
        return Err(ScheduleError::NotGranted);
    }
    TIMERS.with_borrow_mut(work)
}

fn first_ms(moment: &Moment) -> Result<u64, ScheduleError> {
    let next_ms = match moment {
        Moment::AtMs(at_ms) => *at_ms,
        moment => now_ms().saturating_add(distance_ms(moment)),
    };
    if next_ms <= now_ms() {
        return Err(ScheduleError::Invalid { reason: "the moment is in the past".to_owned() });
    }
    Ok(next_ms)
}

fn distance_ms(moment: &Moment) -> u64 {
    match moment {
        Moment::In(time) | Moment::Every(time) => in_ms(*time),
        Moment::Calendar { .. } => DAY_MS,
        Moment::AtMs(_) | Moment::Other(_) => 0,
    }
}

fn fire(timer: Timer, now_ms: u64) -> Firing {
    let due_ms = timer.next_ms;
    let over_ms = now_ms - due_ms;
    let distance_ms = distance_ms(&timer.moment).max(1);
    let missed = if timer.moment.is_repeated() { over_ms / distance_ms } else { 0 };
    let next_ms = due_ms.saturating_add(distance_ms.saturating_mul(missed + 1));
    let timer = if timer.moment.is_repeated() { Timer { next_ms, ..timer } } else { timer };
    let missed = u32::try_from(missed).unwrap_or(u32::MAX);
    Firing { timer, due_ms, late: over_ms > LATE_MS, missed, again: false }
}
