//! The host's side of a running plugin: what the sandbox asks for while a guest runs.
//!
//! A guest is not given its powers once: each host call asks anew, so that a changed policy takes
//! effect at the next one, and so that a person can be asked at the moment a plugin reaches out.

use std::sync::Arc;

use http::HeaderMap;
use sallyport_contract::{Admitted, BoxFuture, Decision, Denial, Redactor, Secret, Services};
use sallyport_policy::{Grant, NetPermit, Proxy};
use url::Url;

use crate::net::PendingBody;

/// Something that reaches outside and that the grant lets through, before it happens.
pub struct Access<'a> {
    /// The call that wants it.
    pub call: &'a Admitted,
    /// What it is, as records name it: a method or a word, and the URL without its query.
    pub what: &'a str,
    /// What it is.
    pub kind: AccessKind<'a>,
}

/// What reaches outside.
#[derive(Clone, Copy)]
pub enum AccessKind<'a> {
    /// A request.
    Request {
        /// Its method.
        method: &'a str,
        /// Its URL, rebuilt from its parts.
        url: &'a Url,
        /// The entry of the grant that lets it through.
        permit: &'a NetPermit<'a>,
        /// The headers that the guest has set.
        headers: &'a HeaderMap,
        /// The body, which the guest may still be writing.
        body: &'a PendingBody,
    },
    /// A page that is to be opened in the user's browser.
    OpenUrl {
        /// Its address.
        url: &'a Url,
    },
}

impl Access<'_> {
    /// The address that it goes to.
    pub fn url(&self) -> &Url {
        match self.kind {
            AccessKind::Request { url, .. } | AccessKind::OpenUrl { url } => url,
        }
    }
}

/// Watches over one plugin. What it answers may change from one host call to the next.
pub trait Warden: Send + Sync {
    /// What the plugin may do at this moment.
    fn grant(&self) -> Arc<Grant>;

    /// Whether [`agree`](Self::agree) would ask a person about an access, as things are. Then the body of a
    /// request is waited for before, while the guest goes on.
    fn asks(&self, _access: &Access<'_>) -> bool {
        false
    }

    /// Agrees to an access, perhaps after asking a person; the words of the person's answer come
    /// back when there was a question. The guest is suspended meanwhile and its clock stands still.
    fn agree<'a>(&'a self, access: Access<'a>) -> BoxFuture<'a, Result<Option<String>, Denial>>;

    /// Looks up a secret that the grant names.
    ///
    /// # Errors
    ///
    /// Why it cannot be had, in words that a model may read: nothing of the secret, no path of the
    /// host.
    fn secret(&self, name: &str) -> Result<Secret, String>;

    /// Looks up a variable of the environment that the grant names.
    fn variable(&self, name: &str) -> Option<String>;

    /// What takes every known secret out of a text.
    fn redactor(&self) -> Arc<Redactor>;

    /// What the plugin may keep, plan and say beyond a call, as far as the host has it.
    fn services(&self) -> Services;

    /// Whose things the plugin keeps when a call does not say on whose behalf it is made.
    fn user(&self) -> &str;

    /// The proxies that requests go through, when the policy names any.
    fn proxy(&self) -> Option<Arc<Proxy>>;
}

/// A warden whose answers never change and who has nobody to ask: for components that are looked at
/// before any policy is known, and for measuring. It agrees to what needs no question.
pub struct Unattended(Arc<Grant>);

impl Unattended {
    /// Holds one grant for good.
    pub fn new(grant: Arc<Grant>) -> Self {
        Self(grant)
    }
}

impl Warden for Unattended {
    fn grant(&self) -> Arc<Grant> {
        Arc::clone(&self.0)
    }

    fn agree<'a>(&'a self, access: Access<'a>) -> BoxFuture<'a, Result<Option<String>, Denial>> {
        let decision = match access.kind {
            AccessKind::Request { permit, .. } => permit.decision(),
            AccessKind::OpenUrl { url } => {
                let check = self.0.open_url().map(|pages| pages.check(url));
                check.and_then(Result::ok).unwrap_or(Decision::Deny)
            }
        };
        let answer = match decision {
            Decision::Allow => Ok(None),
            Decision::Ask | Decision::Deny => Err(Denial {
                what: format!("{} may not {}", self.0.plugin(), access.what),
                why: "nobody is there to ask".to_owned(),
                fix: None,
                nobody_to_ask: true,
            }),
        };
        Box::pin(std::future::ready(answer))
    }

    fn secret(&self, name: &str) -> Result<Secret, String> {
        Err(format!("there is no secret {name} here"))
    }

    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    fn redactor(&self) -> Arc<Redactor> {
        Arc::new(Redactor::none())
    }

    fn services(&self) -> Services {
        Services::default()
    }

    fn user(&self) -> &str {
        "nobody"
    }

    fn proxy(&self) -> Option<Arc<Proxy>> {
        None
    }
}
