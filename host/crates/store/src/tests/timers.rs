//! Timers: each fires when it is due, for one who has claimed it, and is not lost with them.

use std::slice::from_ref;

use sallyport_contract::services::{
    StoredTimer, TimerError, TimerFiring, TimerRequest, TimerSchedule,
};

use super::*;
use crate::{PersistentTimerStore, TimerClaim};

const LEASE_MS: u64 = 30_000;
const MINUTE_MS: u64 = 60_000;

/// When the tests begin.
const START_MS: u64 = 1_800_000_000_000;

struct Keeper {
    timers: Arc<dyn PersistentTimerStore>,
    hands: Hands,
    fixture: Fixture,
}

fn me() -> DataOwner {
    owner("timer", "me")
}

fn plan(moment: TimerSchedule) -> TimerRequest {
    TimerRequest {
        schedule: moment,
        label: Some("pasta".to_owned()),
        payload: "{\"n\":1}".to_owned(),
        session_id: "s-1".to_owned(),
        interval_ms_min: MINUTE_MS,
        timers_max: 9,
    }
}

impl Keeper {
    fn new() -> Self {
        let (fixture, hands) = (Fixture::new(), Hands::default());
        hands.set(START_MS);
        Self { timers: hands.store(&fixture).timers, hands, fixture }
    }

    fn add(&self, moment: TimerSchedule) -> StoredTimer {
        self.timers.add_timer(&me(), plan(moment)).wait().unwrap()
    }

    fn due(&self, after_ms: u64) -> Vec<String> {
        let due = self.timers.list_due(START_MS + after_ms).wait().unwrap();
        due.into_iter().map(|timer| timer.id).collect()
    }

    fn claim(&self, timer: &StoredTimer, after_ms: u64) -> Option<TimerClaim> {
        self.timers.claim(&timer.id, START_MS + after_ms, LEASE_MS).wait().unwrap()
    }

    fn settle(&self, timer: &StoredTimer, after_ms: u64) -> TimerFiring {
        let claim = self.claim(timer, after_ms).unwrap();
        assert!(self.timers.complete_claim(&claim).wait().unwrap());
        claim.firing
    }

    /// Makes every claim one of another process.
    fn hand_over(&self, other: Other) {
        self.fixture.hand_over("timer", other);
    }
}

#[test]
fn a_timer_is_listed_until_it_has_fired_or_is_cancelled() {
    let keeper = Keeper::new();
    let late = keeper.add(TimerSchedule::InMs(2 * MINUTE_MS));
    let soon = keeper.add(TimerSchedule::AtMs(START_MS + MINUTE_MS));
    let StoredTimer { owner, label, payload, session_id, next_ms, schedule: moment, .. } =
        soon.clone();
    assert_eq!((owner, label.as_deref(), payload.as_str()), (me(), Some("pasta"), "{\"n\":1}"));
    assert_eq!((session_id.as_str(), next_ms), ("s-1", START_MS + MINUTE_MS));
    assert_eq!(moment, TimerSchedule::AtMs(START_MS + MINUTE_MS));
    assert_eq!(keeper.timers.list_timers(&me()).wait().unwrap(), [soon.clone(), late.clone()]);
    keeper.settle(&soon, MINUTE_MS);
    assert_eq!(keeper.timers.list_timers(&me()).wait().unwrap(), from_ref(&late));
    assert!(keeper.timers.cancel_timer(&me(), &late.id).wait().unwrap());
    assert!(!keeper.timers.cancel_timer(&me(), &late.id).wait().unwrap());
    assert_eq!(keeper.timers.list_timers(&me()).wait().unwrap(), []);
    assert_eq!(keeper.timers.next_due_ms(0).wait().unwrap(), None);
    let next = keeper.add(TimerSchedule::InMs(1));
    assert!(next.id != late.id && next.id != soon.id, "no name is given twice");
}

