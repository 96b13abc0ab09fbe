//! The URL of a request, parsed once and strictly.
//!
//! Two parsers may find two different hosts in one URL. So only one parser reads it, and its result
//! is checked, resolved, dialled and sent; a URL that this parser would have to repair is refused.
//! A running call and `policy explain --net` share this module, because an explanation that parsed
//! a URL in another way would explain another request.

use http::{
    Method, Uri,
    uri::{Authority, PathAndQuery, Scheme},
};
use sallyport_contract::Denial;
use url::{Host, Url};

/// Longest path with query that is sent, in bytes. Servers commonly stop at 8 KiB.
const PATH_BYTES_MAX: usize = 16 * 1024;

/// Why a request is refused for its form, before any grant is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RequestFormError {
    /// The method is not a token, or empty.
    #[error("its method is not a method")]
    Method,
    /// The URL has no scheme.
    #[error("it has no scheme")]
    NoScheme,
    /// The URL has no host.
    #[error("it has no host")]
    NoHost,
    /// The URL has an `@` before the host.
    #[error("it carries a user name")]
    UserName,
    /// The path contains a backslash, which some servers read as a slash.
    #[error("its path holds a backslash")]
    Backslash,
    /// The path with its query is longer than 16 KiB.
    #[error("its path is too long")]
    TooLong,
    /// The text after the host begins with neither `/` nor `?`.
    #[error("its path is not a path")]
    Path,
    /// The URL contains invalid characters, or an invalid port.
    #[error("it is not a URL")]
    Url,
    /// The parser would rewrite the host: `127.1`, `0x7f.1`, `2130706433`, `[0:0::1]`.
    #[error("its host is not in plain form")]
    OddHost,
    /// A redirect that is not text.
    #[error("its redirect is not plain text")]
    RedirectText,
    /// A redirect with characters that URL parsers drop or convert.
    #[error("its redirect holds a backslash or a tab")]
    RedirectCharacters,
    /// A redirect that is not a URL with a host.
    #[error("its redirect is not a URL")]
    Redirect,
}

impl RequestFormError {
    /// Returns the refusal of a request with such a form. No policy text lifts it.
    pub fn into_denial(self) -> Denial {
        Denial::new("a request to an address in an odd form was stopped", self.to_string())
    }
}

/// Rebuilds the URL of a request from the parts that a guest passed.
///
/// # Errors
///
/// The URL is not in plain form.
pub fn rebuild_url(uri: &Uri) -> Result<Url, RequestFormError> {
    let scheme = uri.scheme_str().ok_or(RequestFormError::NoScheme)?;
    let authority = uri.authority().ok_or(RequestFormError::NoHost)?;
    if authority.as_str().contains('@') {
        return Err(RequestFormError::UserName);
    }
    let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    if path.contains('\\') {
        return Err(RequestFormError::Backslash);
    }
    if path.len() > PATH_BYTES_MAX {
        return Err(RequestFormError::TooLong);
    }
    if !path.is_empty() && !path.starts_with(['/', '?']) {
        return Err(RequestFormError::Path);
    }
    let url = Url::parse(&format!("{scheme}://{authority}{path}"));
    let url = url.map_err(|_| RequestFormError::Url)?;
    if is_same_host(&url, authority.host()) { Ok(url) } else { Err(RequestFormError::OddHost) }
}

/// Parses the method and the URL of a request from text, as a guest passes them to `wasi:http`:
/// split where the SDK splits them, and each part read by the parser of the host call.
///
/// # Errors
///
/// The method or the URL is not in plain form.
pub fn parse_request(method: &str, url: &str) -> Result<(Method, Url), RequestFormError> {
    let method = Method::from_bytes(method.as_bytes()).map_err(|_| RequestFormError::Method)?;
    let (scheme, rest) = url.split_once("://").ok_or(RequestFormError::NoScheme)?;
    let rest = rest.split_once('#').map_or(rest, |(before, _fragment)| before);
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    if authority.is_empty() {
        return Err(RequestFormError::NoHost);
    }
    let scheme = Scheme::try_from(scheme).map_err(|_| RequestFormError::NoScheme)?;
    let authority = Authority::try_from(authority).map_err(|_| RequestFormError::Url)?;
    let uri = Uri::builder().scheme(scheme).authority(authority).path_and_query(path).build();
    Ok((method, rebuild_url(&uri.map_err(|_| RequestFormError::Url)?)?))
}

