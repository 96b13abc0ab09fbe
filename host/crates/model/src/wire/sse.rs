//! The events of a streamed answer: server-sent events for most providers, lines for Ollama.

use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use sse_stream::{Sse, SseByteStream};

use super::{ProviderIdentity, ResponseBodyError};
use crate::chat::ModelError;

/// The events of one answer, in order.
pub(crate) type ServerEvents<'a> = Pin<Box<dyn Stream<Item = Result<Sse, ModelError>> + Send + 'a>>;

/// Reads a body as events. Errors become those of the provider.
pub(crate) fn read_events<'a>(
    body: impl Stream<Item = Result<Bytes, ResponseBodyError>> + Send + 'a,
    provider: &'a ProviderIdentity,
) -> ServerEvents<'a> {
    Box::pin(
        SseByteStream::new(body).map(|event| event.map_err(|error| stream_error(&error, provider))),
    )
}

/// Reads a body as lines, each of which becomes an event without a name. Some may not be UTF-8.
pub(crate) fn read_lines<'a>(
    body: impl Stream<Item = Result<Bytes, ResponseBodyError>> + Send + 'a,
    provider: &'a ProviderIdentity,
) -> ServerEvents<'a> {
    // The bytes that have arrived, of which the first `searched` contain no line break.
    let state = (Box::pin(body), BytesMut::new(), 0);
    let lines = stream::try_unfold(state, move |(mut body, mut bytes, mut searched)| async move {
        loop {
            if let Some(end) = bytes[searched..].iter().position(|byte| *byte == b'\n') {
                let line = bytes.split_to(searched + end + 1);
                return Ok(Some((line, (body, bytes, 0))));
            }
            searched = bytes.len();
            match body.try_next().await? {
                Some(piece) => bytes.extend_from_slice(&piece),
                None => {
                    return Ok((!bytes.is_empty()).then_some((bytes, (body, BytesMut::new(), 0))));
                }
            }
        }
    });
    Box::pin(lines.map(|line| match line {
        Ok(line) => Ok(Sse::default().data(String::from_utf8_lossy(&line))),
        Err(error) => Err(provider.body_error(&error)),
    }))
}

fn stream_error(error: &sse_stream::Error, provider: &ProviderIdentity) -> ModelError {
    let cause = match error {
        sse_stream::Error::Body(cause) => cause.downcast_ref::<ResponseBodyError>(),
        _ => None,
    };
    match cause {
        Some(cause) => provider.body_error(cause),
        None => provider.protocol_error(&error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(pieces: &[&[u8]]) -> Vec<String> {
        let pieces: Vec<_> = pieces.iter().map(|p| Ok(Bytes::copy_from_slice(p))).collect();
        let provider = ProviderIdentity { name: "p".to_owned(), key: None };
        let lines = read_lines(stream::iter(pieces), &provider);
        let lines = lines.map(|line| line.unwrap().data.unwrap().trim().to_owned());
        lines.filter(|line| std::future::ready(!line.is_empty())).collect().await
    }

    #[tokio::test]
    async fn a_body_is_the_same_lines_however_it_is_cut() {
        let rows: [(&str, &[&str]); 6] = [
            ("", &[]),
            ("\n \r\n", &[]),
            ("a", &["a"]),
            ("a\nb\n", &["a", "b"]),
            ("a\r\n\nb c", &["a", "b c"]),
            ("é\n東京", &["é", "東京"]),
        ];
        for (body, want) in rows {
            let bytes: Vec<&[u8]> = body.as_bytes().chunks(1).collect();
            assert_eq!(lines(&bytes).await, want);
            for at in 0..body.len() {
                let (head, tail) = body.as_bytes().split_at(at);
                assert_eq!(lines(&[head, tail]).await, want);
            }
        }
    }

    /// It took minutes, because each line copied all bytes behind it.
    #[tokio::test]
    async fn a_piece_of_many_lines_is_read_in_a_moment() {
        let body = "\n".repeat(1 << 20) + "a";
        assert_eq!(lines(&[body.as_bytes()]).await, ["a"]);
    }
}
