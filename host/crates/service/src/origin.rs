//! The names at which the service answers, and whether browsers reach them over TLS.

use std::{fmt, str::FromStr};

use http::{HeaderMap, HeaderValue, header, uri::Authority};
use sallyport_http_server::single_header_value;
use url::{Origin, Url};

/// The names at which the service answers.
#[derive(Debug, Default)]
pub(crate) struct ServiceNames {
    /// Whether only this machine can reach the service.
    pub(crate) is_local: bool,
    /// Whether the service encrypts its connections itself.
    pub(crate) has_tls: bool,
    /// Where browsers reach it through a proxy.
    pub(crate) public_origin: Option<PublicOrigin>,
}

impl ServiceNames {
    /// Whether a browser speaks TLS, with the service or with a proxy in front of it. Of a proxy the
    /// browser says so itself, in a header that no page can change.
    pub(crate) fn is_over_tls(&self, headers: &HeaderMap) -> bool {
        let origin = headers.get(header::ORIGIN).map(HeaderValue::as_bytes);
        self.has_tls || origin.is_some_and(|origin| origin.starts_with(b"https://"))
    }

    /// Whether browsers reach the name of a request over TLS alone.
    pub(crate) fn is_reached_over_tls(&self, headers: &HeaderMap) -> bool {
        let public = self.public_origin.as_ref();
        self.has_tls || public.is_some_and(|public| public.is_reached_over_tls(headers))
    }
}

/// The origin of the pages, as browsers see it: a scheme, a host and perhaps a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicOrigin {
    /// As browsers write it in the header `Origin`.
    text: String,
    authority: Authority,
}

/// The text is not the origin of a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write a scheme and a host, such as https://sallyport.example")]
pub struct PublicOriginError;

impl PublicOrigin {
    /// Whether a request asks for a host by this name.
    pub(crate) fn is_host(&self, host: &Authority) -> bool {
        host == &self.authority
    }

    /// Whether a request asks for the host by this name, which browsers reach over TLS alone.
    fn is_reached_over_tls(&self, headers: &HeaderMap) -> bool {
        self.text.starts_with("https://")
            && named_host(headers).is_some_and(|host| self.is_host(&host))
    }

    /// Whether a page of this origin made a request.
    pub(crate) fn is_origin(&self, origin: &HeaderValue) -> bool {
        origin.as_bytes().eq_ignore_ascii_case(self.text.as_bytes())
    }
}

impl fmt::Display for PublicOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for PublicOrigin {
    type Err = PublicOriginError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let url = Url::parse(text).map_err(|_| PublicOriginError)?;
        let is_bare = matches!(url.scheme(), "http" | "https")
            && url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        match url.origin() {
            origin @ Origin::Tuple(..) if is_bare => {
                let text = origin.ascii_serialization();
                let authority = text.split_once("://").and_then(|(_, rest)| rest.parse().ok());
                authority.map(|authority| Self { text, authority }).ok_or(PublicOriginError)
            }
            _ => Err(PublicOriginError),
        }
    }
}

/// The name that the headers give the host.
pub(crate) fn named_host(headers: &HeaderMap) -> Option<Authority> {
    single_header_value(headers, header::HOST)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_scheme_and_a_host() {
        let rows = [
            ("https://team.example", Some("https://team.example")),
            ("https://Team.example/", Some("https://team.example")),
            ("https://team.example:443", Some("https://team.example")),
            ("http://team.example:8080", Some("http://team.example:8080")),
            ("https://[2001:db8::1]", Some("https://[2001:db8::1]")),
            ("team.example", None),
            ("https://", None),
            ("https://team.example/console", None),
            ("https://team.example/?a", None),
            ("https://ann@team.example", None),
            ("ftp://team.example", None),
            ("data:,", None),
            ("", None),
        ];
        for (text, want) in rows {
            let origin = text.parse::<PublicOrigin>().ok().map(|origin| origin.to_string());
            assert_eq!(origin.as_deref(), want, "{text}");
        }
    }
}
