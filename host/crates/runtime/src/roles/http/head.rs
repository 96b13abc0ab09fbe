//! The head of a request, read as a whole and checked before a parser can repair it.
//!
//! A connection carries one request, so data after a body cannot be taken for a second one. An
//! ambiguous head is refused all the same, because a proxy in front may read it differently: a
//! length together with chunks, a line that is folded onto the next, a line that ends in a bare
//! line feed.

use std::io;

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::check::HttpRefusal;

/// Size limit of a head in bytes. Browsers send two to four thousand.
pub(super) const HEAD_BYTES_MAX: usize = 32 * 1024;

const TOO_LARGE: HttpRefusal =
    HttpRefusal(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "the head is longer than 32 KiB");
const INVALID_LINE_END: HttpRefusal = HttpRefusal(
    StatusCode::BAD_REQUEST,
    "a line of the head has to end in CR LF, and nothing else",
);
const FOLDED_LINE: HttpRefusal =
    HttpRefusal(StatusCode::BAD_REQUEST, "a line of the head goes on in the next one");
const DUPLICATE_LENGTH: HttpRefusal =
    HttpRefusal(StatusCode::BAD_REQUEST, "the length of the body is told more than once");
const UNSUPPORTED_CODING: HttpRefusal =
    HttpRefusal(StatusCode::BAD_REQUEST, "no transfer coding but chunked is understood");

/// Why a head could not be read.
#[derive(Debug)]
pub(super) enum HeadError {
    /// The client has disconnected.
    Disconnected,
    /// The head is refused.
    Refused(HttpRefusal),
}

impl From<io::Error> for HeadError {
    fn from(_: io::Error) -> Self {
        Self::Disconnected
    }
}

/// Reads up to the end of a head and checks it. Returns everything that was read, possibly more
/// than the head.
///
/// # Errors
///
/// The head is refused, or the client disconnects before its end.
pub(super) async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> Result<Bytes, HeadError> {
    let mut bytes = BytesMut::with_capacity(4096);
    let mut seen = 0;
    loop {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(HeadError::Disconnected);
        }
        let length = head_length(&bytes, seen).map_err(HeadError::Refused)?;
        if length.unwrap_or(bytes.len()) > HEAD_BYTES_MAX {
            return Err(HeadError::Refused(TOO_LARGE));
        }
        if let Some(length) = length {
            check_body_framing(&bytes[..length]).map_err(HeadError::Refused)?;
            return Ok(bytes.freeze());
        }
        // A line ending may arrive in two pieces.
        seen = bytes.len().saturating_sub(b"\r\n\r".len());
    }
}

/// The length of the head, if its end has arrived; the first `seen` bytes do not contain it.
fn head_length(bytes: &[u8], seen: usize) -> Result<Option<usize>, HttpRefusal> {
    for at in seen..bytes.len() {
        match bytes[at] {
            b'\n' if at == 0 || bytes[at - 1] != b'\r' => return Err(INVALID_LINE_END),
            b'\n' if bytes[..at].ends_with(b"\r\n\r") => return Ok(Some(at + 1)),
            b'\r' if bytes.get(at + 1).is_some_and(|next| *next != b'\n') => {
                return Err(INVALID_LINE_END);
            }
            _ => {}
        }
    }
    Ok(None)
}

/// Checks the lines that define the length of the body. The parser refuses all other mistakes.
fn check_body_framing(head: &[u8]) -> Result<(), HttpRefusal> {
    let lines = || head.split(|byte| *byte == b'\n').skip(1);
    if lines().any(|line| matches!(line.first(), Some(b' ' | b'\t'))) {
        return Err(FOLDED_LINE);
    }
    let codings: Vec<&[u8]> = header_values(lines(), "transfer-encoding").collect();
    if codings.len() + header_values(lines(), "content-length").count() > 1 {
        return Err(DUPLICATE_LENGTH);
    }
    let is_chunked = |value: &&[u8]| value.eq_ignore_ascii_case(b"chunked");
    if codings.iter().all(is_chunked) { Ok(()) } else { Err(UNSUPPORTED_CODING) }
}

/// The values of all lines with this name.
fn header_values<'h>(
    lines: impl Iterator<Item = &'h [u8]>,
    name: &str,
) -> impl Iterator<Item = &'h [u8]> {
    lines.filter_map(move |line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let is_named = line[..colon].trim_ascii().eq_ignore_ascii_case(name.as_bytes());
        is_named.then(|| line[colon + 1..].trim_ascii())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a head that arrives in pieces of this many bytes.
    async fn read_in(pieces: usize, text: &str) -> Result<Bytes, HeadError> {
        let (mut near, mut far) = tokio::io::duplex(pieces);
        let text = text.as_bytes().to_owned();
        let sent = tokio::spawn(async move {
            // An early-refused head is not read to its end.
            let _ = tokio::io::AsyncWriteExt::write_all(&mut far, &text).await;
        });
        let read = read_head(&mut near).await;
        drop(near);
        sent.await.unwrap();
        read
    }

    #[tokio::test]
    async fn a_head_is_read_to_its_end_however_it_comes() {
        let text = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\n";
        for pieces in [1, 2, 3, 7, 1000] {
            assert_eq!(read_in(pieces, text).await.unwrap(), text, "{pieces}");
            let half = read_in(pieces, &text[..text.len() - 1]).await;
            assert!(matches!(half, Err(HeadError::Disconnected)), "{pieces}: {half:?}");
        }
        let more = format!("{text}hello");
        assert_eq!(read_in(1000, &more).await.unwrap(), more);
    }

    #[tokio::test]
    async fn h86_a_head_that_two_readers_could_read_differently_is_refused() {
        let long = format!("X: {}\r\n", "x".repeat(HEAD_BYTES_MAX));
        for (lines, want) in [
            ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", DUPLICATE_LENGTH),
            ("transfer-encoding: chunked\r\ncontent-length: 5\r\n", DUPLICATE_LENGTH),
            ("Content-Length : 5\r\nTransfer-Encoding: chunked\r\n", DUPLICATE_LENGTH),
            ("Content-Length: 5\r\nContent-Length: 5\r\n", DUPLICATE_LENGTH),
            ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", DUPLICATE_LENGTH),
            ("Transfer-Encoding: gzip, chunked\r\n", UNSUPPORTED_CODING),
            ("Transfer-Encoding: xchunked\r\n", UNSUPPORTED_CODING),
            ("Transfer-Encoding:\r\n", UNSUPPORTED_CODING),
            ("X: a\r\n b\r\n", FOLDED_LINE),
            ("X: a\r\n\tTransfer-Encoding: chunked\r\n", FOLDED_LINE),
            ("X: a\nTransfer-Encoding: chunked\r\n", INVALID_LINE_END),
            ("X: a\rTransfer-Encoding: chunked\r\n", INVALID_LINE_END),
            (&long, TOO_LARGE),
        ] {
            for pieces in [1, 4096] {
                let text = format!("POST / HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
                match read_in(pieces, &text).await {
                    Err(HeadError::Refused(refusal)) => assert_eq!(refusal, want, "{lines}"),
                    other => panic!("{lines}: {other:?}"),
                }
            }
        }
        let bare = read_in(4096, "GET / HTTP/1.1\nHost: a\n\n").await;
        assert!(matches!(bare, Err(HeadError::Refused(INVALID_LINE_END))), "{bare:?}");
    }
}
