//! The log-ins that have begun, each for one browser and one return.

use std::{io, net::IpAddr};

use openidconnect::{Nonce, PkceCodeVerifier, RedirectUrl};
use sallyport_contract::Secret;

use super::SignOnRefusal;
use crate::{
    pending_return::{BrowserIds, PendingReturns, ReturnRefusal},
    token_file::{hash_token, random_token},
};

/// Most log-ins that have begun at one address. Behind a proxy, that is all users.
const OF_ADDRESS_MAX: usize = 128;

/// The log-ins that have begun.
#[derive(Debug)]
pub(super) struct PendingSignOns(PendingReturns<IpAddr, BegunInBrowser>);

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

#[derive(Debug)]
struct BegunInBrowser {
    browser_hash: [u8; 32],
    sign_on: PendingSignOn,
}

impl Default for PendingSignOns {
    fn default() -> Self {
        Self(PendingReturns::new(OF_ADDRESS_MAX))
    }
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
        let browser_hash = hash_token(browser_id.expose());
        self.0.add(state, address, sign_on.begun_ms, BegunInBrowser { browser_hash, sign_on });
        Ok(browser_id)
    }

    /// Takes the log-in of a state, once. It stays if another browser asks.
    pub(super) fn take(
        &self,
        state: &str,
        browser: BrowserIds<'_>,
        now_ms: u64,
    ) -> Result<PendingSignOn, SignOnRefusal> {
        let begun = self.0.take(state, now_ms, |begun| {
            let is_same = browser.have_hash(&begun.browser_hash, begun.sign_on.is_over_tls);
            is_same.then_some(()).ok_or(ReturnRefusal::OtherParty)
        });
        Ok(begun?.sign_on)
    }
}

impl From<ReturnRefusal> for SignOnRefusal {
    fn from(refusal: ReturnRefusal) -> Self {
        match refusal {
            ReturnRefusal::UnknownState => Self::UnknownState,
            ReturnRefusal::OtherParty => Self::OtherBrowser,
            ReturnRefusal::TooLate => Self::TooLate,
        }
    }
}

#[cfg(test)]
mod tests {
    use openidconnect::PkceCodeChallenge;

    use super::*;
    use crate::pending_return::{RETURN_TIME_MAX_MS, TOTAL_MAX};

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
        assert_eq!(take("b", plain(&second), RETURN_TIME_MAX_MS), Err(SignOnRefusal::TooLate));
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
        assert_eq!(pending.0.count(), OF_ADDRESS_MAX + 1);
        assert!(pending.take("quiet", plain(quiet.expose()), 1).is_ok());
        for number in 0..TOTAL_MAX as u32 {
            pending.add(&format!("x{number}"), address(number), sign_on(1000)).unwrap();
        }
        assert_eq!(pending.0.count(), TOTAL_MAX);
        pending.add("late", address(7), sign_on(2 * RETURN_TIME_MAX_MS)).unwrap();
        assert_eq!(pending.0.count(), 1, "those that are too late take no memory");
    }
}