#[test]
fn nobody_touches_the_timers_of_others_but_an_operator() {
    let keeper = Keeper::new();
    let mine = keeper.add(TimerSchedule::InMs(MINUTE_MS));
    for other in [owner("timer", "you"), owner("other", "me")] {
        assert!(!keeper.timers.cancel_timer(&other, &mine.id).wait().unwrap());
        assert_eq!(keeper.timers.list_timers(&other).wait().unwrap(), []);
        let theirs = keeper.timers.add_timer(&other, plan(TimerSchedule::InMs(5))).wait().unwrap();
        assert_eq!(keeper.timers.list_timers(&other).wait().unwrap(), [theirs]);
    }
    assert_eq!(keeper.timers.all().wait().unwrap().len(), 3);
    for id in ["", "t", "t-", "t-01", "t-+1", "T-1", "1", "t--1", "t-99", "t-99999999999999999999"]
    {
        assert_eq!(keeper.timers.cancel_for_any_owner(id).wait().unwrap(), None, "{id}");
        assert_eq!(keeper.timers.claim(id, u64::MAX / 4, 1).wait().unwrap(), None, "{id}");
    }
    assert_eq!(keeper.timers.cancel_for_any_owner(&mine.id).wait().unwrap(), Some(mine));
    assert_eq!(keeper.timers.list_timers(&me()).wait().unwrap(), []);
}

#[test]
fn what_cannot_be_set_is_refused_with_words() {
    let keeper = Keeper::new();
    let calendar = |cron: &str| TimerSchedule::Calendar { cron: cron.to_owned(), time_zone: None };
    let rows = [
        (plan(TimerSchedule::AtMs(START_MS - 1)), "is in the past"),
        (plan(TimerSchedule::EveryMs(MINUTE_MS - 1)), "at least 1m are needed"),
        (plan(calendar("* * * * * *")), "at least 1m are needed"),
        (plan(calendar("0 0 30 2 *")), "never fires"),
        (
            TimerRequest { label: Some("x".repeat(257)), ..plan(TimerSchedule::InMs(1)) },
            "a label of 257 bytes",
        ),
        (
            TimerRequest { payload: "x".repeat(65_537), ..plan(TimerSchedule::InMs(1)) },
            "a payload of 65537 bytes",
        ),
    ];
    for (plan, want) in rows {
        let error = keeper.timers.add_timer(&me(), plan).wait().unwrap_err();
        assert!(matches!(&error, TimerError::Invalid(why) if why.contains(want)), "{error}");
    }
    assert_eq!(keeper.timers.all().wait().unwrap(), []);
}

#[test]
fn there_are_only_so_many() {
    let keeper = Keeper::new();
    let add = |moment| {
        keeper.timers.add_timer(&me(), TimerRequest { timers_max: 2, ..plan(moment) }).wait()
    };
    let once = add(TimerSchedule::InMs(MINUTE_MS)).unwrap();
    add(TimerSchedule::EveryMs(MINUTE_MS)).unwrap();
    assert_eq!(add(TimerSchedule::InMs(1)), Err(TimerError::TooMany { max: 2 }));
    keeper.timers.add_timer(&owner("timer", "you"), plan(TimerSchedule::InMs(1))).wait().unwrap();
    // One that fires for the last time can set the next.
    let claim = keeper.claim(&once, MINUTE_MS).unwrap();
    add(TimerSchedule::InMs(2 * MINUTE_MS)).unwrap();
    assert_eq!(add(TimerSchedule::InMs(1)), Err(TimerError::TooMany { max: 2 }));
    keeper.timers.complete_claim(&claim).wait().unwrap();
    assert_eq!(add(TimerSchedule::InMs(1)), Err(TimerError::TooMany { max: 2 }));
}

