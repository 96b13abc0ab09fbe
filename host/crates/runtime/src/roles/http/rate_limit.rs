//! The limits of one address: requests per second, concurrent bodies and concurrent answers.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

/// Requests per second on average. A page sends two or three; a user cannot follow more.
const REQUESTS_PER_SECOND: f64 = 50.0;

/// Largest burst after a quiet moment: a page that is opened, several programs.
const BURST_MAX: f64 = 200.0;

/// Most requests that are answered at the same time. Each may keep a plugin in memory.
const CONCURRENT_ANSWERS_MAX: usize = 16;

/// Most bodies that are read at the same time. They may arrive slowly, so they take none of the
/// places for answers.
const CONCURRENT_READS_MAX: usize = 64;

/// The remaining capacity of one address.
#[derive(Debug)]
pub(super) struct RequestLimiter {
    bucket: Mutex<TokenBucket>,
    answer_permits: Arc<Semaphore>,
    read_permits: Arc<Semaphore>,
}

/// A token bucket: so many per second, and a burst after a quiet moment.
#[derive(Debug)]
pub struct TokenBucket {
    per_second: f64,
    burst_max: f64,
    tokens: f64,
    refilled_at: Instant,
}

/// Why a request exceeds a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LimitExceeded {
    /// Too many requests arrived in the last seconds.
    Rate,
    /// Too many requests are being read or answered.
    Concurrency,
}

impl TokenBucket {
    /// Creates a full bucket.
    pub fn new(per_second: f64, burst_max: f64) -> Self {
        Self { per_second, burst_max, tokens: burst_max, refilled_at: Instant::now() }
    }

    /// Takes one token, if there is one.
    pub fn take_token(&mut self) -> bool {
        let now = Instant::now();
        let more = now.duration_since(self.refilled_at).as_secs_f64() * self.per_second;
        (self.tokens, self.refilled_at) = ((self.tokens + more).min(self.burst_max), now);
        let has_token = self.tokens >= 1.0;
        self.tokens -= if has_token { 1.0 } else { 0.0 };
        has_token
    }
}

impl Default for RequestLimiter {
    fn default() -> Self {
        let bucket = Mutex::new(TokenBucket::new(REQUESTS_PER_SECOND, BURST_MAX));
        let permits = |count| Arc::new(Semaphore::new(count));
        Self {
            bucket,
            answer_permits: permits(CONCURRENT_ANSWERS_MAX),
            read_permits: permits(CONCURRENT_READS_MAX),
        }
    }
}

impl RequestLimiter {
    /// Counts a request.
    pub(super) fn count_request(&self) -> Result<(), LimitExceeded> {
        match self.bucket.lock().unwrap_or_else(PoisonError::into_inner).take_token() {
            true => Ok(()),
            false => Err(LimitExceeded::Rate),
        }
    }

    /// Takes a place for reading a request's body.
    pub(super) fn acquire_read_permit(&self) -> Result<OwnedSemaphorePermit, LimitExceeded> {
        Arc::clone(&self.read_permits).try_acquire_owned().map_err(|_| LimitExceeded::Concurrency)
    }

    /// Takes a place for answering a request.
    pub(super) fn acquire_answer_permit(&self) -> Result<OwnedSemaphorePermit, LimitExceeded> {
        Arc::clone(&self.answer_permits).try_acquire_owned().map_err(|_| LimitExceeded::Concurrency)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_too_much_and_a_pause_helps() {
        let rate = RequestLimiter::default();
        let taken = (0..1000).filter(|_| rate.count_request().is_ok()).count();
        assert_eq!(taken, 200);
        assert_eq!(rate.count_request(), Err(LimitExceeded::Rate));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!((0..1000).filter(|_| rate.count_request().is_ok()).count(), 50);
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_are_answered_at_once() {
        let rate = RequestLimiter::default();
        let bodies: Vec<_> = (0..64).map(|_| rate.acquire_read_permit().unwrap()).collect();
        assert_eq!(rate.acquire_read_permit().err(), Some(LimitExceeded::Concurrency));
        let permits: Vec<_> = (0..16).map(|_| rate.acquire_answer_permit().unwrap()).collect();
        assert_eq!(rate.acquire_answer_permit().err(), Some(LimitExceeded::Concurrency));
        drop((bodies, permits));
        assert!(rate.acquire_read_permit().is_ok() && rate.acquire_answer_permit().is_ok());
    }
}
