//! The handshake of a WebSocket (RFC 6455, 4.2).

use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, header};
use tokio_tungstenite::tungstenite::{
    Error, error::ProtocolError, handshake::server::create_response_with_body,
};

/// Why a request opens no WebSocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandshakeError {
    /// It is no handshake.
    NoHandshake,
    /// It is one of another version than 13.
    OtherVersion,
}

/// Returns the answer to a handshake. The caller upgrades the connection after it.
///
/// # Errors
///
/// The request is not exactly one handshake.
pub fn answer_handshake<B, T>(
    request: &mut Request<B>,
    body: impl FnOnce() -> T,
) -> Result<Response<T>, HandshakeError> {
    let headers = request.headers_mut();
    // Different readers would pick different ones of several values.
    for (name, error) in [
        (header::SEC_WEBSOCKET_KEY, HandshakeError::NoHandshake),
        (header::SEC_WEBSOCKET_VERSION, HandshakeError::OtherVersion),
    ] {
        single_header_value(headers, name).ok_or(error)?;
    }
    // These are lists, of which the library reads the first line only.
    for (name, word) in [(header::CONNECTION, "upgrade"), (header::UPGRADE, "websocket")] {
        if has_header_word(headers, &name, word) {
            headers.insert(name, HeaderValue::from_static(word));
        }
    }
    create_response_with_body(request, body).map_err(|error| match error {
        Error::Protocol(ProtocolError::MissingSecWebSocketVersionHeader) => {
            HandshakeError::OtherVersion
        }
        _ => HandshakeError::NoHandshake,
    })
}

/// The value of a header that occurs exactly once.
pub fn single_header_value(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).into_iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// Whether a header lists a word, in any of its lines.
fn has_header_word(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    let lines = headers.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|part| part.trim().eq_ignore_ascii_case(word))
}
