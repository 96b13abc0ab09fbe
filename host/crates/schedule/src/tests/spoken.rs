//! Tests of formatting moments.

use super::*;

const NOW: &str = "2026-11-18 14:00";

#[test]
fn moments_are_said_shortly() {
    let rows = [
        ("2026-11-18 14:00", "now"),
        ("2026-11-18 14:00:45", "in 45 seconds"),
        ("2026-11-18 14:00:01", "in 1 second"),
        ("2026-11-18 14:01", "in 1 minute"),
        ("2026-11-18 14:20", "in 20 minutes"),
        ("2026-11-18 15:00", "today at 15:00"),
        ("2026-11-19 09:00", "tomorrow at 09:00"),
        ("2026-11-20 12:00", "on Friday at 12:00"),
        ("2026-11-24 12:00", "on Tuesday at 12:00"),
        ("2026-11-25 12:00", "on 25 November at 12:00"),
        ("2027-01-01 00:00", "on 1 January 2027 at 00:00"),
        ("2026-11-18 13:40", "20 minutes ago"),
        ("2026-11-18 09:00", "today at 09:00"),
        ("2026-11-17 09:00", "yesterday at 09:00"),
        ("2026-11-10 09:00", "on 10 November at 09:00"),
    ];
    for (at, want) in rows {
        assert_eq!(describe_time(ms(&vienna(at)), &vienna(NOW)), want);
    }
    assert_eq!(describe_time(u64::MAX, &vienna(NOW)), "after the year 9999");
}

#[test]
fn repetitions_are_said_as_people_say_them() {
    let said = [
        "every 2 hours",
        "every hour",
        "every 90 seconds",
        "every 2 days",
        "every day at 07:00",
        "every weekday at 08:30",
        "every Monday and Thursday at 10:00",
        "every Monday, Wednesday and Friday at 10:00",
        "every Friday at 19:00",
        "every 1st of the month at 09:00",
        "every 22nd of the month at 09:00",
        "every last day of the month at 18:00",
        "every 1st Monday of the month at 09:00",
        "every last Friday of the month at 16:00",
        "every 24 December at 18:00",
    ];
    for said in said {
        let moment = parse_moment(said, &vienna(NOW)).unwrap();
        assert_eq!(describe_moment(&moment, 0, &vienna(NOW)), said);
    }
    let at = ms(&vienna("2026-11-19 09:00"));
    let rows = [
        (TimerSchedule::AtMs(at), "tomorrow at 09:00"),
        (TimerSchedule::InMs(5), "tomorrow at 09:00"),
        (TimerSchedule::EveryMs(1500), "every 1500 milliseconds"),
        (calendar("*/7 * * * *"), "by the calendar \"*/7 * * * *\""),
        (calendar("0 0 9 * * *"), "by the calendar \"0 0 9 * * *\""),
        (calendar("+1 9 * * *"), "by the calendar \"+1 9 * * *\""),
        (calendar("\u{1b} 9 * * *"), "by the calendar \"\\u{1b} 9 * * *\""),
    ];
    for (moment, want) in rows {
        assert_eq!(describe_moment(&moment, at, &vienna(NOW)), want);
    }
    let tokyo = Some("Asia/Tokyo".to_owned());
    let moment = TimerSchedule::Calendar { cron: "0 9 * * *".to_owned(), time_zone: tokyo };
    assert_eq!(describe_moment(&moment, at, &vienna(NOW)), "every day at 09:00 in Asia/Tokyo");
}
