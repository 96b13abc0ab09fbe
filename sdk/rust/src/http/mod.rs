//! HTTP requests, sent by the host if the policy grants their destination.
//!
//! [`Request::send`] blocks until the complete response has arrived; a call has nothing else to do
//! meanwhile. [`Request::open`] blocks until the response begins, for bodies that are read as they
//! arrive. Redirects are not followed: a redirect is returned like any other response, because its
//! target needs a grant of its own.
//!
//! ```
//! use sallyport_sdk::{http, prelude::*, testing};
//!
//! #[derive(Deserialize)]
//! struct Rates {
//!     eur: f64,
//! }
//!
//! fn rates(day: &str) -> Result<Rates, ToolError> {
//!     Ok(http::get("https://rates.example/v1").query("day", day).send()?.success()?.json()?)
//! }
//!
//! testing::http(|request| {
//!     assert_eq!(request.url, "https://rates.example/v1?day=2026-11-22");
//!     Ok(http::Response::new(200, r#"{"eur": 1.08}"#))
//! });
//! assert_eq!(rates("2026-11-22").unwrap().eur, 1.08);
//! ```

mod error;
mod sse;
mod stream;
mod url;
#[cfg(target_family = "wasm")]
pub(crate) mod wasi;

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;

pub use error::HttpError;
pub use sse::{EVENT_BYTES_MAX, Events, ServerEvent};
pub(crate) use stream::Room;
pub use stream::Stream;

/// The default timeout of a request: long enough for a slow service, short enough to leave time for
/// an answer to the user.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// The default limit of a response body, in bytes. A plugin has the body in memory, and often also
/// as parsed JSON.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The method of a request.
///
/// ```
/// use sallyport_sdk::http::Method;
///
/// assert_eq!(Method::Delete.word(), "DELETE");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the methods of HTTP, and the query of CalDAV")]
pub enum Method {
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
    Report,
}

impl Method {
    /// Returns the method as it is sent.
    pub fn word(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::Report => "REPORT",
        }
    }
}

/// A request that has not been sent yet.
///
/// ```
/// use std::time::Duration;
///
/// use sallyport_sdk::http::{self, Method};
///
/// let request = http::request(Method::Put, "https://api.example/v1/lamps")
///     .query("room", "living room")
///     .header("Accept", "application/json")
///     .json(serde_json::json!({ "on": true }))
///     .timeout(Duration::from_secs(2));
/// assert_eq!(request.url, "https://api.example/v1/lamps?room=living%20room");
/// assert_eq!(request.body, br#"{"on":true}"#);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a request does nothing until it is sent"]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The URL, with its query.
    pub url: String,
    /// The headers as names and values, in order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// The timeout of the whole exchange, including the body of the response.
    pub timeout: Duration,
    /// The longest response body that is accepted, in bytes.
    pub body_bytes_max: usize,
}

/// Starts a GET request.
///
/// ```
/// use sallyport_sdk::http::{self, Method};
///
/// assert_eq!(http::get("https://api.example/").method, Method::Get);
/// ```
pub fn get(url: impl Into<String>) -> Request {
    request(Method::Get, url)
}

/// Starts a POST request.
///
/// ```
/// use sallyport_sdk::http::{self, Method};
///
/// assert_eq!(http::post("https://api.example/").method, Method::Post);
/// ```
pub fn post(url: impl Into<String>) -> Request {
    request(Method::Post, url)
}

/// Starts a request with any method.
///
/// ```
/// use sallyport_sdk::http::{self, Method};
///
/// assert_eq!(http::request(Method::Head, "https://api.example/").url, "https://api.example/");
/// ```
pub fn request(method: Method, url: impl Into<String>) -> Request {
    Request {
        method,
        url: url.into(),
        headers: Vec::new(),
        body: Vec::new(),
        timeout: TIMEOUT,
        body_bytes_max: BODY_BYTES_MAX,
    }
}

