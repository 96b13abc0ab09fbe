//! The events of a session for one client, and their form as server-sent events.
//!
//! A stream reads from the log at the speed of its client. It holds no event itself, so a client
//! that does not read costs one connection, until the connection or the stream ends.

use std::{convert::Infallible, fmt::Write as _, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    response::{IntoResponse, Response},
};
use futures::{StreamExt, stream};
use http::header;
use serde::Serialize;
use serde_json::json;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use crate::{
    caller::RequestCaller,
    event_log::{EventId, LogRead},
    open_sessions::{ServedSession, StreamMark},
    quota::QuotaUse,
    service::Service,
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

/// Why a stream ends. It is the last that a client gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum StreamEnd {
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

/// What a client gets next.
pub(crate) enum StreamStep {
    /// Events as JSON.
    Events(Vec<(EventId, Arc<str>)>),
    /// Nothing yet, and the client is to see that the stream lives.
    SignOfLife,
    /// Nothing any more.
    End(StreamEnd),
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

/// The events of a session, as one client reads them.
pub(crate) struct EventStream {
    parts: StreamParts,
    _mark: StreamMark,
    news: watch::Receiver<(u64, bool)>,
    ends_at: Instant,
    next_sign: Instant,
}

impl EventStream {
    pub(crate) fn new(parts: StreamParts) -> Self {
        let now = Instant::now();
        Self {
            _mark: StreamMark::new(&parts.session),
            news: parts.session.log.subscribe(),
            parts,
            ends_at: now + STREAM_TIME_MAX,
            next_sign: now + SIGN_OF_LIFE_EVERY,
        }
    }

    pub(crate) fn parts(&self) -> &StreamParts {
        &self.parts
    }

    /// Waits for the next step. It may be dropped and called again.
    pub(crate) async fn next_step(&mut self) -> StreamStep {
        loop {
            let now = Instant::now();
            if now >= self.ends_at {
                return StreamStep::End(StreamEnd::TimeUp);
            }
            if now >= self.next_sign {
                return self.give_sign();
            }
            self.news.mark_unchanged();
            match self.parts.session.log.read_after(self.parts.after, PIECE_BYTES_MAX) {
                LogRead::Events(events) => return self.take_events(events),
                LogRead::Forgotten => return StreamStep::End(StreamEnd::TooSlow),
                LogRead::Ended => return StreamStep::End(self.end_of_session()),
                LogRead::Nothing => {}
            }
            let wake_at = self.ends_at.min(self.next_sign);
            tokio::select! {
                _ = self.news.changed() => {}
                () = sleep_until(wake_at) => {}
                () = self.parts.service.closing.cancelled() => {
                    return StreamStep::End(StreamEnd::Stopping);
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

    fn take_events(&mut self, events: Vec<(u64, Arc<str>)>) -> StreamStep {
        self.parts.after = events.last().map_or(self.parts.after, |(number, _)| *number);
        let log = &self.parts.session.log;
        let with_id = |(number, event)| (log.id(number), event);
        StreamStep::Events(events.into_iter().map(with_id).collect())
    }

    fn give_sign(&mut self) -> StreamStep {
        if !self.parts.caller.is_valid(&self.parts.service) {
            return StreamStep::End(StreamEnd::TokenEnded);
        }
        self.next_sign = Instant::now() + SIGN_OF_LIFE_EVERY;
        StreamStep::SignOfLife
    }
}

/// Streams the events of a session as server-sent events.
pub(crate) fn stream_events(parts: StreamParts) -> Response {
    let retry = stream::iter([Bytes::from(format!("retry: {RETRY_MS}\n\n"))]);
    let pieces = stream::unfold(Some(EventStream::new(parts)), |events| async {
        let mut events = events?;
        let step = events.next_step().await;
        let rest = (!matches!(step, StreamStep::End(_))).then_some(events);
        Some((piece_of(step), rest))
    });
    let pieces = retry.chain(pieces).map(Ok::<_, Infallible>);
    ([(header::CONTENT_TYPE, EVENTS_TYPE)], Body::from_stream(pieces)).into_response()
}

/// The form of a step. An end is the last event, named `end`.
fn piece_of(step: StreamStep) -> Bytes {
    let mut piece = String::new();
    match step {
        StreamStep::Events(events) => {
            for (id, event) in events {
                let _ = write!(piece, "id: {id}\ndata: {event}\n\n");
            }
        }
        StreamStep::SignOfLife => piece.push_str(":\n\n"),
        StreamStep::End(reason) => {
            let _ = write!(piece, "event: end\ndata: {}\n\n", json!({ "reason": reason }));
        }
    }
    piece.into()
}
