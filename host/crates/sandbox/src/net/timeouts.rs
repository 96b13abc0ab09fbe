//! Timeouts for each step of an exchange, on the guest's own clock, which pauses while the user is
//! asked.
//!
//! A guest may ask for shorter timeouts, never for longer ones. A timeout of zero fails
//! immediately.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use wasmtime_wasi_http::{Error, RequestOptions};

use crate::run_context::RunContext;

/// Longest wait for a name. A resolver tries several servers within it.
const RESOLVE_TIME_MAX: Duration = Duration::from_secs(10);

/// Longest wait for a connection, including all addresses that are tried and a proxy.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(15);

/// Longest wait for a TLS handshake.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);

/// Longest wait for the head of a response after the last piece of the request's body, and for the
/// next piece of the response's body.
const READ_TIME_MAX: Duration = Duration::from_secs(60);

/// A step of an exchange that waits for another machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExchangeStep {
    /// Looking up a name.
    Resolve,
    /// Connecting.
    Connect,
    /// The TLS handshake.
    TlsHandshake,
    /// Waiting for the head of the response.
    Head,
    /// Waiting for the next piece of its body.
    Body,
}

/// When a step last got on, on the guest's clock. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct StepActivity(Arc<AtomicU64>);

/// The timeouts of one exchange, including its redirects.
#[derive(Clone)]
pub(super) struct ExchangeTimeouts {
    run_context: Arc<RunContext>,
    time_limits: ExchangeTimeLimits,
}

/// The limits of one exchange.
#[derive(Debug, Clone)]
struct ExchangeTimeLimits {
    requested: RequestOptions,
    /// When the whole exchange must have ended, on the guest's clock.
    exchange_deadline: Duration,
    exchange_time_max: Duration,
}

/// When a step must have ended, and the name of the host's limit. A limit that the guest set has no
/// name.
struct StepDeadline {
    at: Duration,
    limit: Option<String>,
}

impl ExchangeStep {
    fn time_max(self) -> Duration {
        match self {
            Self::Resolve => RESOLVE_TIME_MAX,
            Self::Connect => CONNECT_TIME_MAX,
            Self::TlsHandshake => HANDSHAKE_TIME_MAX,
            Self::Head | Self::Body => READ_TIME_MAX,
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::Resolve => "looking up a name",
            Self::Connect => "connecting",
            Self::TlsHandshake => "agreeing on keys",
            Self::Head | Self::Body => "waiting for a server",
        }
    }

    fn timeout_error(self) -> Error {
        match self {
            Self::Resolve => Error::DnsTimeout,
            Self::Connect | Self::TlsHandshake => Error::ConnectionTimeout,
            Self::Head => Error::HttpResponseTimeout,
            Self::Body => Error::ConnectionReadTimeout,
        }
    }

    /// The timeout that the guest requested for this step, if any.
    fn requested_timeout(self, options: &RequestOptions) -> Option<Duration> {
        match self {
            Self::Connect => options.connect_timeout,
            Self::Head => options.first_byte_timeout,
            Self::Body => options.between_bytes_timeout,
            Self::Resolve | Self::TlsHandshake => None,
        }
    }
}

impl ExchangeTimeouts {
    /// Begins an exchange.
    ///
    /// # Errors
    ///
    /// The guest requested a timeout of zero.
    pub(super) fn new(
        run_context: &Arc<RunContext>,
        requested: RequestOptions,
    ) -> Result<Self, Error> {
        let steps = [ExchangeStep::Connect, ExchangeStep::Head, ExchangeStep::Body];
        if let Some(step) =
            steps.into_iter().find(|s| s.requested_timeout(&requested) == Some(Duration::ZERO))
        {
            return Err(step.timeout_error());
        }
        let exchange_time_max = run_context.current_grant().limits().http_time;
        let exchange_deadline = run_context.clock.elapsed_time().saturating_add(exchange_time_max);
        let time_limits = ExchangeTimeLimits { requested, exchange_deadline, exchange_time_max };
        Ok(Self { run_context: Arc::clone(run_context), time_limits })
    }

