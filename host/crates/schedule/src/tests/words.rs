//! Tests of time expressions, on Wednesday 18 November 2026 at 14:00 in Vienna.

use super::*;

const NOW: &str = "2026-11-18 14:00";

/// Returns what a text means: a duration in seconds, a time, or a cron expression.
fn meant(said: &str, now: &str) -> String {
    match parse_moment(said, &vienna(now)) {
        Ok(TimerSchedule::InMs(in_ms)) => format!("in {}", in_ms as f64 / 1000.0),
        Ok(TimerSchedule::AtMs(at_ms)) => shown(at_ms)[..16].to_owned(),
        Ok(TimerSchedule::EveryMs(every_ms)) => format!("every {}", every_ms / 1000),
        Ok(TimerSchedule::Calendar { cron, time_zone }) => {
            assert_eq!(time_zone.as_deref(), Some(VIENNA));
            cron
        }
        Err(error) => error.to_string(),
    }
}

fn check(rows: &[(&str, &str)]) {
    for (said, want) in rows {
        assert_eq!(meant(said, NOW), *want, "{said}");
        assert_eq!(meant(&said.to_uppercase(), NOW), *want, "{said} in capitals");
        assert_eq!(meant(&format!("  {said}. "), NOW), *want, "{said} with signs around it");
    }
}

#[test]
fn lengths_of_time() {
    check(&[
        ("in 20 minutes", "in 1200"),
        ("20 minutes", "in 1200"),
        ("for 8 minutes", "in 480"),
        ("in twenty minutes", "in 1200"),
        ("20 min from now", "in 1200"),
        ("in twenty-five minutes", "in 1500"),
        ("in forty-five seconds", "in 45"),
        ("in a minute", "in 60"),
        ("in an hour", "in 3600"),
        ("in an hour and a half", "in 5400"),
        ("in one and a half hours", "in 5400"),
        ("in half an hour", "in 1800"),
        ("in a quarter of an hour", "in 900"),
        ("in three quarters of an hour", "in 2700"),
        ("in 1.5 hours", "in 5400"),
        ("in 0.25 hours", "in 900"),
        ("in 2h30m", "in 9000"),
        ("in 2 hours and 30 minutes", "in 9000"),
        ("in 1 hour, 2 minutes and 3 seconds", "in 3723"),
        ("90s", "in 90"),
        ("in a couple of minutes", "in 120"),
        ("in 3 days", "2026-11-21 14:00"),
        ("in half a day", "in 43200"),
        ("in a week", "2026-11-25 14:00"),
        ("in two weeks at 9", "2026-12-02 09:00"),
        ("in 3 days at 9:30 pm", "2026-11-21 21:30"),
        ("in a fortnight", "2026-12-02 14:00"),
        ("in a month", "2026-12-18 14:00"),
        ("in a year", "2027-11-18 14:00"),
        ("in a day and 2 hours", "2026-11-19 16:00"),
    ]);
}

#[test]
fn times_of_day() {
    check(&[
        ("at 17:00", "2026-11-18 17:00"),
        ("17:00", "2026-11-18 17:00"),
        ("at 13:00", "2026-11-19 13:00"),
        ("at 5", "2026-11-18 17:00"),
        ("at 1", "2026-11-19 01:00"),
        ("at 09:30", "2026-11-19 09:30"),
        ("at 9:30", "2026-11-18 21:30"),
        ("at 9 am", "2026-11-19 09:00"),
        ("at 9 p.m.", "2026-11-18 21:00"),
        ("at 9 o'clock", "2026-11-18 21:00"),
        ("at 12", "2026-11-19 12:00"),
        ("at 12 am", "2026-11-19 00:00"),
        ("at noon", "2026-11-19 12:00"),
        ("at midnight", "2026-11-19 00:00"),
        ("at 24:00", "2026-11-19 00:00"),
        ("half past nine", "2026-11-18 21:30"),
        ("quarter to 9 pm", "2026-11-18 20:45"),
        ("twenty-five to nine", "2026-11-18 20:35"),
        ("ten past 3", "2026-11-18 15:10"),
        ("at seven in the evening", "2026-11-18 19:00"),
        ("at 7 in the morning", "2026-11-19 07:00"),
        ("at 11 at night", "2026-11-18 23:00"),
        ("at 17.45", "2026-11-18 17:45"),
        ("in the morning", "2026-11-19 09:00"),
    ]);
}

