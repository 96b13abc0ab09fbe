//! The browsers that are logged in.
//!
//! A cookie holds a random ID, never a token. What it stands for is kept in memory only: the hash of
//! the ID, and that of the token, or the user whom the identity server named. A token that is removed
//! therefore ends its log-ins, and so does the end of the program.

use std::{
    collections::HashMap,
    io,
    sync::{Mutex, MutexGuard, PoisonError},
};

use sallyport_contract::Secret;

use crate::{
    role::ServiceUser,
    token_file::{hash_token, random_token},
};

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

/// What a log-in stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LoginBasis {
    /// A token, by its hash. The log-in ends with it.
    Token([u8; 32]),
    /// A user whom the identity server named.
    SignOn {
        user: ServiceUser,
        /// When the log-in ends, in milliseconds since 1970.
        ends_ms: u64,
    },
}

#[derive(Debug, Clone)]
struct ConsoleLogin {
    basis: LoginBasis,
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
    pub(crate) fn begin(&self, user: &str, basis: LoginBasis, now_ms: u64) -> io::Result<Secret> {
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
        let login = ConsoleLogin { basis, user, begun_ms: now_ms, last_use_ms: now_ms };
        logins.insert(hash_token(id.expose()), login);
        Ok(id)
    }

    /// Returns what a log-in stands for, and notes its use.
    pub(crate) fn basis(&self, login_hash: &[u8; 32], now_ms: u64) -> Option<LoginBasis> {
        let mut logins = self.lock();
        let login = logins.get_mut(login_hash)?;
        if !login.is_valid(now_ms) {
            logins.remove(login_hash);
            return None;
        }
        login.last_use_ms = login.last_use_ms.max(now_ms);
        Some(login.basis.clone())
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
        let is_in_time = match self.basis {
            LoginBasis::Token(_) => true,
            LoginBasis::SignOn { ends_ms, .. } => now_ms < ends_ms,
        };
        is_in_time
            && now_ms.saturating_sub(self.begun_ms) < LOGIN_TIME_MAX_MS
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
    use crate::role::UserRole;

    const HOUR_MS: u64 = 60 * 60 * 1000;

    fn begin(logins: &ConsoleLogins, user: &str, now_ms: u64) -> [u8; 32] {
        hash_token(logins.begin(user, LoginBasis::Token([7; 32]), now_ms).unwrap().expose())
    }

    #[test]
    fn a_login_at_the_identity_server_ends_at_its_time() {
        let logins = ConsoleLogins::default();
        for (ends_ms, at_ms, is_valid) in
            [(HOUR_MS, HOUR_MS - 1, true), (HOUR_MS, HOUR_MS, false), (u64::MAX, HOUR_MS, true)]
        {
            let user = ServiceUser { name: "sso:ann".to_owned(), role: UserRole::User };
            let basis = LoginBasis::SignOn { user, ends_ms };
            let id = logins.begin("sso:ann", basis.clone(), 0).unwrap();
            let found = logins.basis(&hash_token(id.expose()), at_ms);
            assert_eq!(found, is_valid.then_some(basis), "{ends_ms} {at_ms}");
        }
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
            let used = uses.iter().map(|hour| logins.basis(&login, hour * HOUR_MS));
            assert_eq!(used.last().unwrap().is_some(), is_valid, "{uses:?}");
        }
    }

    #[test]
    fn the_oldest_login_of_a_user_makes_room_and_nobody_elses_does() {
        let logins = ConsoleLogins::default();
        let bens = begin(&logins, "ben", 0);
        let anns: Vec<_> = (0..20).map(|at_ms| begin(&logins, "ann", at_ms)).collect();
        let is_valid =
            |login: &[u8; 32]| logins.basis(login, 20) == Some(LoginBasis::Token([7; 32]));
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
