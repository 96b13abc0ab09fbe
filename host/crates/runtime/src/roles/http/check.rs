//! Checks that a request is meant for this address, and which page sent it.
//!
//! A page of any site can make the user's browser send requests to the loopback, and its domain can
//! be made to resolve to 127.0.0.1. Both show in the head: `Origin` names the page's site, `Host`
//! the name that was used. A browser sends no `Origin` for an image, a script or a frame, but
//! `Sec-Fetch-HttpSite` shows the same: another port of this machine is another origin, although it
//! receives the cookies. A page cannot forge any of these headers.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderMap, HeaderName, Method, StatusCode, Uri, header, uri::Authority};
use sallyport_http_server::single_header_value;
use sallyport_policy::is_plain_path;
use url::Host;

/// The header in which a browser relates the sending page's site to this address.
const FETCH_SITE_HEADER: &str = "sec-fetch-site";

/// Why a request is refused: the status and the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HttpRefusal(pub(super) StatusCode, pub(super) &'static str);

pub(super) const WRONG_HOST: HttpRefusal =
    HttpRefusal(StatusCode::FORBIDDEN, "this is not the host that the request is for");
pub(super) const FOREIGN_ORIGIN: HttpRefusal =
    HttpRefusal(StatusCode::FORBIDDEN, "a page of another origin sent this");
pub(super) const INVALID_TOKEN: HttpRefusal = HttpRefusal(
    StatusCode::UNAUTHORIZED,
    "send the token of the printed address: Authorization: Bearer TOKEN",
);
pub(super) const FORBIDDEN_METHOD: HttpRefusal =
    HttpRefusal(StatusCode::METHOD_NOT_ALLOWED, "this method is not allowed here");
pub(super) const INVALID_PATH: HttpRefusal = HttpRefusal(
    StatusCode::BAD_REQUEST,
    "write the path in its plain form: no dot segments, no empty ones, none of them encoded",
);

