//! Persistent state: keys and values of the plugin, separate for each user.
//!
//! A value is anything that serde can write as JSON. Once a function returns, the change survives
//! the end of the host's process, and a killed process never leaves a partial value. The manifest
//! requests `state`, and the policy grants it with a quota.
//!
//! ```
//! use sallyport_sdk::{prelude::*, state, testing};
//!
//! /// Counts visits.
//! #[tool]
//! fn visit() -> Result<u32, ToolError> {
//!     Ok(state::update("visits", |count: Option<u32>| count.unwrap_or(0) + 1)?)
//! }
//!
//! assert!(matches!(visit(), Err(ToolError::Denied(_))));
//!
//! testing::grant([testing::Power::State]);
//! assert_eq!((visit(), visit()), (Ok(1), Ok(2)));
//! ```

use std::{error::Error, fmt, time::Duration};

use serde::{Serialize, de::DeserializeOwned};

use crate::{ToolError, host};

/// How often [`update`] tries to change a key while other calls change it. A try only fails if
/// another one has succeeded, so only a flood of changes reaches this limit.
pub const ATTEMPTS_MAX: u32 = 32;

/// Most keys per page.
const PAGE_KEYS: u32 = 256;

/// A stored value.
///
/// ```
/// use sallyport_sdk::{state, testing};
///
/// testing::grant([testing::Power::State]);
/// state::set("tea", "green")?;
/// assert_eq!(state::entry("tea")?.unwrap().value, b"\"green\"");
/// # Ok::<(), state::StateError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The bytes, as they were stored.
    pub value: Vec<u8>,
    /// The version of the key, which differs after every change.
    pub version: u64,
}

/// The condition for setting a key.
///
/// ```
/// use sallyport_sdk::{state::{self, Expected, StateError}, testing};
///
/// testing::grant([testing::Power::State]);
/// let version = state::compare_and_set("lock", Expected::Nothing, b"mine", None)?;
/// let again = state::compare_and_set("lock", Expected::Nothing, b"yours", None);
/// assert_eq!(again, Err(StateError::Conflict { present: Some(version) }));
/// # Ok::<(), StateError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// The key does not exist.
    Nothing,
    /// The key exists in this version.
    Version(u64),
}

/// Why an operation failed. `?` converts it into the matching [`ToolError`]. Nothing was changed.
///
/// ```
/// use sallyport_sdk::{ToolError, state::StateError};
///
/// assert_eq!(ToolError::from(StateError::NotGranted).kind(), "denied");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateError {
    /// The policy does not grant `state` to this plugin.
    NotGranted,
    /// The key or the value is too long, or the key is empty.
    Invalid {
        /// What is wrong with it.
        reason: String,
    },
    /// The value would exceed the quota.
    QuotaReached {
        /// The size of the quota.
        reason: String,
    },
    /// The key has another version than expected.
    Conflict {
        /// Its current version; `None` if the key does not exist.
        present: Option<u64>,
    },
    /// The store cannot be used at the moment.
    Unavailable {
        /// Why not.
        reason: String,
    },
    /// The stored value does not match the type, or a value cannot be serialized as JSON.
    Mismatch {
        /// The key.
        key: String,
        /// What does not match.
        reason: String,
    },
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotGranted => f.write_str("this plugin may not remember anything"),
            Self::Invalid { reason } => write!(f, "this cannot be kept: {reason}"),
            Self::QuotaReached { reason } => write!(f, "there is no room to keep this: {reason}"),
            Self::Conflict { .. } => f.write_str("what is kept has changed in the meantime"),
            Self::Unavailable { reason } => write!(f, "the store cannot be used: {reason}"),
            Self::Mismatch { key, reason } => {
                write!(f, "what is kept under `{key}` does not fit: {reason}")
            }
        }
    }
}

impl Error for StateError {}

impl From<StateError> for ToolError {
    fn from(error: StateError) -> Self {
        let message = error.to_string();
        match error {
            StateError::NotGranted => Self::Denied(message),
            StateError::Conflict { .. } | StateError::Unavailable { .. } => {
                Self::Unavailable(message)
            }
            StateError::Invalid { .. }
            | StateError::QuotaReached { .. }
            | StateError::Mismatch { .. } => Self::Failed(message),
        }
    }
}

