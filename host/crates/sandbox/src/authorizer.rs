//! The host's side of a running plugin: what the sandbox asks for while a guest runs.
//!
//! A guest does not receive its powers once. Each host call asks again, so that a changed policy
//! takes effect at the next call and the user can be asked at the moment of an access.

use std::sync::{Arc, Mutex};

use http::HeaderMap;
use sallyport_contract::{
    AdmittedCall, BoxFuture, Decision, Denial, Effect, Redactor, Secret, Services, UserAnswer,
};
use sallyport_policy::{Grant, NetPermit, ProxyTable, edit::GrantAddition};
use url::Url;

use crate::{mutex::lock_mutex, pending_body::PendingBody};

/// An access to the outside that the grant lets through, before it happens.
pub struct OutboundAccess<'a> {
    /// The call that requests it.
    pub call: &'a AdmittedCall,
    /// The name of the access in records: a method or a verb, and the URL without its query.
    pub what: &'a str,
    /// The kind of access.
    pub kind: OutboundAccessKind<'a>,
    /// What the user has granted to the run.
    pub run_grants: &'a RunGrants,
}

/// The kind of an access to the outside.
#[derive(Clone, Copy)]
pub enum OutboundAccessKind<'a> {
    /// An HTTP request.
    Request {
        /// The method.
        method: &'a str,
        /// The URL, rebuilt from its parts.
        url: &'a Url,
        /// The entry of the grant that lets it through.
        permit: &'a NetPermit<'a>,
        /// The headers that the guest has set.
        headers: &'a HeaderMap,
        /// The body, which the guest may still be writing.
        body: &'a PendingBody,
    },
    /// A page for the user's browser.
    Page {
        /// The address of the page.
        url: &'a Url,
        /// The decision of the grant's entry that lets it through.
        decision: Decision,
    },
}

impl OutboundAccess<'_> {
    /// The address of the access.
    pub fn url(&self) -> &Url {
        match self.kind {
            OutboundAccessKind::Request { url, .. } | OutboundAccessKind::Page { url, .. } => url,
        }
    }
}

/// What the user has granted to one run only. It ends with the run.
#[derive(Debug, Default)]
pub struct RunGrants(Mutex<Vec<GrantAddition>>);

impl RunGrants {
    /// The grants that the user gave to a call before it ran.
    pub fn of_call(call: &AdmittedCall) -> Self {
        let grants = match call.grant_answer() {
            Some(Effect::GrantAnswered { answer: UserAnswer::Once, grants, .. }) => &grants[..],
            _ => &[],
        };
        let additions = grants.iter().map(|grant| format!("{}={}", grant.key, grant.entry));
        Self(Mutex::new(additions.filter_map(|text| text.parse().ok()).collect()))
    }

    /// The grants.
    pub fn additions(&self) -> Vec<GrantAddition> {
        lock_mutex(&self.0).clone()
    }

    /// Adds grants that the user gave.
    pub fn add(&self, additions: &[GrantAddition]) {
        let mut held = lock_mutex(&self.0);
        let new = additions.iter().filter(|addition| !held.contains(addition)).cloned();
        let new: Vec<_> = new.collect();
        held.extend(new);
    }
}

/// What came of a refusal that a grant could lift.
#[derive(Debug)]
pub struct GrantOutcome {
    /// The question and its answer, if the user was asked and answered.
    pub effect: Option<Effect>,
    /// Whether the host call may be checked again; otherwise its refusal.
    pub result: Result<(), Denial>,
}

impl GrantOutcome {
    /// The refusal holds.
    pub fn refused(denial: Denial) -> Self {
        Self { effect: None, result: Err(denial) }
    }

    /// The refusal was lifted without a question: another call asked meanwhile.
    pub fn lifted() -> Self {
        Self { effect: None, result: Ok(()) }
    }

    /// The user gave a grant.
    pub fn granted(effect: Effect) -> Self {
        Self { effect: Some(effect), result: Ok(()) }
    }
}

/// The header that signs a request in to an account.
#[derive(Debug, Clone)]
pub struct AccountCredential {
    /// The name of the credential in records.
    pub name: String,
    /// The name of the header, in lower case.
    pub header: &'static str,
    /// Its value.
    pub value: Secret,
}

/// Decides what one plugin may do. The answers may change from one host call to the next.
pub trait HostCallAuthorizer: Send + Sync {
    /// The current grant, as the policy gives it.
    fn current_grant(&self) -> Arc<Grant>;

    /// The current grant of a run: with what the user has granted to it and to its session.
    fn run_grant(&self, _call: &AdmittedCall, _run_grants: &RunGrants) -> Arc<Grant> {
        self.current_grant()
    }

