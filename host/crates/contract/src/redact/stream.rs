//! Redaction of data that arrives in pieces, cut anywhere.
//!
//! Only bytes that may be the beginning of a secret are held back, so a reader that waits for the
//! end of a message receives it unless it looks like one.

use std::{borrow::Cow, collections::VecDeque, fmt, sync::Arc};

use super::{cursor::RedactionCursor, matcher::SecretMatch, table::SecretFormTable};

/// Removes secrets from bytes that arrive in pieces.
pub struct RedactStream(Option<RedactionState>);

struct RedactionState {
    table: Arc<SecretFormTable>,
    cursor: RedactionCursor,
    matches: PendingMatches,
    pending: PendingBytes,
}

/// Bytes that have arrived and are undecided, from position `base` on.
#[derive(Default)]
struct PendingBytes {
    bytes: Vec<u8>,
    start_offset: u64,
}

/// The secrets that were found and not yet replaced, in order and without overlaps.
#[derive(Default)]
struct PendingMatches {
    queue: VecDeque<SecretMatch>,
    /// Where the last replaced secret ends; forms that begin before it belong to it.
    covered_until: u64,
}

impl RedactStream {
    pub(super) fn new(table: Option<Arc<SecretFormTable>>) -> Self {
        Self(table.map(|table| RedactionState {
            cursor: RedactionCursor::new(),
            table,
            matches: PendingMatches::default(),
            pending: PendingBytes::default(),
        }))
    }

    /// Takes the next piece and returns what is safe to pass on.
    pub fn push<'a>(&mut self, piece: &'a [u8]) -> Cow<'a, [u8]> {
        match &mut self.0 {
            Some(state) => state.push(piece),
            None => Cow::Borrowed(piece),
        }
    }

    /// Returns the rest, once no more bytes will come.
    pub fn finish(self) -> Vec<u8> {
        self.finish_and_report().0
    }

    /// Returns the rest, and whether anything was replaced.
    pub(super) fn finish_and_report(self) -> (Vec<u8>, bool) {
        let Some(mut state) = self.0 else { return (Vec::new(), false) };
        state.cursor.finish_pending(&state.table);
        state.find_matches(&[]);
        let rest = state.release_before(state.cursor.position());
        (rest, state.matches.covered_until > 0)
    }
}

impl RedactionState {
    fn push<'a>(&mut self, piece: &'a [u8]) -> Cow<'a, [u8]> {
        self.find_matches(piece);
        let safe = self.cursor.earliest_open_start(&self.table, false);
        if self.matches.is_clear(self.pending.start_offset) {
            return self.pending.pass_through(piece, safe);
        }
        self.pending.bytes.extend_from_slice(piece);
        Cow::Owned(self.release_before(safe))
    }

    fn find_matches(&mut self, mut piece: &[u8]) {
        while let Some(hit) = self.cursor.next_match(&self.table, &mut piece) {
            self.matches.add_match(hit);
        }
    }

    /// Passes on the bytes before a position at which no unfinished form can have begun.
    fn release_before(&mut self, safe: u64) -> Vec<u8> {
        let mut out = Vec::new();
        self.pending.take_until(self.matches.covered_until);
        while let Some(hit) = self.matches.take_match_before(safe) {
            out.extend(self.pending.take_until(hit.start));
            out.extend_from_slice(self.table.replacement_text(hit.name).as_bytes());
            self.pending.take_until(hit.end);
        }
        out.extend(self.pending.take_until(safe));
        out
    }
}

impl PendingBytes {
    /// Takes a piece and passes on the bytes before a position.
    fn pass_through<'a>(&mut self, piece: &'a [u8], safe: u64) -> Cow<'a, [u8]> {
        if self.bytes.is_empty() && safe >= self.start_offset {
            let (released, withheld) = piece.split_at(byte_distance(self.start_offset, safe));
            self.bytes.extend_from_slice(withheld);
            self.start_offset = safe;
            return Cow::Borrowed(released);
        }
        self.bytes.extend_from_slice(piece);
        Cow::Owned(self.take_until(safe).collect())
    }

    fn take_until(&mut self, to: u64) -> std::vec::Drain<'_, u8> {
        let count = byte_distance(self.start_offset, to);
        self.start_offset += count as u64;
        self.bytes.drain(..count)
    }
}