/// Returns the value of a key, or `None` if the key does not exist.
///
/// ```
/// use sallyport_sdk::{state, testing};
///
/// testing::grant([testing::Power::State]);
/// assert_eq!(state::get::<u32>("visits")?, None);
/// # Ok::<(), state::StateError>(())
/// ```
///
/// # Errors
///
/// The policy does not grant `state`, the value does not match the type, or the store cannot be
/// used.
pub fn get<T: DeserializeOwned>(key: &str) -> Result<Option<T>, StateError> {
    entry(key)?.map(|entry| read(key, &entry)).transpose()
}

/// Stores a value that does not expire.
///
/// ```
/// use sallyport_sdk::{state, testing};
///
/// testing::grant([testing::Power::State]);
/// state::set("colours", &["red", "blue"])?;
/// assert_eq!(state::get("colours")?, Some(vec!["red".to_owned(), "blue".to_owned()]));
/// # Ok::<(), state::StateError>(())
/// ```
///
/// # Errors
///
/// The policy does not grant `state`, the key or the value is too long, the key is empty, the value
/// cannot be serialized, the quota is exceeded, or the store cannot be used.
pub fn set<T: Serialize + ?Sized>(key: &str, value: &T) -> Result<(), StateError> {
    host::state::set(key, &write(key, value)?, None).map(|_version| ())
}

/// Stores a value that expires after `time`.
///
/// ```
/// use std::time::Duration;
///
/// use sallyport_sdk::{state, testing};
///
/// testing::grant([testing::Power::State]);
/// state::set_for("token", "abc", Duration::from_secs(60))?;
/// testing::pass(Duration::from_secs(61));
/// assert_eq!(state::get::<String>("token")?, None);
/// # Ok::<(), state::StateError>(())
/// ```
///
/// # Errors
///
/// See [`set`].
pub fn set_for<T: Serialize + ?Sized>(
    key: &str,
    value: &T,
    time: Duration,
) -> Result<(), StateError> {
    host::state::set(key, &write(key, value)?, Some(time)).map(|_version| ())
}

/// Changes a value without losing a concurrent change, and returns the new value.
///
/// `change` receives the current value. It runs again if another call changed the key meanwhile.
/// The new value does not expire.
///
/// ```
/// use sallyport_sdk::{state, testing};
///
/// testing::grant([testing::Power::State]);
/// let add = |names: Option<Vec<String>>| {
///     let mut names = names.unwrap_or_default();
///     names.push("Kim".to_owned());
///     names
/// };
/// assert_eq!(state::update("names", add)?, ["Kim"]);
/// # Ok::<(), state::StateError>(())
/// ```
///
/// # Errors
///
/// See [`set`]. The stored value may also not match the type, and after [`ATTEMPTS_MAX`] tries the
/// function returns a conflict.
pub fn update<T: Serialize + DeserializeOwned>(
    key: &str,
    mut change: impl FnMut(Option<T>) -> T,
) -> Result<T, StateError> {
    let mut conflict = StateError::Conflict { present: None };
    for _attempt in 0..ATTEMPTS_MAX {
        let entry = entry(key)?;
        let expected = entry.as_ref().map_or(Expected::Nothing, |e| Expected::Version(e.version));
        let value = change(entry.map(|entry| read(key, &entry)).transpose()?);
        match compare_and_set(key, expected, &write(key, &value)?, None) {
            Err(changed @ StateError::Conflict { .. }) => conflict = changed,
            done => return done.map(|_version| value),
        }
    }
    Err(conflict)
}

/// Deletes a key. Returns whether it existed.
///
/// ```
/// use sallyport_sdk::{state, testing};
///
/// testing::grant([testing::Power::State]);
/// state::set("tea", "green")?;
/// assert_eq!((state::delete("tea")?, state::delete("tea")?), (true, false));
/// # Ok::<(), state::StateError>(())
/// ```
///
/// # Errors
///
/// The policy does not grant `state`, or the store cannot be used.
pub fn delete(key: &str) -> Result<bool, StateError> {
    host::state::delete(key)
}

