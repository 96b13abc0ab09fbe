//! Keys and values, through the host's imports.

use std::time::Duration;

use super::{bindings::powers::sallyport::plugin::state as wit, message, milliseconds};
use crate::state::{Entry, Expected, StateError};

pub(crate) fn get(key: &str) -> Result<Option<Entry>, StateError> {
    let entry = wit::get(key)?;
    Ok(entry.map(|wit::Entry { value, version, .. }| Entry { value, version }))
}

pub(crate) fn set(key: &str, value: &[u8], time: Option<Duration>) -> Result<u64, StateError> {
    Ok(wit::set(key, value, time.map(milliseconds))?)
}

pub(crate) fn compare_and_set(
    key: &str,
    expected: Expected,
    value: &[u8],
    time: Option<Duration>,
) -> Result<u64, StateError> {
    let expected = match expected {
        Expected::Nothing => wit::Expected::Nothing,
        Expected::Version(version) => wit::Expected::Version(version),
    };
    Ok(wit::compare_and_set(key, &expected, value, time.map(milliseconds))?)
}

pub(crate) fn delete(key: &str) -> Result<bool, StateError> {
    Ok(wit::remove(key)?)
}

pub(crate) fn page(
    prefix: &str,
    after: Option<&str>,
    limit: u32,
) -> Result<(Vec<String>, Option<String>), StateError> {
    let page = wit::list_keys(prefix, after, limit)?;
    Ok((page.keys, page.next))
}

impl From<wit::Error> for StateError {
    fn from(error: wit::Error) -> Self {
        match error {
            wit::Error::NotGranted => Self::NotGranted,
            wit::Error::Invalid(reason) => Self::Invalid { reason },
            wit::Error::QuotaReached(reason) => Self::QuotaReached { reason },
            wit::Error::Conflict(present) => Self::Conflict { present },
            wit::Error::Unavailable(reason) => Self::Unavailable { reason },
            wit::Error::Other(other) => Self::Unavailable { reason: message(other) },
        }
    }
}
