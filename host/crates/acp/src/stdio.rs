//! The client at standard input and output.

use std::{future::Future, io, sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::{
    connection,
    output::ClientOutput,
    server::{AcpServer, AcpServerParts},
};

/// How long requests may go on after the client has closed the input, so that one which sends them
/// from a file still gets their answers.
const REQUESTS_AFTER_INPUT: Duration = Duration::from_secs(1);

/// Longest wait for sessions to end while the client may still read.
const LAST_UPDATES_TIME_MAX: Duration = Duration::from_secs(2);

/// Why the service of a client ended.
#[derive(Debug)]
pub enum ClientEnd {
    /// The client closed the input, or does not read any more.
    ClosedByClient,
    /// The program was asked to stop.
    Stopped,
    /// The output cannot be written, although the client has not closed it.
    OutputFailed(io::Error),
}

/// Serves the client at standard input and output until it closes the input, or until `stop`.
///
/// It returns when every session has ended and every call has its record.
pub async fn serve_stdio(parts: AcpServerParts, stop: impl Future<Output = ()>) -> ClientEnd {
    let ended = CancellationToken::new();
    let (output, writer) = ClientOutput::start(tokio::io::stdout(), ended.clone());
    let server = AcpServer::new(parts, Arc::clone(&output));
    let end = tokio::select! {
        // Stop at the first look if both have happened.
        biased;
        () = stop => ClientEnd::Stopped,
        () = ended.cancelled() => ClientEnd::ClosedByClient,
        () = connection::receive_messages(&server, &output, tokio::io::stdin()) => {
            let answered = output.wait_until_answered();
            let _ = tokio::time::timeout(REQUESTS_AFTER_INPUT, answered).await;
            ClientEnd::ClosedByClient
        }
    };
    server.stop(&ended, LAST_UPDATES_TIME_MAX).await;
    // The writer may be in the middle of a line that nobody reads.
    writer.abort();
    output.take_write_error().map_or(end, ClientEnd::OutputFailed)
}
