//! Timeouts for each step of an exchange, on the guest's own clock, which pauses while the user is
//! asked.
//!
//! A guest may ask for shorter timeouts, never for longer ones. A timeout of zero fails
//! immediately.

use std::{sync::Arc, time::Duration};

use wasmtime_wasi_http::{Error, RequestOptions};

use crate::case::Case;

/// Longest wait for a name. A resolver tries several servers within it.
const RESOLVE_TIME_MAX: Duration = Duration::from_secs(10);

/// Longest wait for a connection, including all addresses that are tried and a proxy.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(15);

/// Longest wait for a TLS handshake.
const GREET_TIME_MAX: Duration = Duration::from_secs(10);

/// Longest wait for the head of a response, and for the next piece of its body.
const SILENCE_TIME_MAX: Duration = Duration::from_secs(60);

/// A step of an exchange that waits for another machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Looking up a name.
    Resolve,
    /// Connecting.
    Connect,
    /// The TLS handshake.
    Greet,
    /// Waiting for the head of the response.
    Head,
    /// Waiting for the next piece of its body.
    Body,
}

/// The timeouts of one exchange, including its redirects.
#[derive(Clone)]
pub(super) struct Patience {
    case: Arc<Case>,
    asked: RequestOptions,
    /// When the whole exchange must have ended, on the guest's clock.
    until: Duration,
    whole: Duration,
}

/// When a step must have ended, and the name of the host's limit. A limit that the guest set has no
/// name.
struct End {
    at: Duration,
    limit: Option<String>,
}

impl Step {
    fn time_max(self) -> Duration {
        match self {
            Self::Resolve => RESOLVE_TIME_MAX,
            Self::Connect => CONNECT_TIME_MAX,
            Self::Greet => GREET_TIME_MAX,
            Self::Head | Self::Body => SILENCE_TIME_MAX,
        }
    }

    fn what(self) -> &'static str {
        match self {
            Self::Resolve => "looking up a name",
            Self::Connect => "connecting",
            Self::Greet => "agreeing on keys",
            Self::Head | Self::Body => "waiting for a server",
        }
    }

    fn timed_out(self) -> Error {
        match self {
            Self::Resolve => Error::DnsTimeout,
            Self::Connect | Self::Greet => Error::ConnectionTimeout,
            Self::Head => Error::HttpResponseTimeout,
            Self::Body => Error::ConnectionReadTimeout,
        }
    }

    /// The timeout that the guest requested for this step, if any.
    fn asked(self, options: &RequestOptions) -> Option<Duration> {
        match self {
            Self::Connect => options.connect_timeout,
            Self::Head => options.first_byte_timeout,
            Self::Body => options.between_bytes_timeout,
            Self::Resolve | Self::Greet => None,
        }
    }
}

impl Patience {
    /// Begins an exchange.
    ///
    /// # Errors
    ///
    /// The guest requested a timeout of zero.
    pub(super) fn new(case: &Arc<Case>, asked: RequestOptions) -> Result<Self, Error> {
        let steps = [Step::Connect, Step::Head, Step::Body];
        if let Some(step) = steps.into_iter().find(|s| s.asked(&asked) == Some(Duration::ZERO)) {
            return Err(step.timed_out());
        }
        let whole = case.grant().limits().http_time;
        let until = case.clock.time().saturating_add(whole);
        Ok(Self { case: Arc::clone(case), asked, until, whole })
    }

    /// Waits for one step.
    ///
    /// # Errors
    ///
    /// The step takes too long. If the limit is the host's, it is recorded.
    pub(super) async fn wait<T>(
        &self,
        step: Step,
        work: impl Future<Output = T>,
    ) -> Result<T, Error> {
        let end = self.end(step);
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = self.case.clock.reach(end.at) => {
                if let Some(limit) = end.limit {
                    self.case.ledger.limit_reached(limit);
                }
                Err(step.timed_out())
            }
        }
    }

    fn end(&self, step: Step) -> End {
        let now = self.case.clock.time();
        let time_max = step.time_max();
        let limit = Some(format!("{time_max:?} for {}", step.what()));
        let step_end = End { at: now.saturating_add(time_max), limit };
        let limit = Some(format!("{:?} for one exchange (limits.http-time)", self.whole));
        let whole_end = End { at: self.until, limit };
        let asked = step.asked(&self.asked).map(|time| now.saturating_add(time));
        let asked_end = asked.map(|at| End { at, limit: None });
        let nearer = |a: End, b: End| if b.at < a.at { b } else { a };
        asked_end.into_iter().chain([step_end]).fold(whole_end, nearer)
    }
}
