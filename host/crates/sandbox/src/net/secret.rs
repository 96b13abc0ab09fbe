//! Secrets in outgoing requests: the ones that the policy sends along, and the ones that must not
//! leave.
//!
//! If a plugin's policy sends a secret to an origin, the host adds it to its header after all
//! checks, and the guest never sees it. Any other request that carries a secret is refused, in
//! every part of it and in every form that the [`Redactor`] knows.

use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use sallyport_contract::{Denial, Effect, Redactor, Secret, redact::ScanStream};
use sallyport_policy::{Grant, SecretGrant, SecretInjection, SecretUse};
use url::Url;
use wasmtime_wasi_http::Error;

use super::{HttpGate, exchange::PreparedRequest};
use crate::{authorizer::AccountCredential, effect_log::EffectLog};

/// A secret with the header that carries it.
pub(super) struct HeaderCredential {
    pub(super) name: String,
    pub(super) origin: String,
    pub(super) header: HeaderName,
    pub(super) value: HeaderValue,
}

/// Looks for secrets in requests to one origin.
pub(super) struct SecretScanner {
    redactor: Arc<Redactor>,
    /// Secrets that may be sent to this origin.
    allowed_names: Vec<String>,
}

impl HeaderCredential {
    /// Records that the secret is used.
    pub(super) fn record_use(&self, effect_log: &EffectLog) {
        let (name, to) = (self.name.clone(), Some(self.origin.clone()));
        effect_log.record_effect(Effect::SecretUsed { name, to });
    }
}

impl HttpGate {
    /// Fetches the secrets that the policy sends along with a request, and the header that signs it
    /// in to the user's account, which is returned separately as well. A request that was
    /// redirected to another origin gets none, because the redirecting server chose it and must not
    /// choose whose credentials it carries.
    ///
    /// # Errors
    ///
    /// A secret is not available. The request is not sent without it.
    pub(super) async fn fetch_credentials(
        &self,
        grant: &Grant,
        prepared: &PreparedRequest,
        what: &str,
    ) -> Result<(Option<Secret>, Vec<HeaderCredential>), Error> {
        if prepared.has_left_origin {
            return Ok((None, Vec::new()));
        }
        let account = self.fetch_account_credential(&prepared.url, what).await?;
        let (mut account, first) = account.unzip();
        let mut credentials = Vec::from_iter(first);
        for (entry, injection) in matching_injections(grant, &prepared.url) {
            let found = self.run_context.look_up_secret(entry.name.as_str()).await;
            let credential = found.and_then(|secret| {
                let value = injection.header_value(secret.expose());
                build_credential(entry, injection, value)
            });
            credentials.push(credential.map_err(|reason| {
                let name = &entry.name;
                self.refuse_request(
                    what,
                    format!("it is not sent without the secret {name}: {reason}"),
                )
            })?);
        }
        // The account's header was replaced by one of the policy.
        if credentials.iter().skip(1).any(|own| own.header == credentials[0].header) {
            account = None;
        }
        Ok((account, credentials))
    }

    /// The header that signs a request in to the account of the call's user. It comes first, so that
    /// a secret that the policy sends in the same header takes its place.
    async fn fetch_account_credential(
        &self,
        url: &Url,
        what: &str,
    ) -> Result<Option<(Secret, HeaderCredential)>, Error> {
        let Some(call) = self.run_context.call() else { return Ok(None) };
        let found = self.run_context.authorizer().account_credential(call, url).await;
        let credential = found.and_then(|credential| {
            let Some(AccountCredential { name, header, value }) = credential else {
                return Ok(None);
            };
            let unfit = || "it holds what a header cannot hold".to_owned();
            let mut text = HeaderValue::try_from(value.expose()).map_err(|_| unfit())?;
            text.set_sensitive(true);
            let origin = url.origin().ascii_serialization();
            let header = HeaderName::from_static(header);
            Ok(Some((value, HeaderCredential { name, origin, header, value: text })))
        });
        credential.map_err(|reason| {
            self.refuse_request(what, format!("it is not sent without an account: {reason}"))
        })
    }

    /// Returns the scanner for requests to this URL. The keys of model providers are known by their
    /// variables; a plugin that the policy gives such a variable may send it.
    pub(super) fn secret_scanner(&self, grant: &Grant, url: &Url) -> SecretScanner {
        let sent = matching_injections(grant, url).map(|(entry, _)| entry.name.to_string());
        let allowed_names = sent.chain(grant.env().iter().cloned()).collect();
        SecretScanner { redactor: self.run_context.authorizer().redactor(), allowed_names }
    }

