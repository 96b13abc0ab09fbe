//! The checks that a request passes before any part of it leaves the host.

use std::{sync::Arc, time::Duration};

use sallyport_policy::{Grant, NetPermit};
use url::Url;
use wasmtime_wasi_http::Error;

use super::{
    HttpGate, address,
    exchange::Sending,
    pending::PendingBody,
    secret::{Credential, Watch},
};
use crate::warden::AccessKind;

/// Longest wait for a guest to write a body that the user has to be asked about.
const HOLD_TIME_MAX: Duration = Duration::from_secs(30);

/// A request that may leave.
pub(super) struct Passed {
    /// The name of the request in records.
    pub(super) what: String,
    /// The secrets that the host adds at the end.
    pub(super) credentials: Vec<Credential>,
    /// Scans the body for secrets.
    pub(super) watch: Watch,
}

impl HttpGate {
    /// Asks the grant and the user, looks for secrets, and counts the request. A refusal is
    /// recorded.
    pub(super) async fn pass(
        &self,
        sending: &Sending,
        body: &PendingBody,
    ) -> Result<Passed, Error> {
        let (method, url) = (sending.method.as_str(), &sending.url);
        let what = self.name(method, url);
        let grant = self.agreed(sending, body, &what).await?;
        // Fetched before the scan, which finds a secret only once its value is known.
        let credentials = self.credentials(&grant, sending, &what).await?;
        let watch = self.watch(&grant, url);
        if let Some(name) = watch.finds_in_head(sending) {
            return Err(self.carries_secret(&what, url, name));
        }
        let limit = grant.limits().http_requests;
        if self.account.take_request(limit) {
            Ok(Passed { what, credentials, watch })
        } else {
            Err(self.too_many(limit))
        }
    }

    /// Returns the grant that lets a request through, after the rule or the user has allowed it.
    ///
    /// The grant may change while the user is deciding. So it is asked again after each answer, and
    /// so is the user if the grant has become stricter than what they allowed.
    async fn agreed(
        &self,
        sending: &Sending,
        body: &PendingBody,
        what: &str,
    ) -> Result<Arc<Grant>, Error> {
        let Sending { method, url, headers, .. } = sending;
        let method = method.as_str();
        let mut agreed_to = None;
        loop {
            let grant = self.case.grant();
            let permit = self.permit(&grant, method, url)?;
            let decision = permit.decision();
            if agreed_to.is_some_and(|agreed| decision <= agreed) {
                return Ok(grant);
            }
            let limit = grant.limits().http_requests;
            if !self.account.may_ask(limit) {
                return Err(self.too_many(limit));
            }
            let kind = AccessKind::Request { method, url, permit: &permit, headers, body };
            if self.case.asks(what, &kind) {
                self.hold(body).await;
            }
            if self.case.agree(what, kind).await.is_err() {
                self.account.add_refusal();
                return Err(Error::HttpRequestDenied);
            }
            agreed_to = Some(decision);
        }
    }

    /// Waits for the whole body before the user is asked about it. This uses the guest's clock and
    /// does not pause it, because a suspended guest would not finish the body.
    async fn hold(&self, body: &PendingBody) {
        let clock = &self.case.clock;
        let is_late = tokio::select! {
            biased;
            () = body.hold() => false,
            () = clock.reach(clock.time().saturating_add(HOLD_TIME_MAX)) => true,
        };
        if is_late {
            body.give_up().await;
        }
    }

    /// The entry of the grant that lets a request through.
    pub(super) fn permit<'g>(
        &self,
        grant: &'g Grant,
        method: &str,
        url: &Url,
    ) -> Result<NetPermit<'g>, Error> {
        grant.check_request(method, url).map_err(|denial| {
            self.case.ledger.refused(denial);
            Error::HttpRequestDenied
        })
    }

    /// The name of a request in records: without its query, and without secrets.
    pub(super) fn name(&self, method: &str, url: &Url) -> String {
        let what = address::describe(method, url);
        self.case.warden().redactor().redact_text(&what).into_owned()
    }
}
