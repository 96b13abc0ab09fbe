//! What a plugin remembers beyond a call: keys and values of its own, apart for every user.
//!
//! Values are whatever serde can write as JSON. They are on the disk when a function returns, and
//! no kill leaves half of one. The manifest requests `state`, and the policy grants it with a
//! quota.
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

/// How often [`update`] tries again when somebody else changes the key at the same moment. Every
/// try that fails means that another one has succeeded, so this is only reached under a flood.
pub const ATTEMPTS_MAX: u32 = 32;

/// How many keys are asked for at once.
const PAGE_KEYS: u32 = 256;

/// A value as it is kept.
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
    /// The bytes, as they were set.
    pub value: Vec<u8>,
    /// Another number after every change of the key.
    pub version: u64,
}

/// What a key has to be before it is set.
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
    /// It does not exist.
    Nothing,
    /// It exists in this version.
    Version(u64),
}

/// Why nothing came of it; `?` turns it into the fitting [`ToolError`]. Nothing has changed then.
///
/// ```
/// use sallyport_sdk::{ToolError, state::StateError};
///
/// assert_eq!(ToolError::from(StateError::NotGranted).kind(), "denied");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateError {
    /// It is not granted to this plugin.
    NotGranted,
    /// A key or a value is longer than is allowed, or a key is empty.
    Invalid {
        /// What is wrong.
        reason: String,
    },
    /// It would not fit any more.
    QuotaReached {
        /// How much is allowed.
        reason: String,
    },
    /// The key is in another version than was expected.
    Conflict {
        /// The version it is in; nothing when it is gone.
        present: Option<u64>,
    },
    /// The store cannot be used just now.
    Unavailable {
        /// Why not.
        reason: String,
    },
    /// What is kept is of another type than the plugin expects, or a value cannot be written as
    /// JSON.
    Mismatch {
        /// The key.
        key: String,
        /// What does not fit.
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

/// Returns what is kept under a key, if anything is.
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
/// No grant, a value of another type, a store that cannot be used.
pub fn get<T: DeserializeOwned>(key: &str) -> Result<Option<T>, StateError> {
    entry(key)?.map(|entry| read(key, &entry)).transpose()
}

/// Keeps a value for ever.
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
/// No grant, a key or a value that is too long, a quota that is reached, a store that cannot be
/// used.
pub fn set<T: Serialize + ?Sized>(key: &str, value: &T) -> Result<(), StateError> {
    host::state::set(key, &write(key, value)?, None).map(|_version| ())
}

/// Keeps a value for some time.
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

/// Changes a value so that no other change gets lost, and returns the new one. `change` sees what
/// is kept now; it runs again when somebody else was faster. The new value is kept for ever.
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
/// See [`set`]; a conflict only after [`ATTEMPTS_MAX`] tries.
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

/// Forgets a key. Returns whether there was one.
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
/// No grant, a store that cannot be used.
pub fn delete(key: &str) -> Result<bool, StateError> {
    host::state::delete(key)
}

/// Returns the keys that begin with `prefix`, in the order of their bytes.
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
/// No grant, a store that cannot be used.
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

/// Returns the bytes that are kept under a key, with their version.
///
/// # Errors
///
/// No grant, a store that cannot be used.
pub fn entry(key: &str) -> Result<Option<Entry>, StateError> {
    host::state::get(key)
}

/// Keeps bytes if the key is as expected, in one step that nothing comes between, for ever or for
/// some time, and returns their version. [`update`] is this in a loop.
///
/// # Errors
///
/// See [`set`]; a conflict when the key is not as expected.
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
