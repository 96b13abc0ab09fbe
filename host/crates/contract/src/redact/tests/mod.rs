//! What the themes share: redactors of a few secrets, and the ways to put bytes through them.

mod forms;
mod property;
mod report;
mod streams;
mod whole;

use super::Redactor;
use crate::secret::Secret;

fn redactor(secrets: &[(&str, &str)]) -> Redactor {
    let secrets: Vec<_> =
        secrets.iter().map(|(name, value)| (*name, Secret::new(*value))).collect();
    Redactor::new(secrets.iter().map(|(name, secret)| (*name, secret)))
}

/// Puts pieces through a stream.
fn streamed<'a>(redactor: &Redactor, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut stream = redactor.stream();
    let mut out = Vec::new();
    for piece in pieces {
        out.extend_from_slice(&stream.push(piece));
    }
    out.extend(stream.finish());
    out
}

/// Whether one of the pieces ends a secret.
fn scanned<'a>(redactor: &Redactor, pieces: impl IntoIterator<Item = &'a [u8]>) -> bool {
    let mut scan = redactor.scan();
    pieces.into_iter().any(|piece| scan.push(piece).is_some())
}