#[test]
fn one_that_waits_does_not_hide_when_the_next_is_due() {
    let keeper = Keeper::new();
    keeper.add(TimerSchedule::InMs(MINUTE_MS));
    keeper.add(TimerSchedule::InMs(3 * MINUTE_MS));
    for (after_ms, want) in [
        (0, Some(MINUTE_MS)),
        (MINUTE_MS - 1, Some(MINUTE_MS)),
        (MINUTE_MS, Some(3 * MINUTE_MS)),
        (2 * MINUTE_MS, Some(3 * MINUTE_MS)),
        (3 * MINUTE_MS, None),
    ] {
        let next = keeper.timers.next_due_ms(START_MS + after_ms).wait().unwrap();
        assert_eq!(next, want.map(|want| START_MS + want), "after {after_ms}");
    }
}

#[test]
fn one_that_is_due_is_claimed_once_and_fires_once() {
    let keeper = Keeper::new();
    let timer = keeper.add(TimerSchedule::InMs(MINUTE_MS));
    assert_eq!(keeper.timers.next_due_ms(START_MS).wait().unwrap(), Some(START_MS + MINUTE_MS));
    assert_eq!(keeper.due(MINUTE_MS - 1), [""; 0]);
    assert_eq!(keeper.claim(&timer, MINUTE_MS - 1), None);
    assert_eq!(keeper.due(MINUTE_MS), from_ref(&timer.id));
    let claim = keeper.claim(&timer, MINUTE_MS).unwrap();
    let (due_ms, timer) = (START_MS + MINUTE_MS, timer);
    let want =
        TimerFiring { timer: timer.clone(), due_ms, late: false, missed: 0, will_repeat: false };
    assert_eq!(claim.firing, want);
    assert_eq!((keeper.due(MINUTE_MS), keeper.claim(&timer, MINUTE_MS)), (vec![], None));
    let lease_end_ms = START_MS + MINUTE_MS + LEASE_MS;
    assert_eq!(keeper.timers.next_due_ms(START_MS + MINUTE_MS).wait().unwrap(), Some(lease_end_ms));
    assert!(keeper.timers.complete_claim(&claim).wait().unwrap());
    assert!(!keeper.timers.complete_claim(&claim).wait().unwrap());
    assert_eq!(keeper.timers.all().wait().unwrap(), []);
}

#[test]
fn a_repeated_timer_fires_once_for_all_that_was_missed() {
    let rows = [
        (MINUTE_MS, false, 0, 2 * MINUTE_MS),
        (MINUTE_MS + 2000, false, 0, 2 * MINUTE_MS),
        (MINUTE_MS + 2001, true, 0, 2 * MINUTE_MS),
        (2 * MINUTE_MS, true, 1, 3 * MINUTE_MS),
        (60 * MINUTE_MS + 5, true, 59, 61 * MINUTE_MS),
    ];
    for (now, late, missed, next) in rows {
        let keeper = Keeper::new();
        let timer = keeper.add(TimerSchedule::EveryMs(MINUTE_MS));
        let firing = keeper.settle(&timer, now);
        assert_eq!(firing.due_ms, START_MS + MINUTE_MS);
        assert_eq!(
            (firing.late, firing.missed, firing.will_repeat),
            (late, missed, false),
            "{now}"
        );
        assert_eq!(firing.timer.next_ms, START_MS + next);
        assert_eq!(keeper.due(now), [""; 0], "once");
        assert_eq!(keeper.due(next), from_ref(&timer.id));
        assert_eq!(keeper.timers.list_timers(&me()).wait().unwrap()[0].next_ms, START_MS + next);
    }
}

#[test]
fn a_calendar_goes_on_where_it_says() {
    let keeper = Keeper::new();
    let time_zone = Some("UTC".to_owned());
    // The tests begin on a Friday at 8:00.
    let timer = keeper.add(TimerSchedule::Calendar { cron: "30 8 * * 1-5".to_owned(), time_zone });
    let (half_hour, days) = (30 * MINUTE_MS, 24 * 60 * MINUTE_MS);
    assert_eq!(timer.next_ms, START_MS + half_hour);
    let firing = keeper.settle(&timer, half_hour);
    assert_eq!(firing.timer.next_ms, START_MS + half_hour + 3 * days);
    let firing = keeper.settle(&timer, half_hour + 5 * days + 1);
    assert_eq!((firing.missed, firing.late), (2, true));
    assert_eq!(firing.timer.next_ms, START_MS + half_hour + 6 * days);
}

