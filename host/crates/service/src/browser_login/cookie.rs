//! The cookies of the console: of a log-in, and of what has begun elsewhere: a log-in at the identity
//! server, a sign-in at the service of a plugin.

use http::{HeaderMap, HeaderValue, header};

use crate::{origin::named_host, pending_return::BrowserIds};

/// The prefix with which a browser takes a cookie only over TLS, and from this very host.
const SECURE_PREFIX: &str = "__Host-";

/// The cookie of a log-in. It ends with the browser, or earlier with the log-in.
pub(crate) const LOGIN_COOKIE: ConsoleCookie =
    ConsoleCookie { name: "sallyport-console-", attributes: "Path=/; HttpOnly; SameSite=Strict" };

/// The cookie of a log-in that has begun at the identity server. The browser has to send it when
/// that server sends it back, so it is not strict; it says nothing of the user.
pub(crate) const SIGN_ON_COOKIE: ConsoleCookie =
    ConsoleCookie { name: "sallyport-sign-on-", attributes: "Path=/; HttpOnly; SameSite=Lax" };

/// The cookie of a sign-in that has begun at the service of a plugin, under the same conditions.
pub(crate) const CONNECT_COOKIE: ConsoleCookie =
    ConsoleCookie { name: "sallyport-connect-", attributes: "Path=/; HttpOnly; SameSite=Lax" };

/// A cookie. The port follows its name, because browsers send the cookies of one port to all others
/// of a host, and two services would overwrite each other's.
pub(crate) struct ConsoleCookie {
    name: &'static str,
    attributes: &'static str,
}

impl ConsoleCookie {
    /// The header that sets the cookie.
    pub(crate) fn set(&self, headers: &HeaderMap, is_over_tls: bool, value: &str) -> HeaderValue {
        self.line(headers, is_over_tls, value, "")
    }

    /// The header that removes the cookie.
    pub(crate) fn remove(&self, headers: &HeaderMap, is_over_tls: bool) -> HeaderValue {
        self.line(headers, is_over_tls, "", "; Max-Age=0")
    }

    /// The value of the cookie in a request.
    pub(super) fn find<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        self.find_over_tls(headers).or_else(|| self.find_plain(headers))
    }

    /// What a browser shows by this cookie.
    pub(crate) fn find_ids<'h>(&self, headers: &'h HeaderMap) -> BrowserIds<'h> {
        BrowserIds { over_tls: self.find_over_tls(headers), plain: self.find_plain(headers) }
    }

    /// The value of the cookie that was set over TLS. A neighbour of the host cannot set it.
    pub(super) fn find_over_tls<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        cookie_value(headers, &format!("{SECURE_PREFIX}{}", self.full_name(headers)))
    }

    /// The value of the cookie that was set without TLS.
    fn find_plain<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        cookie_value(headers, &self.full_name(headers))
    }

    fn line(&self, headers: &HeaderMap, is_over_tls: bool, value: &str, more: &str) -> HeaderValue {
        let (name, attributes) = (self.full_name(headers), self.attributes);
        let text = match is_over_tls {
            true => format!("{SECURE_PREFIX}{name}={value}; {attributes}; Secure{more}"),
            false => format!("{name}={value}; {attributes}{more}"),
        };
        // It is made of ASCII characters alone.
        HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""))
    }

    fn full_name(&self, headers: &HeaderMap) -> String {
        let port = named_host(headers).and_then(|host| host.port_u16()).unwrap_or_default();
        format!("{}{port}", self.name)
    }
}

/// The value of a cookie. A request with several of the name has none, because it is not clear which
/// counts.
fn cookie_value<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs =
        lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut values = pairs.filter(|(found, _)| *found == name).map(|(_, value)| value);
    let (value, None) = (values.next()?, values.next()) else { return None };
    Some(value)
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;
    use crate::origin::ServiceNames;

    fn headers(pairs: &[(HeaderName, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter().cloned();
        pairs.map(|(name, value)| (name, HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn a_cookie_is_bound_to_the_port_and_to_tls() {
        let rows = [
            ("127.0.0.1:8420", "http://127.0.0.1:8420", false, "sallyport-console-8420=x; ", false),
            ("[::1]:80", "http://[::1]:80", false, "sallyport-console-80=x; ", false),
            ("team.example", "https://team.example", false, "__Host-sallyport-console-0=x; ", true),
            ("team.example:8420", "", true, "__Host-sallyport-console-8420=x; ", true),
        ];
        for (host, origin, has_tls, start, is_secure) in rows {
            let headers = headers(&[(header::HOST, host), (header::ORIGIN, origin)]);
            let names = ServiceNames { has_tls, ..ServiceNames::default() };
            let made = LOGIN_COOKIE.set(&headers, names.is_over_tls(&headers), "x");
            let made = made.to_str().unwrap();
            assert!(made.starts_with(start) && made.contains(LOGIN_COOKIE.attributes), "{made}");
            assert_eq!(made.ends_with("; Secure"), is_secure, "{made}");
        }
    }

    #[test]
    fn one_cookie_of_the_own_name_counts() {
        let rows = [
            ("sallyport-console-1=a", Some("a")),
            ("x=y; sallyport-console-1=a; z", Some("a")),
            ("__Host-sallyport-console-1=b; sallyport-console-1=a", Some("b")),
            ("sallyport-console-1=a; sallyport-console-1=b", None),
            ("sallyport-console-2=a", None),
            ("sallyport-sign-on-1=a", None),
            ("sallyport-console-1", None),
            ("", None),
        ];
        for (line, id) in rows {
            let headers = headers(&[(header::HOST, "localhost:1"), (header::COOKIE, line)]);
            assert_eq!(LOGIN_COOKIE.find(&headers), id, "{line}");
        }
    }
}
