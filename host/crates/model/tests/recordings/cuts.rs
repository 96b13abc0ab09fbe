//! Recorded streams that arrive in small pieces or are cut off.

use sallyport_model::{ChatMessage, ModelError, ModelReply};

use crate::{
    cassettes::{self, Recordings},
    play::{Delivery, deliver},
    tally, wires,
};

/// The number of places at which each stream is broken off.
const CUTS: usize = 12;

/// Least number of streams.
const STREAMS_MIN: usize = 145;

#[tokio::test]
async fn recorded_streams_are_whole_or_an_error() {
    let Some(recordings) = cassettes::recordings() else { return };
    let Recordings { conversations, .. } = &recordings;
    let streams = conversations.iter().filter(|exchange| {
        exchange.status == 200 && wires::is_streamed(&exchange.path, &exchange.request)
    });
    let messages = [ChatMessage::user("hello")];
    let (mut count, mut unread) = (0, 0);
    for exchange in streams {
        let body = exchange.body.as_bytes();
        let (_, whole) = deliver(exchange, &messages, Delivery::Whole(body)).await;
        let Ok(whole) = whole else {
            // The recording ends in the middle; another test reports it.
            unread += 1;
            continue;
        };
        let (_, pieces) = deliver(exchange, &messages, Delivery::Pieces(body)).await;
        assert_eq!(pieces.unwrap(), whole, "{}", exchange.file);
        for n in 0..CUTS {
            let cut = &body[..body.len() * n / CUTS];
            let (_, got) = deliver(exchange, &messages, Delivery::Whole(cut)).await;
            check(&exchange.file, cut.len(), got.map(|(reply, _)| reply), &whole.0);
        }
        count += 1;
    }
    crate::say(&format!("{count} recorded streams broken off at {CUTS} places each"));
    let is_other = !tally::is_known(&recordings);
    assert!(is_other || (count >= STREAMS_MIN && unread == 0), "only {count}, {unread} not read");
}

/// Usage may follow the end of the answer and be lost.
#[track_caller]
fn check(file: &str, at: usize, got: Result<ModelReply, ModelError>, whole: &ModelReply) {
    match got {
        Ok(reply) => {
            let usage = whole.usage;
            assert_eq!(ModelReply { usage, ..reply }, *whole, "{file}: cut at {at}");
        }
        Err(ModelError::Broken { .. }) => {}
        Err(other) => panic!("{file}: cut at {at}: {other:?}"),
    }
}
