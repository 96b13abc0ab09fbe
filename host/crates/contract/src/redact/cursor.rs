//! A position in a stream of bytes, with everything that may be a secret at that position.
//!
//! The bytes are read raw and, at the same time, with their escapes undone once, twice and three
//! times, because programs embed texts in texts. Each of these is a [`Layer`], which reads the
//! output of the layer below. A layer without an escape adds nothing and sleeps, so ordinary text
//! is read once.
//!
//! Something that looks like an escape may not be one (`%41` in a password), so each layer follows
//! both readings.

use std::{array, collections::VecDeque};

use super::{
    escape::{ESCAPE_BYTES_MAX, Escape, Family},
    reader::{Hit, Reader, Unit},
    table::Table,
};

/// The layers above the raw bytes: the family of escapes that is undone, and the layer that it
/// reads, which comes earlier.
const LAYERS: [(Family, usize); 5] = [
    (Family::Signs, 0),
    (Family::Signs, 1),
    (Family::Signs, 2),
    // Mail is undone in the raw bytes and within JSON.
    (Family::Mail, 0),
    (Family::Mail, 1),
];

/// A position in a stream of bytes.
#[derive(Clone)]
pub(super) struct Cursor {
    at: u64,
    layers: [Layer; LAYERS.len() + 1],
    /// Hits that the caller has not taken yet.
    met: VecDeque<Hit>,
}

/// The bytes with their escapes undone some number of times.
#[derive(Clone, Default)]
struct Layer {
    /// One per view.
    readers: [Reader; 3],
    /// Bytes that form an escape if the next ones continue it.
    pending: Vec<Unit>,
    is_awake: bool,
}

impl Layer {
    fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.readers.iter().all(Reader::is_idle)
    }
}

impl Cursor {
    pub(super) fn new() -> Self {
        let layers = array::from_fn(|index| Layer { is_awake: index == 0, ..Layer::default() });
        Self { at: 0, layers, met: VecDeque::new() }
    }

    /// The number of bytes read.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Where the earliest incomplete form may have begun. Unless `is_strict`, the first letters of
    /// a form whose line breaks after them count as passed.
    pub(super) fn open_since(&self, table: &Table, is_strict: bool) -> u64 {
        let awake = self.layers.iter().filter(|layer| layer.is_awake);
        let open = awake.flat_map(|layer| {
            let readers = layer.readers.iter().zip(table.views());
            let open = readers.filter_map(|(reader, forms)| reader.open_since(forms, is_strict));
            open.chain(layer.pending.first().map(|unit| unit.start))
        });
        open.min().unwrap_or(self.at)
    }

    /// Reads bytes up to the end of the next secret, and leaves the rest in `bytes`.
    pub(super) fn next_hit(&mut self, table: &Table, bytes: &mut &[u8]) -> Option<Hit> {
        loop {
            if let Some(hit) = self.met.pop_front() {
                return Some(hit);
            }
            if self.is_idle() {
                let skipped = table.first_in(bytes);
                self.at += skipped as u64;
                *bytes = &bytes[skipped..];
            }
            let (byte, rest) = bytes.split_first()?;
            *bytes = rest;
            let unit = Unit { byte: *byte, start: self.at, end: self.at + 1 };
            self.at += 1;
            self.read(table, 0, &[unit], &[]);
        }
    }

    /// Settles the bytes that wait for more, once no more will come.
    pub(super) fn end(&mut self, table: &Table) {
        for index in 1..self.layers.len() {
            self.settle(table, index, true);
        }
    }