#[test]
fn days() {
    check(&[
        ("today at 5", "2026-11-18 17:00"),
        ("today at midnight", "2026-11-19 00:00"),
        ("tonight", "2026-11-18 21:00"),
        ("tonight at 10:30", "2026-11-18 22:30"),
        ("tonight at 1", "2026-11-19 01:00"),
        ("this afternoon", "2026-11-18 15:00"),
        ("this evening at 7", "2026-11-18 19:00"),
        ("tomorrow", "2026-11-19 09:00"),
        ("tomorrow at 9", "2026-11-19 09:00"),
        ("tomorrow at 9:30 pm", "2026-11-19 21:30"),
        ("at 9 tomorrow", "2026-11-19 09:00"),
        ("tomorrow morning", "2026-11-19 09:00"),
        ("tomorrow morning at 7", "2026-11-19 07:00"),
        ("tomorrow evening at 7", "2026-11-19 19:00"),
        ("tomorrow at 7 in the evening", "2026-11-19 19:00"),
        ("the day after tomorrow at noon", "2026-11-20 12:00"),
        ("on Friday at noon", "2026-11-20 12:00"),
        ("friday", "2026-11-20 09:00"),
        ("fri at 6pm", "2026-11-20 18:00"),
        ("on wednesday at 17:00", "2026-11-18 17:00"),
        ("on wednesday at 13:00", "2026-11-25 13:00"),
        ("this friday evening", "2026-11-20 19:00"),
        ("next monday at 8", "2026-11-23 08:00"),
        ("next wednesday at 17:00", "2026-11-25 17:00"),
        ("next week", "2026-11-25 09:00"),
        ("2026-12-24 18:00", "2026-12-24 18:00"),
        ("2026-12-24T18:00", "2026-12-24 18:00"),
        ("2026-12-24T18:00:00Z", "2026-12-24 19:00"),
        ("2026-12-24t18:00:00+02:00", "2026-12-24 17:00"),
        ("2026-12-24", "2026-12-24 09:00"),
        ("on 2026-12-24 at 6 pm", "2026-12-24 18:00"),
        ("24 December at 18:00", "2026-12-24 18:00"),
        ("on december 24th, 6pm", "2026-12-24 18:00"),
        ("the 24th of december 2027 at noon", "2027-12-24 12:00"),
        ("dec 24", "2026-12-24 09:00"),
        ("march 1st at 8", "2027-03-01 08:00"),
        ("29 february", "2028-02-29 09:00"),
        ("on the 24th at 10", "2026-11-24 10:00"),
        ("on the 1st", "2026-12-01 09:00"),
        ("the 31st at 8", "2026-12-31 08:00"),
    ]);
}

#[test]
fn repetitions() {
    check(&[
        ("every 2 hours", "every 7200"),
        ("every hour", "every 3600"),
        ("hourly", "every 3600"),
        ("every 90 seconds", "every 90"),
        ("every half hour", "every 1800"),
        ("every half an hour", "every 1800"),
        ("every hour and a half", "every 5400"),
        ("every 2 days", "every 172800"),
        ("every other day", "every 172800"),
        ("every 2 weeks", "every 1209600"),
        ("every day", "0 9 * * *"),
        ("every day at 7", "0 7 * * *"),
        ("daily at 7 pm", "0 19 * * *"),
        ("at 7 every day", "0 7 * * *"),
        ("every day at noon", "0 12 * * *"),
        ("every day at midnight", "0 0 * * *"),
        ("every morning", "0 9 * * *"),
        ("every morning at 7:15", "15 7 * * *"),
        ("every evening at 7", "0 19 * * *"),
        ("every weekday at 8:30", "30 8 * * 1-5"),
        ("weekdays at 8:30", "30 8 * * 1-5"),
        ("on weekdays at 8:30", "30 8 * * 1-5"),
        ("every weekend at 10", "0 10 * * 0,6"),
        ("every monday and thursday at 10", "0 10 * * 1,4"),
        ("every mon, wed and fri at 10", "0 10 * * 1,3,5"),
        ("every mon, wed, and fri at 10", "0 10 * * 1,3,5"),
        ("every monday to friday at 9", "0 9 * * 1-5"),
        ("every mon-fri at 9", "0 9 * * 1-5"),
        ("mondays to wednesdays and sundays at 9", "0 9 * * 0,1,2,3"),
        ("every friday through monday at 9", "0 9 * * 0,1,5,6"),
        ("every monday to sunday at 9", "0 9 * * *"),
        ("every weekday morning at 8", "0 8 * * 1-5"),
        ("mondays at 10", "0 10 * * 1"),
        ("on mondays and fridays at 10", "0 10 * * 1,5"),
        ("every friday at midnight", "0 0 * * 6"),
        ("every saturday at midnight", "0 0 * * 0"),
        ("every friday evening", "0 19 * * 5"),
        ("weekly on friday at 9", "0 9 * * 5"),
        ("every first of the month", "0 9 1 * *"),
        ("every 15th of the month at 8", "0 8 15 * *"),
        ("every 15th at 8", "0 8 15 * *"),
        ("every month on the 1st at 8", "0 8 1 * *"),
        ("monthly on the 1st", "0 9 1 * *"),
        ("every last day of the month at 18:00", "0 18 L * *"),
        ("every first day of the month", "0 9 1 * *"),
        ("every first monday of the month at 9", "0 9 * * 1#1"),
        ("every last friday of the month at 16:00", "0 16 * * 5L"),
        ("every 24 december at 18:00", "0 18 24 12 *"),
        ("every year on december 24th", "0 9 24 12 *"),
    ]);
}

