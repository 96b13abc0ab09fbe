//! Keys and values in memory, with the versions, the expiry and the quota of the host's store.

use std::{cell::RefCell, collections::BTreeMap, time::Duration};

use super::{Power, is_granted, schedule::now_ms};
use crate::state::{Entry, Expected, StateError};

/// Most bytes of all keys and values under a policy with `state = true` and no limit of its own.
const QUOTA_BYTES: usize = 1024 * 1024;

/// Most bytes of one value under a policy with `state = true` and no limit of its own.
const VALUE_BYTES_MAX: usize = 64 * 1024;

#[derive(Default)]
struct Store {
    kept: BTreeMap<String, (Entry, Option<u64>)>,
    version: u64,
}

thread_local! {
    static STORE: RefCell<Store> = RefCell::default();
}

/// Checks the grant, removes expired values, and runs `work`.
fn with<R>(work: impl FnOnce(&mut Store) -> Result<R, StateError>) -> Result<R, StateError> {
    if !is_granted(Power::State) {
        return Err(StateError::NotGranted);
    }
    STORE.with_borrow_mut(|store| {
        let now_ms = now_ms();
        store.kept.retain(|_, (_, until_ms)| until_ms.is_none_or(|until_ms| until_ms > now_ms));
        work(store)
    })
}

impl Store {
    fn version_of(&self, key: &str) -> Option<u64> {
        self.kept.get(key).map(|(entry, _)| entry.version)
    }

    fn set(&mut self, key: &str, value: &[u8], time: Option<Duration>) -> Result<u64, StateError> {
        if key.is_empty() || value.len() > VALUE_BYTES_MAX {
            let reason = format!("a key is not empty, a value at most {VALUE_BYTES_MAX} bytes");
            return Err(StateError::Invalid { reason });
        }
        let others = self.kept.iter().filter(|(other, _)| *other != key);
        let others: usize = others.map(|(key, (entry, _))| key.len() + entry.value.len()).sum();
        if others + key.len() + value.len() > QUOTA_BYTES {
            let reason = format!("at most {QUOTA_BYTES} bytes are allowed");
            return Err(StateError::QuotaReached { reason });
        }
        self.version += 1;
        let entry = Entry { value: value.to_vec(), version: self.version };
        let until_ms = time.map(|time| now_ms().saturating_add(super::schedule::in_ms(time)));
        self.kept.insert(key.to_owned(), (entry, until_ms));
        Ok(self.version)
    }
}

pub(crate) fn get(key: &str) -> Result<Option<Entry>, StateError> {
    with(|store| Ok(store.kept.get(key).map(|(entry, _)| entry.clone())))
}

pub(crate) fn set(key: &str, value: &[u8], time: Option<Duration>) -> Result<u64, StateError> {
    with(|store| store.set(key, value, time))
}

pub(crate) fn compare_and_set(
    key: &str,
    expected: Expected,
    value: &[u8],
    time: Option<Duration>,
) -> Result<u64, StateError> {
    with(|store| {
        let present = store.version_of(key);
        let expected = match expected {
            Expected::Nothing => None,
            Expected::Version(version) => Some(version),
        };
        if present != expected {
            return Err(StateError::Conflict { present });
        }
        store.set(key, value, time)
    })
}

pub(crate) fn delete(key: &str) -> Result<bool, StateError> {
    with(|store| Ok(store.kept.remove(key).is_some()))
}

pub(crate) fn page(
    prefix: &str,
    after: Option<&str>,
    limit: u32,
) -> Result<(Vec<String>, Option<String>), StateError> {
    with(|store| {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let fits = |key: &&String| {
            key.starts_with(prefix) && after.is_none_or(|after| key.as_str() > after)
        };
        let mut keys: Vec<String> =
            store.kept.keys().filter(fits).take(limit.saturating_add(1)).cloned().collect();
        let has_more = keys.len() > limit;
        keys.truncate(limit);
        let next = keys.last().filter(|_| has_more).cloned();
        Ok((keys, next))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn the_quota_counts_what_is_left_and_not_what_is_replaced() {
        testing::grant([Power::State]);
        let value = vec![0; VALUE_BYTES_MAX];
        for n in 0..15 {
            set(&format!("key {n:02}"), &value, None).unwrap();
        }
        set("key 00", &value, None).unwrap();
        let full = set("last", &value, None);
        assert!(matches!(full, Err(StateError::QuotaReached { .. })), "{full:?}");
        assert_eq!(get("last"), Ok(None));
        assert_eq!(delete("key 01"), Ok(true));
        assert!(set("last", &value, None).is_ok());
    }

    #[test]
    fn what_is_too_long_or_nameless_is_refused() {
        testing::grant([Power::State]);
        for (key, value) in [("", vec![]), ("a", vec![0; VALUE_BYTES_MAX + 1])] {
            assert!(matches!(set(key, &value, None), Err(StateError::Invalid { .. })));
        }
    }

    #[test]
    fn what_expires_is_gone_for_everybody() {
        testing::grant([Power::State]);
        set("short", b"1", Some(Duration::from_millis(1))).unwrap();
        testing::pass(Duration::from_millis(1));
        assert_eq!(page("", None, 9), Ok((vec![], None)));
        assert!(compare_and_set("short", Expected::Nothing, b"2", None).is_ok());
    }
}
