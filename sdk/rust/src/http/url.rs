//! Splitting a URL into the three parts that `wasi:http` takes, and escaping query values.

use std::fmt::Write as _;

use super::HttpError;

/// The parts of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target<'a> {
    /// `http` or `https`.
    pub(crate) scheme: &'a str,
    /// The host, optionally with a port.
    pub(crate) authority: &'a str,
    /// Starts with `/`, or with `?` if the URL has no path, or is empty.
    pub(crate) path_and_query: &'a str,
}

/// Splits a URL into its parts. Rejects only what would blur the borders between the parts; the
/// host checks their contents.
///
/// # Errors
///
/// The URL does not start with `http://` or `https://`, has no host, has a user, or contains
/// spaces, control characters or characters outside ASCII.
pub(crate) fn split(url: &str) -> Result<Target<'_>, HttpError> {
    let invalid = |reason: &str| HttpError::Invalid { reason: reason.to_owned() };
    let (scheme, rest) =
        url.split_once("://").ok_or_else(|| invalid("the URL has no scheme such as https://"))?;
    if !matches!(scheme, "http" | "https") {
        return Err(invalid("only http and https URLs can be requested"));
    }
    if !url.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(invalid("the URL holds characters that have to be percent-encoded"));
    }
    let rest = rest.split_once('#').map_or(rest, |(before, _fragment)| before);
    let (authority, path_and_query) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    if authority.is_empty() {
        return Err(invalid("the URL names no host"));
    }
    if authority.contains(['@', '\\']) {
        return Err(invalid("the URL may hold neither a user nor a password"));
    }
    Ok(Target { scheme, authority, path_and_query })
}

/// Adds `name=value`, percent-encoded, before the fragment of a URL.
pub(crate) fn push_query(url: &mut String, name: &str, value: &str) {
    let fragment = url.find('#').map_or_else(String::new, |at| url.split_off(at));
    url.push(if url.contains('?') { '&' } else { '?' });
    escape(url, name);
    url.push('=');
    escape(url, value);
    url.push_str(&fragment);
}

/// Escapes everything except the unreserved characters of RFC 3986, so that no value can change the
/// structure of the URL.
fn escape(out: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            // Writing to a `String` cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_come_apart() {
        for (url, scheme, authority, path_and_query) in [
            ("https://a.example", "https", "a.example", ""),
            ("https://a.example/", "https", "a.example", "/"),
            ("http://a.example:8080/v1/x?y=1&z=//#top", "http", "a.example:8080", "/v1/x?y=1&z=//"),
            ("https://a.example?q=a@b", "https", "a.example", "?q=a@b"),
            ("http://[::1]:80/x", "http", "[::1]:80", "/x"),
        ] {
            assert_eq!(split(url), Ok(Target { scheme, authority, path_and_query }), "{url}");
        }
    }

    #[test]
    fn urls_that_could_be_misread_are_refused() {
        for (url, want) in [
            ("", "no scheme"),
            ("a.example/x", "no scheme"),
            ("ftp://a.example/", "only http"),
            ("HTTPS://a.example/", "only http"),
            ("https:///x", "names no host"),
            ("https://#x", "names no host"),
            ("https://user:pw@a.example/", "neither a user"),
            ("https://a.example\\@b.example/", "neither a user"),
            ("https://a.example/a b", "percent-encoded"),
            ("https://a.example/\r\nx", "percent-encoded"),
            ("https://ä.example/", "percent-encoded"),
        ] {
            let error = split(url).unwrap_err().to_string();
            assert!(error.contains(want), "{url}: {error}");
        }
    }

    #[test]
    fn query_values_cannot_break_out() {
        for (url, value, want) in [
            ("https://a/x", "a b", "https://a/x?q=a%20b"),
            ("https://a/x?r=1", "&r=2#", "https://a/x?r=1&q=%26r%3D2%23"),
            ("https://a/x#top", "ü", "https://a/x?q=%C3%BC#top"),
            ("https://a/x", "a-b.c_d~e", "https://a/x?q=a-b.c_d~e"),
            ("https://a/x", "a/../b%+", "https://a/x?q=a%2F..%2Fb%25%2B"),
        ] {
            let mut url = url.to_owned();
            push_query(&mut url, "q", value);
            assert_eq!(url, want);
        }
    }
}
