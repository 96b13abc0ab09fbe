//! Users have the groups of their last log-in, and usage that outlives their sessions.

use super::*;
use crate::{CallLimit, UserUsage, users::USAGE_DAYS_MAX};

const TODAY: u64 = 20_800;

fn used(calls: u64, tokens: u64, micro_usd: u64) -> UserUsage {
    UserUsage { calls, tokens, micro_usd }
}

#[test]
fn the_groups_of_the_last_log_in_are_its_users_alone() {
    let fixture = Fixture::new();
    let users = &fixture.store.users;
    let groups = |user: &str| users.login_groups(user).wait().unwrap();
    assert!(groups("ann").is_empty());
    for list in [vec!["support".to_owned(), "über \"alles\"\n".to_owned()], Vec::new()] {
        users.set_login_groups("ann", &list).wait().unwrap();
        assert_eq!(groups("ann"), list);
        assert!(groups("ben").is_empty());
    }
    let long = vec!["x".repeat(1000); 300];
    assert!(users.set_login_groups("ann", &long).wait().is_err(), "it is not cut");
    assert!(users.set_login_groups(&"u".repeat(2000), &[]).wait().is_err());
    fixture.sql("UPDATE login_groups SET groups = 'none'");
    assert!(users.login_groups("ann").wait().is_err(), "no groups are made up");
}

#[test]
fn usage_is_summed_from_a_day_on_and_old_days_are_forgotten() {
    let fixture = Fixture::new();
    let users = &fixture.store.users;
    for (user, day, amount) in [
        ("ann", TODAY - USAGE_DAYS_MAX - 1, used(7, 7, 7)),
        ("ann", TODAY - 1, used(1, 100, 5)),
        ("ann", TODAY, used(0, 10, 1)),
        ("ann", TODAY, used(2, 0, u64::MAX)),
        ("ben", TODAY, used(50, 0, 0)),
    ] {
        users.add_usage(user, day, amount).wait().unwrap();
    }
    let most = i64::MAX as u64;
    let rows = [
        ("ann", TODAY, used(2, 10, most)),
        ("ann", TODAY - 1, used(3, 110, most + 5)),
        ("ann", 0, used(3, 110, most + 5)),
        ("ann", TODAY + 1, UserUsage::default()),
        ("ben", 0, used(50, 0, 0)),
        ("eve", 0, UserUsage::default()),
    ];
    for (user, first_day, want) in rows {
        assert_eq!(users.usage_since(user, first_day).wait().unwrap(), want, "{user} {first_day}");
    }
}

#[test]
fn a_call_is_counted_unless_a_limit_is_reached() {
    let fixture = Fixture::new();
    let users = &fixture.store.users;
    let day = |calls_max| CallLimit { first_day: TODAY, calls_max };
    let month = |calls_max| CallLimit { first_day: TODAY - 20, calls_max };
    users.add_usage("ann", TODAY - 3, used(5, 0, 0)).wait().unwrap();
    let rows: [(&str, &[CallLimit], Option<usize>); 7] = [
        ("ann", &[], None),
        ("ann", &[day(2)], None),
        ("ann", &[day(2)], Some(0)),
        ("ann", &[day(3), month(7)], Some(1)),
        ("ann", &[day(3), month(8)], None),
        ("ben", &[day(0)], Some(0)),
        ("ben", &[day(1)], None),
    ];
    for (index, (user, limits, want)) in rows.into_iter().enumerate() {
        let reached = users.count_call(user, TODAY, limits).wait().unwrap();
        assert_eq!(reached, want, "row {index}");
    }
    assert_eq!(users.usage_since("ann", 0).wait().unwrap().calls, 8);
}

#[test]
fn of_many_that_count_at_the_same_time_none_passes_the_limit() {
    let fixture = Fixture::new();
    let limit = [CallLimit { first_day: TODAY, calls_max: 10 }];
    let counted = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let other = fixture.reopen();
                scope.spawn(move || {
                    let count = || other.users.count_call("ann", TODAY, &limit).wait().unwrap();
                    (0..10).filter(|_| count().is_none()).count()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
    });
    assert_eq!(counted, 10);
}
