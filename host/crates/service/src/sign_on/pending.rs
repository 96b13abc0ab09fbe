//! The log-ins that have begun, each for one browser and one return.
//!
//! A log-in is found by its state, and belongs to the browser that has its cookie. The memory has
//! the hashes of both. Whoever only knows a state can therefore neither finish nor end the log-in.

use std::{
    collections::HashMap,
    io,
    net::IpAddr,
    sync::{Mutex, MutexGuard, PoisonError},
};

use constant_time_eq::constant_time_eq;
use openidconnect::{Nonce, PkceCodeVerifier, RedirectUrl};
use sallyport_contract::Secret;

use super::SignOnRefusal;
use crate::token_file::{hash_token, random_token};

/// Longest time for a log-in at the identity server.
const PENDING_TIME_MAX_MS: u64 = 10 * 60 * 1000;

/// Most log-ins that have begun at one address. Behind a proxy, that is all users. The oldest one
/// makes room.
const OF_ADDRESS_MAX: usize = 128;

/// Most log-ins that have begun. The oldest one makes room.
const TOTAL_MAX: usize = 1024;

/// The log-ins that have begun, by the hashes of their states.
#[derive(Debug, Default)]
pub(super) struct PendingSignOns(Mutex<HashMap<[u8; 32], PendingEntry>>);

/// A log-in that has begun.
#[derive(Debug)]
pub(crate) struct PendingSignOn {
    pub(super) nonce: Nonce,
    pub(super) verifier: PkceCodeVerifier,
    pub(super) redirect: RedirectUrl,
    /// Whether the browser speaks TLS.
    pub(crate) is_over_tls: bool,
    /// When it began, in milliseconds since 1970.
    pub(super) begun_ms: u64,
}

/// What a browser shows of itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct BrowserIds<'c> {
    /// Of a cookie that only this host can have set, over TLS.
    pub(crate) over_tls: Option<&'c str>,
    /// Of a cookie that a neighbour of the host can have set.
    pub(crate) plain: Option<&'c str>,
}

#[derive(Debug)]
struct PendingEntry {
    browser_hash: [u8; 32],
    address: IpAddr,
    sign_on: PendingSignOn,
}

impl PendingSignOns {
    /// Adds a log-in, and returns what shows that a browser began it. It is new for each log-in:
    /// one that was there before could be known to somebody else.
    ///
    /// # Errors
    ///
    /// The system has no random bytes.
    pub(super) fn add(
        &self,
        state: &str,
        address: IpAddr,
        sign_on: PendingSignOn,
    ) -> io::Result<Secret> {
        let browser_id = random_token()?;
        let now_ms = sign_on.begun_ms;
        let mut entries = self.lock();
        entries.retain(|_, entry| entry.sign_on.is_in_time(now_ms));
        while entries.values().filter(|entry| entry.address == address).count() >= OF_ADDRESS_MAX {
            remove_oldest(&mut entries, Some(address));
        }
        while entries.len() >= TOTAL_MAX {
            remove_oldest(&mut entries, None);
        }
        let browser_hash = hash_token(browser_id.expose());
        entries.insert(hash_token(state), PendingEntry { browser_hash, address, sign_on });
        Ok(browser_id)
    }

    /// Takes the log-in of a state, once. It stays if another browser asks.
    pub(super) fn take(
        &self,
        state: &str,
        browser: BrowserIds<'_>,
        now_ms: u64,
    ) -> Result<PendingSignOn, SignOnRefusal> {
        let state = hash_token(state);
        let mut entries = self.lock();
        let entry = entries.get(&state).ok_or(SignOnRefusal::UnknownState)?;
        let shown = if entry.sign_on.is_over_tls { browser.over_tls } else { browser.plain };
        if !shown.map(hash_token).is_some_and(|hash| constant_time_eq(&hash, &entry.browser_hash)) {
            return Err(SignOnRefusal::OtherBrowser);
        }
        let sign_on = entries.remove(&state).ok_or(SignOnRefusal::UnknownState)?.sign_on;
        if sign_on.is_in_time(now_ms) { Ok(sign_on) } else { Err(SignOnRefusal::TooLate) }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 32], PendingEntry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingSignOn {
    fn is_in_time(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.begun_ms) < PENDING_TIME_MAX_MS
    }
}

