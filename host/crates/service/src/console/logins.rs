//! The browsers that are logged in.
//!
//! A cookie holds a random ID, never a token. What it stands for is kept in memory only: the hash of
//! the ID, and that of the token. A token that is removed therefore ends its log-ins, and so does the
//! end of the program.

use std::{
    collections::HashMap,
    io,
    sync::{Mutex, MutexGuard, PoisonError},
};

use sallyport_contract::Secret;

use crate::token_file::{hash_token, random_token};

/// Longest log-in: a working day.
const LOGIN_TIME_MAX_MS: u64 = 12 * 60 * 60 * 1000;

/// How long a log-in lasts without a request. An open page makes some each minute.
const IDLE_TIME_MAX_MS: u64 = 2 * 60 * 60 * 1000;

/// Most log-ins of one user: their browsers. The oldest one ends.
const LOGINS_OF_USER_MAX: usize = 16;

/// Most log-ins of all users. The oldest one ends.
const LOGINS_MAX: usize = 1024;

/// The log-ins by the hashes of their IDs.
#[derive(Debug, Default)]
pub(crate) struct ConsoleLogins(Mutex<HashMap<[u8; 32], ConsoleLogin>>);

#[derive(Debug, Clone)]
struct ConsoleLogin {
    token_hash: [u8; 32],
    user: String,
    begun_ms: u64,
    last_use_ms: u64,
}

impl ConsoleLogins {
    /// Begins a log-in, and returns its ID.
    ///
    /// # Errors
    ///
    /// The system has no random bytes.
    pub(crate) fn begin(
        &self,
        user: &str,
        token_hash: [u8; 32],
        now_ms: u64,
    ) -> io::Result<Secret> {
        let id = random_token()?;
        let mut logins = self.lock();
        logins.retain(|_, login| login.is_valid(now_ms));
        while logins.values().filter(|login| login.user == user).count() >= LOGINS_OF_USER_MAX {
            remove_oldest(&mut logins, Some(user));
        }
        while logins.len() >= LOGINS_MAX {
            remove_oldest(&mut logins, None);
        }
        let user = user.to_owned();
        let login = ConsoleLogin { token_hash, user, begun_ms: now_ms, last_use_ms: now_ms };
        logins.insert(hash_token(id.expose()), login);
        Ok(id)
    }

    /// Returns the hash of the token that a log-in stands for, and notes its use.
    pub(crate) fn token_hash(&self, login_hash: &[u8; 32], now_ms: u64) -> Option<[u8; 32]> {
        let mut logins = self.lock();
        let login = logins.get_mut(login_hash)?;
        if !login.is_valid(now_ms) {
            logins.remove(login_hash);
            return None;
        }
        login.last_use_ms = login.last_use_ms.max(now_ms);
        Some(login.token_hash)
    }

    /// Ends a log-in.
    pub(crate) fn end(&self, login_hash: &[u8; 32]) {
        self.lock().remove(login_hash);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 32], ConsoleLogin>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConsoleLogin {
    fn is_valid(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.begun_ms) < LOGIN_TIME_MAX_MS
            && now_ms.saturating_sub(self.last_use_ms) < IDLE_TIME_MAX_MS
    }
}

fn remove_oldest(logins: &mut HashMap<[u8; 32], ConsoleLogin>, user: Option<&str>) {
    let of_user = logins.iter().filter(|(_, login)| user.is_none_or(|user| login.user == user));
    let oldest = of_user.min_by_key(|(_, login)| login.begun_ms).map(|(hash, _)| *hash);
    if let Some(hash) = oldest {
        logins.remove(&hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: u64 = 60 * 60 * 1000;

    fn begin(logins: &ConsoleLogins, user: &str, now_ms: u64) -> [u8; 32] {
        hash_token(logins.begin(user, [7; 32], now_ms).unwrap().expose())
    }

    #[test]
    fn a_login_ends_after_its_time_or_without_use() {
        let logins = ConsoleLogins::default();
        let rows: [(&[u64], bool); 5] = [
            (&[0, 1], true),
            (&[1, 2, 3, 4, 5], true),
            (&[2], false),
            (&[1, 3], false),
            (&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], false),
        ];
        for (uses, is_valid) in rows {
            let login = begin(&logins, "ann", 0);
            let used = uses.iter().map(|hour| logins.token_hash(&login, hour * HOUR_MS));
            assert_eq!(used.last().unwrap().is_some(), is_valid, "{uses:?}");
        }
    }

    #[test]
    fn the_oldest_login_of_a_user_makes_room_and_nobody_elses_does() {
        let logins = ConsoleLogins::default();
        let bens = begin(&logins, "ben", 0);
        let anns: Vec<_> = (0..20).map(|at_ms| begin(&logins, "ann", at_ms)).collect();
        let is_valid = |login: &[u8; 32]| logins.token_hash(login, 20) == Some([7; 32]);
        assert_eq!(anns.iter().filter(|login| is_valid(login)).count(), LOGINS_OF_USER_MAX);
        assert!(is_valid(&anns[19]) && !is_valid(&anns[0]) && is_valid(&bens));
        for number in 0..LOGINS_MAX {
            begin(&logins, &number.to_string(), 21);
        }
        assert_eq!(logins.lock().len(), LOGINS_MAX);
        logins.end(&anns[19]);
        assert!(!is_valid(&anns[19]));
    }
}