    /// Asks the user for the grant that a refusal names, if a grant can lift it and a user can
    /// answer. The guest's clock is paused in the meantime.
    fn request_grant<'a>(
        &'a self,
        _call: &'a AdmittedCall,
        _run_grants: &'a RunGrants,
        denial: Denial,
    ) -> BoxFuture<'a, GrantOutcome> {
        Box::pin(std::future::ready(GrantOutcome::refused(denial)))
    }

    /// Whether [`authorize_access`](Self::authorize_access) would currently ask the user about an
    /// access. If so, the body of a request is collected first, while the guest keeps running.
    fn would_ask_user<'a>(&'a self, _access: OutboundAccess<'a>) -> BoxFuture<'a, bool> {
        Box::pin(std::future::ready(false))
    }

    /// Authorises an access, which may ask the user. Returns the user's answer if there was a
    /// question. The guest's clock is paused in the meantime.
    fn authorize_access<'a>(
        &'a self,
        access: OutboundAccess<'a>,
    ) -> BoxFuture<'a, Result<Option<String>, Denial>>;

    /// Looks up a secret that the grant names.
    ///
    /// # Errors
    ///
    /// The secret is not available. The model may read the message, so it contains no part of the
    /// secret and no path of the host.
    fn look_up_secret(&self, name: &str) -> Result<Secret, String>;

    /// The header that signs a request of the call in to the account of its user, if the plugin has
    /// such accounts and the request may carry it. The request has passed every other check.
    ///
    /// # Errors
    ///
    /// The user has no account that can be used now. The model may read the message.
    fn account_credential<'a>(
        &'a self,
        _call: &'a AdmittedCall,
        _url: &'a Url,
    ) -> BoxFuture<'a, Result<Option<AccountCredential>, String>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Renews the account of the call's user after a service refused the header `refused`. Returns
    /// whether [`account_credential`](Self::account_credential) has another one now.
    fn renew_account<'a>(
        &'a self,
        _call: &'a AdmittedCall,
        _refused: &'a Secret,
    ) -> BoxFuture<'a, bool> {
        Box::pin(std::future::ready(false))
    }

    /// Marks the account of the call's user as expired, because the renewed header is refused too.
    fn expire_account<'a>(&'a self, _call: &'a AdmittedCall) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Looks up an environment variable that the grant names.
    fn environment_variable(&self, name: &str) -> Option<String>;

    /// The redactor, which removes every known secret from a text.
    fn redactor(&self) -> Arc<Redactor>;

    /// The services that the host offers to plugins.
    fn services(&self) -> Services;

    /// The user whose data the plugin stores if a call does not name one.
    fn default_user(&self) -> &str;

    /// The proxies for requests, if the policy names any.
    fn proxy_settings(&self) -> Option<Arc<ProxyTable>>;
}

/// An authorizer with fixed answers and no user to ask, for components that are inspected before a
/// policy is known, and for benchmarks. It allows accesses that need no question.
pub struct FixedGrantAuthorizer(Arc<Grant>);

impl FixedGrantAuthorizer {
    /// Creates an authorizer with one fixed grant.
    pub fn new(grant: Arc<Grant>) -> Self {
        Self(grant)
    }
}

impl HostCallAuthorizer for FixedGrantAuthorizer {
    fn current_grant(&self) -> Arc<Grant> {
        Arc::clone(&self.0)
    }

    fn authorize_access<'a>(
        &'a self,
        access: OutboundAccess<'a>,
    ) -> BoxFuture<'a, Result<Option<String>, Denial>> {
        let decision = match access.kind {
            OutboundAccessKind::Request { permit, .. } => permit.decision(),
            OutboundAccessKind::Page { decision, .. } => decision,
        };
        let answer = match decision {
            Decision::Allow => Ok(None),
            Decision::Ask | Decision::Deny => Err(Denial {
                nobody_to_ask: true,
                ..Denial::new(
                    format!("{} may not {}", self.0.plugin(), access.what),
                    "no user is connected",
                )
            }),
        };
        Box::pin(std::future::ready(answer))
    }

    fn look_up_secret(&self, name: &str) -> Result<Secret, String> {
        Err(format!("there is no secret {name} here"))
    }

    fn environment_variable(&self, _name: &str) -> Option<String> {
        None
    }

    fn redactor(&self) -> Arc<Redactor> {
        Arc::new(Redactor::empty())
    }

    fn services(&self) -> Services {
        Services::default()
    }

    fn default_user(&self) -> &str {
        "nobody"
    }

    fn proxy_settings(&self) -> Option<Arc<ProxyTable>> {
        None
    }
}
