//! The host's side of a running plugin: what the sandbox asks for while a guest runs.
//!
//! A guest is not given its powers once: each host call asks anew, so that a changed policy takes
//! effect at the next one, and so that a person can be asked at the moment a plugin reaches out.

use std::sync::Arc;

use sallyport_contract::{Admitted, BoxFuture, Decision, Denial, Redactor, Secret};
use sallyport_policy::{Grant, NetPermit, Proxy};
use url::Url;

/// A request that the grant lets through, before anything of it leaves the host.
pub struct NetAccess<'a> {
    /// The call that makes it.
    pub call: &'a Admitted,
    /// Its method.
    pub method: &'a str,
    /// Its URL, rebuilt from its parts.
    pub url: &'a Url,
    /// Both as records name them: the URL without its query.
    pub what: &'a str,
    /// The entry of the grant that lets it through.
    pub permit: &'a NetPermit<'a>,
}

/// Watches over one plugin. What it answers may change from one host call to the next.
pub trait Warden: Send + Sync {
    /// What the plugin may do at this moment.
    fn grant(&self) -> Arc<Grant>;

    /// Agrees to a request, perhaps after asking a person; the words of the person's answer come
    /// back when there was a question. The guest is suspended meanwhile and its clock stands still.
    fn agree<'a>(&'a self, access: NetAccess<'a>) -> BoxFuture<'a, Result<Option<String>, Denial>>;

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

    fn agree<'a>(&'a self, access: NetAccess<'a>) -> BoxFuture<'a, Result<Option<String>, Denial>> {
        let answer = match access.permit.decision() {
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

    fn proxy(&self) -> Option<Arc<Proxy>> {
        None
    }
}