/// Whether parsing changed nothing in the host except the case of letters.
fn is_same_host(url: &Url, written: &str) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => {
            name == written.to_ascii_lowercase() && !name.ends_with('.') && name.is_ascii()
        }
        Some(Host::Ipv4(ip)) => ip.to_string() == written,
        // A zone or an unusual notation of the same address is not the host that the policy names.
        Some(Host::Ipv6(ip)) => format!("[{ip}]") == written.to_ascii_lowercase(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(scheme: &str, authority: &str, path: &str, want: Option<&str>) {
        let uri = Uri::builder().scheme(scheme).authority(authority).path_and_query(path).build();
        let got = uri.ok().and_then(|uri| rebuild_url(&uri).ok()).map(String::from);
        assert_eq!(got.as_deref(), want, "{scheme} {authority} {path}");
        let text = parse_request("GET", &format!("{scheme}://{authority}{path}"));
        assert_eq!(text.ok().map(|(_, url)| url.into()), got, "{scheme} {authority} {path}");
    }

    #[test]
    fn plain_addresses_pass() {
        check("https", "api.example.com", "/v1/x?q=1", Some("https://api.example.com/v1/x?q=1"));
        check("http", "API.example.com:8080", "/", Some("http://api.example.com:8080/"));
        check("http", "127.0.0.1:9", "/a", Some("http://127.0.0.1:9/a"));
        check("https", "[::1]", "/", Some("https://[::1]/"));
        check("https", "a.example", "/x/../y", Some("https://a.example/y"));
        check("https", "a.example", "?q", Some("https://a.example/?q"));
        check("https", "a.example", "", Some("https://a.example/"));
    }

    #[test]
    fn odd_addresses_are_refused() {
        for authority in [
            "good.example@evil.example",
            "good.example.",
            "0x7f.1",
            "2130706433",
            "127.1",
            "0177.0.0.1",
            "[::ffff:127.0.0.1%25eth0]",
            "[fe80::1%25eth0]",
            "[fe80::1%eth0]",
            "[0:0:0:0:0:0:0:1]",
            "[::ffff:7f00:1]",
            "exa%6dple.com",
            "good.example\\evil",
            "１２７.0.0.1",
            "a.example:99999",
            "a b",
        ] {
            check("http", authority, "/", None);
        }
        check("https", "a.example", "/a\\b", None);
        check("https", "a.example", "/a b", None);
    }

    #[test]
    fn a_text_that_is_not_a_request_says_why() {
        for (method, url, want) in [
            ("", "https://a.example/", RequestFormError::Method),
            ("GE T", "https://a.example/", RequestFormError::Method),
            ("GET", "a.example/", RequestFormError::NoScheme),
            ("GET", "1://a.example/", RequestFormError::Url),
            ("GET", "https:///x", RequestFormError::NoHost),
            ("GET", "https://u:p@a.example/", RequestFormError::UserName),
            ("GET", " https://a.example/", RequestFormError::NoScheme),
            ("GET", "https://a.example/\t", RequestFormError::Url),
            ("GET", "http://2130706433/", RequestFormError::OddHost),
        ] {
            assert_eq!(parse_request(method, url).unwrap_err(), want, "{method} {url}");
        }
        let (_, url) = parse_request("GET", "https://a.example/x#fragment").unwrap();
        assert_eq!(url.as_str(), "https://a.example/x");
    }
}