/// Claims by a process that is gone are free at once; by one that cannot be seen, after the lease.
#[test]
fn what_a_process_has_left_behind_fires_again() {
    let rows = [
        (Some(Other::Ended), true),
        (Some(Other::Replaced), true),
        (Some(Other::BeforeTheStart), true),
        (Some(Other::Elsewhere), false),
        (None, false),
    ];
    for (other, at_once) in rows {
        let keeper = Keeper::new();
        let timer = keeper.add(TimerSchedule::InMs(MINUTE_MS));
        let lost = keeper.claim(&timer, MINUTE_MS).unwrap();
        other.into_iter().for_each(|other| keeper.hand_over(other));
        assert_eq!(!keeper.due(MINUTE_MS).is_empty(), at_once);
        let wait = if at_once { 0 } else { LEASE_MS };
        if wait > 0 {
            assert_eq!(keeper.claim(&timer, MINUTE_MS + wait - 1), None);
        }
        let claim = keeper.claim(&timer, MINUTE_MS + wait).unwrap();
        assert!(claim.firing.will_repeat && claim.firing.late);
        assert_eq!(claim.firing.due_ms, START_MS + MINUTE_MS);
        assert!(!keeper.timers.renew_claim(&lost, START_MS, LEASE_MS).wait().unwrap());
        assert!(!keeper.timers.release_claim(&lost).wait().unwrap());
        assert!(
            !keeper.timers.complete_claim(&lost).wait().unwrap(),
            "the first claim stands no longer"
        );
        assert!(keeper.timers.complete_claim(&claim).wait().unwrap());
    }
}

/// That it comes again is said of one time, and not of the next.
#[test]
fn what_has_fired_again_goes_on_as_before() {
    let keeper = Keeper::new();
    let timer = keeper.add(TimerSchedule::EveryMs(MINUTE_MS));
    keeper.claim(&timer, MINUTE_MS).unwrap();
    keeper.hand_over(Other::Ended);
    assert!(keeper.settle(&timer, MINUTE_MS).will_repeat);
    assert!(!keeper.settle(&timer, 2 * MINUTE_MS).will_repeat);
}

#[test]
fn a_claim_lives_as_long_as_it_is_renewed() {
    let keeper = Keeper::new();
    let timer = keeper.add(TimerSchedule::EveryMs(MINUTE_MS));
    let claim = keeper.claim(&timer, MINUTE_MS).unwrap();
    let later = MINUTE_MS + LEASE_MS;
    assert!(keeper.timers.renew_claim(&claim, START_MS + later - 1, LEASE_MS).wait().unwrap());
    assert_eq!(keeper.claim(&timer, later), None);
    assert!(keeper.timers.complete_claim(&claim).wait().unwrap());
    assert!(!keeper.timers.renew_claim(&claim, START_MS + later, LEASE_MS).wait().unwrap());
    let next = keeper.claim(&timer, 2 * MINUTE_MS).unwrap();
    assert!(!next.firing.will_repeat, "the next time is another one");
    assert!(!keeper.timers.complete_claim(&claim).wait().unwrap(), "a claim is settled once");
    assert!(keeper.timers.complete_claim(&next).wait().unwrap());
}

#[test]
fn a_firing_that_has_not_begun_is_given_back() {
    let keeper = Keeper::new();
    let timer = keeper.add(TimerSchedule::InMs(MINUTE_MS));
    let claim = keeper.claim(&timer, MINUTE_MS).unwrap();
    assert!(keeper.timers.release_claim(&claim).wait().unwrap());
    assert!(!keeper.timers.release_claim(&claim).wait().unwrap());
    assert!(!keeper.timers.complete_claim(&claim).wait().unwrap());
    let claim = keeper.claim(&timer, MINUTE_MS).unwrap();
    assert!(!claim.firing.will_repeat);
    keeper.hand_over(Other::Ended);
    // One that comes again still does so after it was given back.
    let claim = keeper.claim(&timer, MINUTE_MS).unwrap();
    assert!(claim.firing.will_repeat);
    keeper.timers.release_claim(&claim).wait().unwrap();
    assert!(keeper.claim(&timer, MINUTE_MS).unwrap().firing.will_repeat);
}