/// Bytes from one position to another; 0 when the second is smaller.
fn byte_distance(from: u64, to: u64) -> usize {
    usize::try_from(to.saturating_sub(from)).expect("no more than what is held in memory")
}

impl PendingMatches {
    /// Whether the bytes from a position on need no mark.
    fn is_clear(&self, start_offset: u64) -> bool {
        self.queue.is_empty() && self.covered_until <= start_offset
    }

    /// Adds a hit. Overlapping hits become one.
    fn add_match(&mut self, mut hit: SecretMatch) {
        if hit.start < self.covered_until {
            self.covered_until = self.covered_until.max(hit.end);
            while let Some(overlapping) =
                self.queue.pop_front_if(|other| other.start < self.covered_until)
            {
                self.covered_until = self.covered_until.max(overlapping.end);
            }
            return;
        }
        let first = self.queue.partition_point(|other| other.end <= hit.start);
        let end = self.queue.partition_point(|other| other.start < hit.end);
        for other in self.queue.drain(first..end.max(first)) {
            hit = merge_matches(other, hit);
        }
        self.queue.insert(first, hit);
    }

    /// Returns the next hit that begins before a position, and counts it as replaced.
    fn take_match_before(&mut self, safe: u64) -> Option<SecretMatch> {
        let hit = self.queue.pop_front_if(|hit| hit.start < safe)?;
        self.covered_until = hit.end;
        Some(hit)
    }
}

/// Merges two overlapping hits under the name of the one that begins first, or of the longer one if
/// they begin together.
fn merge_matches(earlier: SecretMatch, later: SecretMatch) -> SecretMatch {
    let is_earlier = (earlier.start, later.end) <= (later.start, earlier.end);
    let name = if is_earlier { earlier.name } else { later.name };
    let (start, end) = (earlier.start.min(later.start), earlier.end.max(later.end));
    SecretMatch { start, end, name }
}

/// Looks for secrets in bytes that leave in pieces. A possible beginning of a secret is held back,
/// so when a secret is found, none of it has left.
pub struct ScanStream(Option<ScanState>);

struct ScanState {
    table: Arc<SecretFormTable>,
    cursor: RedactionCursor,
    pending: PendingBytes,
    allowed_names: Vec<String>,
    /// The secret that was found; nothing leaves afterwards.
    found: Option<String>,
}

impl ScanStream {
    pub(super) fn new(table: Option<Arc<SecretFormTable>>, allowed_names: &[String]) -> Self {
        Self(table.map(|table| ScanState {
            cursor: RedactionCursor::new(),
            table,
            pending: PendingBytes::default(),
            allowed_names: allowed_names.to_vec(),
            found: None,
        }))
    }

    /// Takes the next piece and returns the bytes that may leave now.
    ///
    /// # Errors
    ///
    /// The name of the secret that would have left; later pieces return the same error.
    pub fn push<'a>(&mut self, piece: &'a [u8]) -> Result<Cow<'a, [u8]>, String> {
        match &mut self.0 {
            Some(scan) => scan.push(piece),
            None => Ok(Cow::Borrowed(piece)),
        }
    }

    /// Returns the rest, once no more bytes will come.
    ///
    /// # Errors
    ///
    /// The name of the secret that would have left.
    pub fn finish(self) -> Result<Vec<u8>, String> {
        let Some(mut scan) = self.0 else { return Ok(Vec::new()) };
        scan.cursor.finish_pending(&scan.table);
        scan.check_piece(&[])?;
        Ok(scan.pending.bytes)
    }
}

impl ScanState {
    fn push<'a>(&mut self, piece: &'a [u8]) -> Result<Cow<'a, [u8]>, String> {
        self.check_piece(piece)?;
        let safe = self.cursor.earliest_open_start(&self.table, true);
        Ok(self.pending.pass_through(piece, safe))
    }

    fn check_piece(&mut self, piece: &[u8]) -> Result<(), String> {
        if self.found.is_none() {
            let found = self.cursor.find_secret(&self.table, piece, &self.allowed_names);
            self.found = found.map(str::to_owned);
        }
        self.found.clone().map_or(Ok(()), Err)
    }
}

impl fmt::Debug for RedactStream {
    /// Shows no content: the held bytes may be half a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedactStream").finish_non_exhaustive()
    }
}

impl fmt::Debug for ScanStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScanStream").finish_non_exhaustive()
    }
}
