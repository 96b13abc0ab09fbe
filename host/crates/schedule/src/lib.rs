//! Firing times of timers: computes the next time of a moment, and converts between English time
//! expressions and moments.
//!
//! Nothing here waits, keeps state or reads the clock; the caller passes the current time. Only the
//! host's time zone is looked up if a calendar names none, and the rules of time zones.
//!
//! When clocks are put forward, a time of day that does not exist on that day fires as soon as the
//! gap is over. When they are put back, a time of day that occurs twice fires once, and a
//! repetition within the hour fires in both.
//!
//! ```
//! use sallyport_contract::services::TimerSchedule;
//!
//! let cron = "30 8 * * 1-5".to_owned();
//! let time_zone = Some("Europe/Vienna".to_owned());
//! let weekdays = TimerSchedule::Calendar { cron, time_zone };
//! // From a Friday at noon to the Monday after it.
//! let next_ms = sallyport_schedule::next_firing_ms(&weekdays, 0, 1_760_695_200_000)?;
//! assert_eq!(next_ms, Some(1_760_941_800_000));
//! # Ok::<(), sallyport_schedule::MomentError>(())
//! ```

mod describe;
mod error;
mod expression;
mod rule;

use sallyport_contract::services::TimerSchedule;

pub use describe::{describe_moment, describe_time};
pub use error::{MomentError, TimeExpressionError};
pub use expression::{check_moment, is_moment, parse_duration_ms, parse_moment};
use rule::FiringRule;

/// Minimum time between two firings, in milliseconds. With less, a firing would be due before the
/// last one has done much.
pub const INTERVAL_MS_MIN: u64 = 1000;

/// Maximum number of firings of a calendar that are compared. A day with two close firings has at
/// least two of them, so this covers a week.
const COMPARED_MAX: usize = 16;

/// Maximum number of missed firings that are counted: about a week of one per minute. After that,
/// the exact number does not matter.
pub const MISSED_MAX: u32 = 10_000;

/// Returns the first time after `after_ms` at which a moment that was set at `set_ms` fires.
/// Returns `None` if it does not fire any more. All times are in milliseconds since 1970.
///
/// # Errors
///
/// The moment is invalid, never occurs, or is beyond the range of the calendar.
pub fn next_firing_ms(
    moment: &TimerSchedule,
    set_ms: u64,
    after_ms: u64,
) -> Result<Option<u64>, MomentError> {
    FiringRule::from_moment(moment, set_ms)?.next_firing(after_ms)
}

/// Validates a new moment, and returns the first time at which it fires.
///
/// # Errors
///
/// As with [`next_firing_ms`]; it is in the past; or it fires more often than every
/// `interval_ms_min`. Only the next firings of a calendar are checked.
pub fn first_firing_ms(
    moment: &TimerSchedule,
    set_ms: u64,
    interval_ms_min: u64,
) -> Result<u64, MomentError> {
    let rule = FiringRule::from_moment(moment, set_ms)?;
    let interval_ms_min = interval_ms_min.max(INTERVAL_MS_MIN);
    match rule {
        FiringRule::Once { at_ms } if at_ms < set_ms => return Err(MomentError::Past { at_ms }),
        FiringRule::Once { at_ms } => return rule::timestamp_from_ms(at_ms).map(|_| at_ms),
        FiringRule::Every { .. } | FiringRule::Calendar { .. } => {}
    }
    let first_ms = rule.next_firing(set_ms)?.ok_or(MomentError::TooFar)?;
    if let TimerSchedule::EveryMs(interval_ms) = *moment {
        check_interval(interval_ms, interval_ms_min)?;
    } else {
        check_calendar(&rule, first_ms, interval_ms_min)?;
    }
    Ok(first_ms)
}

/// Returns whether a moment repeats.
pub fn is_repeating(moment: &TimerSchedule) -> bool {
    match moment {
        TimerSchedule::AtMs(_) | TimerSchedule::InMs(_) => false,
        TimerSchedule::EveryMs(_) | TimerSchedule::Calendar { .. } => true,
    }
}

/// Returns the number of firings after `due_ms` and up to `now_ms`, at most [`MISSED_MAX`].
///
/// # Errors
///
/// As with [`next_firing_ms`].
pub fn count_missed(
    moment: &TimerSchedule,
    set_ms: u64,
    due_ms: u64,
    now_ms: u64,
) -> Result<u32, MomentError> {
    let rule = FiringRule::from_moment(moment, set_ms)?;
    let (mut count, mut at_ms) = (0, due_ms);
    while count < MISSED_MAX
        && let Some(next_ms) = rule.next_firing(at_ms)?
        && next_ms <= now_ms
    {
        (count, at_ms) = (count + 1, next_ms);
    }
    Ok(count)
}

fn check_interval(interval_ms: u64, interval_ms_min: u64) -> Result<(), MomentError> {
    if interval_ms < interval_ms_min {
        return Err(MomentError::TooOften { interval_ms, interval_ms_min });
    }
    Ok(())
}

/// Checks the time between the next firings. A day on which clocks change is shorter or longer, but
/// still counts as one day, so the longer of elapsed time and clock time counts.
fn check_calendar(
    rule: &FiringRule,
    first_ms: u64,
    interval_ms_min: u64,
) -> Result<(), MomentError> {
    let mut at_ms = first_ms;
    for _ in 0..COMPARED_MAX {
        let Ok(Some(next_ms)) = rule.next_firing(at_ms) else { return Ok(()) };
        let shown = rule
            .to_zoned_time(next_ms)?
            .datetime()
            .duration_since(rule.to_zoned_time(at_ms)?.datetime());
        let shown_ms = u64::try_from(shown.as_millis()).unwrap_or_default();
        check_interval(shown_ms.max(next_ms - at_ms), interval_ms_min)?;
        at_ms = next_ms;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
