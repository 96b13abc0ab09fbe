//! Requests in records and refusals, without their secret parts.

use sallyport_contract::{DenialSubject, PluginName, text::escape_excerpt};
use url::Url;

/// Most characters of a method that a record quotes.
const METHOD_CHARS_MAX: usize = 300;

/// Returns the method and the URL without its secret parts: no query, fragment, user name or
/// password.
pub(crate) fn request_line(method: &str, url: &Url) -> String {
    format!("{} {}", escape_excerpt(method, METHOD_CHARS_MAX), url_without_secrets(url))
}

/// Returns the subject of a refused request.
pub(crate) fn request_subject(plugin: &PluginName, method: &str, url: &Url) -> DenialSubject {
    let (method, url) = (escape_excerpt(method, METHOD_CHARS_MAX), url_without_secrets(url));
    DenialSubject::Request { plugin: plugin.clone(), method, url: url.into() }
}

/// Returns the URL without its query, fragment, user name and password.
pub fn url_without_secrets(url: &Url) -> Url {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // These calls fail only for URLs without a host, which have neither.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url
}
