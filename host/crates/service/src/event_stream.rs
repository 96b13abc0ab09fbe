//! The events of a session as server-sent events.
//!
//! A stream reads from the log at the speed of its client. It holds no event itself, so a client
//! that does not read costs one connection, until the connection or the stream ends.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    response::{IntoResponse, Response},
};
use futures::stream;
use http::header;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use crate::{
    access::RequestCaller,
    event_log::LogRead,
    open_sessions::{ServedSession, StreamMark},
    quota::QuotaUse,
    server::Service,
};

/// The media type.
pub(crate) const EVENTS_TYPE: &str = "text/event-stream";

/// How often something is sent, so that a client and its proxies see that the stream lives, and a
/// token that was removed ends it.
const SIGN_OF_LIFE_EVERY: Duration = Duration::from_secs(15);

/// Longest life of a stream. Its client connects again and loses nothing; one that is gone without
/// a trace takes its place no longer than this.
const STREAM_TIME_MAX: Duration = Duration::from_secs(60 * 60);

/// Most bytes of events in one piece.
const PIECE_BYTES_MAX: usize = 64 << 10;

/// Milliseconds after which a client connects again.
const RETRY_MS: u32 = 1000;

/// Why a stream ends. It is the last event, named `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamEnd {
    /// The session has ended.
    Closed,
    /// The client reads so slowly that events which it lacks are not kept any more.
    TooSlow,
    /// It has lasted long enough; connect again.
    TimeUp,
    /// The token, or the log-in that stands for it, is not valid any more.
    TokenEnded,
    /// The service stops.
    Stopping,
}

impl StreamEnd {
    fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::TooSlow => "too-slow",
            Self::TimeUp => "time-up",
            Self::TokenEnded => "token-ended",
            Self::Stopping => "stopping",
        }
    }

    fn to_event(self) -> Bytes {
        format!("event: end\ndata: {{\"reason\":\"{}\"}}\n\n", self.as_str()).into()
    }
}

/// The parts of a stream.
pub(crate) struct StreamParts {
    pub(crate) service: Arc<Service>,
    pub(crate) session: Arc<ServedSession>,
    pub(crate) caller: RequestCaller,
    /// The number of the event before the first one.
    pub(crate) after: u64,
    /// Held as long as the stream lasts.
    pub(crate) _stream_use: QuotaUse,
}

struct EventStream {
    parts: StreamParts,
    _mark: StreamMark,
    news: watch::Receiver<(u64, bool)>,
    ends_at: Instant,
    next_sign: Instant,
    has_begun: bool,
}

/// Streams the events of a session.
pub(crate) fn stream_events(parts: StreamParts) -> Response {
    let news = parts.session.log.subscribe();
    let now = Instant::now();
    let events = EventStream {
        _mark: StreamMark::new(&parts.session),
        parts,
        news,
        ends_at: now + STREAM_TIME_MAX,
        next_sign: now + SIGN_OF_LIFE_EVERY,
        has_begun: false,
    };
    let pieces = stream::unfold(Some(events), |events| async {
        let (piece, rest) = events?.next_piece().await;
        Some((Ok::<_, std::convert::Infallible>(piece), rest))
    });
    ([(header::CONTENT_TYPE, EVENTS_TYPE)], Body::from_stream(pieces)).into_response()
}

impl EventStream {
    /// Waits for the next piece. Without a rest it is the last one.
    async fn next_piece(mut self) -> (Bytes, Option<Self>) {
        if !self.has_begun {
            self.has_begun = true;
            return (format!("retry: {RETRY_MS}\n\n").into(), Some(self));
        }
        loop {
            let now = Instant::now();
            if now >= self.ends_at {
                return (StreamEnd::TimeUp.to_event(), None);
            }
            if now >= self.next_sign {
                return self.give_sign();
            }
            self.news.mark_unchanged();
            match self.parts.session.log.read_after(self.parts.after, PIECE_BYTES_MAX) {
                LogRead::Events(events) => return (self.piece_of(events), Some(self)),
                LogRead::Forgotten => return (StreamEnd::TooSlow.to_event(), None),
                LogRead::Ended => return (self.end_of_session().to_event(), None),
                LogRead::Nothing => {}
            }
            let wake_at = self.ends_at.min(self.next_sign);
            tokio::select! {
                _ = self.news.changed() => {}
                () = sleep_until(wake_at) => {}
                () = self.parts.service.closing.cancelled() => {
                    return (StreamEnd::Stopping.to_event(), None);
                }
            }
        }
    }

    fn end_of_session(&self) -> StreamEnd {
        match self.parts.service.stop.is_cancelled() {
            true => StreamEnd::Stopping,
            false => StreamEnd::Closed,
        }
    }

    fn piece_of(&mut self, events: Vec<(u64, Arc<str>)>) -> Bytes {
        let mut piece = String::new();
        for (number, event) in events {
            let id = self.parts.session.log.id(number);
            let _ = write!(piece, "id: {id}\ndata: {event}\n\n");
            self.parts.after = number;
        }
        piece.into()
    }

    fn give_sign(mut self) -> (Bytes, Option<Self>) {
        if !self.parts.caller.is_valid(&self.parts.service) {
            return (StreamEnd::TokenEnded.to_event(), None);
        }
        self.next_sign = Instant::now() + SIGN_OF_LIFE_EVERY;
        (Bytes::from_static(b":\n\n"), Some(self))
    }
}
