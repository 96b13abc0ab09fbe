//! A response that is read while it arrives.

use super::{HttpError, Response, sse::Events};
use crate::host;

/// A response whose body is still arriving.
///
/// ```
/// use sallyport_sdk::{http, testing};
///
/// testing::http(|_| Ok(http::Response::new(200, "one line\nand another")));
/// let mut answer = http::get("https://a.example/").open()?.success()?;
/// let mut bytes = 0;
/// while let Some(piece) = answer.piece()? {
///     bytes += piece.len();
/// }
/// assert_eq!(bytes, 20);
/// # Ok::<(), http::HttpError>(())
/// ```
#[derive(Debug)]
pub struct Stream {
    /// The status code, such as 200.
    pub status: u16,
    /// The headers as names and values, in order. A header whose value is not UTF-8 is left out.
    pub headers: Vec<(String, String)>,
    body: host::http::Body,
    room: Room,
}

/// How much of the body may still arrive.
#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) origin: String,
    pub(crate) body_bytes_max: usize,
    pub(crate) taken_bytes: usize,
}

impl Stream {
    pub(crate) fn new(
        status: u16,
        headers: Vec<(String, String)>,
        body: host::http::Body,
        room: Room,
    ) -> Self {
        Self { status, headers, body, room }
    }

    /// Waits for the next piece of the body; `None` after the last one. Pieces are split anywhere,
    /// even within a character.
    ///
    /// # Errors
    ///
    /// The connection breaks, the timeout of the request expires, or the body is longer than the
    /// request allows.
    pub fn piece(&mut self) -> Result<Option<Vec<u8>>, HttpError> {
        let Some(piece) = self.body.piece()? else { return Ok(None) };
        self.room.taken_bytes = self.room.taken_bytes.saturating_add(piece.len());
        if self.room.taken_bytes > self.room.body_bytes_max {
            let Room { origin, body_bytes_max, .. } = &self.room;
            return Err(HttpError::TooLarge {
                origin: origin.clone(),
                body_bytes_max: *body_bytes_max,
            });
        }
        Ok(Some(piece))
    }

    /// Waits for the complete body.
    ///
    /// # Errors
    ///
    /// See [`piece`](Self::piece).
    pub fn whole(mut self) -> Result<Response, HttpError> {
        let mut body = Vec::new();
        while let Some(piece) = self.piece()? {
            body.extend(piece);
        }
        Ok(Response { status: self.status, headers: self.headers, body })
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

    /// Reads the body as server-sent events.
    ///
    /// ```
    /// use sallyport_sdk::{http, testing};
    ///
    /// testing::http(|_| Ok(http::Response::new(200, "data: one\n\ndata: two\n\n")));
    /// let events = http::get("https://a.example/").open()?.events();
    /// let data: Result<Vec<String>, _> = events.map(|event| Ok(event?.data)).collect();
    /// assert_eq!(data?, ["one", "two"]);
    /// # Ok::<(), http::HttpError>(())
    /// ```
    pub fn events(self) -> Events {
        Events::new(self)
    }
}
