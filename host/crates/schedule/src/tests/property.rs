//! Property tests: no input panics, and no moment is in the past.

use proptest::prelude::*;

use super::*;

/// Words that the parsers know, and some that they do not.
const KNOWN: [&str; 64] = [
    "in",
    "at",
    "on",
    "the",
    "every",
    "each",
    "next",
    "this",
    "last",
    "first",
    "2nd",
    "31st",
    "of",
    "and",
    ",",
    "a",
    "an",
    "half",
    "quarter",
    "past",
    "to",
    "noon",
    "midnight",
    "today",
    "tonight",
    "tomorrow",
    "day",
    "days",
    "week",
    "weeks",
    "month",
    "year",
    "years",
    "hour",
    "hours",
    "minutes",
    "seconds",
    "morning",
    "night",
    "monday",
    "fridays",
    "weekday",
    "weekends",
    "december",
    "february",
    "may",
    "am",
    "pm",
    "9",
    "24:00",
    "0",
    "99999",
    "1.5",
    "9:30",
    "2h30m",
    "2026-12-24",
    "18:00",
    "o'clock",
    "daily",
    "hourly",
    "other",
    "from now",
    "é",
    "-1",
];

fn any_words() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(&KNOWN[..]), 0..8)
        .prop_map(|words| words.join(" "))
}

/// Any time from 1970 to near the end of the calendar.
fn any_now() -> impl Strategy<Value = Zoned> {
    const ZONES: [&str; 6] =
        ["UTC", VIENNA, "Asia/Kathmandu", "America/St_Johns", "Pacific/Apia", "Africa/Cairo"];
    (0_i64..253_370_000_000, proptest::sample::select(&ZONES[..])).prop_map(|(second, zone)| {
        Timestamp::from_second(second).unwrap().to_zoned(TimeZone::get(zone).unwrap())
    })
}

/// A moment from a time expression is in the future, and can be described.
fn check_words(said: &str, now: &Zoned) {
    let Ok(moment) = parse_moment(said, now) else { return };
    let now_ms = ms(now);
    let first_ms = first_firing_ms(&moment, now_ms, 0).unwrap();
    assert!(first_ms > now_ms, "{said:?} from {now} leads to {moment:?}");
    assert!(!describe_moment(&moment, first_ms, now).is_empty());
}

proptest! {
    #[test]
    fn no_words_panic_or_lead_back(said in any_words(), now in any_now()) {
        check_words(&said, &now);
    }

    #[test]
    fn no_text_panics(said in "\\PC{0,40}", bytes in any::<String>(), now in any_now()) {
        check_words(&said, &now);
        check_words(&bytes, &now);
    }

    #[test]
    fn no_calendar_panics_or_goes_back(
        cron in "[0-9*/,LW#?A-Z@+ -]{0,24}",
        fields in proptest::collection::vec("([*]|[0-9]{1,2})([-/,#][0-9]{1,2})?[LW]?", 5..7),
        now in any_now(),
    ) {
        for cron in [cron, fields.join(" ")] {
            let moment = TimerSchedule::Calendar { cron, time_zone: now.time_zone().iana_name().map(str::to_owned) };
            let mut at_ms = ms(&now);
            for _ in 0..4 {
                let Ok(Some(next_ms)) = next_firing_ms(&moment, 0, at_ms) else { break };
                prop_assert!(next_ms > at_ms, "{:?} after {}", moment, at_ms);
                at_ms = next_ms;
            }
        }
    }

    #[test]
    fn no_number_panics(a in any::<u64>(), b in any::<u64>(), c in any::<u64>()) {
        for moment in [TimerSchedule::AtMs(a), TimerSchedule::InMs(a), TimerSchedule::EveryMs(a)] {
            for (set_ms, after_ms) in [(b, c), (b % 10_000, c), (b, c % 10_000)] {
                if let Ok(Some(next_ms)) = next_firing_ms(&moment, set_ms, after_ms) {
                    prop_assert!(next_ms > after_ms);
                }
                let _ = first_firing_ms(&moment, set_ms, after_ms);
            }
        }
        let now = Timestamp::from_second(1_800_000_000).unwrap().to_zoned(TimeZone::UTC);
        describe_time(a, &now);
    }
}
