//! Keeps the pages of other sites from using the cookie of a browser that is logged in.
//!
//! A browser sends a cookie with every request to a host, whichever page made it, and to every port
//! of that host. So a request with a cookie has to prove that a page of the console made it. The
//! header `Origin` is checked for every request, in `protection`.

use http::{HeaderMap, Method};

use crate::problem::{Problem, ProblemKind};

/// The header that the console sends. A page of another origin cannot send it without asking first,
/// and the service answers no such question.
const CONSOLE_HEADER: &str = "sallyport-console";

/// Its value.
const CONSOLE_HEADER_VALUE: &str = "1";

/// The header in which browsers say which page made a request. They send it over TLS and to this
/// machine.
const SITE_HEADER: &str = "sec-fetch-site";

/// Refuses a request that may come from another page than those of the console.
///
/// # Errors
///
/// The browser says that it does, or nothing shows that it does not.
pub(crate) fn check_same_site(method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    let is_marked = headers.get(CONSOLE_HEADER).is_some_and(|value| value == CONSOLE_HEADER_VALUE);
    let is_safe = method.is_safe();
    match headers.get(SITE_HEADER).map(|value| value.as_bytes()) {
        Some(b"same-origin") if is_safe || is_marked => Ok(()),
        // The user typed the address, or opened a bookmark.
        Some(b"none") if is_safe || is_marked => Ok(()),
        None if is_marked => Ok(()),
        None | Some(b"same-origin" | b"none") => {
            let problem = foreign("a request with the cookie of the console needs its header");
            Err(problem.with_detail(format!("send `{CONSOLE_HEADER}: {CONSOLE_HEADER_VALUE}`")))
        }
        Some(_) => Err(foreign("pages of another origin cannot use the service")),
    }
}

fn foreign(title: &'static str) -> Problem {
    Problem::new(ProblemKind::ForeignOrigin, title)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_pages_of_the_console_use_its_cookie() {
        let rows = [
            (Some("same-origin"), Some("1"), true, true),
            (Some("same-origin"), None, true, false),
            (Some("none"), None, true, false),
            (Some("same-site"), Some("1"), false, false),
            (Some("cross-site"), Some("1"), false, false),
            (Some("cross-site"), None, false, false),
            (Some(""), Some("1"), false, false),
            (None, Some("1"), true, true),
            (None, Some("0"), false, false),
            (None, None, false, false),
        ];
        for (site, mark, may_read, may_change) in rows {
            let mut headers = HeaderMap::new();
            let named = [(SITE_HEADER, site), (CONSOLE_HEADER, mark)];
            for (name, value) in named.into_iter().filter_map(|(name, value)| Some((name, value?)))
            {
                headers.insert(name, HeaderValue::from_static(value));
            }
            let check = |method| check_same_site(&method, &headers).is_ok();
            assert_eq!(check(Method::GET), may_read, "{site:?} {mark:?}");
            assert_eq!(check(Method::POST), may_change, "{site:?} {mark:?}");
        }
    }
}