#[test]
fn what_is_over_or_not_understood_is_said() {
    let rows = [
        ("today at 13:00", "\"today at 13:00\" is in the past"),
        ("this morning", "\"this morning\" is in the past"),
        ("2025-12-24 18:00", "\"2025-12-24 18:00\" is in the past"),
        ("24 december 2025", "\"24 december 2025\" is in the past"),
        ("in 0 minutes", "\"in 0 minutes\" is in the past"),
        ("30 february at 9", "there is no day like \"30 february at 9\""),
        ("31 april", "there is no day like \"31 april\""),
        ("29 february 2027", "there is no day like \"29 february 2027\""),
        ("april 31st, 2027 at 9", "there is no day like \"april 31st, 2027 at 9\""),
        ("24 december 20266", "there is no day like \"24 december 20266\""),
        ("2027-02-29", "there is no day like \"2027-02-29\""),
        ("at 9 on 31.02.2027", "there is no day like \"at 9 on 31.02.2027\""),
        ("9999-12-31 23:59", "it is too far away, no calendar goes beyond the year 9999"),
        ("31 december 9999 at 23:59", "it is too far away, no calendar goes beyond the year 9999"),
        (
            "every 30 february",
            "the cron expression \"0 9 30 2 *\" never fires: there is no such day",
        ),
        ("every 0 seconds", "it would fire 0s apart, at least 1s are needed"),
    ];
    for (said, want) in rows {
        assert_eq!(meant(said, NOW), want);
    }
    let unknown = [
        "",
        " ",
        ".",
        "soon",
        "in 2 h 30",
        "2026-12-24T25:00",
        "2026-12-24T18:00 or so",
        "today",
        "in",
        "in minutes",
        "at",
        "at 25:00",
        "at 9:61",
        "13 pm",
        "0 am",
        "tomorrow tomorrow",
        "tomorrow at 9 at 10",
        "tomorrow at 9 or so",
        "in 20 parsecs",
        "in -5 minutes",
        "every",
        "every 2 hours at 9",
        "every blue moon",
        "every 32nd of the month",
        "on the 32nd",
        "30 february at 9",
        "2026-02-30",
        "12/24",
        "in 999999999 hours",
        "in 99999999999999999999 minutes",
        "every month",
        "in 99999 years",
        "in 40000 days",
        "monday next",
        "every first of the month at midnight",
        "every 6th monday of the month",
    ];
    for said in unknown {
        let error = parse_moment(said, &vienna(NOW)).unwrap_err();
        let is_known = !matches!(error, TimeExpressionError::Moment(_));
        assert!(is_known && error.hint().is_some(), "{said}: {error}");
    }
}

#[test]
fn what_is_not_understood_is_told_in_few_and_plain_characters() {
    let error = parse_moment(&"a ".repeat(101), &vienna(NOW)).unwrap_err();
    assert!(error.to_string().len() < 100, "{error}");
    let padded = format!("in 20 minutes{}", " ".repeat(200));
    assert!(parse_moment(&padded, &vienna(NOW)).is_err());
    let error = parse_moment("\u{1b}[31m", &vienna(NOW)).unwrap_err();
    assert!(!error.to_string().contains('\u{1b}'), "{error}");
}

