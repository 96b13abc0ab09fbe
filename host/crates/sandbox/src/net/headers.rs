//! Headers of requests and answers: which ones a guest may set, and what the host makes of them.

use http::{HeaderMap, HeaderName, HeaderValue, header};
use sallyport_contract::Redactor;
use url::Url;
use wasmtime_wasi_http::{DEFAULT_FORBIDDEN_HEADERS, Error};

use super::secret::Credential;

/// Headers beyond wasi-http's own list that belong to the host: framing, hops, proxies, and claims
/// about who is asking.
const FORBIDDEN: [&str; 6] = ["te", "trailer", "expect", "forwarded", "x-real-ip", "via"];

/// How the rest of the claims about who is asking begin.
const FORBIDDEN_PREFIX: &str = "x-forwarded-";

/// Headers that speak about a body, which the requests that follow a redirect do not have.
const OF_A_BODY: [HeaderName; 6] = [
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_LENGTH,
    header::CONTENT_LOCATION,
    header::CONTENT_RANGE,
    header::CONTENT_TYPE,
];

/// Headers that say who is asking, for one origin alone.
const OF_A_PERSON: [HeaderName; 3] =
    [header::AUTHORIZATION, header::COOKIE, header::PROXY_AUTHORIZATION];

/// The codings that the host undoes.
const ACCEPTED: HeaderValue = HeaderValue::from_static("gzip");

/// No coding at all.
const IDENTITY: HeaderValue = HeaderValue::from_static("identity");

/// Whether a guest may not set a header, nor see it.
pub(super) fn is_forbidden(name: &HeaderName) -> bool {
    let text = name.as_str();
    DEFAULT_FORBIDDEN_HEADERS.contains(name)
        || FORBIDDEN.contains(&text)
        || text.starts_with(FORBIDDEN_PREFIX)
}

/// Turns the guest's headers into those that are sent. The credentials come last, in the place of
/// whatever stands there.
///
/// # Errors
///
/// The host cannot stand in a header.
pub(super) fn complete(
    headers: &HeaderMap,
    url: &Url,
    credentials: &[Credential],
) -> Result<HeaderMap, Error> {
    let mut headers = headers.clone();
    headers.insert(header::HOST, host(url)?);
    // A part of something coded cannot be decoded.
    let accepted = if headers.contains_key(header::RANGE) { IDENTITY } else { ACCEPTED };
    headers.insert(header::ACCEPT_ENCODING, accepted);
    for credential in credentials {
        headers.insert(credential.header.clone(), credential.value.clone());
    }
    Ok(headers)
}

/// The headers without secrets; one whose very name holds a secret is left out.
pub(super) fn redacted(redactor: &Redactor, headers: &HeaderMap) -> HeaderMap {
    let mut clean = HeaderMap::new();
    for (name, value) in headers {
        let value = HeaderValue::from_bytes(&redactor.bytes(value.as_bytes()));
        if let (None, Ok(value)) = (redactor.finds(name.as_ref()), value) {
            clean.append(name, value);
        }
    }
    clean
}

/// Turns the headers of a guest's answer into those that are sent: without framing and hops, which
/// are the host's, and without secrets.
pub(crate) fn answered(redactor: &Redactor, headers: &HeaderMap) -> HeaderMap {
    let mut headers = redacted(redactor, headers);
    headers.remove(header::CONTENT_LENGTH);
    let forbidden: Vec<HeaderName> =
        headers.keys().filter(|name| is_forbidden(name)).cloned().collect();
    forbidden.iter().for_each(|name| drop(headers.remove(name)));
    headers
}

fn host(url: &Url) -> Result<HeaderValue, Error> {
    let host = url.host_str().unwrap_or_default();
    let text = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    HeaderValue::try_from(text).map_err(|_| Error::HttpRequestUriInvalid)
}

/// Leaves only what a request without a body can say.
pub(super) fn drop_body(headers: &mut HeaderMap) {
    OF_A_BODY.iter().for_each(|name| drop(headers.remove(name)));
}

/// Leaves only what any origin may know. `is_secret` tells which other values no other one may.
pub(super) fn drop_credentials(headers: &mut HeaderMap, is_secret: impl Fn(&[u8]) -> bool) {
    let names: Vec<HeaderName> = headers
        .iter()
        .filter(|(name, value)| OF_A_PERSON.contains(name) || is_secret(value.as_bytes()))
        .map(|(name, _)| name.clone())
        .collect();
    names.iter().for_each(|name| drop(headers.remove(name)));
}
