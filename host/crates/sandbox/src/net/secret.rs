//! Secrets on their way out: the ones that the policy sends along, and the ones that must not leave.
//!
//! A secret that a plugin's policy sends to an origin is put into its header by the host, after all
//! checks, and no guest ever sees it. Any other request that carries a secret, in whatever part of it
//! and in any form that the [`Redactor`] knows, stops here.

use std::{borrow::Cow, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode;
use sallyport_contract::{Denial, Effect, Redactor, redact::ScanStream};
use sallyport_policy::{Grant, Injection, SecretGrant, SecretWay};
use url::Url;
use wasmtime_wasi_http::Error;

use super::HttpGate;
use crate::ledger::Ledger;

/// How often an escaped text is undone to look for a secret behind it: a URL within a URL within a
/// URL.
const DECODED_TIMES_MAX: usize = 3;

/// A secret in the header that carries it.
pub(super) struct Credential {
    pub(super) name: String,
    pub(super) origin: String,
    pub(super) header: HeaderName,
    pub(super) value: HeaderValue,
}

/// Looks for secrets in what leaves for one origin.
pub(super) struct Watch {
    redactor: Arc<Redactor>,
    /// Secrets that this origin is sent anyway.
    own: Vec<String>,
}

impl Credential {
    /// Writes down that it is used.
    pub(super) fn note(&self, ledger: &Ledger) {
        let (name, to) = (self.name.clone(), Some(self.origin.clone()));
        ledger.note(Effect::SecretUsed { name, to });
    }
}

impl HttpGate {
    /// Fetches what the policy sends along with a request.
    ///
    /// # Errors
    ///
    /// A secret cannot be had; then the request is not sent without it.
    pub(super) async fn credentials(
        &self,
        grant: &Grant,
        url: &Url,
        what: &str,
    ) -> Result<Vec<Credential>, Error> {
        let mut credentials = Vec::new();
        for (entry, injection) in injections(grant, url) {
            let found = self.case.secret(entry.name.as_str()).await;
            let credential = found.and_then(|secret| {
                let value = injection.header_value(secret.expose());
                credential(entry, injection, value)
            });
            credentials.push(credential.map_err(|reason| {
                let name = &entry.name;
                self.refuse(what, format!("it is not sent without the secret {name}: {reason}"))
            })?);
        }
        Ok(credentials)
    }

    /// Returns what looks for secrets in a request to this URL.
    pub(super) fn watch(&self, grant: &Grant, url: &Url) -> Watch {
        let own = injections(grant, url).map(|(entry, _)| entry.name.to_string()).collect();
        Watch { redactor: self.case.warden().redactor(), own }
    }

    /// Refuses a request that carries a secret.
    pub(super) fn carries_secret(&self, what: &str, url: &Url, name: &str) -> Error {
        let origin = url.origin().ascii_serialization();
        self.refuse(what, format!("it would carry the secret {name} to {origin}"))
    }

    /// Writes down that a request is not sent.
    pub(super) fn refuse(&self, what: &str, why: String) -> Error {
        let what = format!("{} may not {what}", self.case.grant().plugin());
        // An origin may hold a secret as well as a path.
        let why = self.case.warden().redactor().text(&why).into_owned();
        self.case.ledger.refused(Denial { what, why, fix: None, nobody_to_ask: false });
        Error::HttpRequestDenied
    }
}

fn injections<'g>(
    grant: &'g Grant,
    url: &Url,
) -> impl Iterator<Item = (&'g SecretGrant, &'g Injection)> {
    grant.secrets().iter().filter_map(move |entry| match &entry.way {
        SecretWay::Inject(injection) if injection.is_for(url) => Some((entry, injection)),
        SecretWay::Inject(_) | SecretWay::Reveal => None,
    })
}

fn credential(
    entry: &SecretGrant,
    injection: &Injection,
    value: String,
) -> Result<Credential, String> {
    let unfit = || "it holds what a header cannot hold".to_owned();
    let header = HeaderName::try_from(injection.header()).map_err(|_| unfit())?;
    let mut value = HeaderValue::try_from(value).map_err(|_| unfit())?;
    value.set_sensitive(true);
    let (name, origin) = (entry.name.to_string(), injection.origin().to_string());
    Ok(Credential { name, origin, header, value })
}

impl Watch {
    /// Returns the name of a secret in the URL or the headers of a request.
    pub(super) fn finds_in_head(&self, url: &Url, headers: &HeaderMap) -> Option<String> {
        if self.redactor.is_empty() {
            return None;
        }
        let headers = headers.iter().flat_map(|(name, value)| [name.as_ref(), value.as_bytes()]);
        headers.chain([url.as_str().as_bytes()]).find_map(|text| self.finds(text))
    }

    /// Returns the name of a secret in a text or behind its escapes.
    fn finds(&self, text: &[u8]) -> Option<String> {
        let mut text = Cow::Borrowed(text);
        for _ in 0..=DECODED_TIMES_MAX {
            if let Some(name) = self.redactor.finds_beside(&text, &self.own) {
                return Some(name.to_owned());
            }
            let Cow::Owned(plain) = percent_decode(&text).into() else { return None };
            text = Cow::Owned(plain);
        }
        None
    }

    /// Begins to look at a body.
    pub(super) fn stream(&self) -> ScanStream {
        self.redactor.scan_beside(&self.own)
    }
}
