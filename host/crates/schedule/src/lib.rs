//! When a timer fires: from a moment to the next time, and between people's words and moments.
//!
//! Nothing here waits, remembers or looks at the clock; whoever asks says what time it is. Only the
//! time zone of the host is looked up where a calendar names none, and the rules of time zones.
//!
//! Where a clock is put forward, a time of day that does not exist that day comes as soon as the
//! gap is over; where it is put back, a time of day that comes twice counts once, and a repetition
//! within the hour counts in both.
//!
//! ```
//! use sallyport_contract::services::Moment;
//!
//! let cron = "30 8 * * 1-5".to_owned();
//! let weekdays = Moment::Calendar { cron, time_zone: Some("Europe/Vienna".to_owned()) };
//! // From a Friday at noon to the Monday after it.
//! let next_ms = sallyport_schedule::next(&weekdays, 0, 1_760_695_200_000)?;
//! assert_eq!(next_ms, Some(1_760_941_800_000));
//! # Ok::<(), sallyport_schedule::MomentError>(())
//! ```

mod error;
mod rule;
mod spoken;
mod words;

use sallyport_contract::services::Moment;

pub use error::{MomentError, WordsError};
use rule::Rule;
pub use spoken::{describe, when};
pub use words::{is_moment, length_ms, words};

/// Shortest time between two firings that anybody can have. Below it, one firing has hardly begun
/// when the next is due.
pub const INTERVAL_MS_MIN: u64 = 1000;

/// How many firings of a calendar are compared. Two of them fall on each day at least where two are
/// close, so this is a week.
const COMPARED_MAX: usize = 16;

/// Most firings that are counted as missed; as much as a week of one each minute. Whoever was away
/// for longer needs no exact number.
pub const MISSED_MAX: u32 = 10_000;

/// Returns the first time after `after_ms` at which a moment comes that was set at `set_ms`; `None`
/// when it does not come any more. All times are in milliseconds since 1970.
///
/// # Errors
///
/// The moment cannot be read, never comes, or is beyond every calendar.
pub fn next(moment: &Moment, set_ms: u64, after_ms: u64) -> Result<Option<u64>, MomentError> {
    Rule::read(moment, set_ms)?.next(after_ms)
}

/// Checks a moment that is about to be set, and returns the first time at which it comes.
///
/// # Errors
///
/// As with [`next`]; it is in the past; or it comes more often than every `interval_ms_min`, of a
/// calendar as far as its next firings tell.
pub fn first(moment: &Moment, set_ms: u64, interval_ms_min: u64) -> Result<u64, MomentError> {
    let rule = Rule::read(moment, set_ms)?;
    let interval_ms_min = interval_ms_min.max(INTERVAL_MS_MIN);
    match rule {
        Rule::Once { at_ms } if at_ms < set_ms => return Err(MomentError::Past { at_ms }),
        Rule::Once { at_ms } => return rule::timestamp(at_ms).map(|_| at_ms),
        Rule::Every { .. } | Rule::Calendar { .. } => {}
    }
    let first_ms = rule.next(set_ms)?.ok_or(MomentError::TooFar)?;
    if let Moment::EveryMs(interval_ms) = *moment {
        check_interval(interval_ms, interval_ms_min)?;
    } else {
        check_calendar(&rule, first_ms, interval_ms_min)?;
    }
    Ok(first_ms)
}

/// Tells whether a moment comes again and again.
pub fn repeats(moment: &Moment) -> bool {
    match moment {
        Moment::AtMs(_) | Moment::InMs(_) => false,
        Moment::EveryMs(_) | Moment::Calendar { .. } => true,
    }
}

/// Counts the times after `due_ms` and up to `now_ms` at which a moment came, at most
/// [`MISSED_MAX`].
///
/// # Errors
///
/// As with [`next`].
pub fn missed(moment: &Moment, set_ms: u64, due_ms: u64, now_ms: u64) -> Result<u32, MomentError> {
    let rule = Rule::read(moment, set_ms)?;
    let (mut count, mut at_ms) = (0, due_ms);
    while count < MISSED_MAX
        && let Some(next_ms) = rule.next(at_ms)?
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

/// A day on which a clock is put forward or back is shorter or longer than others, and still one
/// day: what counts is the longer of the time that passes and the time that the clock shows.
fn check_calendar(rule: &Rule, first_ms: u64, interval_ms_min: u64) -> Result<(), MomentError> {
    let mut at_ms = first_ms;
    for _ in 0..COMPARED_MAX {
        let Ok(Some(next_ms)) = rule.next(at_ms) else { return Ok(()) };
        let shown = rule.zoned(next_ms)?.datetime().duration_since(rule.zoned(at_ms)?.datetime());
        let shown_ms = u64::try_from(shown.as_millis()).unwrap_or_default();
        check_interval(shown_ms.max(next_ms - at_ms), interval_ms_min)?;
        at_ms = next_ms;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
