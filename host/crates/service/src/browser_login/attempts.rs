//! How often somebody may try to log in.
//!
//! A token cannot be guessed, so this keeps the log and the processor from those who try. An address
//! that fails too often is sent away before its token is looked at, for a minute.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The time in which failures count, in milliseconds.
const WINDOW_MS: u64 = 60_000;

/// The same in seconds, for the header `Retry-After` of a refusal.
pub(crate) const BLOCKED_SECONDS: &str = "60";

/// Most failures of one address in that time: more than a person makes with a clipboard.
const FAILURES_MAX: usize = 10;

/// Most addresses that are remembered. The one that was quiet for longest is forgotten.
const ADDRESSES_MAX: usize = 1024;

/// Bits of an IPv6 address that tell networks apart. The rest is the client's own choice.
const IPV6_NETWORK_BITS: u32 = 64;

/// The failures of a minute by address.
#[derive(Debug, Default)]
pub(crate) struct LoginAttempts(Mutex<HashMap<IpAddr, Vec<u64>>>);

impl LoginAttempts {
    /// Whether an address has failed too often.
    pub(crate) fn is_blocked(&self, address: IpAddr, now_ms: u64) -> bool {
        let mut failures = self.lock();
        let Some(times) = failures.get_mut(&network(address)) else { return false };
        times.retain(|at_ms| now_ms.saturating_sub(*at_ms) < WINDOW_MS);
        times.len() >= FAILURES_MAX
    }

    /// Notes a failure.
    pub(crate) fn note_failure(&self, address: IpAddr, now_ms: u64) {
        let (network, mut failures) = (network(address), self.lock());
        if !failures.contains_key(&network) && failures.len() >= ADDRESSES_MAX {
            let quietest = failures.iter().min_by_key(|(_, times)| times.last().copied());
            let quietest = quietest.map(|(network, _)| *network);
            quietest.map(|network| failures.remove(&network));
        }
        let times = failures.entry(network).or_default();
        if times.len() < FAILURES_MAX {
            times.push(now_ms);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, Vec<u64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let mask = u128::MAX << (u128::BITS - IPV6_NETWORK_BITS);
            IpAddr::V6((address.to_bits() & mask).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_fails_too_often_waits_for_a_minute() {
        let attempts = LoginAttempts::default();
        let rows = [
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.2", "192.0.2.3", false),
            ("::ffff:192.0.2.4", "192.0.2.4", true),
            ("2001:db8::1", "2001:db8::2", true),
            ("2001:db8:0:1::1", "2001:db8:0:2::1", false),
        ];
        for (failing, other, is_blocked) in rows {
            let (failing, other) = (failing.parse().unwrap(), other.parse().unwrap());
            for at_ms in 0..FAILURES_MAX as u64 {
                assert!(!attempts.is_blocked(failing, at_ms), "{failing} after {at_ms}");
                attempts.note_failure(failing, at_ms);
            }
            assert!(attempts.is_blocked(failing, 10), "{failing}");
            assert_eq!(attempts.is_blocked(other, 10), is_blocked, "{other}");
            assert!(!attempts.is_blocked(failing, WINDOW_MS + 10), "{failing}");
        }
    }

    #[test]
    fn the_number_of_addresses_is_bounded() {
        let attempts = LoginAttempts::default();
        for number in 0..2 * ADDRESSES_MAX as u32 {
            attempts.note_failure(IpAddr::V4(number.into()), number.into());
        }
        assert_eq!(attempts.lock().len(), ADDRESSES_MAX);
    }
}
