//! Headers of requests and responses: which ones a guest may set, and which ones the host sets.

use http::{HeaderMap, HeaderName, HeaderValue, header};
use sallyport_contract::Redactor;
use url::Url;
use wasmtime_wasi_http::{DEFAULT_FORBIDDEN_HEADERS, Error};

use super::secret::HeaderCredential;

/// Headers that belong to the host in addition to wasi-http's own list: framing, hops, proxies, and
/// claims about the client's identity.
const FORBIDDEN_HEADERS: [&str; 6] = ["te", "trailer", "expect", "forwarded", "x-real-ip", "via"];

/// The prefix of the other headers that claim a client's identity.
const FORBIDDEN_HEADER_PREFIX: &str = "x-forwarded-";

/// Headers that describe a body. Requests that follow a redirect have none.
const BODY_HEADERS: [HeaderName; 6] = [
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_LENGTH,
    header::CONTENT_LOCATION,
    header::CONTENT_RANGE,
    header::CONTENT_TYPE,
];

/// Headers that authenticate the client to one origin.
const CREDENTIAL_HEADERS: [HeaderName; 3] =
    [header::AUTHORIZATION, header::COOKIE, header::PROXY_AUTHORIZATION];

/// The coding that the host requests.
const ACCEPTED_CODING: HeaderValue = HeaderValue::from_static("gzip");

/// Requests a response without any coding.
const IDENTITY_CODING: HeaderValue = HeaderValue::from_static("identity");

/// Whether a guest may neither set nor see a header.
pub(super) fn is_forbidden_header(name: &HeaderName) -> bool {
    let text = name.as_str();
    DEFAULT_FORBIDDEN_HEADERS.contains(name)
        || FORBIDDEN_HEADERS.contains(&text)
        || text.starts_with(FORBIDDEN_HEADER_PREFIX)
}

/// Completes the guest's headers for sending. Credentials come last and replace headers of the same
/// name.
///
/// # Errors
///
/// The host is not valid in a header.
pub(super) fn complete_headers(
    headers: &HeaderMap,
    url: &Url,
    credentials: &[HeaderCredential],
) -> Result<HeaderMap, Error> {
    let mut headers = headers.clone();
    headers.insert(header::HOST, host_header(url)?);
    // A range of coded bytes could not be decoded.
    let accepted =
        if headers.contains_key(header::RANGE) { IDENTITY_CODING } else { ACCEPTED_CODING };
    headers.insert(header::ACCEPT_ENCODING, accepted);
    for credential in credentials {
        headers.insert(credential.header.clone(), credential.value.clone());
    }
    Ok(headers)
}

/// The headers without secrets. A header whose name contains a secret is left out.
pub(super) fn redact_headers(redactor: &Redactor, headers: &HeaderMap) -> HeaderMap {
    let mut redacted = HeaderMap::new();
    for (name, value) in headers {
        let value = HeaderValue::from_bytes(&redactor.redact_bytes(value.as_bytes()));
        if let (None, Ok(value)) = (redactor.find_secret(name.as_ref()), value) {
            redacted.append(name, value);
        }
    }
    redacted
}

/// Prepares the headers of a guest's response for sending: without framing and hop-by-hop headers,
/// which belong to the host, and without secrets.
pub(crate) fn prepare_response_headers(redactor: &Redactor, headers: &HeaderMap) -> HeaderMap {
    let mut headers = redact_headers(redactor, headers);
    headers.remove(header::CONTENT_LENGTH);
    let forbidden: Vec<HeaderName> =
        headers.keys().filter(|name| is_forbidden_header(name)).cloned().collect();
    forbidden.iter().for_each(|name| drop(headers.remove(name)));
    headers
}

fn host_header(url: &Url) -> Result<HeaderValue, Error> {
    let host = url.host_str().unwrap_or_default();
    let text = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    HeaderValue::try_from(text).map_err(|_| Error::HttpRequestUriInvalid)
}

/// Removes the headers that describe a body.
pub(super) fn drop_body_headers(headers: &mut HeaderMap) {
    BODY_HEADERS.iter().for_each(|name| drop(headers.remove(name)));
}

/// Removes the headers that are meant for one origin only. `is_secret` reports whether a value is a
/// secret.
pub(super) fn drop_credential_headers(headers: &mut HeaderMap, is_secret: impl Fn(&[u8]) -> bool) {
    let names: Vec<HeaderName> = headers
        .iter()
        .filter(|(name, value)| CREDENTIAL_HEADERS.contains(name) || is_secret(value.as_bytes()))
        .map(|(name, _)| name.clone())
        .collect();
    names.iter().for_each(|name| drop(headers.remove(name)));
}
