//! The address of a request, rebuilt from its parts.
//!
//! Two readers of one URL may find two hosts in it. So the text is read once, by the parser whose
//! result is checked, resolved, dialled and sent; anything that this parser would have to repair is
//! refused.

use http::{HeaderValue, Uri};
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

/// The URL that a redirect leads to. An absolute one is read as strictly as a guest's; a path stays
/// where it came from.
///
/// # Errors
///
/// A short reason, for the record: what is odd about it.
pub(super) fn redirected(from: &Url, location: &HeaderValue) -> Result<Url, &'static str> {
    let text = location.to_str().map_err(|_| "its redirect is not plain text")?;
    let text = text.split('#').next().unwrap_or_default();
    if text.contains(['\\', '\t']) {
        return Err("its redirect holds a backslash or a tab");
    }
    let absolute = match text.strip_prefix("//") {
        Some(_) => Some(format!("{}:{text}", from.scheme())),
        None => text.contains("://").then(|| text.to_owned()).filter(|_| !text.starts_with('/')),
    };
    if let Some(absolute) = absolute {
        let uri: Uri = absolute.parse().map_err(|_| "its redirect is not a URL")?;
        return rebuild(&uri);
    }
    let joined = from.join(text).map_err(|_| "its redirect is not a URL")?;
    if joined.origin() == from.origin() { Ok(joined) } else { Err("its redirect is not a URL") }
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
    fn redirects_lead_on_from_where_they_came() {
        for (location, want) in [
            ("/x?y#z", Some("https://a.example:8443/x?y")),
            ("x", Some("https://a.example:8443/b/x")),
            ("?q", Some("https://a.example:8443/b/c?q")),
            ("//b.example/x", Some("https://b.example/x")),
            ("http://b.example", Some("http://b.example/")),
            ("/x?to=http://b.example/", Some("https://a.example:8443/x?to=http://b.example/")),
            ("//b.example@c.example/", None),
            ("https://0x7f.1/", None),
            ("https:\\\\b.example/", None),
            ("/\\b.example/", None),
            ("https:b.example", Some("https://a.example:8443/b/b.example")),
            ("/a\\b", None),
            ("/a\tb", None),
            ("javascript:1", None),
            ("file:///etc/passwd", None),
            ("ht\ttp://b.example/", None),
        ] {
            let from = Url::parse("https://a.example:8443/b/c").unwrap();
            let got = redirected(&from, &HeaderValue::from_str(location).unwrap());
            assert_eq!(got.ok().map(String::from).as_deref(), want, "{location}");
        }
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
