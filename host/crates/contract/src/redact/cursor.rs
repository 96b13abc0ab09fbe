//! A position in a stream of bytes, with everything that may be a secret at that position.
//!
//! The bytes are read raw and, at the same time, with their escapes undone once, twice and three
//! times, because programs embed texts in texts. Each of these is an [`EscapeLayer`], which reads
//! the output of the layer below. A layer without an escape adds nothing and sleeps, so ordinary
//! text is read once.
//!
//! Something that looks like an escape may not be one (`%41` in a password), so each layer follows
//! both readings.

use std::{array, collections::VecDeque};

use super::{
    escape::{DecodedText, ESCAPE_BYTES_MAX, EscapeFamily, ParsedEscape},
    matcher::{DecodedByte, FormMatcher, SecretMatch},
    table::SecretFormTable,
};

/// The layers above the raw bytes: the family of escapes that is undone, and the layer that it
/// reads, which comes earlier.
const LAYERS: [(EscapeFamily, usize); 5] = [
    (EscapeFamily::Signs, 0),
    (EscapeFamily::Signs, 1),
    (EscapeFamily::Signs, 2),
    // Mail is undone in the raw bytes and within JSON.
    (EscapeFamily::Mail, 0),
    (EscapeFamily::Mail, 1),
];

/// A position in a stream of bytes.
#[derive(Clone)]
pub(super) struct RedactionCursor {
    offset: u64,
    layers: [EscapeLayer; LAYERS.len() + 1],
    /// Hits that the caller has not taken yet.
    matches: VecDeque<SecretMatch>,
}

/// The bytes with their escapes undone some number of times.
#[derive(Clone, Default)]
struct EscapeLayer {
    /// One per view.
    matchers: [FormMatcher; 3],
    /// Bytes that form an escape if the next ones continue it.
    pending: Vec<DecodedByte>,
    is_active: bool,
}

impl EscapeLayer {
    fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.matchers.iter().all(FormMatcher::is_idle)
    }
}

impl RedactionCursor {
    pub(super) fn new() -> Self {
        let layers =
            array::from_fn(|index| EscapeLayer { is_active: index == 0, ..EscapeLayer::default() });
        Self { offset: 0, layers, matches: VecDeque::new() }
    }

    /// The number of bytes read.
    pub(super) fn position(&self) -> u64 {
        self.offset
    }

    /// Where the earliest incomplete form may have begun. Unless `is_strict`, the first letters of
    /// a form whose line breaks after them count as passed.
    pub(super) fn earliest_open_start(&self, table: &SecretFormTable, is_strict: bool) -> u64 {
        let active_layers = self.layers.iter().filter(|layer| layer.is_active);
        let open = active_layers.flat_map(|layer| {
            let matchers = layer.matchers.iter().zip(table.views());
            let open = matchers
                .filter_map(|(matcher, forms)| matcher.earliest_open_start(forms, is_strict));
            open.chain(layer.pending.first().map(|decoded| decoded.start))
        });
        open.min().unwrap_or(self.offset)
    }

    /// Reads bytes up to the end of the next secret, and leaves the rest in `bytes`.
    pub(super) fn next_match(
        &mut self,
        table: &SecretFormTable,
        bytes: &mut &[u8],
    ) -> Option<SecretMatch> {
        loop {
            if let Some(hit) = self.matches.pop_front() {
                return Some(hit);
            }
            if self.is_idle() {
                let skipped = table.first_candidate(bytes);
                self.offset += skipped as u64;
                *bytes = &bytes[skipped..];
            }
            let (byte, rest) = bytes.split_first()?;
            *bytes = rest;
            let decoded = DecodedByte { byte: *byte, start: self.offset, end: self.offset + 1 };
            self.offset += 1;
            self.read_bytes(table, 0, &[decoded], &[]);
        }
    }

