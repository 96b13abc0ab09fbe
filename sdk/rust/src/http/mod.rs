//! HTTP requests, sent by the host when the policy grants their destination.
//!
//! [`Request::send`] blocks until the whole answer is there; a call is a fresh instance with
//! nothing else to do. [`Request::open`] blocks until the answer begins, for bodies that are read
//! as they arrive. Redirects are not followed: a redirect is an answer like any other, and its
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

/// How long a request may take when it does not say: long enough for a slow service, short enough
/// to leave time for an answer to the user.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// How long an answer may be when the request does not say: an instance holds it in memory whole,
/// and then again as parsed JSON.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What a request does.
///
/// ```
/// use sallyport_sdk::http::Method;
///
/// assert_eq!(Method::Delete.word(), "DELETE");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the methods of HTTP")]
pub enum Method {
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    /// Returns the word that goes over the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
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
    /// What it does.
    pub method: Method,
    /// Where it goes, with its query.
    pub url: String,
    /// Names and values, in order.
    pub headers: Vec<(String, String)>,
    /// What it carries.
    pub body: Vec<u8>,
    /// How long the whole exchange may take.
    pub timeout: Duration,
    /// How long the answer's body may be.
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

/// Starts a request of any method.
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

    /// Carries bytes. Say what they are with a `Content-Type` header.
    pub fn body(self, bytes: impl Into<Vec<u8>>) -> Self {
        Self { body: bytes.into(), ..self }
    }

    /// Carries JSON, with its `Content-Type`.
    pub fn json(self, value: impl Into<Value>) -> Self {
        self.header("Content-Type", "application/json").body(value.into().to_string())
    }

    /// Changes how long the whole exchange may take.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Changes how long the answer's body may be.
    pub fn body_bytes_max(self, body_bytes_max: usize) -> Self {
        Self { body_bytes_max, ..self }
    }

    /// Sends the request and waits for the whole answer, whatever its status.
    ///
    /// # Errors
    ///
    /// A URL or a header that cannot be sent, a refusal of the host, a service that cannot be
    /// reached or is too slow, an answer that is too long.
    pub fn send(self) -> Result<Response, HttpError> {
        self.open()?.whole()
    }

    /// Sends the request and waits until its answer begins, whatever its status. The time of the
    /// request goes on while the body is read.
    ///
    /// # Errors
    ///
    /// A URL or a header that cannot be sent, a refusal of the host, a service that cannot be
    /// reached or is too slow.
    pub fn open(self) -> Result<Stream, HttpError> {
        url::split(&self.url)?;
        crate::host::http::open(&self)
    }

    /// Returns scheme and host, the part of the URL that may be shown to a model.
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

/// An answer, whole.
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
    /// Such as 200.
    pub status: u16,
    /// Names and values, in order. A value that is not text is left out.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// Makes an answer; tests hand these out.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into() }
    }

    /// Adds a header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Returns the first header of that name, in capitals or not.
    pub fn header_value(&self, name: &str) -> Option<&str> {
        let same = |(header, _): &&(String, String)| header.eq_ignore_ascii_case(name);
        self.headers.iter().find(same).map(|(_, value)| value.as_str())
    }

    /// Returns the answer when its status is a success.
    ///
    /// # Errors
    ///
    /// Any status outside 200 to 299.
    pub fn success(self) -> Result<Self, HttpError> {
        match self.status {
            200..=299 => Ok(self),
            status => Err(HttpError::Status { status }),
        }
    }

    /// Reads the body as text.
    ///
    /// # Errors
    ///
    /// A body that is not UTF-8.
    pub fn text(self) -> Result<String, HttpError> {
        String::from_utf8(self.body).map_err(|e| HttpError::Body { reason: e.to_string() })
    }

    /// Reads the body as JSON.
    ///
    /// # Errors
    ///
    /// A body that is not JSON, or other JSON than the type expects.
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