impl Request {
    /// Adds `name=value` to the query, both percent-encoded.
    pub fn query(mut self, name: &str, value: impl AsRef<str>) -> Self {
        url::push_query(&mut self.url, name, value.as_ref());
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body. Describe its format with a `Content-Type` header.
    pub fn body(self, bytes: impl Into<Vec<u8>>) -> Self {
        Self { body: bytes.into(), ..self }
    }

    /// Sets the body to JSON, and adds the matching `Content-Type` header.
    pub fn json(self, value: impl Into<Value>) -> Self {
        self.header("Content-Type", "application/json").body(value.into().to_string())
    }

    /// Sets the timeout of the whole exchange, including the body of the response.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Sets the longest response body that is accepted, in bytes.
    pub fn body_bytes_max(self, body_bytes_max: usize) -> Self {
        Self { body_bytes_max, ..self }
    }

    /// Sends the request and waits for the complete response, regardless of its status.
    ///
    /// # Errors
    ///
    /// The URL or a header is invalid, the host denies the request, the service cannot be reached
    /// or is too slow, or the response is too long.
    pub fn send(self) -> Result<Response, HttpError> {
        self.open()?.whole()
    }

    /// Sends the request and waits until the response begins, regardless of its status. The timeout
    /// of the request also covers reading the body.
    ///
    /// # Errors
    ///
    /// The URL or a header is invalid, the host denies the request, or the service cannot be
    /// reached or is too slow.
    pub fn open(self) -> Result<Stream, HttpError> {
        url::split(&self.url)?;
        crate::host::http::open(&self)
    }

    /// Returns scheme and host, the part of the URL that a model may see.
    pub(crate) fn origin(&self) -> String {
        match url::split(&self.url) {
            Ok(target) => format!("{}://{}", target.scheme, target.authority),
            Err(_) => "the service".to_owned(),
        }
    }

    pub(crate) fn room(&self) -> Room {
        Room { origin: self.origin(), body_bytes_max: self.body_bytes_max, taken_bytes: 0 }
    }
}

/// A complete response.
///
/// ```
/// use sallyport_sdk::http::Response;
///
/// let response = Response::new(200, "[1, 2]").header("Content-Type", "application/json");
/// assert_eq!(response.header_value("content-type"), Some("application/json"));
/// assert_eq!(response.success()?.json::<Vec<u8>>()?, [1, 2]);
/// # Ok::<(), sallyport_sdk::http::HttpError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status code, such as 200.
    pub status: u16,
    /// The headers as names and values, in order. A header whose value is not UTF-8 is left out.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// Makes a response, for tests and for HTTP plugins.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into() }
    }

    /// Adds a header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Returns the value of the first header with that name, ignoring case.
    pub fn header_value(&self, name: &str) -> Option<&str> {
        let same = |(header, _): &&(String, String)| header.eq_ignore_ascii_case(name);
        self.headers.iter().find(same).map(|(_, value)| value.as_str())
    }

    /// Returns the response if its status is a success.
    ///
    /// # Errors
    ///
    /// The status is outside 200 to 299.
    pub fn success(self) -> Result<Self, HttpError> {
        match self.status {
            200..=299 => Ok(self),
            status => Err(HttpError::Status { status }),
        }
    }

    /// Returns the body as text.
    ///
    /// # Errors
    ///
    /// The body is not UTF-8.
    pub fn text(self) -> Result<String, HttpError> {
        String::from_utf8(self.body).map_err(|e| HttpError::Body { reason: e.to_string() })
    }

    /// Parses the body as JSON.
    ///
    /// # Errors
    ///
    /// The body is not JSON, or does not match the type.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, HttpError> {
        serde_json::from_slice(&self.body).map_err(|e| HttpError::Body { reason: e.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn without_a_grant_a_request_is_denied() {
        let error = get("https://a.example/secret?key=1").send().unwrap_err();
        assert_eq!(error, HttpError::Denied { origin: "https://a.example".to_owned() });
    }

    #[test]
    fn a_request_that_cannot_be_sent_reaches_nobody() {
        testing::http(|request| panic!("{request:?}"));
        let error = get("https://a.example/a b").send().unwrap_err();
        assert!(matches!(error, HttpError::Invalid { .. }), "{error}");
    }

    #[test]
    fn an_answer_has_a_longest_length() {
        testing::http(|_| Ok(Response::new(200, "12345")));
        let send = |bytes| get("https://a.example/").body_bytes_max(bytes).send();
        assert_eq!(send(5).unwrap().body, b"12345");
        let origin = "https://a.example".to_owned();
        assert_eq!(send(4), Err(HttpError::TooLarge { origin, body_bytes_max: 4 }));
    }

    #[test]
    fn answers_are_read_with_care() {
        for (response, want) in [
            (Response::new(200, "{}").success(), Ok(())),
            (Response::new(204, "").success(), Ok(())),
            (Response::new(302, "").success(), Err(302)),
            (Response::new(404, "").success(), Err(404)),
        ] {
            let want = want.map_err(|status| HttpError::Status { status });
            assert_eq!(response.map(|_| ()), want);
        }
        assert!(matches!(
            Response::new(200, "<html>").json::<Value>(),
            Err(HttpError::Body { .. })
        ));
        assert!(matches!(Response::new(200, [0xff]).text(), Err(HttpError::Body { .. })));
    }
}