/// The time of day stays the same across a clock change; one that is skipped is as much later.
#[test]
fn clocks_that_change() {
    let rows = [
        ("2026-03-28 12:00", "tomorrow at 9", "2026-03-29 09:00"),
        ("2026-03-28 12:00", "tomorrow at 2:30", "2026-03-29 03:30"),
        ("2026-03-28 12:00", "in 1 day", "2026-03-29 12:00"),
        ("2026-03-28 12:00", "in 24 hours", "in 86400"),
        ("2026-10-24 12:00", "tomorrow at 2:30", "2026-10-25 02:30"),
        ("2026-12-31 23:59", "tomorrow at 0:30", "2027-01-01 00:30"),
    ];
    for (now, said, want) in rows {
        assert_eq!(meant(said, now), want, "{said} on {now}");
    }
}

#[test]
fn dates_in_figures_mean_one_day_or_none() {
    check(&[
        ("24.12.2026 18:00", "2026-12-24 18:00"),
        ("on 24.12.2026 at 18:00", "2026-12-24 18:00"),
        ("4.12.2026 at 9 pm", "2026-12-04 21:00"),
        ("24.12.2026", "2026-12-24 09:00"),
        ("12/24/2026 6pm", "2026-12-24 18:00"),
        ("24/12/2026 6 pm", "2026-12-24 18:00"),
        ("12/12/2026 at noon", "2026-12-12 12:00"),
        ("2026/12/24 18:00", "2026-12-24 18:00"),
        ("18:00 on 24.12.2026", "2026-12-24 18:00"),
    ]);
    for said in ["3/4/2027 at 9", "3/4 at 9", "at 9 on 11/12/2026"] {
        let error = parse_moment(said, &vienna(NOW)).unwrap_err();
        assert!(matches!(error, TimeExpressionError::Ambiguous(_)), "{said}: {error}");
        assert!(error.hint().unwrap().contains("2026-12-24"));
    }
    for said in ["24.13.2026 18:00", "13/13/2026", "1.2.3", "24.12.26 at 9", "5/6/7/8"] {
        let error = parse_moment(said, &vienna(NOW)).unwrap_err();
        assert!(matches!(error, TimeExpressionError::NotUnderstood(_)), "{said}: {error}");
    }
}

#[test]
fn what_no_calendar_can_hold_and_other_languages_are_named() {
    for said in [
        "every 2 weeks on tuesday at 9",
        "every other week on friday",
        "every second tuesday at 9",
        "every three weeks on monday",
        "every other friday at noon",
    ] {
        let error = parse_moment(said, &vienna(NOW)).unwrap_err();
        assert!(matches!(error, TimeExpressionError::WeeksApart(_)), "{said}: {error}");
        assert!(error.hint().unwrap().contains("every 2 weeks"));
    }
    check(&[("every 2 weeks", "every 1209600"), ("every other week", "every 1209600")]);
    for said in ["morgen um 9", "demain à 9h", "mañana a las 9"] {
        let error = parse_moment(said, &vienna(NOW)).unwrap_err();
        assert!(matches!(error, TimeExpressionError::NotUnderstood(_)), "{said}: {error}");
        assert!(error.hint().unwrap().contains("in English"));
    }
}

#[test]
fn a_length_is_told_from_everything_else() {
    let rows = [
        ("8 minutes", Some(480_000)),
        ("for an hour and a half", Some(5_400_000)),
        ("2 days", Some(172_800_000)),
        ("90s", Some(90_000)),
        ("5 Minuten", None),
        ("5", None),
        ("2 months", None),
        ("tomorrow", None),
        ("8 minutes or so", None),
        ("5 minutes 10 minutes", None),
        ("5 minutes and 10 min", None),
        ("", None),
    ];
    for (said, want) in rows {
        assert_eq!(crate::parse_duration_ms(said), want, "{said}");
    }
    assert_eq!(crate::parse_duration_ms(&"1 day and ".repeat(50)), None);
    for said in ["tomorrow at 9", "in 20 minutes", "every weekday at 8:30", "2026-12-24 18:00"] {
        assert!(crate::is_moment(said), "{said}");
    }
    for said in ["yesterday", "morgen um 9", "to call mum", ""] {
        assert!(!crate::is_moment(said), "{said}");
    }
}
