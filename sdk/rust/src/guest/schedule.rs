//! Timers, through the host's imports.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::{
    bindings::{
        powers::sallyport::plugin::schedule as wit,
        timers::exports::sallyport::plugin::timers as wit_timers,
    },
    message, milliseconds, value,
};
use crate::schedule::{Firing, Moment, ScheduleError, Timer};

pub(crate) fn add(
    moment: Moment,
    label: Option<&str>,
    payload: Value,
) -> Result<Timer, ScheduleError> {
    let timer = wit::NewTimer {
        moment: moment.into(),
        label: label.map(str::to_owned),
        payload: payload.to_string(),
        extra: None,
    };
    Ok(wit::add(&timer)?.into())
}

pub(crate) fn cancel(id: &str) -> Result<bool, ScheduleError> {
    Ok(wit::cancel(id)?)
}

pub(crate) fn list() -> Result<Vec<Timer>, ScheduleError> {
    Ok(wit::list_timers()?.into_iter().map(Into::into).collect())
}

/// Returns the current time in milliseconds since 1970; 0 if the clock was never set.
pub(crate) fn now_ms() -> u64 {
    milliseconds(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

impl From<Moment> for wit::Moment {
    fn from(moment: Moment) -> Self {
        match moment {
            Moment::AtMs(at) => Self::AtMs(at),
            Moment::In(time) => Self::InMs(milliseconds(time)),
            Moment::Every(time) => Self::EveryMs(milliseconds(time)),
            Moment::Calendar { cron, time_zone } => {
                Self::Calendar(wit::Calendar { cron, time_zone, extra: None })
            }
            Moment::Other(other) => Self::Other(other.to_string()),
        }
    }
}

impl From<wit::Moment> for Moment {
    fn from(moment: wit::Moment) -> Self {
        match moment {
            wit::Moment::AtMs(at) => Self::AtMs(at),
            wit::Moment::InMs(time) => Self::In(Duration::from_millis(time)),
            wit::Moment::EveryMs(time) => Self::Every(Duration::from_millis(time)),
            wit::Moment::Calendar(wit::Calendar { cron, time_zone, extra: _ }) => {
                Self::Calendar { cron, time_zone }
            }
            wit::Moment::Other(other) => Self::Other(value(other)),
        }
    }
}

impl From<wit::Timer> for Timer {
    fn from(timer: wit::Timer) -> Self {
        Self {
            id: timer.id,
            moment: timer.moment.into(),
            next_ms: timer.next_ms,
            label: timer.label,
            payload: value(timer.payload),
        }
    }
}

impl From<wit_timers::Firing> for Firing {
    fn from(firing: wit_timers::Firing) -> Self {
        let wit_timers::Firing { timer, due_ms, late, missed, again, extra: _ } = firing;
        Self { timer: timer.into(), due_ms, late, missed, again }
    }
}

impl From<wit::Error> for ScheduleError {
    fn from(error: wit::Error) -> Self {
        match error {
            wit::Error::NotGranted => Self::NotGranted,
            wit::Error::Invalid(reason) => Self::Invalid { reason },
            wit::Error::QuotaReached(reason) => Self::QuotaReached { reason },
            wit::Error::Unavailable(reason) => Self::Unavailable { reason },
            wit::Error::Other(other) => Self::Unavailable { reason: message(other) },
        }
    }
}
