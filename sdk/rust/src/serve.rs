//! Incoming HTTP requests: pages and hooks that a listener or a UI serves.
//!
//! The host opens the socket, checks the client, and passes complete requests to the plugin, which
//! answers each with a [`Response`]. The operator chooses the path under which a plugin is served,
//! so match the end of a path, and use relative URLs in pages.
//!
//! ```
//! use sallyport_sdk::{http::Response, serve::Request};
//!
//! fn serve(request: Request) -> Response {
//!     match (request.method.as_str(), request.last_segment()) {
//!         ("GET", "health") => Response::new(200, "ok"),
//!         _ => Response::new(404, "there is nothing here"),
//!     }
//! }
//!
//! sallyport_sdk::export_plugin!(http = serve);
//!
//! # fn main() {
//! assert_eq!(serve(Request::new("GET", "/hooks/health")).status, 200);
//! # }
//! ```

use std::{error::Error, fmt};

use serde::de::DeserializeOwned;

use crate::http::Response;

/// Longest body of a request, in bytes: more than any form or hook needs, and small enough for
/// memory. The SDK answers a longer one with status 413.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;

/// A complete request.
///
/// ```
/// use sallyport_sdk::serve::Request;
///
/// let request = Request::new("GET", "/page/events?after=3&q=a%20b+c");
/// assert_eq!(request.last_segment(), "events");
/// assert_eq!(request.query_value("after").as_deref(), Some("3"));
/// assert_eq!(request.query_value("q").as_deref(), Some("a b c"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The method, such as `GET`.
    pub method: String,
    /// The path, without the query. Starts with `/`.
    pub path: String,
    /// The text after `?`, not decoded.
    pub query: Option<String>,
    /// The headers as names and values, in order. A header whose value is not UTF-8 is left out.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Request {
    /// Makes a request, for tests.
    pub fn new(method: impl Into<String>, path_and_query: &str) -> Self {
        let (path, query) = match path_and_query.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (path_and_query, None),
        };
        let path = if path.is_empty() { "/" } else { path }.to_owned();
        Self { method: method.into(), path, query, headers: Vec::new(), body: Vec::new() }
    }

    /// Adds a header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body.
    pub fn body(self, body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..self }
    }

    /// Returns the part of the path after the last `/`; empty if the path ends with `/`.
    pub fn last_segment(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the value of the first header with that name, ignoring case.
    pub fn header_value(&self, name: &str) -> Option<&str> {
        let same = |(header, _): &&(String, String)| header.eq_ignore_ascii_case(name);
        self.headers.iter().find(same).map(|(_, value)| value.as_str())
    }

    /// Returns the first value with that name in the query, decoded.
    pub fn query_value(&self, name: &str) -> Option<String> {
        let pairs = self.query.as_deref()?.split('&');
        let mut pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        pairs.find(|(key, _)| decode(key) == name).map(|(_, value)| decode(value))
    }

    /// Returns the media type of the body in lower case, without parameters; empty if the request
    /// has none.
    ///
    /// ```
    /// use sallyport_sdk::serve::Request;
    ///
    /// let request = Request::new("POST", "/").header("Content-Type", "Text/Plain; charset=utf-8");
    /// assert_eq!(request.media_type(), "text/plain");
    /// ```
    pub fn media_type(&self) -> String {
        let value = self.header_value("content-type").unwrap_or_default();
        value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }

    /// Returns the body as text.
    ///
    /// # Errors
    ///
    /// The body is not UTF-8.
    pub fn text(&self) -> Result<&str, BadRequest> {
        std::str::from_utf8(&self.body)
            .map_err(|_| BadRequest { reason: "the body is not UTF-8".to_owned() })
    }

    /// Parses the body as JSON.
    ///
    /// # Errors
    ///
    /// The body is not JSON, or does not match the type.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, BadRequest> {
        serde_json::from_slice(&self.body).map_err(|e| BadRequest { reason: e.to_string() })
    }
}

/// Why a request is invalid. Converts into a response with status 400 that contains the reason.
///
/// ```
/// use sallyport_sdk::{http::Response, serve::Request};
///
/// let bad = Request::new("POST", "/").body("{").json::<u8>().unwrap_err();
/// assert_eq!(Response::from(bad).status, 400);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRequest {
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for BadRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the request cannot be understood: {}", self.reason)
    }
}

impl Error for BadRequest {}

impl From<BadRequest> for Response {
    fn from(bad: BadRequest) -> Self {
        json(400, &serde_json::json!({ "error": bad.to_string() }))
    }
}

/// Makes a JSON response.
///
/// ```
/// use sallyport_sdk::{prelude::*, serve};
///
/// let answer = serve::json(202, &json!({ "accepted": true }));
/// assert_eq!(answer.header_value("content-type"), Some("application/json"));
/// ```
pub fn json(status: u16, value: &serde_json::Value) -> Response {
    Response::new(status, value.to_string()).header("Content-Type", "application/json")
}

/// Decodes a part of a query in form encoding. Invalid escapes stay as they are.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        bytes.push(match (first, escaped(after)) {
            (b'%', Some(byte)) => {
                rest = &after[2..];
                byte
            }
            (b'+', _) => b' ',
            _ => first,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn escaped(after: &[u8]) -> Option<u8> {
    let digits = after.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded_with_care() {
        for (query, want) in [
            ("q=a", Some("a")),
            ("x=1&q=b&q=c", Some("b")),
            ("q", Some("")),
            ("q=%C3%BC%26", Some("ü&")),
            ("q=100%&x=%zz", Some("100%")),
            ("q=%+f", Some("% f")),
            ("q=%ff", Some("\u{fffd}")),
            ("%71=x", Some("x")),
            ("p=q", None),
        ] {
            let request = Request::new("GET", &format!("/x?{query}"));
            assert_eq!(request.query_value("q").as_deref(), want, "{query}");
        }
        assert_eq!(Request::new("GET", "/x").query_value("q"), None);
    }

    #[test]
    fn the_last_segment_says_what_is_meant() {
        for (path, want) in
            [("/", ""), ("", ""), ("/a", "a"), ("/a/b", "b"), ("/a/", ""), ("/a/b?c/d", "b")]
        {
            assert_eq!(Request::new("GET", path).last_segment(), want, "{path}");
        }
    }
}
