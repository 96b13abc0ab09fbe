//! What a user has begun elsewhere, each for one return: a log-in at the identity server, a sign-in at
//! the service of a plugin.
//!
//! It is found by its state, and belongs to whoever began it. The memory has the hashes of states and
//! of what browsers show. Whoever only knows a state can therefore neither finish nor end it.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use constant_time_eq::constant_time_eq;

use crate::token_file::hash_token;

/// Longest time between the beginning and the return.
pub(crate) const RETURN_TIME_MAX_MS: u64 = 10 * 60 * 1000;

/// Most that have begun. The oldest one makes room.
pub(crate) const TOTAL_MAX: usize = 1024;

/// What has begun, by the hashes of the states. `K` is whom a limit is about.
#[derive(Debug)]
pub(crate) struct PendingReturns<K, T> {
    /// Most that one owner has begun. The oldest one makes room.
    of_owner_max: usize,
    entries: Mutex<HashMap<[u8; 32], PendingEntry<K, T>>>,
}

#[derive(Debug)]
struct PendingEntry<K, T> {
    owner: K,
    /// When it began, in milliseconds since 1970.
    begun_ms: u64,
    begun: T,
}

/// Why nothing is returned to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReturnRefusal {
    /// It is over, or never began.
    UnknownState,
    /// Another one began it.
    OtherParty,
    /// It took longer than [`RETURN_TIME_MAX_MS`].
    TooLate,
}

/// What a browser shows of itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct BrowserIds<'c> {
    /// Of a cookie that only this host can have set, over TLS.
    pub(crate) over_tls: Option<&'c str>,
    /// Of a cookie that a neighbour of the host can have set.
    pub(crate) plain: Option<&'c str>,
}

impl BrowserIds<'_> {
    /// Whether it is the browser with this hash, which speaks TLS or not.
    pub(crate) fn have_hash(&self, hash: &[u8; 32], is_over_tls: bool) -> bool {
        let shown = if is_over_tls { self.over_tls } else { self.plain };
        shown.map(hash_token).is_some_and(|shown| constant_time_eq(&shown, hash))
    }
}

impl<K: PartialEq, T> PendingReturns<K, T> {
    pub(crate) fn new(of_owner_max: usize) -> Self {
        Self { of_owner_max, entries: Mutex::default() }
    }

    /// Adds what begins now, in milliseconds since 1970.
    pub(crate) fn add(&self, state: &str, owner: K, now_ms: u64, begun: T) {
        let mut entries = self.lock();
        entries.retain(|_, entry| entry.is_in_time(now_ms));
        while entries.values().filter(|entry| entry.owner == owner).count() >= self.of_owner_max {
            remove_oldest(&mut entries, |entry| entry.owner == owner);
        }
        while entries.len() >= TOTAL_MAX {
            remove_oldest(&mut entries, |_| true);
        }
        entries.insert(hash_token(state), PendingEntry { owner, begun_ms: now_ms, begun });
    }

    /// Takes what has a state, once. It stays if `check` refuses, because somebody else asks.
    pub(crate) fn take(
        &self,
        state: &str,
        now_ms: u64,
        check: impl FnOnce(&T) -> Result<(), ReturnRefusal>,
    ) -> Result<T, ReturnRefusal> {
        let state = hash_token(state);
        let mut entries = self.lock();
        let entry = entries.get(&state).ok_or(ReturnRefusal::UnknownState)?;
        check(&entry.begun)?;
        let entry = entries.remove(&state).ok_or(ReturnRefusal::UnknownState)?;
        if entry.is_in_time(now_ms) { Ok(entry.begun) } else { Err(ReturnRefusal::TooLate) }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 32], PendingEntry<K, T>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many have begun.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }
}

impl<K, T> PendingEntry<K, T> {
    fn is_in_time(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.begun_ms) < RETURN_TIME_MAX_MS
    }
}

fn remove_oldest<K, T>(
    entries: &mut HashMap<[u8; 32], PendingEntry<K, T>>,
    is_about: impl Fn(&PendingEntry<K, T>) -> bool,
) {
    let about = entries.iter().filter(|(_, entry)| is_about(entry));
    let oldest = about.min_by_key(|(_, entry)| entry.begun_ms).map(|(state, _)| *state);
    if let Some(oldest) = oldest {
        entries.remove(&oldest);
    }
}
