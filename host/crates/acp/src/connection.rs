//! Everything that is received from the client, and who handles it.

use std::sync::Arc;

use sallyport_runtime::bounded_lines::{BoundedLines, LineEnd};
use tokio::io::AsyncRead;

use crate::{
    output::ClientOutput,
    requests,
    rpc::{self, IncomingMessage, RequestId, RpcError},
    server::AcpServer,
};

/// Longest message in bytes: a prompt with a few pictures. Larger files belong into a folder.
const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// Most requests of a client that wait for an answer, or whose answer the client has not read.
const REQUESTS_WAITING_MAX: usize = 256;

/// Reads the messages of a client until its input ends.
pub(crate) async fn receive_messages(
    server: &Arc<AcpServer>,
    output: &Arc<ClientOutput>,
    input: impl AsyncRead + Unpin,
) {
    let mut lines = BoundedLines::new(input, MESSAGE_BYTES_MAX);
    loop {
        let message = match lines.read_line().await {
            LineEnd::Whole => {
                let message = rpc::parse_message(&lines.line);
                // A long message does not keep its memory.
                lines.line = Vec::new();
                message
            }
            LineEnd::TooLong => {
                let text = format!("a message has at most {MESSAGE_BYTES_MAX} bytes");
                Err((RpcError::invalid_request(text), None))
            }
            LineEnd::Cut => Err((RpcError::parse("the input ended within a message"), None)),
            LineEnd::Ended => return,
        };
        match message {
            Ok(message) => handle_message(server, output, message).await,
            Err((error, id)) => output.refuse(id.as_ref(), error).await,
        }
    }
}

async fn handle_message(
    server: &Arc<AcpServer>,
    output: &Arc<ClientOutput>,
    message: IncomingMessage,
) {
    match message {
        IncomingMessage::Request { id, method, params } => match admit_request(output, &id) {
            Ok(()) => requests::handle_request(server, id, &method, params),
            Err(error) => output.refuse(Some(&id), error).await,
        },
        IncomingMessage::Notification { method, params } => {
            requests::handle_notification(server, &method, params);
        }
        IncomingMessage::Answer { id, result } => output.deliver_answer(&id, result),
    }
}

/// Notes a request until it is answered, and refuses what cannot be answered.
fn admit_request(output: &ClientOutput, id: &RequestId) -> Result<(), RpcError> {
    if output.waiting_count() >= REQUESTS_WAITING_MAX {
        return Err(RpcError::invalid_request("too many requests wait for an answer"));
    }
    if !output.begin_request(id) {
        return Err(RpcError::invalid_request("another request with this id has no answer yet"));
    }
    Ok(())
}
