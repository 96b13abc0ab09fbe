//! The checks that a request passes before any part of it leaves the host.

use std::{sync::Arc, time::Duration};

use sallyport_contract::{Denial, Secret};
use sallyport_policy::{Grant, NetPermit};
use url::Url;
use wasmtime_wasi_http::Error;

use super::{
    HttpGate,
    exchange::PreparedRequest,
    request_url,
    secret::{HeaderCredential, SecretScanner},
};
use crate::{authorizer::OutboundAccessKind, pending_body::PendingBody};

/// Longest wait for a guest to write a body that the user has to be asked about.
const BUFFER_TIME_MAX: Duration = Duration::from_secs(30);

/// A request that may leave.
pub(super) struct PermittedRequest {
    /// The name of the request in records.
    pub(super) what: String,
    /// The secrets that the host adds at the end.
    pub(super) credentials: Vec<HeaderCredential>,
    /// The header that signs the request in to the user's account, if it carries one.
    pub(super) account: Option<Secret>,
    /// Scans the body for secrets.
    pub(super) scanner: SecretScanner,
}

impl HttpGate {
    /// Asks the grant and the user, looks for secrets, and counts the request. A refusal is
    /// recorded.
    pub(super) async fn permit_request(
        &self,
        prepared: &PreparedRequest,
        body: &PendingBody,
    ) -> Result<PermittedRequest, Error> {
        let (method, url) = (prepared.method.as_str(), &prepared.url);
        let what = self.request_name(method, url);
        let grant = self.authorize_request(prepared, body, &what).await?;
        self.complete_permit(&grant, prepared, what).await
    }

    /// Permits a request once more. The user allowed it already, but the grant may have changed.
    pub(super) async fn permit_repetition(
        &self,
        prepared: &PreparedRequest,
    ) -> Result<PermittedRequest, Error> {
        let (method, url) = (prepared.method.as_str(), &prepared.url);
        let grant = self.run_context.current_grant();
        self.find_permit(&grant, method, url)?;
        self.complete_permit(&grant, prepared, self.request_name(method, url)).await
    }

    async fn complete_permit(
        &self,
        grant: &Grant,
        prepared: &PreparedRequest,
        what: String,
    ) -> Result<PermittedRequest, Error> {
        let url = &prepared.url;
        // Fetched before the scan, which finds a secret only once its value is known.
        let (account, credentials) = self.fetch_credentials(grant, prepared, &what).await?;
        let scanner = self.secret_scanner(grant, url);
        if let Some(name) = scanner.find_in_head(prepared) {
            return Err(self.refuse_secret(&what, url, name));
        }
        let limit = grant.limits().http_requests;
        if self.usage.count_request(limit) {
            Ok(PermittedRequest { what, credentials, account, scanner })
        } else {
            Err(self.request_limit_error(limit))
        }
    }

    /// Returns the grant that lets a request through, after the rule or the user has allowed it.
    ///
    /// The grant may change while the user is deciding. So it is asked again after each answer, and
    /// so is the user if the grant has become stricter than what they allowed.
    async fn authorize_request(
        &self,
        prepared: &PreparedRequest,
        body: &PendingBody,
        what: &str,
    ) -> Result<Arc<Grant>, Error> {
        let PreparedRequest { method, url, headers, .. } = prepared;
        let method = method.as_str();
        let (mut allowed_decision, mut has_asked_for_grant) = (None, false);
        loop {
            let grant = self.run_context.current_grant();
            let permit = match grant.check_request(method, url) {
                Ok(permit) => permit,
                Err(denial) if !has_asked_for_grant => {
                    has_asked_for_grant = true;
                    self.request_missing_grant(denial).await?;
                    continue;
                }
                Err(denial) => return Err(self.refused_request(denial)),
            };
            let decision = permit.decision();
            if allowed_decision.is_some_and(|agreed| decision <= agreed) {
                return Ok(grant);
            }
            let limit = grant.limits().http_requests;
            if !self.usage.can_ask(limit) {
                return Err(self.request_limit_error(limit));
            }
            let kind = OutboundAccessKind::Request { method, url, permit: &permit, headers, body };
            if self.run_context.would_ask_user(what, kind).await {
                self.buffer_body(body).await;
            }
            if self.run_context.authorize_access(what, kind).await.is_err() {
                self.usage.count_refusal();
                return Err(Error::HttpRequestDenied);
            }
            allowed_decision = Some(decision);
        }
    }

    /// Asks the user for the grant that a request lacks. The request is checked again after a yes.
    async fn request_missing_grant(&self, denial: Denial) -> Result<(), Error> {
        let asked = self.run_context.request_grant(denial).await;
        asked.map_err(|denial| self.refused_request(denial))
    }

    /// Records a refusal.
    fn refused_request(&self, denial: Denial) -> Error {
        self.run_context.effect_log.record_refusal(denial);
        Error::HttpRequestDenied
    }

    /// Waits for the whole body before the user is asked about it. This uses the guest's clock and
    /// does not pause it, because a suspended guest would not finish the body.
    async fn buffer_body(&self, body: &PendingBody) {
        let clock = &self.run_context.clock;
        let is_late = tokio::select! {
            biased;
            () = body.buffer_body() => false,
            () = clock.wait_until(clock.elapsed_time().saturating_add(BUFFER_TIME_MAX)) => true,
        };
        if is_late {
            body.stop_buffering().await;
        }
    }

    /// The entry of the grant that lets a request through.
    pub(super) fn find_permit<'g>(
        &self,
        grant: &'g Grant,
        method: &str,
        url: &Url,
    ) -> Result<NetPermit<'g>, Error> {
        grant.check_request(method, url).map_err(|denial| self.refused_request(denial))
    }

    /// The name of a request in records: without its query, and without secrets.
    pub(super) fn request_name(&self, method: &str, url: &Url) -> String {
        let what = request_url::describe_request(method, url);
        self.run_context.authorizer().redactor().redact_text(&what).into_owned()
    }
}
