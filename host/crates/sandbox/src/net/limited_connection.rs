//! A connection with a limit on the bytes that the server sends before the head of its response.
//!
//! hyper skips the interim responses (1xx) before it. Each of them is small, but a server could
//! send them endlessly.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::dial::BoxedConnection;
use crate::limits::HEADER_BYTES_MAX;

/// Most bytes up to the end of a response's head, including bytes that are read beyond it.
const HEAD_BYTES_MAX: u64 = 4 * HEADER_BYTES_MAX as u64;

/// The server sent too much before its response.
#[derive(Debug, thiserror::Error)]
#[error("more than {HEAD_BYTES_MAX} bytes before the response")]
pub(super) struct ResponseHeadTooLong;

/// A connection with a limit on the bytes that are read.
pub(super) struct LimitedConnection {
    inner: BoxedConnection,
    bytes_left: Arc<AtomicU64>,
}

/// Lifts the limit once the head has been read.
pub(super) struct ResponseHeadLimit(Arc<AtomicU64>);

impl LimitedConnection {
    pub(super) fn new(inner: BoxedConnection) -> (Self, ResponseHeadLimit) {
        let bytes_left = Arc::new(AtomicU64::new(HEAD_BYTES_MAX));
        (Self { inner, bytes_left: Arc::clone(&bytes_left) }, ResponseHeadLimit(bytes_left))
    }
}

impl ResponseHeadLimit {
    /// Bytes received so far. They are not counted after [`lift_limit`](Self::lift_limit).
    pub(super) fn received_bytes(&self) -> u64 {
        HEAD_BYTES_MAX.saturating_sub(self.0.load(Ordering::Relaxed))
    }

    /// Lifts the limit. The body has limits of its own.
    pub(super) fn lift_limit(self) {
        self.0.store(u64::MAX, Ordering::Relaxed);
    }
}

impl AsyncRead for LimitedConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let bytes = (buf.filled().len() - before) as u64;
        let take = |left: u64| if left == u64::MAX { Some(left) } else { left.checked_sub(bytes) };
        match self.bytes_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => Poll::Ready(Ok(())),
            Err(_) => Poll::Ready(Err(io::Error::other(ResponseHeadTooLong))),
        }
    }
}

impl AsyncWrite for LimitedConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
