//! The same bytes, split at every place and broken off at every byte.

use sallyport_model::{ModelError, ModelReply, ProviderProtocol};

use crate::{
    model, play,
    scripts::{self, Script},
    server::{Server, chunk, in_chunks, until_close},
};

#[tokio::test]
async fn an_answer_is_the_same_however_it_is_cut() {
    for script in scripts::all() {
        let server = Server::start().await;
        let model = model(&script, &server);
        let bytes = script.bytes();
        let head = in_chunks(script.content_type);
        let mut want = None;
        for at in 0..bytes.len() {
            let (first, rest) = bytes.split_at(at);
            let first = if first.is_empty() { Vec::new() } else { chunk(first) };
            let pieces = [&head[..], &first, &chunk(rest), b"0\r\n\r\n"];
            let (reply, deltas) = play(&*model, &server, &pieces).await;
            let reply = reply.unwrap();
            script.check(&reply, &deltas);
            assert_eq!(
                want.get_or_insert_with(|| (reply.clone(), deltas.clone())),
                &(reply, deltas)
            );
        }
    }
}

#[tokio::test]
async fn an_answer_in_single_bytes_is_the_same() {
    for script in scripts::all() {
        let server = Server::start().await;
        let model = model(&script, &server);
        let bytes = script.bytes();
        let chunks: Vec<Vec<u8>> = bytes.chunks(1).map(chunk).collect();
        let head = until_close(script.content_type);
        let head_of_chunks = in_chunks(script.content_type);
        let mut by_close: Vec<&[u8]> = bytes.chunks(1).collect();
        let mut by_chunks: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
        by_close.insert(0, &head);
        by_chunks.insert(0, &head_of_chunks);
        by_chunks.push(b"0\r\n\r\n");
        for pieces in [by_close, by_chunks] {
            let (reply, deltas) = play(&*model, &server, &pieces).await;
            script.check(&reply.unwrap(), &deltas);
        }
    }
}

#[tokio::test]
async fn a_part_of_an_answer_is_never_taken_for_the_whole() {
    for script in scripts::all() {
        let server = Server::start().await;
        let model = model(&script, &server);
        let bytes = script.bytes();
        let (by_close, in_chunks) =
            (until_close(script.content_type), in_chunks(script.content_type));
        let whole = [&by_close[..], &bytes];
        let whole = play(&*model, &server, &whole).await.0.unwrap();
        for at in 0..=bytes.len() {
            let cut = &bytes[..at];
            let chunk = if at == 0 { Vec::new() } else { chunk(cut) };
            for (pieces, has_end) in
                [([&by_close[..], cut], true), ([&in_chunks[..], &chunk], false)]
            {
                let (got, deltas) = play(&*model, &server, &pieces).await;
                check_cut(&script, at, has_end, got, &whole);
                let (text, calls) = crate::shown(&deltas);
                let (all_text, all_calls) = script.shown(script.events.len());
                assert!(all_text.starts_with(&text), "cut at {at}: {text:?}");
                assert!(all_calls.starts_with(&calls), "cut at {at}: {calls:?}");
            }
        }
    }
}

#[tokio::test]
async fn half_a_character_does_not_end_an_answer() {
    for script in scripts::all() {
        let server = Server::start().await;
        let model = model(&script, &server);
        let text = String::from_utf8(script.bytes()).unwrap();
        let halved = text.replace("東京", "東京\\ud83d");
        let pieces = [&until_close(script.content_type)[..], halved.as_bytes()];
        let (reply, _) = play(&*model, &server, &pieces).await;
        assert_eq!(reply.unwrap().message.text, "Grüße 東京\u{fffd}", "{:?}", script.protocol);
    }
}

/// Before the event that ends the answer, a cut is an error; after it, the answer is whole. If no
/// event ends it, the end of the stream does.
#[track_caller]
fn check_cut(
    script: &Script,
    at: usize,
    has_end: bool,
    got: Result<ModelReply, ModelError>,
    whole: &ModelReply,
) {
    let end_of = |event: usize| script.start_of(event) + script.events[event].0.trim_end().len();
    let protocol = script.protocol;
    match got {
        Ok(reply) => {
            assert!(
                at >= end_of(script.whole_from),
                "{protocol:?}: a part at {at} is taken for all"
            );
            let usage = reply.usage.or(whole.usage);
            assert_eq!(ModelReply { usage, ..reply }, *whole, "{protocol:?}: cut at {at}");
        }
        Err(ModelError::Broken { .. }) if protocol == ProviderProtocol::Gemini && !has_end => {}
        Err(ModelError::Broken { .. } | ModelError::Unreachable { .. }) => {
            let must = script.start_of(script.must_from) + script.events[script.must_from].0.len();
            assert!(at < must, "{protocol:?}: all was said at {must}, and lost at {at}");
        }
        Err(other) => panic!("{protocol:?}: cut at {at}: {other:?}"),
    }
}
