//! Requests that the host sends for a plugin whose actions are data, not code.
//!
//! They take the way of every guest's request: the same grant, questions, secrets, limits and
//! records. Only the guest is missing.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header::USER_AGENT};
use http_body_util::{BodyExt, Full};
use sallyport_contract::{AdmittedCall, CallFailure, CallReport, FailureKind, Outcome};
use url::Url;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

use crate::{
    Sandbox,
    authorizer::HostCallAuthorizer,
    net::{HttpGate, HttpUsage},
    role_links::RoleLinks,
    run_context::{RunContext, RunGuard},
};

/// The name with which the host sends requests.
const PROGRAM_NAME: &str = concat!("sallyport/", env!("CARGO_PKG_VERSION"));

/// A request of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionRequest {
    /// The method.
    pub method: String,
    /// The address.
    pub url: Url,
    /// Names and values of headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// The answer to a request of an action, without secrets.
#[derive(Debug, Clone)]
pub struct ActionAnswer {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, decoded.
    pub body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ActionRequestError {
    /// The time of the call is over.
    #[error("the time limit of the call was reached")]
    TimedOut,
    /// The request is refused, or the exchange failed. The report has the refusal.
    #[error("{0}")]
    Failed(String),
}

/// A run of an action on behalf of a call.
pub struct ActionRun {
    gate: HttpGate,
    run_context: RunGuard,
}

impl Sandbox {
    /// Begins a run of an action on behalf of a call that has passed the gate.
    pub fn begin_action(
        &self,
        authorizer: Arc<dyn HostCallAuthorizer>,
        call: Arc<AdmittedCall>,
    ) -> ActionRun {
        let links = RoleLinks::default();
        let run_context = RunContext::for_call(authorizer, call, links, Duration::MAX);
        let gate = HttpGate {
            run_context: Arc::clone(&run_context),
            resolver: Arc::clone(&self.resolver),
            tls: Arc::clone(&self.tls),
            usage: Arc::new(HttpUsage::default()),
            simulated_network: self.simulation.network.clone(),
        };
        ActionRun { gate, run_context: RunGuard::new(run_context) }
    }
}

impl ActionRun {
    /// Sends a request, and waits for its whole answer.
    ///
    /// # Errors
    ///
    /// The request is refused, the exchange failed, or the time of the call is over.
    pub async fn send(&self, request: &ActionRequest) -> Result<ActionAnswer, ActionRequestError> {
        let request = build_request(request)
            .ok_or_else(|| ActionRequestError::Failed("the request cannot be sent".to_owned()))?;
        tokio::select! {
            biased;
            () = self.run_context.clock.wait_for_wall_time_limit() => {
                Err(ActionRequestError::TimedOut)
            }
            answer = self.exchange(request) => {
                answer.map_err(|error| ActionRequestError::Failed(error.to_string()))
            }
        }
    }

    async fn exchange(&self, request: Request<WasiBody>) -> Result<ActionAnswer, Error> {
        let (response, connection) =
            self.gate.send_while_open(request, RequestOptions::default()).await?;
        let (head, body) = response.into_parts();
        let body = body.collect().await?.to_bytes().to_vec();
        drop(connection);
        Ok(ActionAnswer { status: head.status.as_u16(), headers: head.headers, body })
    }

    /// Ends the run. A failure after a refusal is reported as the refusal, and one at a limit names
    /// the limit.
    pub fn finish(self, outcome: Outcome) -> CallReport {
        let effect_log = &self.run_context.effect_log;
        let outcome = match (outcome, effect_log.last_denial(), effect_log.reached_limit()) {
            (Outcome::Failed(_), Some(denial), _) => Outcome::Denied(denial),
            (Outcome::Failed(failure), None, Some(limit)) => {
                let message = format!("{} (the limit of {limit} is reached)", failure.message);
                Outcome::Failed(CallFailure::new(FailureKind::LimitReached, message))
            }
            (outcome, ..) => outcome,
        };
        CallReport { effects: effect_log.close(), ..CallReport::from(outcome) }
    }

    /// The time limit of the run.
    pub fn time_limit(&self) -> Duration {
        self.run_context.clock.wall_time_limit()
    }
}

impl Drop for ActionRun {
    fn drop(&mut self) {
        self.gate.usage.close();
    }
}

/// The request in the form of the gate; `None` if a part of it has no such form.
fn build_request(request: &ActionRequest) -> Option<Request<WasiBody>> {
    let body = Full::new(Bytes::from(request.body.clone()));
    let mut built = Request::new(body.map_err(|never| match never {}).boxed_unsync());
    *built.method_mut() = Method::from_bytes(request.method.as_bytes()).ok()?;
    *built.uri_mut() = request.url.as_str().parse::<Uri>().ok()?;
    // Some services refuse requests of a program without a name.
    built.headers_mut().insert(USER_AGENT, HeaderValue::from_static(PROGRAM_NAME));
    for (name, value) in &request.headers {
        let name = HeaderName::try_from(name).ok()?;
        built.headers_mut().append(name, HeaderValue::try_from(value).ok()?);
    }
    Some(built)
}
