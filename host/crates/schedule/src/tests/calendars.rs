//! Tests of firing times and of invalid moments.

use super::*;

/// Checks the next firings of a cron expression.
fn check(cron: &str, after: &str, want: &[&str]) {
    let moment = calendar(cron);
    let mut at_ms = ms(&vienna(after));
    for want in want {
        at_ms = next_firing_ms(&moment, 0, at_ms).unwrap().unwrap();
        assert_eq!(shown(at_ms), *want, "{cron} after {after}");
    }
}

#[test]
fn calendars_come_on_their_days() {
    check("30 8 * * 1-5", "2026-11-20 12:00", &["2026-11-23 08:30:00 +01:00"]);
    check(
        "*/15 30 9 * * *",
        "2026-11-20 09:30:20",
        &["2026-11-20 09:30:30 +01:00", "2026-11-20 09:30:45 +01:00", "2026-11-21 09:30:00 +01:00"],
    );
    check("0 9 L * *", "2028-02-01 00:00", &["2028-02-29 09:00:00 +01:00"]);
    check("0 9 29 2 *", "2026-11-20 12:00", &["2028-02-29 09:00:00 +01:00"]);
    check("0 9 * * 5L", "2026-11-01 12:00", &["2026-11-27 09:00:00 +01:00"]);
    check("0 9 * * MON#1", "2026-11-03 12:00", &["2026-12-07 09:00:00 +01:00"]);
    check("0 12 * * *", "2026-11-20 12:00:00.5", &["2026-11-21 12:00:00 +01:00"]);
}

/// A time of day that is skipped fires when the gap is over, and at its own time on all other days.
#[test]
fn a_clock_that_is_put_forward_skips_nothing() {
    let want =
        ["2026-03-28 02:30:00 +01:00", "2026-03-29 03:00:00 +02:00", "2026-03-30 02:30:00 +02:00"];
    check("30 2 * * *", "2026-03-27 12:00", &want);
    let want =
        ["2026-03-29 01:30:00 +01:00", "2026-03-29 03:00:00 +02:00", "2026-03-29 03:30:00 +02:00"];
    check("*/30 * * * *", "2026-03-29 01:15", &want);
}

#[test]
fn a_clock_that_is_put_back_doubles_only_what_is_within_the_hour() {
    let want = ["2026-10-25 02:30:00 +02:00", "2026-10-26 02:30:00 +01:00"];
    check("30 2 * * *", "2026-10-25 00:00", &want);
    let want = [
        "2026-10-25 02:00:00 +02:00",
        "2026-10-25 02:30:00 +02:00",
        "2026-10-25 02:00:00 +01:00",
        "2026-10-25 02:30:00 +01:00",
        "2026-10-25 03:00:00 +01:00",
    ];
    check("*/30 * * * *", "2026-10-25 01:59", &want);
}

#[test]
fn once_is_once_and_intervals_count_from_when_they_were_set() {
    let rows = [
        (TimerSchedule::AtMs(5000), 0, 4999, Some(5000)),
        (TimerSchedule::AtMs(5000), 0, 5000, None),
        (TimerSchedule::InMs(5000), 1000, 1000, Some(6000)),
        (TimerSchedule::InMs(5000), 1000, 6000, None),
        (TimerSchedule::EveryMs(5000), 1000, 0, Some(6000)),
        (TimerSchedule::EveryMs(5000), 1000, 1000, Some(6000)),
        (TimerSchedule::EveryMs(5000), 1000, 5999, Some(6000)),
        (TimerSchedule::EveryMs(5000), 1000, 6000, Some(11_000)),
        (TimerSchedule::EveryMs(5000), 1000, 1_000_000, Some(1_001_000)),
    ];
    for (moment, set_ms, after_ms, want) in rows {
        assert_eq!(
            next_firing_ms(&moment, set_ms, after_ms).unwrap(),
            want,
            "{moment:?} after {after_ms}"
        );
        assert_eq!(is_repeating(&moment), matches!(moment, TimerSchedule::EveryMs(_)));
    }
}

#[test]
fn what_was_missed_is_counted_to_an_end() {
    let noon = ms(&vienna("2026-11-20 12:00"));
    let (minute, day) = (60_000, 86_400_000);
    let rows = [
        (TimerSchedule::AtMs(noon), noon + day, 0),
        (TimerSchedule::EveryMs(minute), noon, 0),
        (TimerSchedule::EveryMs(minute), noon + minute - 1, 0),
        (TimerSchedule::EveryMs(minute), noon + minute, 1),
        (TimerSchedule::EveryMs(minute), noon + day, 1440),
        (TimerSchedule::EveryMs(1000), noon + 300 * day, MISSED_MAX),
        (calendar("0 12 * * *"), noon + 3 * day, 3),
        (calendar("* * * * * *"), noon + 300 * day, MISSED_MAX),
    ];
    for (moment, now_ms, want) in rows {
        assert_eq!(count_missed(&moment, noon, noon, now_ms).unwrap(), want, "{moment:?}");
    }
}

