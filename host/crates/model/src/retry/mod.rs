//! Retries a request if its provider is temporarily unable to answer, or refuses its temperature.
//!
//! Deltas cannot be taken back once they are passed on, so an attempt that produced any is the last
//! one. Each wait is reported before it begins; dropping the future ends it.
//!
//! A request may wish for a temperature, regardless of the model that answers. Some models take
//! none and refuse the whole request, which must not cost the session its answers. A temperature of
//! the endpoint is not a wish: the user set it and sees the refusal.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sallyport_contract::BoxFuture;
use tokio::time::Instant;

use crate::{
    chat::{ModelError, ModelReply, ReplyDelta, TokenPrice},
    chat_model::{ChatModel, ModelRequest},
    protocol::ProviderProtocol,
};

/// Most attempts for one answer. With the waits below, a server has about ten seconds to recover. A
/// user at a terminal would not wait longer.
const ATTEMPTS_MAX: u32 = 5;

/// Longest wait before the second attempt; it doubles with each one after it.
const WAIT_MIN: Duration = Duration::from_millis(750);

/// Longest wait if the server does not ask for one.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// Longest wait that a server can ask for. A longer one is reported to the user, who can decide
/// whether to wait.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// The answer of an attempt, and whether it produced deltas.
type Attempt = (Result<ModelReply, ModelError>, bool);

/// A model with retries.
pub(crate) struct RetryingModel {
    inner: Arc<dyn ChatModel>,
    /// No attempt begins later than this after the first, because the time limit of an answer
    /// applies to all of its attempts.
    time_max: Duration,
    /// Whether a temperature was refused once. It is then never sent again.
    refuses_temperature: AtomicBool,
}

impl RetryingModel {
    /// Wraps a model in retries.
    pub(crate) fn new(inner: Arc<dyn ChatModel>, time_max: Duration) -> Self {
        Self { inner, time_max, refuses_temperature: AtomicBool::new(false) }
    }

    async fn generate_with_retries(
        &self,
        request: ModelRequest<'_>,
        on_delta: &mut (dyn FnMut(ReplyDelta) + Send),
    ) -> Result<ModelReply, ModelError> {
        let begun = Instant::now();
        let mut attempt = 1;
        loop {
            let (answer, has_spoken) = self.generate_with_wish(request, on_delta).await;
            let error = match answer {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            let wait = next_wait(&error, attempt, begun, self.time_max);
            let wait = wait.filter(|_| !has_spoken);
            let Some(wait) = wait else { return Err(error) };
            attempt += 1;
            on_delta(ReplyDelta::Retry { attempt, wait, reason: error.to_string() });
            tokio::time::sleep(wait).await;
        }
    }

    /// Requests an answer, and once more without a temperature if that is refused.
    async fn generate_with_wish(
        &self,
        request: ModelRequest<'_>,
        on_delta: &mut (dyn FnMut(ReplyDelta) + Send),
    ) -> Attempt {
        let is_refused = self.refuses_temperature.load(Ordering::Relaxed);
        let temperature = request.temperature.filter(|_| !is_refused);
        let attempt = self.generate_once(ModelRequest { temperature, ..request }, on_delta).await;
        match &attempt {
            (Err(error), false) if temperature.is_some() && is_temperature_refused(error) => {}
            _ => return attempt,
        }
        let attempt =
            self.generate_once(ModelRequest { temperature: None, ..request }, on_delta).await;
        // Otherwise the refusal may have been of something else, such as a tool of that name.
        if attempt.0.is_ok() {
            self.refuses_temperature.store(true, Ordering::Relaxed);
        }
        attempt
    }

    async fn generate_once(
        &self,
        request: ModelRequest<'_>,
        on_delta: &mut (dyn FnMut(ReplyDelta) + Send),
    ) -> Attempt {
        let mut has_spoken = false;
        let mut pass_on = |delta| {
            // `OmittedContent` is about the request and not part of an answer.
            has_spoken |= !matches!(delta, ReplyDelta::LeftOut(_));
            on_delta(delta);
        };
        let answer = self.inner.generate(request, &mut pass_on).await;
        (answer, has_spoken)
    }
}

impl ChatModel for RetryingModel {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn price(&self) -> Option<TokenPrice> {
        self.inner.price()
    }

    fn protocol(&self) -> Option<ProviderProtocol> {
        self.inner.protocol()
    }

    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(ReplyDelta) + Send),
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(self.generate_with_retries(request, on_delta))
    }
}

/// Returns true if a provider refused the temperature of the request. The messages differ, but all
/// of them name the field.
fn is_temperature_refused(error: &ModelError) -> bool {
    match error {
        ModelError::Refused { status: 400 | 422, message, .. } => {
            message.to_ascii_lowercase().contains("temperature")
        }
        _ => false,
    }
}

/// Returns the wait before the next attempt; `None` if there is none. `attempt` is the number of
/// the failed one, from 1, and `begun` is the start of the first.
pub(crate) fn next_wait(
    error: &ModelError,
    attempt: u32,
    begun: Instant,
    time_max: Duration,
) -> Option<Duration> {
    let wait = retry_wait(error, attempt)?;
    (attempt < ATTEMPTS_MAX && begun.elapsed() + wait < time_max).then_some(wait)
}

/// Returns the wait before the request is repeated; `None` if a retry is useless or the wait too
/// long.
fn retry_wait(error: &ModelError, attempt: u32) -> Option<Duration> {
    match error {
        ModelError::RateLimited { retry_after, .. } => bounded_wait(*retry_after, attempt),
        ModelError::Refused { status, retry_after, .. } if is_temporary_status(*status) => {
            bounded_wait(*retry_after, attempt)
        }
        ModelError::Unreachable { .. } | ModelError::TimedOut { .. } => bounded_wait(None, attempt),
        ModelError::Credentials { .. }
        | ModelError::TooLong { .. }
        | ModelError::Spent { .. }
        | ModelError::Refused { .. }
        | ModelError::Broken { .. }
        | ModelError::Declined { .. }
        | ModelError::Stopped { .. }
        | ModelError::Denied { .. } => None,
    }
}

/// Uses the server's wait up to a bound. A random part is added so that clients with the same wait
/// do not all return at the same time.
fn bounded_wait(requested: Option<Duration>, attempt: u32) -> Option<Duration> {
    match requested {
        Some(requested) => {
            (requested <= RETRY_AFTER_MAX).then(|| requested + random_part(WAIT_MIN))
        }
        None => Some(backoff_wait(attempt)),
    }
}

/// Returns true for a status that may be temporary.
fn is_temporary_status(status: u16) -> bool {
    matches!(status, 408 | 409 | 425 | 500..=599)
}

/// Returns a random wait between half of the maximum and the maximum, which doubles with each
/// attempt.
fn backoff_wait(attempt: u32) -> Duration {
    let doubled = 1_u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX);
    let wait = WAIT_MIN.saturating_mul(doubled).min(WAIT_MAX);
    wait / 2 + random_part(wait / 2)
}

/// Returns a random part of a duration. The randomness comes from the keys of a new hasher.
fn random_part(most: Duration) -> Duration {
    let chance = RandomState::new().hash_one(0_u8) as f64 / u64::MAX as f64;
    most.mul_f64(chance.clamp(0.0, 1.0))
}

#[cfg(test)]
mod temperature_tests;
#[cfg(test)]
mod tests;