/// Returns the keys that start with `prefix`, in byte order.
///
/// ```
/// use sallyport_sdk::{state, testing};
///
/// testing::grant([testing::Power::State]);
/// state::set("list/a", &1)?;
/// state::set("list/b", &2)?;
/// state::set("other", &3)?;
/// assert_eq!(state::keys("list/")?, ["list/a", "list/b"]);
/// # Ok::<(), state::StateError>(())
/// ```
///
/// # Errors
///
/// The policy does not grant `state`, or the store cannot be used.
pub fn keys(prefix: &str) -> Result<Vec<String>, StateError> {
    let mut keys = Vec::new();
    let mut after = None;
    loop {
        let (page, next) = host::state::page(prefix, after.as_deref(), PAGE_KEYS)?;
        keys.extend(page);
        match next {
            Some(next) => after = Some(next),
            None => return Ok(keys),
        }
    }
}

/// Returns the bytes of a key with their version, or `None` if the key does not exist.
///
/// # Errors
///
/// The policy does not grant `state`, or the store cannot be used.
pub fn entry(key: &str) -> Result<Option<Entry>, StateError> {
    host::state::get(key)
}

/// Stores bytes if the key is as expected, atomically, and returns the new version. The value
/// expires after `time`, if given. [`update`] calls this in a loop.
///
/// # Errors
///
/// See [`set`], except that bytes need no serialization. A conflict if the key is not as expected.
pub fn compare_and_set(
    key: &str,
    expected: Expected,
    value: &[u8],
    time: Option<Duration>,
) -> Result<u64, StateError> {
    host::state::compare_and_set(key, expected, value, time)
}

fn read<T: DeserializeOwned>(key: &str, entry: &Entry) -> Result<T, StateError> {
    serde_json::from_slice(&entry.value).map_err(|e| mismatch(key, &e))
}

fn write<T: Serialize + ?Sized>(key: &str, value: &T) -> Result<Vec<u8>, StateError> {
    serde_json::to_vec(value).map_err(|e| mismatch(key, &e))
}

fn mismatch(key: &str, error: &serde_json::Error) -> StateError {
    StateError::Mismatch { key: key.to_owned(), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Power};

    #[test]
    fn without_a_grant_nothing_is_kept() {
        assert_eq!(set("a", &1), Err(StateError::NotGranted));
        assert_eq!(get::<u8>("a"), Err(StateError::NotGranted));
        assert_eq!(delete("a"), Err(StateError::NotGranted));
        assert_eq!(keys(""), Err(StateError::NotGranted));
    }

    #[test]
    fn an_update_tries_again_until_nobody_was_faster() {
        testing::grant([Power::State]);
        let mut rivals = 2;
        let sum = update("sum", |sum: Option<u32>| {
            if rivals > 0 {
                rivals -= 1;
                set("sum", &(sum.unwrap_or(0) + 10)).unwrap();
            }
            sum.unwrap_or(0) + 1
        });
        assert_eq!(sum, Ok(21));
        let flood = update("sum", |sum: Option<u32>| {
            set("sum", &0).unwrap();
            sum.unwrap_or(0)
        });
        assert!(matches!(flood, Err(StateError::Conflict { present: Some(_) })));
    }

    #[test]
    fn a_value_of_another_type_is_named() {
        testing::grant([Power::State]);
        set("age", "old").unwrap();
        let error = get::<u8>("age").unwrap_err();
        assert!(error.to_string().contains("under `age` does not fit"), "{error}");
        assert!(update("age", |age: Option<u8>| age.unwrap_or(0)).is_err());
    }

    #[test]
    fn keys_come_from_all_pages() {
        testing::grant([Power::State]);
        let all: Vec<_> = (0..PAGE_KEYS * 2 + 1).map(|n| format!("k{n:04}")).collect();
        all.iter().for_each(|key| set(key, &()).unwrap());
        assert_eq!(keys("k").unwrap(), all);
        assert_eq!(keys("k0512").unwrap(), ["k0512"]);
    }

    #[test]
    fn every_error_has_its_kind_for_the_model() {
        let reason = || "x".to_owned();
        for (error, kind) in [
            (StateError::NotGranted, "denied"),
            (StateError::Invalid { reason: reason() }, "failed"),
            (StateError::QuotaReached { reason: reason() }, "failed"),
            (StateError::Conflict { present: None }, "unavailable"),
            (StateError::Unavailable { reason: reason() }, "unavailable"),
            (StateError::Mismatch { key: reason(), reason: reason() }, "failed"),
        ] {
            assert_eq!(ToolError::from(error).kind(), kind);
        }
    }
}
