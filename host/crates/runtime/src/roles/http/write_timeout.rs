//! A connection with a write timeout. It first returns the bytes that were already read.
//!
//! A client that sends a request and never reads the response would otherwise keep its place
//! forever: nothing more is read from it, so the timeout of a head does not apply.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Sleep, sleep},
};

/// Timeout of a write without progress.
const WRITE_TIME_MAX: Duration = Duration::from_secs(20);

/// A connection that ends when the client stops reading.
pub(super) struct WriteTimeoutStream {
    stream: TcpStream,
    /// The bytes that were already read.
    buffered: Bytes,
    /// Runs while a write is blocked.
    write_deadline: Option<Pin<Box<Sleep>>>,
}

impl WriteTimeoutStream {
    pub(super) fn new(stream: TcpStream, buffered: Bytes) -> Self {
        Self { stream, buffered, write_deadline: None }
    }

    fn with_write_timeout<T>(
        &mut self,
        context: &mut Context<'_>,
        result: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.write_deadline = None;
            return result;
        }
        let write_deadline =
            self.write_deadline.get_or_insert_with(|| Box::pin(sleep(WRITE_TIME_MAX)));
        write_deadline.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for WriteTimeoutStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.buffered.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let bytes = self.buffered.len().min(buffer.remaining());
        buffer.put_slice(&self.buffered.split_to(bytes));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for WriteTimeoutStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.with_write_timeout(context, result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.with_write_timeout(context, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::{io::AsyncWriteExt, net::TcpListener};

    use super::*;

    #[tokio::test(start_paused = true)]
    #[expect(clippy::disallowed_methods, reason = "a test is a client")]
    async fn h70_whoever_takes_nothing_is_not_waited_for() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let silent = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let result =
            WriteTimeoutStream::new(stream, Bytes::new()).write_all(&vec![0; 64 << 20]).await;
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(silent);
    }
}