    /// Waits for one step.
    ///
    /// # Errors
    ///
    /// The step takes too long. If the limit is the host's, it is recorded.
    pub(super) async fn wait_for_step<T>(
        &self,
        step: ExchangeStep,
        work: impl Future<Output = T>,
    ) -> Result<T, Error> {
        self.wait_for_active_step(step, &StepActivity::default(), work).await
    }

    /// Waits for one step. The host's limit for this step begins anew with each activity; those of
    /// the exchange and of the guest do not.
    ///
    /// # Errors
    ///
    /// The step takes too long. If the limit is the host's, it is recorded.
    pub(super) async fn wait_for_active_step<T>(
        &self,
        step: ExchangeStep,
        activity: &StepActivity,
        work: impl Future<Output = T>,
    ) -> Result<T, Error> {
        let clock = &self.run_context.clock;
        let begun = clock.elapsed_time();
        let deadline = || {
            let active_at = activity.last_time().max(begun);
            self.time_limits.step_deadline(step, begun, active_at)
        };
        let mut work = pin!(work);
        loop {
            let at = deadline().at;
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                () = clock.wait_until(at) => {}
            }
            let end = deadline();
            if end.at <= clock.elapsed_time() {
                if let Some(limit) = end.limit {
                    self.run_context.effect_log.record_limit(limit);
                }
                return Err(step.timeout_error());
            }
        }
    }
}

impl StepActivity {
    /// Records that the step gets on at this time of the guest's clock.
    pub(super) fn record(&self, now: Duration) {
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        self.0.fetch_max(now, Ordering::Relaxed);
    }

    fn last_time(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}

impl ExchangeTimeLimits {
    /// The first deadline of a step that began and was last active at these times.
    fn step_deadline(
        &self,
        step: ExchangeStep,
        begun: Duration,
        active_at: Duration,
    ) -> StepDeadline {
        let time_max = step.time_max();
        let limit = Some(format!("{time_max:?} for {}", step.description()));
        let step_end = StepDeadline { at: active_at.saturating_add(time_max), limit };
        let limit =
            Some(format!("{:?} for one exchange (limits.http-time)", self.exchange_time_max));
        let exchange_end = StepDeadline { at: self.exchange_deadline, limit };
        let requested =
            step.requested_timeout(&self.requested).map(|time| begun.saturating_add(time));
        let requested_end = requested.map(|at| StepDeadline { at, limit: None });
        let nearer = |a: StepDeadline, b: StepDeadline| if b.at < a.at { b } else { a };
        requested_end.into_iter().chain([step_end]).fold(exchange_end, nearer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn deadline(first_byte_timeout: Option<Duration>, active_secs: u64) -> StepDeadline {
        let limits = ExchangeTimeLimits {
            requested: RequestOptions { first_byte_timeout, ..RequestOptions::default() },
            exchange_deadline: HOUR,
            exchange_time_max: HOUR,
        };
        let begun = Duration::from_secs(10);
        limits.step_deadline(ExchangeStep::Head, begun, Duration::from_secs(active_secs))
    }

    #[test]
    fn an_upload_of_more_than_a_minute_does_not_end_the_wait_for_the_head() {
        assert_eq!(deadline(None, 10).at, Duration::from_secs(70));
        let end = deadline(None, 100);
        assert_eq!(end.at, Duration::from_secs(160));
        assert_eq!(end.limit.as_deref(), Some("60s for waiting for a server"));
        let end = deadline(None, 3590);
        assert_eq!(end.at, HOUR, "the exchange has its own limit");
        assert!(end.limit.unwrap().contains("limits.http-time"));
        let end = deadline(Some(Duration::from_secs(20)), 100);
        assert_eq!(end.at, Duration::from_secs(30), "the guest's own timeout stays as it is");
        assert_eq!(end.limit, None);
    }

    #[test]
    fn the_last_activity_counts() {
        let activity = StepActivity::default();
        assert_eq!(activity.last_time(), Duration::ZERO);
        activity.clone().record(Duration::from_secs(5));
        activity.record(Duration::from_secs(4));
        assert_eq!(activity.last_time(), Duration::from_secs(5));
    }
}