fn remove_oldest(entries: &mut HashMap<[u8; 32], PendingEntry>, address: Option<IpAddr>) {
    let of_address =
        entries.iter().filter(|(_, entry)| address.is_none_or(|address| entry.address == address));
    let oldest = of_address.min_by_key(|(_, entry)| entry.sign_on.begun_ms).map(|(key, _)| *key);
    if let Some(oldest) = oldest {
        entries.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use openidconnect::PkceCodeChallenge;

    use super::*;

    fn plain(id: &str) -> BrowserIds<'_> {
        BrowserIds { plain: Some(id), over_tls: None }
    }

    fn sign_on(begun_ms: u64) -> PendingSignOn {
        PendingSignOn {
            nonce: Nonce::new("n".to_owned()),
            verifier: PkceCodeChallenge::new_random_sha256().1,
            redirect: RedirectUrl::new("http://127.0.0.1/console/callback".to_owned()).unwrap(),
            is_over_tls: false,
            begun_ms,
        }
    }

    fn address(last: u32) -> IpAddr {
        IpAddr::V4((0x0a00_0000 + last).into())
    }

    #[test]
    fn a_state_counts_once_in_time_and_for_its_browser() {
        let pending = PendingSignOns::default();
        let add = |state: &str, begun_ms| {
            pending.add(state, address(1), sign_on(begun_ms)).unwrap().expose().to_owned()
        };
        let (first, second) = (add("a", 0), add("b", 0));
        let take = |state: &str, browser: BrowserIds<'_>, now_ms| {
            pending.take(state, browser, now_ms).map(|_| ())
        };
        let other = Err(SignOnRefusal::OtherBrowser);
        for browser in [plain(&second), plain(""), BrowserIds::default()] {
            assert_eq!(take("a", browser, 1), other, "{browser:?}");
        }
        assert_eq!(take("a", plain(&first), 1), Ok(()), "others have not ended it");
        assert_eq!(take("a", plain(&first), 1), Err(SignOnRefusal::UnknownState));
        assert_eq!(take("", plain(&first), 1), Err(SignOnRefusal::UnknownState));
        assert_eq!(take("b", plain(&second), PENDING_TIME_MAX_MS), Err(SignOnRefusal::TooLate));
        assert_eq!(take("b", plain(&second), 1), Err(SignOnRefusal::UnknownState));
    }

    /// A page of another port could set the cookie of a log-in that its author began.
    #[test]
    fn over_tls_only_the_cookie_of_this_very_host_counts() {
        let pending = PendingSignOns::default();
        for is_over_tls in [false, true] {
            let sign_on = PendingSignOn { is_over_tls, ..sign_on(0) };
            let id = pending.add("a", address(1), sign_on).unwrap();
            let id = Some(id.expose());
            let (plain, over_tls) = (
                BrowserIds { plain: id, over_tls: None },
                BrowserIds { plain: None, over_tls: id },
            );
            let (wrong, right) = if is_over_tls { (plain, over_tls) } else { (over_tls, plain) };
            let taken = |browser| pending.take("a", browser, 1).map(|_| ());
            assert_eq!(taken(wrong), Err(SignOnRefusal::OtherBrowser), "{is_over_tls}");
            assert_eq!(taken(right), Ok(()), "{is_over_tls}");
        }
    }

    #[test]
    fn the_oldest_of_an_address_makes_room_and_then_the_oldest_of_all() {
        let pending = PendingSignOns::default();
        let quiet = pending.add("quiet", address(0), sign_on(0)).unwrap();
        for number in 0..2 * OF_ADDRESS_MAX as u64 {
            pending.add(&number.to_string(), address(1), sign_on(number)).unwrap();
        }
        assert_eq!(pending.lock().len(), OF_ADDRESS_MAX + 1);
        assert!(pending.take("quiet", plain(quiet.expose()), 1).is_ok());
        for number in 0..TOTAL_MAX as u32 {
            pending.add(&format!("x{number}"), address(number), sign_on(1000)).unwrap();
        }
        assert_eq!(pending.lock().len(), TOTAL_MAX);
        pending.add("late", address(7), sign_on(2 * PENDING_TIME_MAX_MS)).unwrap();
        assert_eq!(pending.lock().len(), 1, "those that are too late take no memory");
    }
}