#[test]
fn a_firing_that_came_to_nothing_comes_again() {
    let keeper = Keeper::new();
    let timer = keeper.add(TimerSchedule::InMs(MINUTE_MS));
    let claim = keeper.claim(&timer, MINUTE_MS).unwrap();
    assert!(keeper.timers.release_started_claim(&claim).wait().unwrap());
    assert!(!keeper.timers.release_started_claim(&claim).wait().unwrap());
    let next = keeper.claim(&timer, MINUTE_MS).unwrap();
    assert!(next.firing.will_repeat && next.firing.late);
}

#[test]
fn a_timer_that_is_cancelled_while_it_fires_stays_cancelled() {
    let keeper = Keeper::new();
    for moment in [TimerSchedule::InMs(MINUTE_MS), TimerSchedule::EveryMs(MINUTE_MS)] {
        let timer = keeper.add(moment);
        let claim = keeper.claim(&timer, MINUTE_MS).unwrap();
        assert!(keeper.timers.cancel_timer(&me(), &timer.id).wait().unwrap());
        assert!(!keeper.timers.complete_claim(&claim).wait().unwrap());
        assert_eq!(keeper.timers.all().wait().unwrap(), []);
    }
}

#[test]
fn a_clock_that_steps_back_fires_nothing_twice() {
    let keeper = Keeper::new();
    let timer = keeper.add(TimerSchedule::EveryMs(MINUTE_MS));
    let firing = keeper.settle(&timer, 90 * MINUTE_MS);
    assert_eq!(firing.timer.next_ms, START_MS + 91 * MINUTE_MS);
    keeper.hands.set(START_MS - 60 * MINUTE_MS);
    for after in [0, MINUTE_MS, 90 * MINUTE_MS] {
        assert_eq!((keeper.due(after), keeper.claim(&timer, after)), (vec![], None));
    }
    // A claim that is under way meanwhile stands, and is settled as ever.
    let claim = keeper.claim(&timer, 91 * MINUTE_MS).unwrap();
    assert_eq!(keeper.claim(&timer, MINUTE_MS), None);
    assert!(keeper.timers.renew_claim(&claim, START_MS, LEASE_MS).wait().unwrap());
    assert!(keeper.timers.complete_claim(&claim).wait().unwrap());
    // What is set now counts from now.
    assert_eq!(keeper.add(TimerSchedule::InMs(5)).next_ms, START_MS - 60 * MINUTE_MS + 5);
}

#[test]
fn many_that_are_due_come_in_their_order_a_few_at_a_time() {
    let keeper = Keeper::new();
    for n in (1..=100).rev() {
        let plan = TimerRequest { timers_max: 100, ..plan(TimerSchedule::InMs(n)) };
        keeper.timers.add_timer(&me(), plan).wait().unwrap();
    }
    let due = keeper.timers.list_due(START_MS + MINUTE_MS).wait().unwrap();
    assert_eq!(due.len(), 64);
    assert!(due.is_sorted_by_key(|timer| timer.next_ms));
    for timer in &due {
        keeper.claim(timer, MINUTE_MS).unwrap();
    }
    assert_eq!(keeper.due(MINUTE_MS).len(), 36);
}

#[test]
fn a_row_that_somebody_else_wrote_is_damage() {
    let keeper = Keeper::new();
    keeper.add(TimerSchedule::InMs(1));
    for change in ["moment = '{}'", "plugin = 'No Name'", "moment = ''"] {
        keeper.fixture.sql(&format!("UPDATE timer SET {change}"));
        let error = keeper.timers.all().wait().unwrap_err();
        assert!(matches!(error, crate::StoreError::Damaged { .. }), "{error}");
    }
}
