//! Timeouts for each step of an exchange, on the guest's own clock, which pauses while the user is
//! asked.
//!
//! A guest may ask for shorter timeouts, never for longer ones. A timeout of zero fails
//! immediately.

use std::{sync::Arc, time::Duration};

use wasmtime_wasi_http::{Error, RequestOptions};

use crate::run_context::RunContext;

/// Longest wait for a name. A resolver tries several servers within it.
const RESOLVE_TIME_MAX: Duration = Duration::from_secs(10);

/// Longest wait for a connection, including all addresses that are tried and a proxy.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(15);

/// Longest wait for a TLS handshake.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);

/// Longest wait for the head of a response, and for the next piece of its body.
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

/// The timeouts of one exchange, including its redirects.
#[derive(Clone)]
pub(super) struct ExchangeTimeouts {
    run_context: Arc<RunContext>,
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
        Ok(Self {
            run_context: Arc::clone(run_context),
            requested,
            exchange_deadline,
            exchange_time_max,
        })
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
        let end = self.step_deadline(step);
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = self.run_context.clock.wait_until(end.at) => {
                if let Some(limit) = end.limit {
                    self.run_context.effect_log.record_limit(limit);
                }
                Err(step.timeout_error())
            }
        }
    }

    fn step_deadline(&self, step: ExchangeStep) -> StepDeadline {
        let now = self.run_context.clock.elapsed_time();
        let time_max = step.time_max();
        let limit = Some(format!("{time_max:?} for {}", step.description()));
        let step_end = StepDeadline { at: now.saturating_add(time_max), limit };
        let limit =
            Some(format!("{:?} for one exchange (limits.http-time)", self.exchange_time_max));
        let exchange_end = StepDeadline { at: self.exchange_deadline, limit };
        let requested =
            step.requested_timeout(&self.requested).map(|time| now.saturating_add(time));
        let requested_end = requested.map(|at| StepDeadline { at, limit: None });
        let nearer = |a: StepDeadline, b: StepDeadline| if b.at < a.at { b } else { a };
        requested_end.into_iter().chain([step_end]).fold(exchange_end, nearer)
    }
}
