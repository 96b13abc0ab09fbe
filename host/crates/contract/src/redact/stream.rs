//! Redaction of something that passes in pieces, cut anywhere.
//!
//! Only what may be the beginning of a secret is held back, so a reader that waits for the end of a
//! message gets it unless it looks like one.

use std::{borrow::Cow, collections::VecDeque, fmt, sync::Arc};

use super::table::{Cursor, Hit, Table};

/// Takes secrets out of bytes that arrive in pieces.
pub struct RedactStream(Option<State>);

struct State {
    table: Arc<Table>,
    cursor: Cursor,
    found: Found,
    /// What has arrived and is not decided, from position `base` on.
    held: Vec<u8>,
    base: u64,
}

/// The secrets that were found and not yet replaced, in order and apart from each other.
#[derive(Default)]
struct Found {
    waiting: VecDeque<Hit>,
    /// Up to where the last replaced secret reaches; forms that begin before it belong to it.
    covered: u64,
}

impl RedactStream {
    pub(super) fn new(table: Option<Arc<Table>>) -> Self {
        Self(table.map(|table| State {
            cursor: Cursor::new(&table),
            table,
            found: Found::default(),
            held: Vec::new(),
            base: 0,
        }))
    }

    /// Takes the next piece and returns what is safe to pass on.
    pub fn push<'a>(&mut self, piece: &'a [u8]) -> Cow<'a, [u8]> {
        match &mut self.0 {
            Some(state) => state.push(piece),
            None => Cow::Borrowed(piece),
        }
    }

    /// Returns the rest, once nothing more will come.
    pub fn finish(self) -> Vec<u8> {
        self.end().0
    }

    /// The rest, and whether anything was replaced.
    pub(super) fn end(self) -> (Vec<u8>, bool) {
        let Some(mut state) = self.0 else { return (Vec::new(), false) };
        let rest = state.release(state.cursor.at());
        (rest, state.found.covered > 0)
    }
}

impl State {
    fn push<'a>(&mut self, piece: &'a [u8]) -> Cow<'a, [u8]> {
        let mut unread = piece;
        while let Some(hit) = self.cursor.next_hit(&self.table, &mut unread) {
            self.found.add(hit);
        }
        let safe = self.cursor.open_since(&self.table);
        if self.is_clear() && safe >= self.base {
            let (pass, hold) = piece.split_at(offset(self.base, safe));
            self.held.extend_from_slice(hold);
            self.base = safe;
            return Cow::Borrowed(pass);
        }
        self.held.extend_from_slice(piece);
        Cow::Owned(self.release(safe))
    }

    /// Whether a piece needs no other bytes and no mark to be judged.
    fn is_clear(&self) -> bool {
        self.held.is_empty() && self.found.waiting.is_empty() && self.found.covered <= self.base
    }

    /// Passes on what lies before a position at which no unfinished form can have begun.
    fn release(&mut self, safe: u64) -> Vec<u8> {
        let mut out = Vec::new();
        self.take(self.found.covered);
        while let Some(hit) = self.found.replace_before(safe) {
            out.extend(self.take(hit.start));
            out.extend_from_slice(self.table.mark(hit.name).as_bytes());
            self.take(hit.end);
        }
        out.extend(self.take(safe));
        out
    }

    fn take(&mut self, to: u64) -> std::vec::Drain<'_, u8> {
        let count = offset(self.base, to);
        self.base += count as u64;
        self.held.drain(..count)
    }
}

/// Bytes from one position to another; none when that lies behind.
fn offset(from: u64, to: u64) -> usize {
    usize::try_from(to.saturating_sub(from)).expect("no more than what is held in memory")
}

impl Found {
    /// Adds a hit that ends after all others do. Hits that overlap become one, called after the one
    /// that begins first, or of two that begin together after the longer.
    fn add(&mut self, mut hit: Hit) {
        if hit.start < self.covered {
            self.covered = hit.end;
            self.waiting.clear();
            return;
        }
        while let Some(last) = self.waiting.pop_back_if(|last| last.end > hit.start) {
            if last.start < hit.start {
                hit = Hit { end: hit.end, ..last };
            }
        }
        self.waiting.push_back(hit);
    }

    /// The next hit that begins before a position, which is now replaced.
    fn replace_before(&mut self, safe: u64) -> Option<Hit> {
        let hit = self.waiting.pop_front_if(|hit| hit.start < safe)?;
        self.covered = hit.end;
        Some(hit)
    }
}

/// Looks for secrets in bytes that leave in pieces.
pub struct ScanStream(Option<Scan>);

struct Scan {
    table: Arc<Table>,
    cursor: Cursor,
    spared: Vec<String>,
}

impl ScanStream {
    pub(super) fn new(table: Option<Arc<Table>>, spared: &[String]) -> Self {
        Self(table.map(|table| Scan {
            cursor: Cursor::new(&table),
            table,
            spared: spared.to_vec(),
        }))
    }

    /// Takes the next piece and returns the name of the first secret that ends in it, also when it
    /// began in an earlier one. What stands behind that secret in the piece is not looked at.
    pub fn push(&mut self, piece: &[u8]) -> Option<&str> {
        let Scan { table, cursor, spared } = self.0.as_mut()?;
        cursor.find(table, piece, spared)
    }
}

impl fmt::Debug for RedactStream {
    /// What is held back may be half a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedactStream").finish_non_exhaustive()
    }
}

impl fmt::Debug for ScanStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScanStream").finish_non_exhaustive()
    }
}
