//! Recordings that are damaged or of an unknown form: they are left out and counted, and nothing
//! panics.

use crate::{
    cassettes::{self, Recordings},
    normal,
};

/// Parts of a recording that may be missing.
const PARTS: [&str; 7] =
    ["path", "body", "status", "header", "name", "content-type", "\\\"role\\\""];

#[test]
fn what_is_missing_in_a_recording_is_counted_and_panics_nowhere() {
    let Some(texts) = cassettes::texts() else { return };
    let mut mangled = Recordings::default();
    for text in &texts {
        for third in [1, 2] {
            let at = (0..=text.len() * third / 3).rfind(|at| text.is_char_boundary(*at));
            mangled.read(&text[..at.unwrap_or(0)], "cut");
        }
        for part in PARTS {
            mangled.read(&text.replace(part, "unknown"), part);
            let without = text.lines().filter(|line| !line.contains(part));
            mangled.read(&without.collect::<Vec<_>>().join("\n"), part);
        }
    }
    for exchange in &mangled.conversations {
        // Whether a damaged request is readable does not matter, only that reading does not panic.
        let _ = normal::conversation(exchange.wire, &exchange.request);
        let _ = exchange.wire.heard(&exchange.body);
        let _ = (exchange.wire.tools(&exchange.request), exchange.wire.kept(&exchange.request));
    }
    let left_out: usize = mangled.left_out.values().sum();
    crate::say(&format!("{left_out} damaged recordings left out: {:#?}", mangled.left_out));
    assert!(left_out >= texts.len(), "only {left_out}");
}
