//! Shared by the tests: redactors of a few secrets, and the ways to pass bytes through them.

mod encodings;
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

/// Passes pieces through a stream.
fn streamed<'a>(redactor: &Redactor, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut stream = redactor.redact_stream();
    let mut out = Vec::new();
    for piece in pieces {
        out.extend_from_slice(&stream.push(piece));
    }
    out.extend(stream.finish());
    out
}

/// Passes pieces through a scan. Returns the bytes that have left, and whether that was all.
fn scanned<'a>(redactor: &Redactor, pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<u8>, bool) {
    let mut scan = redactor.scan_stream();
    let mut out = Vec::new();
    for piece in pieces {
        match scan.push(piece) {
            Ok(part) => out.extend_from_slice(&part),
            Err(_) => return (out, false),
        }
    }
    match scan.finish() {
        Ok(rest) => (out.into_iter().chain(rest).collect(), true),
        Err(_) => (out, false),
    }
}