    /// Settles the bytes that wait for more, once no more will come.
    pub(super) fn finish_pending(&mut self, table: &SecretFormTable) {
        for index in 1..self.layers.len() {
            self.decode_pending(table, index, true);
        }
    }

    /// Reads bytes up to the first secret that is not spared, and returns its name.
    pub(super) fn find_secret<'t>(
        &mut self,
        table: &'t SecretFormTable,
        mut bytes: &[u8],
        allowed_names: &[String],
    ) -> Option<&'t str> {
        while let Some(hit) = self.next_match(table, &mut bytes) {
            let name = table.secret_name(hit.name);
            if !allowed_names.contains(name) {
                return Some(name);
            }
        }
        None
    }

    /// Works as [`find_secret`](Self::find_secret) does, for bytes that are the end of the stream.
    pub(super) fn find_secret_in<'t>(
        mut self,
        table: &'t SecretFormTable,
        bytes: &[u8],
        allowed_names: &[String],
    ) -> Option<&'t str> {
        self.find_secret(table, bytes, allowed_names).or_else(|| {
            self.finish_pending(table);
            self.find_secret(table, &[], allowed_names)
        })
    }

    fn is_idle(&self) -> bool {
        let [bytes, above @ ..] = &self.layers;
        bytes.is_idle() && above.iter().all(|layer| !layer.is_active)
    }

    /// Reads a character, or its escaped form, in a layer and then in the layers above.
    fn read_bytes(
        &mut self,
        table: &SecretFormTable,
        index: usize,
        plain: &[DecodedByte],
        literal: &[DecodedByte],
    ) {
        if let [decoded] = plain {
            self.wake_layers_above(index, decoded.byte);
        }
        for (matcher, forms) in self.layers[index].matchers.iter_mut().zip(table.views()) {
            matcher.read_character(forms, plain, literal, &mut self.matches);
        }
        for above in layers_above(index) {
            if self.layers[above].is_active {
                for decoded in plain {
                    self.layers[above].pending.push(*decoded);
                    self.decode_pending(table, above, false);
                }
                self.sleep_if_idle(above);
            }
        }
    }

    /// Reads the pending bytes of a layer as far as their meaning is clear.
    fn decode_pending(&mut self, table: &SecretFormTable, index: usize, is_all: bool) {
        let (family, _) = LAYERS[index - 1];
        while !self.layers[index].pending.is_empty() {
            let pending = &mut self.layers[index].pending;
            let mut bytes = [0; ESCAPE_BYTES_MAX + 1];
            let count = pending.len().min(bytes.len());
            bytes.iter_mut().zip(&*pending).for_each(|(byte, decoded)| *byte = decoded.byte);
            match family.parse_shifted_escape(&bytes[..count], is_all) {
                ParsedEscape::Incomplete => return,
                ParsedEscape::Decoded(used, text) => {
                    self.read_shifted(table, index, used, text);
                    continue;
                }
                ParsedEscape::None => {}
            }
            let pending = &mut self.layers[index].pending;
            match family.parse_escape(&bytes[..count.min(ESCAPE_BYTES_MAX)], is_all) {
                ParsedEscape::Incomplete => return,
                ParsedEscape::None => {
                    let decoded = pending.remove(0);
                    self.read_bytes(table, index, &[decoded], &[]);
                }
                ParsedEscape::Decoded(used, text) => {
                    let literal: Vec<DecodedByte> = pending.drain(..used).collect();
                    self.read_bytes(table, index, &decoded_bytes(text, &literal), &literal);
                }
            }
        }
    }

    /// Reads two backslashes and the rest of the escape that the second one may begin: as an
    /// escaped backslash before that rest, and as a backslash before that escape. The layers above
    /// read the former.
    fn read_shifted(
        &mut self,
        table: &SecretFormTable,
        index: usize,
        used: usize,
        text: DecodedText,
    ) {
        let literal: Vec<DecodedByte> = self.layers[index].pending.drain(..1 + used).collect();
        let mut shifted = self.layers[index].matchers.clone();
        let (backslash, escape) = literal.split_at(1);
        for (matcher, forms) in shifted.iter_mut().zip(table.views()) {
            matcher.read_character(forms, backslash, &[], &mut self.matches);
            let plain = decoded_bytes(text, escape);
            matcher.read_character(forms, &plain, escape, &mut self.matches);
        }
        let (pair, rest) = literal.split_at(2);
        let backslash = DecodedByte { end: pair[1].end, ..pair[0] };
        self.read_bytes(table, index, &[backslash], pair);
        for decoded in rest {
            self.read_bytes(table, index, &[*decoded], &[]);
        }
        for (matcher, shifted) in self.layers[index].matchers.iter_mut().zip(shifted) {
            matcher.join(shifted);
        }
    }

    /// Wakes the layers above. Before an escape they see the same bytes as this layer.
    fn wake_layers_above(&mut self, index: usize, byte: u8) {
        for above in layers_above(index) {
            if !self.layers[above].is_active && can_wake_layer(above, byte) {
                self.layers[above].matchers = self.layers[index].matchers.clone();
                self.layers[above].is_active = true;
            }
        }
    }

    /// Puts a layer to sleep in which nothing has begun, unless a layer above it is awake.
    fn sleep_if_idle(&mut self, index: usize) {
        let is_source = layers_above(index).any(|above| self.layers[above].is_active);
        if !is_source && self.layers[index].is_idle() {
            self.layers[index].is_active = false;
        }
    }
}

