//! Splits a body into lines, regardless of the boundaries of its pieces.

use std::collections::VecDeque;
use std::pin::Pin;

use bytes::Bytes;
use futures::{Stream, StreamExt};

use crate::wire::ResponseBodyError;

/// The lines of a body. The last one may lack a line break.
pub(super) struct BodyLines<S> {
    body: Pin<Box<S>>,
    /// Complete lines that have not been returned yet.
    ready: VecDeque<Vec<u8>>,
    /// The line that is still arriving. The limit of the body bounds its length.
    begun: Vec<u8>,
}

impl<S: Stream<Item = Result<Bytes, ResponseBodyError>>> BodyLines<S> {
    /// Creates the lines of a body from its first piece on.
    pub(super) fn new(body: S) -> Self {
        Self { body: Box::pin(body), ready: VecDeque::new(), begun: Vec::new() }
    }

    /// Returns the next line that is not blank; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, ResponseBodyError> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Ok(Some(line));
            }
            match self.body.next().await {
                Some(piece) => self.push_piece(&piece?),
                None if self.begun.trim_ascii().is_empty() => return Ok(None),
                None => return Ok(Some(std::mem::take(&mut self.begun))),
            }
        }
    }

    fn push_piece(&mut self, piece: &[u8]) {
        let mut rest = piece;
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            let mut line = std::mem::take(&mut self.begun);
            line.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            if !line.trim_ascii().is_empty() {
                self.ready.push_back(line);
            }
        }
        self.begun.extend_from_slice(rest);
    }
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;

    async fn lines(pieces: &[&[u8]]) -> Vec<String> {
        let pieces: Vec<_> = pieces.iter().map(|p| Ok(Bytes::copy_from_slice(p))).collect();
        let mut lines = BodyLines::new(stream::iter(pieces));
        let mut all = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            all.push(String::from_utf8(line).unwrap());
        }
        all
    }

    #[tokio::test]
    async fn a_body_is_the_same_lines_however_it_is_cut() {
        let rows: [(&str, &[&str]); 6] = [
            ("", &[]),
            ("\n \r\n", &[]),
            ("a", &["a"]),
            ("a\nb\n", &["a", "b"]),
            ("a\r\n\nb c", &["a\r", "b c"]),
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
}
