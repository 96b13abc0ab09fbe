//! The address of a request, rebuilt from its parts.
//!
//! Two readers of one URL may find two hosts in it. So the text is read once, by the parser whose
//! result is checked, resolved, dialled and sent; anything that this parser would have to repair is
//! refused.

use http::Uri;
use url::{Host, Url};

/// Longest path with query that is sent. Servers commonly stop at 8 KiB.
const PATH_BYTES_MAX: usize = 16 * 1024;

/// Rebuilds the URL of a request.
///
/// # Errors
///
/// A short reason, for the record: what is odd about the address.
pub(super) fn rebuild(uri: &Uri) -> Result<Url, &'static str> {
    let scheme = uri.scheme_str().ok_or("it has no scheme")?;
    let authority = uri.authority().ok_or("it has no host")?;
    if authority.as_str().contains('@') {
        return Err("it carries a user name");
    }
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    if path.contains('\\') {
        return Err("its path holds a backslash");
    }
    if path.len() > PATH_BYTES_MAX {
        return Err("its path is too long");
    }
    if !path.is_empty() && !path.starts_with(['/', '?']) {
        return Err("its path is not a path");
    }
    let url =
        Url::parse(&format!("{scheme}://{authority}{path}")).map_err(|_| "it is not a URL")?;
    if same_host(&url, authority.host()) { Ok(url) } else { Err("its host is not in plain form") }
}

/// True when parsing changed nothing about the host but the case of its letters.
fn same_host(url: &Url, written: &str) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => {
            name == written.to_ascii_lowercase() && !name.ends_with('.') && name.is_ascii()
        }
        Some(Host::Ipv4(ip)) => ip.to_string() == written,
        // A zone or an unusual spelling of the same address is not what the policy names.
        Some(Host::Ipv6(ip)) => format!("[{ip}]") == written.to_ascii_lowercase(),
        None => false,
    }
}

/// Method and URL without query: what stands in the record, since queries may hold private things.
pub(super) fn describe(method: &str, url: &Url) -> String {
    format!("{method} {}{}", url.origin().ascii_serialization(), url.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(scheme: &str, authority: &str, path: &str, want: Option<&str>) {
        let uri = Uri::builder().scheme(scheme).authority(authority).path_and_query(path).build();
        let got = uri.ok().and_then(|uri| rebuild(&uri).ok()).map(String::from);
        assert_eq!(got.as_deref(), want, "{scheme} {authority} {path}");
    }

    #[test]
    fn plain_addresses_pass() {
        check("https", "api.example.com", "/v1/x?q=1", Some("https://api.example.com/v1/x?q=1"));
        check("http", "API.example.com:8080", "/", Some("http://api.example.com:8080/"));
        check("http", "127.0.0.1:9", "/a", Some("http://127.0.0.1:9/a"));
        check("https", "[::1]", "/", Some("https://[::1]/"));
        check("https", "a.example", "/x/../y", Some("https://a.example/y"));
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
            "[0:0:0:0:0:0:0:1]",
            "exa%6dple.com",
            "good.example\\evil",
            "１２７.0.0.1",
        ] {
            check("http", authority, "/", None);
        }
    }
}
