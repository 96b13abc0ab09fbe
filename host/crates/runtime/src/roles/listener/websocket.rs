//! A conversation over a WebSocket, from the first signal to the last.

use std::{net::SocketAddr, ops::ControlFlow, sync::Arc, time::Duration};

use futures::{SinkExt, StreamExt};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use sallyport_contract::BoxFuture;
use sallyport_sandbox::roles::{ListenerReply, ListenerSignal};
use tokio::{
    io::AsyncWriteExt,
    time::{Interval, MissedTickBehavior, interval},
};
use tokio_tungstenite::tungstenite::{
    Error, Message,
    error::ProtocolError,
    protocol::{CloseFrame, frame::coding::CloseCode},
};

use super::{ListenerConnection, SessionListener};
use crate::roles::http::{Socket, WebSocketHandler, quota_per_second};

/// How often the other side is pinged. A connection without any message between two pings is
/// dropped.
const PING_INTERVAL: Duration = Duration::from_secs(30);

/// Timeout of sending one message.
const SEND_TIME_MAX: Duration = Duration::from_secs(10);

/// Timeout of the closing handshake.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(2);

/// Messages per second on average, and the largest burst: far more than a user types.
const MESSAGE_QUOTA: Quota = quota_per_second(10, 50);

/// Close reason for a message that is longer than the server accepts.
const TOO_LONG: &str = "a message has at most 65536 bytes";

/// Accepts WebSockets for a listener.
pub struct WebSocketAcceptor(pub Arc<SessionListener>);

impl WebSocketHandler for WebSocketAcceptor {
    fn handle_socket(&self, socket: Socket, peer: SocketAddr) -> BoxFuture<'static, ()> {
        let connection = self.0.open_connection("ws");
        let rate_limiter = RateLimiter::direct(MESSAGE_QUOTA);
        let mut ping = interval(PING_INTERVAL);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let session = WebSocketSession { connection, socket, rate_limiter, ping, is_quiet: false };
        Box::pin(session.run_session(peer))
    }
}

struct WebSocketSession {
    connection: ListenerConnection,
    socket: Socket,
    rate_limiter: DefaultDirectRateLimiter,
    ping: Interval,
    /// Nothing has arrived since the last ping.
    is_quiet: bool,
}

impl WebSocketSession {
    async fn run_session(mut self, peer: SocketAddr) {
        let mut flow = self.deliver_signal(ListenerSignal::Opened(peer.to_string())).await;
        while flow.is_continue() {
            flow = self.handle_next_event().await;
        }
        let _ = tokio::time::timeout(CLOSE_TIME_MAX, self.drain_and_close()).await;
        self.connection.deliver_signal(ListenerSignal::Closed).await;
    }

    /// Reads whatever still arrives, because closing a TCP connection with unread data discards
    /// what was sent last. Data after an invalid frame is not a message, so raw bytes are read at
    /// the end.
    async fn drain_and_close(&mut self) {
        // A close frame cannot be sent if the other side is gone.
        let _ = self.socket.close(None).await;
        while let Some(Ok(_)) = self.socket.next().await {}
        let stream = self.socket.get_mut();
        if stream.shutdown().await.is_ok() {
            let _ = tokio::io::copy(stream, &mut tokio::io::sink()).await;
        }
    }

    async fn handle_next_event(&mut self) -> ControlFlow<()> {
        // Answers come first: their number is bounded by the number of inputs.
        tokio::select! {
            biased;
            answer = self.connection.answers.recv() => match answer {
                Some(answer) => self.deliver_signal(ListenerSignal::Answered(answer)).await,
                None => self.close_with_reason(CloseCode::Away, "the session has ended").await,
            },
            message = self.socket.next() => match message {
                Some(Ok(message)) => self.handle_message(message).await,
                Some(Err(error)) => self.close_for_error(&error).await,
                None => ControlFlow::Break(()),
            },
            _ = self.ping.tick() => match std::mem::replace(&mut self.is_quiet, true) {
                true => ControlFlow::Break(()),
                false => self.send_message(Message::Ping(Vec::new().into())).await,
            },
        }
    }

    /// Counts every message against the rate limit, including pings, which are answered.
    async fn handle_message(&mut self, message: Message) -> ControlFlow<()> {
        self.is_quiet = false;
        if !message.is_close() && self.rate_limiter.check().is_err() {
            return self.close_with_reason(CloseCode::Policy, "too many messages").await;
        }
        let signal = match message {
            Message::Text(text) => ListenerSignal::Text(text.as_str().to_owned()),
            Message::Binary(data) => ListenerSignal::Binary(data.to_vec()),
            Message::Close(_) => return ControlFlow::Break(()),
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {
                return ControlFlow::Continue(());
            }
        };
        self.deliver_signal(signal).await
    }

    /// Delivers a signal to the plugin and sends its replies.
    async fn deliver_signal(&mut self, signal: ListenerSignal) -> ControlFlow<()> {
        for reply in self.connection.deliver_signal(signal).await {
            match reply {
                ListenerReply::Text(text) => self.send_message(Message::Text(text.into())).await?,
                ListenerReply::Binary(data) => {
                    self.send_message(Message::Binary(data.into())).await?
                }
                ListenerReply::Close => return ControlFlow::Break(()),
            }
        }
        ControlFlow::Continue(())
    }

    async fn send_message(&mut self, message: Message) -> ControlFlow<()> {
        match tokio::time::timeout(SEND_TIME_MAX, self.socket.send(message)).await {
            Ok(Ok(())) => ControlFlow::Continue(()),
            Ok(Err(_)) | Err(_) => ControlFlow::Break(()),
        }
    }

    /// Closes with a code that describes the error (RFC 6455, 7.4.1), unless the connection broke.
    async fn close_for_error(&mut self, error: &Error) -> ControlFlow<()> {
        let (code, reason) = match error {
            Error::Capacity(_) => (CloseCode::Size, TOO_LONG),
            Error::Utf8(_) => (CloseCode::Invalid, "a text message has to be UTF-8"),
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
                return ControlFlow::Break(());
            }
            Error::Protocol(_) => (CloseCode::Protocol, "this is not a frame of a web socket"),
            _ => return ControlFlow::Break(()),
        };
        self.close_with_reason(code, reason).await
    }

    async fn close_with_reason(
        &mut self,
        code: CloseCode,
        reason: &'static str,
    ) -> ControlFlow<()> {
        let frame = CloseFrame { code, reason: reason.into() };
        self.send_message(Message::Close(Some(frame))).await?;
        ControlFlow::Break(())
    }
}
