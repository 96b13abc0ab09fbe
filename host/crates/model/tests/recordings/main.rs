//! Recorded answers of live services, replayed.
//!
//! A server on the loopback interface sends every recorded answer to the adapter of its protocol.
//! The reply is compared with an independent reading of the recording. The adapter's requests, with
//! its own earlier answers in the conversation, are compared with those that the service is known
//! to accept.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod cassettes;
mod checks;
mod cuts;
mod embeddings;
mod lists;
mod mangled;
mod normal;
mod play;
mod tally;
mod wires;

use sallyport_model::{AssistantMessage, ChatMessage, ModelError};

use crate::{
    cassettes::{Exchange, Recordings},
    play::play,
    tally::Tally,
};

#[tokio::test]
async fn every_recorded_conversation_is_understood() {
    let Some(recordings) = cassettes::recordings() else { return };
    let is_known = tally::is_known(&recordings);
    let Recordings { conversations, left_out, .. } = recordings;
    let mut tally = Tally { left_out, ..Tally::default() };
    let mut said: Vec<(String, AssistantMessage)> = Vec::new();
    for exchange in &conversations {
        cover(exchange, &mut said, &mut tally).await;
    }
    tally.tell();
    tally.check(is_known);
}

/// Replays one exchange and runs all comparisons.
async fn cover(exchange: &Exchange, said: &mut Vec<(String, AssistantMessage)>, tally: &mut Tally) {
    match normal::conversation(exchange.wire, &exchange.request) {
        Ok(mut messages) => {
            let own = said.iter().filter(|(file, _)| *file == exchange.file).map(|(_, own)| own);
            let replayed = normal::put_own_answers(&mut messages, own.collect());
            let answer = cover_answer(exchange, &messages, Some(replayed), tally).await;
            said.extend(answer.map(|own| (exchange.file.clone(), own)));
        }
        // The answer of the service is read nevertheless.
        Err(why) => {
            *tally.answer_only.entry(why).or_default() += 1;
            cover_answer(exchange, &[ChatMessage::user("hello")], None, tally).await;
        }
    }
    *tally.covered.entry(exchange.wire.protocol().as_str()).or_default() += 1;
}

/// Returns the answer if it was not a refusal. The request is compared once it is known how many of
/// our own answers it repeats.
async fn cover_answer(
    exchange: &Exchange,
    messages: &[ChatMessage],
    replayed: Option<usize>,
    tally: &mut Tally,
) -> Option<AssistantMessage> {
    let (seen, outcome) = play(exchange, messages, exchange.body.as_bytes()).await;
    if let Some(replayed) = replayed {
        tally.replayed += replayed;
        tally.kept += tally.differences.in_request(exchange, &seen, replayed);
    }
    match outcome {
        Ok((reply, deltas)) => {
            tally.differences.in_reply(exchange, &reply, &deltas);
            Some(reply.message)
        }
        Err(ModelError::Broken { .. }) if exchange.status == 200 => {
            tally.cut += 1;
            None
        }
        Err(error) => {
            tally.differences.in_refusal(exchange, &error);
            tally.refused += 1;
            None
        }
    }
}

/// Prints what a run has covered and what it has not. It bypasses the test runner, which hides the
/// output of a test that passes.
fn say(words: &str) {
    // A closed standard error must not fail the test.
    let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{words}\n").as_bytes());
}