/// The text of an escape, at the place of the whole escape.
fn decoded_bytes(text: DecodedText, literal: &[DecodedByte]) -> Vec<DecodedByte> {
    let (start, end) = (literal[0].start, literal[literal.len() - 1].end);
    text.as_bytes().iter().map(|byte| DecodedByte { byte: *byte, start, end }).collect()
}

/// The layers that read the output of this one.
fn layers_above(index: usize) -> impl Iterator<Item = usize> {
    let above = LAYERS.iter().enumerate().filter(move |(_, (_, below))| *below == index);
    above.map(|(place, _)| place + 1)
}

/// Whether a byte can begin an escape that this layer, or one above it, undoes.
fn can_wake_layer(index: usize, byte: u8) -> bool {
    LAYERS[index - 1].0.can_begin_with(byte)
        || layers_above(index).any(|above| can_wake_layer(above, byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        redact::{matcher::PARTIAL_MATCHES_MAX, table::HEAD_BYTES_MAX},
        secret::Secret,
    };

    #[test]
    fn a_secret_that_repeats_itself_is_followed_a_bounded_number_of_times() {
        let secret = Secret::new("a".repeat(10 * HEAD_BYTES_MAX));
        let table = SecretFormTable::new(&[("a", &secret)]);
        let mut cursor = RedactionCursor::new();
        let followed =
            |cursor: &RedactionCursor| cursor.layers[0].matchers[0].partial_matches.len();
        for _ in 0..5 * HEAD_BYTES_MAX {
            while cursor.next_match(&table, &mut b"a".as_slice()).is_some_and(|_| false) {}
            cursor.matches.clear();
            assert!(followed(&cursor) <= PARTIAL_MATCHES_MAX);
        }
        assert_eq!(followed(&cursor), PARTIAL_MATCHES_MAX);
    }

    #[test]
    fn a_layer_without_an_escape_sleeps() {
        let secret = Secret::new("s3cr3t-Tok3n_9");
        let table = SecretFormTable::new(&[("a", &secret)]);
        let mut cursor = RedactionCursor::new();
        let mut active_layers = |text: &str| {
            cursor.find_secret(&table, text.as_bytes(), &[]);
            cursor.layers.iter().filter(|layer| layer.is_active).count()
        };
        assert_eq!(active_layers("nothing to see"), 1);
        assert_eq!(active_layers(r"%25"), 3);
        assert_eq!(active_layers("  and nothing to see again"), 1);
    }
}
