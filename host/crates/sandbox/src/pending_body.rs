//! A body that has not been sent yet. It is streamed if no question is asked about it, and
//! otherwise collected first, because the user can only decide about a complete body.

use bytes::Bytes;
use http_body::Body;
use http_body_util::{BodyExt, Empty, Full, LengthLimitError, Limited};
use tokio::sync::Mutex;
use wasmtime_wasi_http::WasiBody;

/// Longest body that is held for a question, in bytes. No user reads more than that.
const BUFFERED_BYTES_MAX: usize = 1024 * 1024;

/// The reason why a body cannot be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyBufferError {
    /// The body is longer than a question allows.
    #[error("its body is longer than 1 MiB, and no question shows more than that")]
    TooLong,
    /// The guest took too long to write the body, or broke off.
    #[error("its body was not finished, and no question is asked about a part of it")]
    Unfinished,
}

/// The body of a request that waits for a decision.
pub struct PendingBody(Mutex<PendingBodyState>);

enum PendingBodyState {
    /// The body has not been read.
    Unread(WasiBody),
    /// The body has arrived completely, or never will.
    Buffered(Result<Bytes, BodyBufferError>),
}

impl PendingBody {
    pub(crate) fn new(body: WasiBody) -> Self {
        Self(Mutex::new(PendingBodyState::Unread(body)))
    }

    /// Waits for the whole body and keeps it for sending. The guest must run in the meantime: it
    /// may still be writing.
    pub(crate) async fn buffer_body(&self) {
        let mut pending = self.0.lock().await;
        if let PendingBodyState::Unread(body) = &mut *pending {
            *pending = PendingBodyState::Buffered(collect_body(body).await);
        }
    }

    /// Stops waiting. The rest of the body is not sent either.
    pub(crate) async fn stop_buffering(&self) {
        let mut pending = self.0.lock().await;
        if let PendingBodyState::Unread(_) = &*pending {
            *pending = PendingBodyState::Buffered(Err(BodyBufferError::Unfinished));
        }
    }

    /// Returns the whole body, if it has arrived.
    ///
    /// # Errors
    ///
    /// The body is longer than 1 MiB, or the guest did not finish it.
    pub async fn buffered_body(&self) -> Result<Bytes, BodyBufferError> {
        match &*self.0.lock().await {
            PendingBodyState::Buffered(result) => result.clone(),
            PendingBodyState::Unread(body) if body.is_end_stream() => Ok(Bytes::new()),
            PendingBodyState::Unread(_) => Err(BodyBufferError::Unfinished),
        }
    }

    /// The body to send: the stream that the guest is still writing, or the bytes that are held.
    ///
    /// # Errors
    ///
    /// The body was to be held and could not be. Part of it has been read already, so it cannot be
    /// sent any more, even if the request has been allowed without a question in the meantime.
    pub(crate) fn into_body(self) -> Result<WasiBody, BodyBufferError> {
        match self.0.into_inner() {
            PendingBodyState::Unread(body) => Ok(body),
            PendingBodyState::Buffered(Ok(bytes)) if bytes.is_empty() => {
                Ok(Empty::new().map_err(|never| match never {}).boxed_unsync())
            }
            PendingBodyState::Buffered(Ok(bytes)) => {
                Ok(Full::new(bytes).map_err(|never| match never {}).boxed_unsync())
            }
            PendingBodyState::Buffered(Err(error)) => Err(error),
        }
    }
}

async fn collect_body(body: &mut WasiBody) -> Result<Bytes, BodyBufferError> {
    match Limited::new(body, BUFFERED_BYTES_MAX).collect().await {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(BodyBufferError::TooLong),
        Err(_) => Err(BodyBufferError::Unfinished),
    }
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use http_body::Frame;
    use http_body_util::StreamBody;
    use wasmtime_wasi_http::Error;

    use super::*;

    fn pieces(pieces: Vec<Result<Bytes, Error>>) -> PendingBody {
        let frames = pieces.into_iter().map(|piece| piece.map(Frame::data));
        PendingBody::new(StreamBody::new(stream::iter(frames)).boxed_unsync())
    }

    async fn sent(body: PendingBody) -> Bytes {
        body.into_body().unwrap().collect().await.unwrap().to_bytes()
    }

    #[tokio::test]
    async fn what_is_held_is_what_is_sent() {
        let body = || pieces(vec![Ok("hello ".into()), Ok("world".into())]);
        assert_eq!(sent(body()).await, "hello world");
        let result = body();
        assert_eq!(
            result.buffered_body().await,
            Err(BodyBufferError::Unfinished),
            "nobody has waited for it"
        );
        for _ in 0..2 {
            result.buffer_body().await;
            assert_eq!(result.buffered_body().await, Ok(Bytes::from("hello world")));
        }
        assert_eq!(sent(result).await, "hello world");
        let none = pieces(Vec::new());
        none.buffer_body().await;
        assert_eq!(none.buffered_body().await, Ok(Bytes::new()));
        assert_eq!(sent(none).await, "");
    }

    #[tokio::test]
    async fn what_cannot_be_shown_whole_is_not_held() {
        let full = Bytes::from(vec![b'x'; BUFFERED_BYTES_MAX]);
        let broken = Err(Error::HttpProtocolError);
        for (all, want) in [
            (vec![Ok(full.clone())], Ok(full.clone())),
            (vec![Ok(full), Ok("x".into())], Err(BodyBufferError::TooLong)),
            (vec![Ok("x".into()), broken], Err(BodyBufferError::Unfinished)),
        ] {
            let body = pieces(all);
            body.buffer_body().await;
            assert_eq!(body.buffered_body().await, want);
        }
    }

    /// An approval can arrive while the body is read. Then no question is asked, and nothing looks
    /// at the body before it is sent.
    #[tokio::test]
    async fn a_body_that_could_not_be_held_is_not_sent_as_an_empty_one() {
        let full = Bytes::from(vec![b'x'; BUFFERED_BYTES_MAX]);
        let broken = Err(Error::HttpProtocolError);
        for (all, want) in [
            (vec![Ok(full), Ok("x".into())], BodyBufferError::TooLong),
            (vec![Ok("x".into()), broken], BodyBufferError::Unfinished),
        ] {
            let body = pieces(all);
            body.buffer_body().await;
            assert_eq!(body.into_body().err(), Some(want));
        }
    }

    #[tokio::test]
    async fn what_is_given_up_is_not_sent() {
        let frames = stream::pending::<Result<Frame<Bytes>, Error>>();
        let endless = PendingBody::new(StreamBody::new(frames).boxed_unsync());
        assert!(futures::poll!(std::pin::pin!(endless.buffer_body())).is_pending());
        endless.stop_buffering().await;
        assert_eq!(endless.buffered_body().await, Err(BodyBufferError::Unfinished));
        assert_eq!(endless.into_body().err(), Some(BodyBufferError::Unfinished));
    }
}