fn check_refused(moment: &TimerSchedule, interval_ms_min: u64, want: &str) {
    let now_ms = ms(&vienna("2026-11-20 12:00"));
    let error = first_firing_ms(moment, now_ms, interval_ms_min).unwrap_err().to_string();
    assert!(error.starts_with(want), "{moment:?}: {error}");
}

#[test]
fn what_cannot_be_set_says_why() {
    let minute = 60_000;
    let rows = [
        (TimerSchedule::AtMs(1_760_695_200_000), "2025-10-17 10:00:00 UTC is in the past"),
        (TimerSchedule::AtMs(0), "1970-01-01 00:00:00 UTC is in the past"),
        (TimerSchedule::AtMs(u64::MAX), "it is too far away"),
        (TimerSchedule::InMs(u64::MAX), "it is too far away"),
        (TimerSchedule::InMs(1 << 60), "it is too far away"),
        (TimerSchedule::EveryMs(u64::MAX), "it is too far away"),
        (TimerSchedule::EveryMs(1 << 60), "it is too far away"),
        (TimerSchedule::EveryMs(0), "it would fire 0s apart, at least 1m are needed"),
        (
            TimerSchedule::EveryMs(minute - 1),
            "it would fire 59s 999ms apart, at least 1m are needed",
        ),
        (calendar("* * * * * *"), "it would fire 1s apart, at least 1m"),
        (calendar("0,30 0 9 * * *"), "it would fire 30s apart, at least 1m"),
        (calendar("59 59 23 * * *,0"), "\"59 59 23 * * *,0\" is not a cron expression: "),
        (calendar("0 0 30 2 *"), "the cron expression \"0 0 30 2 *\" never fires"),
        (calendar("* * * 31 4,6,9,11 *"), "the cron expression \"* * * 31 4,6,9,11 *\" never"),
        (calendar(""), "\"\" is not a cron expression: it has five fields"),
        (calendar("@daily"), "\"@daily\" is not a cron expression: it has five fields"),
        (
            calendar("0 0 9 * * * 2030"),
            "\"0 0 9 * * * 2030\" is not a cron expression: it has five",
        ),
        (calendar("61 * * * *"), "\"61 * * * *\" is not a cron expression: "),
        (calendar("a b c d e"), "\"a b c d e\" is not a cron expression: "),
        (calendar("\u{1b}[31m * * * *"), "\"\\u{1b}[31m * * * *\" is not a cron expression: "),
        (calendar(&format!("0{}0 * * *", " ".repeat(300))), "\"0      "),
        (calendar("０ 9 * * *"), "\"０ 9 * * *\" is not a cron expression: it has at most 256"),
        (calendar(&"1,".repeat(200)), "\"1,1,1,"),
    ];
    for (moment, want) in rows {
        check_refused(&moment, minute, want);
    }
    for zone in ["", "Nowhere", "../../etc/passwd", "Europe/Vienna\0", "\u{202e}", &"a".repeat(99)]
    {
        let cron = "0 9 * * *".to_owned();
        let moment = TimerSchedule::Calendar { cron, time_zone: Some(zone.to_owned()) };
        check_refused(&moment, 0, "there is no time zone ");
    }
}

/// A daily timer may also fire on a day with 23 hours, and an hourly one when an hour occurs twice.
#[test]
fn a_change_of_clocks_makes_nothing_too_often() {
    let (hour, day) = (3_600_000, 86_400_000);
    for (cron, interval_ms, now) in [
        ("0 12 * * *", day, "2026-03-27 12:00"),
        ("0 * * * *", hour, "2026-10-25 00:30"),
        ("0 * * * *", hour, "2026-03-29 00:30"),
    ] {
        first_firing_ms(&calendar(cron), ms(&vienna(now)), interval_ms).unwrap();
        assert!(first_firing_ms(&calendar(cron), ms(&vienna(now)), interval_ms + 1).is_err());
    }
}

#[test]
fn the_first_time_is_the_next_one() {
    let now_ms = ms(&vienna("2026-11-20 12:00"));
    let rows = [
        (TimerSchedule::AtMs(now_ms), now_ms),
        (TimerSchedule::InMs(0), now_ms),
        (TimerSchedule::InMs(2000), now_ms + 2000),
        (TimerSchedule::EveryMs(60_000), now_ms + 60_000),
        (calendar("0 12 * * *"), now_ms + 86_400_000),
    ];
    for (moment, want) in rows {
        assert_eq!(first_firing_ms(&moment, now_ms, 60_000).unwrap(), want, "{moment:?}");
    }
}