    /// Reads bytes up to the first secret that is not spared, and returns its name.
    pub(super) fn find<'t>(
        &mut self,
        table: &'t Table,
        mut bytes: &[u8],
        spared: &[String],
    ) -> Option<&'t str> {
        while let Some(hit) = self.next_hit(table, &mut bytes) {
            let name = table.name(hit.name);
            if !spared.contains(name) {
                return Some(name);
            }
        }
        None
    }

    /// Works as [`find`](Self::find) does, for bytes that are the end of the stream.
    pub(super) fn find_in<'t>(
        mut self,
        table: &'t Table,
        bytes: &[u8],
        spared: &[String],
    ) -> Option<&'t str> {
        self.find(table, bytes, spared).or_else(|| {
            self.end(table);
            self.find(table, &[], spared)
        })
    }

    fn is_idle(&self) -> bool {
        let [bytes, above @ ..] = &self.layers;
        bytes.is_idle() && above.iter().all(|layer| !layer.is_awake)
    }

    /// Reads a character, or its escaped form, in a layer and then in the layers above.
    fn read(&mut self, table: &Table, index: usize, plain: &[Unit], literal: &[Unit]) {
        if let [unit] = plain {
            self.wake_above(index, unit.byte);
        }
        for (reader, forms) in self.layers[index].readers.iter_mut().zip(table.views()) {
            reader.read(forms, plain, literal, &mut self.met);
        }
        for above in above(index) {
            if self.layers[above].is_awake {
                for unit in plain {
                    self.layers[above].pending.push(*unit);
                    self.settle(table, above, false);
                }
                self.rest(above);
            }
        }
    }

    /// Reads the pending bytes of a layer as far as their meaning is clear.
    fn settle(&mut self, table: &Table, index: usize, is_all: bool) {
        let (family, _) = LAYERS[index - 1];
        while !self.layers[index].pending.is_empty() {
            let pending = &mut self.layers[index].pending;
            let mut bytes = [0; ESCAPE_BYTES_MAX];
            let count = pending.len().min(bytes.len());
            bytes.iter_mut().zip(&*pending).for_each(|(byte, unit)| *byte = unit.byte);
            match family.read(&bytes[..count], is_all) {
                Escape::Open => return,
                Escape::None => {
                    let unit = pending.remove(0);
                    self.read(table, index, &[unit], &[]);
                }
                Escape::Of(used, text) => {
                    let literal: Vec<Unit> = pending.drain(..used).collect();
                    let (start, end) = (literal[0].start, literal[used - 1].end);
                    let plain = text.bytes().iter().map(|byte| Unit { byte: *byte, start, end });
                    let plain: Vec<Unit> = plain.collect();
                    self.read(table, index, &plain, &literal);
                }
            }
        }
    }

    /// Wakes the layers above. Before an escape they see the same bytes as this layer.
    fn wake_above(&mut self, index: usize, byte: u8) {
        for above in above(index) {
            if !self.layers[above].is_awake && wakes(above, byte) {
                self.layers[above].readers = self.layers[index].readers.clone();
                self.layers[above].is_awake = true;
            }
        }
    }

    /// Puts a layer to sleep in which nothing has begun, unless a layer above it is awake.
    fn rest(&mut self, index: usize) {
        let is_heard = above(index).any(|above| self.layers[above].is_awake);
        if !is_heard && self.layers[index].is_idle() {
            self.layers[index].is_awake = false;
        }
    }
}

/// The layers that read the output of this one.
fn above(index: usize) -> impl Iterator<Item = usize> {
    let above = LAYERS.iter().enumerate().filter(move |(_, (_, below))| *below == index);
    above.map(|(place, _)| place + 1)
}

/// Whether a byte can begin an escape that this layer, or one above it, undoes.
fn wakes(index: usize, byte: u8) -> bool {
    LAYERS[index - 1].0.begins_with(byte) || above(index).any(|above| wakes(above, byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        redact::{reader::FOLLOWED_MAX, table::HEAD_BYTES_MAX},
        secret::Secret,
    };

    #[test]
    fn a_secret_that_repeats_itself_is_followed_a_bounded_number_of_times() {
        let secret = Secret::new("a".repeat(10 * HEAD_BYTES_MAX));
        let table = Table::new(&[("a", &secret)]);
        let mut cursor = Cursor::new();
        let followed = |cursor: &Cursor| cursor.layers[0].readers[0].followed.len();
        for _ in 0..5 * HEAD_BYTES_MAX {
            while cursor.next_hit(&table, &mut b"a".as_slice()).is_some_and(|_| false) {}
            cursor.met.clear();
            assert!(followed(&cursor) <= FOLLOWED_MAX);
        }
        assert_eq!(followed(&cursor), FOLLOWED_MAX);
    }

    #[test]
    fn a_layer_without_an_escape_sleeps() {
        let secret = Secret::new("s3cr3t-Tok3n_9");
        let table = Table::new(&[("a", &secret)]);
        let mut cursor = Cursor::new();
        let mut awake = |text: &str| {
            cursor.find(&table, text.as_bytes(), &[]);
            cursor.layers.iter().filter(|layer| layer.is_awake).count()
        };
        assert_eq!(awake("nothing to see"), 1);
        assert_eq!(awake(r"%25"), 3);
        assert_eq!(awake("  and nothing to see again"), 1);
    }
}
