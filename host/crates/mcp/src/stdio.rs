//! One connection over standard input and output.

use std::{future::Future, io, sync::Arc, time::Duration};

use rmcp::{service::serve_server_with_ct, transport::stdio_pipes};
use tokio_util::sync::CancellationToken;

use crate::{handler::McpConnection, server::McpServer, transport::LineTransport};

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
    /// The output cannot be written, although the client has not closed it.
    OutputFailed(io::Error),
}

/// Serves the client at standard input and output until it closes the input, or until `stop`.
///
/// It returns when every call has ended and has its record.
pub async fn serve_stdio(server: Arc<McpServer>, stop: impl Future<Output = ()>) -> ConnectionEnd {
    let (input, output) = stdio_pipes();
    let ended = CancellationToken::new();
    let transport = LineTransport::new(input, output, ended.clone());
    let write_error = transport.write_error();
    let connection = McpConnection::new(Arc::clone(&server));
    let session_id = connection.session_id().to_owned();
    let closing = CancellationToken::new();
    let mut serving = tokio::spawn(serve_client(connection, transport, closing.clone()));
    let end = tokio::select! {
        // Stop at the first look if both have happened.
        biased;
        () = stop => ConnectionEnd::Stopped,
        () = ended.cancelled() => {
            let _ = tokio::time::timeout(CALLS_AFTER_INPUT, &mut serving).await;
            ConnectionEnd::ClosedByClient
        }
        _ = &mut serving => ConnectionEnd::ClosedByClient,
    };
    server.stop().await;
    closing.cancel();
    if !serving.is_finished() {
        let _ = tokio::time::timeout(LAST_ANSWERS_TIME_MAX, &mut serving).await;
        serving.abort();
    }
    server.host().registry().end_session(&session_id).await;
    write_error.take().map_or(end, ConnectionEnd::OutputFailed)
}

async fn serve_client(
    connection: McpConnection,
    transport: LineTransport<rmcp::transport::StdioReader, rmcp::transport::StdioWriter>,
    closing: CancellationToken,
) {
    // A client that leaves before its first request has ended the connection, and nothing else.
    if let Ok(running) = serve_server_with_ct(connection, transport, closing).await {
        let _ = running.waiting().await;
    }
}