    /// Refuses a request that carries a secret.
    pub(super) fn refuse_secret(&self, what: &str, url: &Url, name: &str) -> Error {
        let origin = url.origin().ascii_serialization();
        self.refuse_request(what, format!("it would carry the secret {name} to {origin}"))
    }

    /// Records that a request is not sent.
    pub(super) fn refuse_request(&self, what: &str, why: String) -> Error {
        let what = format!("{} may not {what}", self.run_context.current_grant().plugin());
        // An origin can contain a secret just like a path.
        let why = self.run_context.authorizer().redactor().redact_text(&why).into_owned();
        self.run_context.effect_log.record_refusal(Denial::new(what, why));
        Error::HttpRequestDenied
    }
}

fn matching_injections<'g>(
    grant: &'g Grant,
    url: &Url,
) -> impl Iterator<Item = (&'g SecretGrant, &'g SecretInjection)> {
    grant.secrets().iter().filter_map(move |entry| match &entry.usage {
        SecretUse::Inject(injection) if injection.applies_to_url(url) => Some((entry, injection)),
        SecretUse::Inject(_) | SecretUse::Reveal => None,
    })
}

fn build_credential(
    entry: &SecretGrant,
    injection: &SecretInjection,
    value: String,
) -> Result<HeaderCredential, String> {
    let unfit = || "it holds what a header cannot hold".to_owned();
    let header = HeaderName::try_from(injection.header_name()).map_err(|_| unfit())?;
    let mut value = HeaderValue::try_from(value).map_err(|_| unfit())?;
    value.set_sensitive(true);
    let (name, origin) = (entry.name.to_string(), injection.origin().to_string());
    Ok(HeaderCredential { name, origin, header, value })
}

impl SecretScanner {
    /// Returns the name of a secret in the method, the URL or the headers of a request.
    pub(super) fn find_in_head(&self, prepared: &PreparedRequest) -> Option<&str> {
        let PreparedRequest { method, url, headers, .. } = prepared;
        let headers = headers.iter().flat_map(|(name, value)| [name.as_ref(), value.as_bytes()]);
        let mut texts = headers.chain([method.as_str().as_bytes(), url.as_str().as_bytes()]);
        texts.find_map(|text| self.redactor.find_secret_except(text, &self.allowed_names))
    }

    /// Starts scanning a body.
    pub(super) fn start_body_scan(&self) -> ScanStream {
        self.redactor.scan_stream_except(&self.allowed_names)
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method};

    use super::*;

    const TOKEN: &str = "Abc-4711-token";

    #[track_caller]
    fn check(method: &str, url: &str, header: (&str, &str), is_found: bool) {
        let secret = Secret::new(TOKEN);
        let redactor = Arc::new(Redactor::new([("token", &secret)]));
        let watch = SecretScanner { redactor, allowed_names: Vec::new() };
        let mut headers = HeaderMap::new();
        headers.insert(HeaderName::try_from(header.0).unwrap(), header.1.parse().unwrap());
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let url = url.parse().unwrap();
        let prepared = PreparedRequest { method, url, headers, has_left_origin: false };
        let found = watch.find_in_head(&prepared);
        assert_eq!(found, is_found.then_some("token"), "{} {header:?}", prepared.url);
    }

    #[test]
    fn a_secret_in_the_method_or_anywhere_else_of_a_head_is_found() {
        let (none, plain) = (("x-a", "1"), "https://a.example/b?c");
        check("GET", plain, none, false);
        for method in [TOKEN, "QWJjLTQ3MTEtdG9rZW4", "X4162632d343731312d746f6b656e"] {
            check(method, plain, none, true);
        }
        for path in [
            "Abc-4711-token",
            "x?y=%41bc%2D4711-tok%65n",
            "x?y=%2541bc%252D4711-token",
            "x?y=\\u0041bc-4711-token",
            "x?y=&#x41;bc&#45;4711-token",
            "x?y=41:62:63:2d:34:37:31:31:2d:74:6f:6b:65:6e",
        ] {
            check("GET", &format!("https://a.example/{path}"), none, true);
        }
        check("GET", "https://abc-4711-token.example/", none, true);
        for header in [
            (TOKEN, "1"),
            ("x-a", "\"Abc-4711\\u002dtoken\""),
            ("x-a", "Basic dXNlcjpBYmMtNDcxMS10b2tlbg=="),
            ("x-a", "QWJj LTQ3 MTEt dG9r ZW4="),
        ] {
            check("GET", plain, header, true);
        }
    }
}