/// Checks the addressed host and the sending page. Returns the address that was used. An ambiguous
/// path is refused here, before any route is matched.
pub(super) fn check_target(
    site: SocketAddr,
    is_public: bool,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Authority, HttpRefusal> {
    if [Method::CONNECT, Method::TRACE].contains(method) {
        return Err(FORBIDDEN_METHOD);
    }
    let host = single_header_value(headers, header::HOST).ok_or(WRONG_HOST)?;
    let authority: Authority = host.parse().map_err(|_| WRONG_HOST)?;
    let is_named = uri.authority().is_none_or(|named| *named == authority);
    if !is_named || !is_own_host(site, is_public, &authority) {
        return Err(WRONG_HOST);
    }
    if headers.contains_key(header::ORIGIN) {
        let origin = single_header_value(headers, header::ORIGIN).ok_or(FOREIGN_ORIGIN)?;
        let host = origin.strip_prefix("http://").ok_or(FOREIGN_ORIGIN)?;
        if host != authority.as_str() {
            return Err(FOREIGN_ORIGIN);
        }
    }
    if headers.contains_key(FETCH_SITE_HEADER) && !is_same_origin(method, headers) {
        return Err(FOREIGN_ORIGIN);
    }
    if !is_plain_path(uri.path()) {
        return Err(INVALID_PATH);
    }
    Ok(authority)
}

/// Whether the user or a page of this origin sent the request. From another site, the browser may
/// only navigate to a page here, as it does for the printed address.
fn is_same_origin(method: &Method, headers: &HeaderMap) -> bool {
    let says = |name, word: &str| {
        single_header_value(headers, HeaderName::from_static(name)) == Some(word)
    };
    let is_visit = [Method::GET, Method::HEAD].contains(method)
        && says("sec-fetch-mode", "navigate")
        && says("sec-fetch-dest", "document");
    is_visit || says(FETCH_SITE_HEADER, "same-origin") || says(FETCH_SITE_HEADER, "none")
}

/// Whether a host is this address: its IP address, or `localhost`, which no other site can own. A
/// public address accepts any IP address, since any may have led here, but still no other name.
fn is_own_host(site: SocketAddr, is_public: bool, authority: &Authority) -> bool {
    if authority.as_str().contains('@') || authority.port_u16().unwrap_or(80) != site.port() {
        return false;
    }
    let addr: IpAddr = match Host::parse(authority.host()) {
        Ok(Host::Domain(name)) => return name == "localhost" && site.ip().is_loopback(),
        Ok(Host::Ipv4(addr)) => addr.into(),
        Ok(Host::Ipv6(addr)) => addr.into(),
        Err(_) => return false,
    };
    addr == site.ip() || is_public
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(
        site: &str,
        is_public: bool,
        host: &str,
        origin: Option<&str>,
        want: Result<(), HttpRefusal>,
    ) {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        let site = site.parse().unwrap();
        let met = check_target(site, is_public, &Method::GET, &Uri::from_static("/"), &headers);
        assert_eq!(met.map(drop), want, "{site} {host} {origin:?}");
    }

    #[test]
    fn h70_only_the_address_itself_is_meant() {
        for host in ["127.0.0.1:8077", "localhost:8077", "LOCALHOST:8077"] {
            check("127.0.0.1:8077", false, host, None, Ok(()));
        }
        check("[::1]:8077", false, "[::1]:8077", None, Ok(()));
        check("127.0.0.1:80", false, "127.0.0.1", None, Ok(()));
        for host in [
            "evil.example:8077",
            "evil.example",
            "127.0.0.1",
            "127.0.0.1:80",
            "127.0.0.1:8077:8077",
            "localhost.evil.example:8077",
            "127.0.0.1.evil.example:8077",
            "user@127.0.0.1:8077",
            "127.0.0.2:8077",
            "0.0.0.0:8077",
            "[::1]:8077",
            "",
        ] {
            check("127.0.0.1:8077", false, host, None, Err(WRONG_HOST));
        }
    }

    #[test]
    fn h70_where_others_may_come_any_number_is_meant_and_no_name() {
        check("0.0.0.0:8077", true, "192.168.1.5:8077", None, Ok(()));
        check("0.0.0.0:8077", true, "evil.example:8077", None, Err(WRONG_HOST));
        check("0.0.0.0:8077", true, "localhost:8077", None, Err(WRONG_HOST));
    }

    #[test]
    fn h70_no_page_of_another_origin_gets_in() {
        let check =
            |origin, want| check("127.0.0.1:8077", false, "127.0.0.1:8077", Some(origin), want);
        check("http://127.0.0.1:8077", Ok(()));
        for origin in [
            "null",
            "http://evil.example",
            "https://127.0.0.1:8077",
            "http://127.0.0.1",
            "http://127.0.0.1:8078",
            "http://localhost:8077",
            "http://127.0.0.1:8077/",
            "",
        ] {
            check(origin, Err(FOREIGN_ORIGIN));
        }
    }

    #[test]
    fn h70_no_page_of_another_port_gets_in_by_a_picture_or_a_frame() {
        let site = "127.0.0.1:8077".parse().unwrap();
        for (method, from, mode, dest, want) in [
            (Method::GET, "none", "navigate", "document", Ok(())),
            (Method::GET, "same-origin", "cors", "empty", Ok(())),
            (Method::POST, "same-origin", "cors", "empty", Ok(())),
            // A user follows the printed address from a page that shows a terminal.
            (Method::GET, "cross-site", "navigate", "document", Ok(())),
            (Method::GET, "same-site", "no-cors", "image", Err(FOREIGN_ORIGIN)),
            (Method::GET, "same-site", "no-cors", "script", Err(FOREIGN_ORIGIN)),
            (Method::GET, "same-site", "navigate", "iframe", Err(FOREIGN_ORIGIN)),
            (Method::GET, "cross-site", "navigate", "object", Err(FOREIGN_ORIGIN)),
            (Method::POST, "same-site", "navigate", "document", Err(FOREIGN_ORIGIN)),
            (Method::GET, "", "no-cors", "empty", Err(FOREIGN_ORIGIN)),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("host", "127.0.0.1:8077".parse().unwrap());
            headers.insert("sec-fetch-site", from.parse().unwrap());
            headers.insert("sec-fetch-mode", mode.parse().unwrap());
            headers.insert("sec-fetch-dest", dest.parse().unwrap());
            let met = check_target(site, false, &method, &Uri::from_static("/ui"), &headers);
            assert_eq!(met.map(drop), want, "{method} {from} {mode} {dest}");
        }
    }

    #[test]
    fn h70_what_stands_there_twice_or_means_nothing_is_refused() {
        let site = "127.0.0.1:8077".parse().unwrap();
        let met = |method: Method, uri: &str, headers: &[(&str, &str)]| {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                let name = header::HeaderName::from_bytes(name.as_bytes()).unwrap();
                map.append(name, value.parse().unwrap());
            }
            check_target(site, false, &method, &uri.parse().unwrap(), &map).map(drop)
        };
        let own = ("host", "127.0.0.1:8077");
        let page = ("origin", "http://127.0.0.1:8077");
        let evil = ("origin", "http://evil.example");
        assert_eq!(met(Method::GET, "http://127.0.0.1:8077/x", &[own, page]), Ok(()));
        assert_eq!(met(Method::GET, "/", &[]), Err(WRONG_HOST));
        assert_eq!(met(Method::GET, "/", &[own, ("host", "evil.example")]), Err(WRONG_HOST));
        assert_eq!(met(Method::GET, "http://evil.example/", &[own]), Err(WRONG_HOST));
        assert_eq!(met(Method::GET, "/", &[own, page, evil]), Err(FOREIGN_ORIGIN));
        assert_eq!(met(Method::TRACE, "/", &[own]), Err(FORBIDDEN_METHOD));
        assert_eq!(met(Method::CONNECT, "/", &[own]), Err(FORBIDDEN_METHOD));
    }

    #[test]
    fn h86_a_path_that_hides_where_it_leads_is_refused() {
        let mut headers = HeaderMap::new();
        headers.insert("host", "127.0.0.1:8077".parse().unwrap());
        let site = "127.0.0.1:8077".parse().unwrap();
        for (path, is_plain) in [
            ("/", true),
            ("/ui", true),
            ("/ui/", true),
            ("/hooks/a.b/..c/caf%C3%A9?x=../..", true),
            ("/hooks/../x", false),
            ("/hooks/./x", false),
            ("/hooks/..", false),
            ("/hooks/..;a/x", false),
            ("/hooks/%2e%2e/x", false),
            ("/hooks/.%2E/x", false),
            ("/hooks/%252e%252e/x", false),
            ("/hooks%2f..%2fx", false),
            ("/hooks/..%5cx", false),
            ("/hooks/..\\x", false),
            ("/hooks\\..\\x", false),
            ("//hooks/x", false),
            ("/hooks//x", false),
            ("/hooks/%00", false),
            ("/hooks/%0d%0ax", false),
            ("/hooks/%c0%ae%c0%ae/x", false),
            ("http://127.0.0.1:8077/hooks/../x", false),
            ("*", false),
        ] {
            // The parser refuses an invalid request target.
            let Ok(uri) = path.parse::<Uri>() else { continue };
            let met = check_target(site, false, &Method::GET, &uri, &headers).map(drop);
            assert_eq!(met, if is_plain { Ok(()) } else { Err(INVALID_PATH) }, "{path}");
        }
    }
}
