//! The events and the commands of a session over one WebSocket.
//!
//! The client gets what it would get as server-sent events, and gives commands on the same
//! connection. It shows its token in the handshake; the log-in of the console is not enough, because
//! a page of another site could open the socket of a browser that is logged in.

use std::{sync::Arc, time::Duration};

use axum::{
    Extension,
    body::Body,
    extract::{Path, Request, State},
    response::{IntoResponse, Response},
};
use futures::{SinkExt, StreamExt};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use sallyport_http_server::{HandshakeError, answer_handshake};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error, Message,
        protocol::{Role, WebSocketConfig},
    },
};

use crate::{
    caller::RequestCaller,
    event_stream::{EventStream, StreamEnd, StreamParts, StreamStep},
    problem::{Problem, ProblemKind},
    request_body::{BODY_BYTES_MAX, QueryParameters},
    service::Service,
    session_routes::{EventQuery, allowed_command, find_open, start_after},
};

/// Longest text with which a client recognises the answer to a command, in bytes.
const REFERENCE_BYTES_MAX: usize = 255;

/// Longest event, and what may wait beside it, in bytes. Nothing is read from the log while a client
/// does not read.
const UNSENT_BYTES_MAX: usize = 16 << 20;

/// Longest wait for a client to close its side.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(2);

type EventSocket = WebSocketStream<TokioIo<Upgraded>>;

/// A message of a client.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SocketCommand {
    /// Comes back with the answer.
    #[serde(default)]
    reference: Option<String>,
    command: Value,
}

/// A message to a client.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum SocketMessage<'a> {
    /// Something has happened.
    Event { id: String, event: &'a RawValue },
    /// A command was taken. What comes of it are events.
    Taken { reference: Option<String>, last_event_id: String },
    /// A command was not taken.
    Problem { reference: Option<String>, problem: Problem },
    /// The last message.
    End { reason: StreamEnd },
}

pub(crate) async fn open_socket(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<RequestCaller>,
    Path(id): Path<String>,
    QueryParameters(query): QueryParameters<EventQuery>,
    mut request: Request,
) -> Result<Response, Problem> {
    if caller.is_browser() {
        let problem = Problem::new(ProblemKind::Unauthorized, "a socket needs a token");
        return Err(problem.with_detail("read the events of a browser as a stream"));
    }
    let session = find_open(&service, &caller.user, &id).await?;
    let after = start_after(&session, query.after)?;
    let response = answer_handshake(&mut request, Body::empty).map_err(|error| match error {
        HandshakeError::NoHandshake => {
            Problem::new(ProblemKind::UpgradeRequired, "only WebSockets are served here")
        }
        HandshakeError::OtherVersion => {
            Problem::new(ProblemKind::UpgradeRequired, "use version 13 of WebSockets")
        }
    })?;
    let stream_use = service.limits.streams.begin_use(&caller.user.name)?;
    let upgrade = hyper::upgrade::on(&mut request);
    let tasks = service.sockets.clone();
    let parts = StreamParts { service, session, caller, after, _stream_use: stream_use };
    tasks.spawn(async move {
        // The upgrade fails if the client leaves before the answer is sent.
        let Ok(upgraded) = upgrade.await else { return };
        let io = TokioIo::new(upgraded);
        let socket = EventSocket::from_raw_socket(io, Role::Server, Some(socket_limits())).await;
        // A client that breaks the connection has ended it, and nothing else.
        let _ = serve_socket(socket, EventStream::new(parts)).await;
    });
    Ok(response.into_response())
}

fn socket_limits() -> WebSocketConfig {
    WebSocketConfig::default()
        .max_message_size(Some(BODY_BYTES_MAX))
        .max_frame_size(Some(BODY_BYTES_MAX))
        .max_write_buffer_size(UNSENT_BYTES_MAX)
}

/// Sends events and takes commands until either side ends.
async fn serve_socket(mut socket: EventSocket, mut events: EventStream) -> Result<(), Error> {
    let reason = loop {
        tokio::select! {
            step = events.next_step() => match step {
                StreamStep::Events(events) => {
                    for (id, event) in &events {
                        let event = serde_json::from_str(event).map_err(invalid_event)?;
                        let id = id.to_string();
                        socket.feed(text_of(&SocketMessage::Event { id, event })).await?;
                    }
                    socket.flush().await?;
                }
                StreamStep::SignOfLife => socket.send(Message::Ping(Default::default())).await?,
                StreamStep::End(reason) => break reason,
            },
            message = socket.next() => match message {
                Some(Ok(Message::Text(text))) => {
                    let answer = answer_command(events.parts(), &text).await;
                    socket.send(text_of(&answer)).await?;
                }
                Some(Ok(Message::Binary(_))) => {
                    let problem = Problem::bad_request("send commands as text");
                    let answer = SocketMessage::Problem { reference: None, problem };
                    socket.send(text_of(&answer)).await?;
                }
                // The library answers pings and a close.
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error),
                None => return Ok(()),
            },
        }
    };
    socket.send(text_of(&SocketMessage::End { reason })).await?;
    socket.close(None).await?;
    // Closing a connection with unread bytes could destroy the last message on its way.
    let rest = async { while let Some(Ok(_)) = socket.next().await {} };
    let _ = tokio::time::timeout(CLOSE_TIME_MAX, rest).await;
    Ok(())
}

fn invalid_event(error: serde_json::Error) -> Error {
    Error::Io(error.into())
}

fn text_of(message: &SocketMessage<'_>) -> Message {
    Message::text(serde_json::to_string(message).unwrap_or_default())
}

async fn answer_command(parts: &StreamParts, text: &str) -> SocketMessage<'static> {
    let read: Result<SocketCommand, _> = serde_json::from_str(text);
    let SocketCommand { reference, command } = match read {
        Ok(command) => command,
        Err(error) => {
            let problem = Problem::bad_request("the message is not a command in its frame");
            let problem = problem.with_detail(error.to_string());
            return SocketMessage::Problem { reference: None, problem };
        }
    };
    if reference.as_ref().is_some_and(|reference| reference.len() > REFERENCE_BYTES_MAX) {
        let title = format!("a reference has at most {REFERENCE_BYTES_MAX} bytes");
        return SocketMessage::Problem { reference: None, problem: Problem::bad_request(title) };
    }
    match take_command(parts, command).await {
        Ok(last_event_id) => SocketMessage::Taken { reference, last_event_id },
        Err(problem) => SocketMessage::Problem { reference, problem },
    }
}

async fn take_command(parts: &StreamParts, command: Value) -> Result<String, Problem> {
    if !parts.caller.is_valid(&parts.service) {
        return Err(Problem::new(ProblemKind::Unauthorized, "the token is not valid any more"));
    }
    let command = allowed_command(command, parts.caller.user.role)?;
    let _request_use = parts.service.limits.requests.begin_use(&parts.caller.user.name)?;
    let last_event_id = parts.session.log.newest_id().to_string();
    parts.session.send(command).await?;
    Ok(last_event_id)
}
