//! Tests of calendars around clock changes, and of time expressions.

use jiff::{Timestamp, Zoned, civil::DateTime, tz::TimeZone};
use sallyport_contract::services::TimerSchedule;

use crate::*;

mod calendars;
mod property;
mod spoken;
mod words;

const VIENNA: &str = "Europe/Vienna";

/// A time in Vienna, where clocks go from 2:00 to 3:00 on 29 March 2026 and from 3:00 back to 2:00
/// on 25 October.
fn vienna(text: &str) -> Zoned {
    let at: DateTime = text.parse().unwrap();
    at.to_zoned(TimeZone::get(VIENNA).unwrap()).unwrap()
}

fn ms(at: &Zoned) -> u64 {
    u64::try_from(at.timestamp().as_millisecond()).unwrap()
}

/// Formats a time in Vienna with its offset from UTC.
fn shown(at_ms: u64) -> String {
    let at = Timestamp::from_millisecond(i64::try_from(at_ms).unwrap()).unwrap();
    at.to_zoned(TimeZone::get(VIENNA).unwrap()).strftime("%Y-%m-%d %H:%M:%S %:z").to_string()
}

fn calendar(cron: &str) -> TimerSchedule {
    TimerSchedule::Calendar { cron: cron.to_owned(), time_zone: Some(VIENNA.to_owned()) }
}
