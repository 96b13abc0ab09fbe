//! Sends a request once more after a service refused the account's token with 401.
//!
//! A service that refuses the sign-in has done nothing yet, so the repetition does nothing twice.
//! The body is copied while it is sent, because a guest writes it once. A body that is longer than
//! [`COPIED_BYTES_MAX`], or that was not sent whole, is not repeated: the guest gets the 401.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Method, StatusCode, header::CONTENT_LENGTH};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full};
use wasmtime_wasi_http::{Error, WasiBody};

use super::{
    HttpGate,
    exchange::{PreparedRequest, UnreadResponse, send_permitted},
    request_check::PermittedRequest,
    timeouts::ExchangeTimeouts,
};

/// Longest body that is kept for a repetition, in bytes. Requests of tools are far shorter.
const COPIED_BYTES_MAX: usize = 1024 * 1024;

/// Sends a permitted request, and sends it again if the account's token is refused and can be
/// renewed. If the new token is refused too, the account has expired.
pub(super) async fn send_with_account(
    gate: &HttpGate,
    timeouts: &ExchangeTimeouts,
    prepared: &PreparedRequest,
    permitted: &PermittedRequest,
    body: WasiBody,
) -> Result<UnreadResponse, Error> {
    let (Some(refused), Some(call)) = (&permitted.account, gate.run_context.call()) else {
        return send_permitted(gate, timeouts, prepared, permitted, body).await;
    };
    let (body, copy) = copy_body(prepared, body);
    let answer = send_permitted(gate, timeouts, prepared, permitted, body).await?;
    if answer.response.status() != StatusCode::UNAUTHORIZED {
        return Ok(answer);
    }
    let authorizer = gate.run_context.authorizer();
    let Some(body) = copy.into_whole_body() else { return Ok(answer) };
    if !authorizer.renew_account(call, refused).await {
        return Ok(answer);
    }
    drop(answer);
    let permitted = gate.permit_repetition(prepared).await?;
    let answer = send_permitted(gate, timeouts, prepared, &permitted, body).await?;
    if answer.response.status() == StatusCode::UNAUTHORIZED {
        authorizer.expire_account(call).await;
    }
    Ok(answer)
}

/// A body that is copied while it is sent.
struct CopiedBody {
    body: WasiBody,
    /// The length of the body, if it is announced.
    length: Option<u64>,
    copy: BodyCopy,
}

/// The copy of a body.
#[derive(Clone, Default)]
struct BodyCopy(Arc<Mutex<CopyState>>);

#[derive(Default)]
struct CopyState {
    /// `None` if the body is too long.
    bytes: Option<Vec<u8>>,
    is_whole: bool,
    /// No part of it has to be read.
    is_unread: bool,
}

fn copy_body(prepared: &PreparedRequest, body: WasiBody) -> (WasiBody, BodyCopy) {
    let announced = prepared.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let length = body.size_hint().exact().or_else(|| announced?.trim().parse().ok());
    copy_announced_body(&prepared.method, length, body)
}

fn copy_announced_body(
    method: &Method,
    length: Option<u64>,
    body: WasiBody,
) -> (WasiBody, BodyCopy) {
    // A body that is announced as empty is not read at all, and neither is one of these methods.
    let is_unread = [Method::GET, Method::HEAD].contains(method) && length.is_none();
    let is_whole = body.is_end_stream() || length == Some(0);
    let copy = BodyCopy::default();
    *copy.state() = CopyState { bytes: Some(Vec::new()), is_whole, is_unread };
    let copied = CopiedBody { body, length, copy: copy.clone() };
    (copied.boxed_unsync(), copy)
}

impl BodyCopy {
    fn state(&self) -> std::sync::MutexGuard<'_, CopyState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, piece: &Bytes, length: Option<u64>) {
        let mut state = self.state();
        state.is_unread = false;
        let bytes = state.bytes.take();
        let fits = |bytes: &Vec<u8>| bytes.len() + piece.len() <= COPIED_BYTES_MAX;
        state.bytes = bytes.filter(fits).map(|mut bytes| {
            bytes.extend_from_slice(piece);
            bytes
        });
        let copied = state.bytes.as_ref().map(|bytes| bytes.len() as u64);
        // A body of an announced length is not read to its end.
        state.is_whole |= length.is_some() && copied == length;
    }

    /// The body to send again, if it is whole.
    fn into_whole_body(self) -> Option<WasiBody> {
        let mut state = self.state();
        let is_whole = state.is_whole || state.is_unread;
        let bytes = state.bytes.take().filter(|_| is_whole)?;
        Some(Full::new(Bytes::from(bytes)).map_err(|never| match never {}).boxed_unsync())
    }
}

impl Body for CopiedBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(piece) = frame.data_ref() {
                    self.copy.push(piece, self.length);
                }
            }
            Some(Err(_)) => {}
            None => self.copy.state().is_whole = true,
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use http_body_util::{Empty, StreamBody};

    use super::*;

    fn pieces(pieces: Vec<Result<Bytes, Error>>) -> WasiBody {
        let frames = pieces.into_iter().map(|piece| piece.map(Frame::data));
        StreamBody::new(stream::iter(frames)).boxed_unsync()
    }

    fn full(bytes: Bytes) -> WasiBody {
        Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
    }

    /// Reads some frames of a body, and returns its copy.
    async fn copy_after(method: Method, body: WasiBody, frames: usize) -> Option<Bytes> {
        let length = body.size_hint().exact();
        copy_announced(method, length, body, frames).await
    }

    async fn copy_announced(
        method: Method,
        length: Option<u64>,
        body: WasiBody,
        frames: usize,
    ) -> Option<Bytes> {
        let (mut body, copy) = copy_announced_body(&method, length, body);
        for _ in 0..frames {
            let _ = body.frame().await;
        }
        Some(copy.into_whole_body()?.collect().await.unwrap().to_bytes())
    }

    #[tokio::test]
    async fn a_body_is_repeated_if_it_was_sent_whole_and_is_not_too_long() {
        let largest = Bytes::from(vec![b'x'; COPIED_BYTES_MAX]);
        let parts = || vec![Ok("hello ".into()), Ok("world".into())];
        for (body, frames, want) in [
            (full("hello".into()), 1, Some("hello".into())),
            (full("hello".into()), 0, None),
            (Empty::new().map_err(|never| match never {}).boxed_unsync(), 0, Some(Bytes::new())),
            (pieces(parts()), 3, Some("hello world".into())),
            (pieces(parts()), 1, None),
            (pieces(vec![Ok("hello".into()), Err(Error::HttpProtocolError)]), 2, None),
            (full(largest.clone()), 1, Some(largest.clone())),
            (pieces(vec![Ok(largest), Ok("x".into())]), 3, None),
        ] {
            assert_eq!(copy_after(Method::POST, body, frames).await, want);
        }
        // A header announced the length, and nobody reads on after the last byte.
        for (length, frames, want) in
            [(11, 2, Some("hello world".into())), (11, 1, None), (12, 2, None)]
        {
            let copied = copy_announced(Method::POST, Some(length), pieces(parts()), frames);
            assert_eq!(copied.await, want, "{length} {frames}");
        }
        // The body of a GET is not read if its length is not announced.
        for (frames, want) in [(0, Some(Bytes::new())), (1, None), (3, Some("hello world".into()))]
        {
            assert_eq!(copy_after(Method::GET, pieces(parts()), frames).await, want);
        }
    }
}
