//! One connection over standard input and output.

use std::{
    fs::File,
    future::Future,
    io,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::fs::MetadataExt,
    },
    sync::Arc,
    thread,
    time::Duration,
};

use futures::FutureExt;
use rmcp::{service::serve_server_with_ct, transport::stdio_pipes};
use socket2::{SockRef, Type};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::UnixStream,
    runtime::{self, Handle},
    sync::oneshot,
};
use tokio_util::sync::CancellationToken;

use crate::{
    handler::McpConnection,
    server::McpServer,
    transport::{LineTransport, TransportEnd},
};

/// How long running calls may go on after the client has closed the input. A client that sends its
/// requests from a file still gets their answers; one that ends waits two seconds before it kills.
const CALLS_AFTER_INPUT: Duration = Duration::from_secs(1);

/// Longest wait for the last answers to be written, for a client that does not read.
pub(crate) const LAST_ANSWERS_TIME_MAX: Duration = Duration::from_secs(2);

/// Why a connection ended.
#[derive(Debug)]
pub enum ConnectionEnd {
    /// The client closed it.
    ClosedByClient,
    /// The program was asked to stop.
    Stopped,
    /// The system does not allow the thread that serves the client, or that thread has panicked.
    Failed(io::Error),
    /// The output cannot be written, although the client has not closed it.
    OutputFailed(io::Error),
}

/// Serves the client at standard input and output until it closes the input, or until `stop`.
///
/// It returns when every call has ended and has its record.
pub async fn serve_stdio(server: Arc<McpServer>, stop: impl Future<Output = ()>) -> ConnectionEnd {
    server.set_call_runtime(Handle::current());
    let connection = McpConnection::new(Arc::clone(&server));
    let session_id = connection.session_id().to_owned();
    let (end, closing) = (TransportEnd::default(), CancellationToken::new());
    let abandoned = CancellationToken::new();
    let serving = serve_client(connection, end.clone(), closing.clone());
    let serving = abandoned.clone().run_until_cancelled_owned(serving).map(drop);
    let mut serving = match run_on_own_thread(serving).await {
        Ok(serving) => serving,
        Err(error) => return ConnectionEnd::Failed(error),
    };
    let why = tokio::select! {
        // Stop at the first look if both have happened.
        biased;
        () = stop => ConnectionEnd::Stopped,
        () = end.wait() => {
            let served = tokio::time::timeout(CALLS_AFTER_INPUT, &mut serving).await;
            closed_or_failed(served.unwrap_or(Ok(())))
        }
        served = &mut serving => closed_or_failed(served),
    };
    server.stop().await;
    closing.cancel();
    if !serving.is_terminated() {
        let _ = tokio::time::timeout(LAST_ANSWERS_TIME_MAX, &mut serving).await;
        abandoned.cancel();
    }
    server.host().registry().end_session(&session_id).await;
    end.take_write_error().map_or(why, ConnectionEnd::OutputFailed)
}

/// The end of a connection whose thread has ended. It says so, unless it has panicked.
fn closed_or_failed(served: Result<(), oneshot::error::RecvError>) -> ConnectionEnd {
    let panicked = || io::Error::other("its thread has panicked");
    served.map_or_else(|_| ConnectionEnd::Failed(panicked()), |()| ConnectionEnd::ClosedByClient)
}

/// Runs a future on a thread with a runtime of its own. The receiver hears when it has ended.
///
/// The tasks of a call follow one another. In a runtime with several threads, each call would also wake
/// another thread to look for work, and that one would wait for the next request, on another processor
/// than the client's.
///
/// # Errors
///
/// The system allows no more threads or files.
async fn run_on_own_thread(
    work: impl Future<Output = ()> + Send + 'static,
) -> io::Result<oneshot::Receiver<()>> {
    let (started, starting) = oneshot::channel();
    let (done, ended) = oneshot::channel();
    thread::Builder::new().name("mcp-client".to_owned()).spawn(move || {
        let runtime = match runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return drop(started.send(Err(error))),
        };
        let _ = started.send(Ok(()));
        runtime.block_on(work);
        // A read of a terminal or a file may never end.
        runtime.shutdown_background();
        let _ = done.send(());
    })?;
    let lost = || Err(io::Error::other("the thread ended before it began"));
    starting.await.unwrap_or_else(|_| lost())?;
    Ok(ended)
}

/// No thread waits for the client if it has connected pipes, or sockets, which clients in Node.js give
/// to their servers.
async fn serve_client(connection: McpConnection, end: TransportEnd, closing: CancellationToken) {
    let leftovers = Arc::clone(connection.server().leftovers());
    match open_sockets() {
        Ok((input, output, _restored)) => {
            let transport = LineTransport::new(input, output, end, leftovers);
            serve_transport(connection, transport, closing).await;
        }
        Err(_) => {
            let (input, output) = stdio_pipes();
            let transport = LineTransport::new(input, output, end, leftovers);
            serve_transport(connection, transport, closing).await;
        }
    }
}

async fn serve_transport<R, W>(
    connection: McpConnection,
    transport: LineTransport<R, W>,
    closing: CancellationToken,
) where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    // A client that leaves before its first request has ended the connection, and nothing else.
    if let Ok(running) = serve_server_with_ct(connection, transport, closing).await {
        let _ = running.waiting().await;
    }
}

/// Makes sockets wait again that the caller of the program shares, when it is dropped.
struct RestoredSockets(Vec<std::os::unix::net::UnixStream>);

impl Drop for RestoredSockets {
    fn drop(&mut self) {
        for socket in &self.0 {
            // Whoever writes to it next is told if that fails.
            let _ = socket.set_nonblocking(false);
        }
    }
}

/// Returns standard input and output as the sockets that they are.
///
/// # Errors
///
/// One of them is something else, or standard error is the same: a write to it must wait. Nor is a
/// socket of packets taken, because reading a part of what it has seems to empty it.
fn open_sockets() -> io::Result<(UnixStream, UnixStream, RestoredSockets)> {
    let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
    let file_number = |fd: BorrowedFd| {
        let metadata = File::from(fd.try_clone_to_owned()?).metadata()?;
        io::Result::Ok((metadata.dev(), metadata.ino()))
    };
    let number_of_stderr = file_number(stderr.as_fd()).ok();
    let refused = || io::Error::from(io::ErrorKind::Unsupported);
    let mut restored = RestoredSockets(Vec::new());
    let mut socket = |fd: BorrowedFd| {
        let kind = SockRef::from(&fd);
        if number_of_stderr == Some(file_number(fd)?) || kind.r#type()? != Type::STREAM {
            return Err(refused());
        }
        let socket = std::os::unix::net::UnixStream::from(fd.try_clone_to_owned()?);
        socket.local_addr()?;
        if !kind.nonblocking()? {
            restored.0.push(socket.try_clone()?);
        }
        socket.set_nonblocking(true)?;
        UnixStream::from_std(socket)
    };
    let (input, output) = (socket(stdin.as_fd())?, socket(stdout.as_fd())?);
    Ok((input, output, restored))
}
