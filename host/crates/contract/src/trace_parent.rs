//! The place of an operation in a distributed trace, as W3C Trace Context writes it.
//!
//! A caller sends it as the header `traceparent`, or in `_meta.traceparent` of an MCP message. It
//! comes from outside, so it is read strictly and written anew, never passed on as a text.

use std::{fmt, str::FromStr};

/// Bytes of a trace's ID.
pub const TRACE_ID_BYTES: usize = 16;

/// Bytes of a span's ID.
pub const SPAN_ID_BYTES: usize = 8;

/// Characters of a value of version 00: `00-TRACE-SPAN-FLAGS`.
const VALUE_LENGTH: usize = 55;

/// The flag of a trace that the caller records.
const SAMPLED: u8 = 1;

/// A trace, and the span in it that other spans are children of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    /// The ID of the trace, which is never zero.
    pub trace_id: [u8; TRACE_ID_BYTES],
    /// The ID of the span, which is never zero.
    pub span_id: [u8; SPAN_ID_BYTES],
    /// Whether the trace is recorded.
    pub is_sampled: bool,
}

/// A text is not the place of an operation in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a traceparent; it looks like 00-TRACE-SPAN-01, with hexadecimal digits in lower case")]
pub struct TraceParentError;

impl FromStr for TraceParent {
    type Err = TraceParentError;

    /// Reads a value. A version after 00 may have more fields, which do not count.
    fn from_str(text: &str) -> Result<Self, TraceParentError> {
        read_value(text).ok_or(TraceParentError)
    }
}

fn read_value(text: &str) -> Option<TraceParent> {
    let (value, rest) = text.split_at_checked(VALUE_LENGTH)?;
    let mut fields = value.split('-');
    let [version] = read_hex::<1>(fields.next()?)?;
    let is_complete = match version {
        0 => rest.is_empty(),
        0xff => false,
        _ => rest.is_empty() || rest.starts_with('-'),
    };
    let trace_id = read_hex(fields.next()?)?;
    let span_id = read_hex(fields.next()?)?;
    let [flags] = read_hex::<1>(fields.next()?)?;
    let is_valid = is_complete && trace_id != [0; TRACE_ID_BYTES] && span_id != [0; SPAN_ID_BYTES];
    is_valid.then_some(TraceParent { trace_id, span_id, is_sampled: flags & SAMPLED != 0 })
}

fn read_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("00-")?;
        self.trace_id.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("-")?;
        self.span_id.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        write!(f, "-{:02x}", u8::from(self.is_sampled))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    #[test]
    fn a_value_is_read_strictly_and_written_anew() {
        let zeros = "0".repeat(32);
        let rows = [
            (format!("00-{TRACE}-{SPAN}-01"), Some(format!("00-{TRACE}-{SPAN}-01"))),
            (format!("00-{TRACE}-{SPAN}-00"), Some(format!("00-{TRACE}-{SPAN}-00"))),
            // Unknown flags and the fields of later versions do not go on.
            (format!("00-{TRACE}-{SPAN}-ff"), Some(format!("00-{TRACE}-{SPAN}-01"))),
            (format!("cc-{TRACE}-{SPAN}-01-more"), Some(format!("00-{TRACE}-{SPAN}-01"))),
            (format!("cc-{TRACE}-{SPAN}-01more"), None),
            (format!("00-{TRACE}-{SPAN}-01-more"), None),
            (format!("ff-{TRACE}-{SPAN}-01"), None),
            (format!("00-{zeros}-{SPAN}-01"), None),
            (format!("00-{TRACE}-{}-01", &zeros[..16]), None),
            (format!("00-{}-{SPAN}-01", TRACE.to_uppercase()), None),
            (format!("00-{TRACE}{SPAN}--01"), None),
            (format!("00-{TRACE}-{SPAN}-1"), None),
            (format!("00-{TRACE}-{SPAN}-0\u{e9}"), None),
            ("é".repeat(30), None),
            (String::new(), None),
        ];
        for (text, want) in rows {
            let read = text.parse::<TraceParent>().ok();
            assert_eq!(read.map(|parent| parent.to_string()), want, "{text}");
        }
    }
}
