//! The targets of redirects, and the names of requests in records.

use http::{HeaderValue, Uri};
use sallyport_policy::{RequestFormError, rebuild_url};
use url::Url;

/// The target of a redirect. An absolute URL is parsed as strictly as a guest's; a path stays at
/// its origin.
///
/// # Errors
///
/// The form of the location is not accepted; the error states why.
pub(super) fn resolve_redirect_url(
    from: &Url,
    location: &HeaderValue,
) -> Result<Url, RequestFormError> {
    let text = location.to_str().map_err(|_| RequestFormError::RedirectText)?;
    let text = text.split('#').next().unwrap_or_default();
    if text.contains(['\\', '\t']) {
        return Err(RequestFormError::RedirectCharacters);
    }
    let absolute = match text.strip_prefix("//") {
        Some(_) => Some(format!("{}:{text}", from.scheme())),
        None => text.contains("://").then(|| text.to_owned()).filter(|_| !text.starts_with('/')),
    };
    if let Some(absolute) = absolute {
        let uri: Uri = absolute.parse().map_err(|_| RequestFormError::Redirect)?;
        return rebuild_url(&uri);
    }
    let joined = from.join(text).map_err(|_| RequestFormError::Redirect)?;
    if joined.origin() == from.origin() { Ok(joined) } else { Err(RequestFormError::Redirect) }
}

/// Method and URL for the record, without the query, which may contain private data.
pub(super) fn describe_request(method: &str, url: &Url) -> String {
    format!("{method} {}{}", url.origin().ascii_serialization(), url.path())
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let got = resolve_redirect_url(&from, &HeaderValue::from_str(location).unwrap());
            assert_eq!(got.ok().map(String::from).as_deref(), want, "{location}");
        }
    }
}
