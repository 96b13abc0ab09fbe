//! The head: a file beside the database that says how far the log goes, so that a log whose end was
//! cut off is noticed.
//!
//! It names a record that is on the disk for sure, and is written only after that record is. So no
//! crash, no full disk and no failure of the power leaves a log that ends before its head. A log that
//! goes further than its head is what a process leaves that is killed before it has written the new
//! one: whatever follows the head has to fit the chain, which nobody can continue without the key.
//!
//! What goes unnoticed so is records behind the head that are cut off before the next head is
//! written; and, as with a whole folder that is put back, those behind an older head that somebody
//! kept and puts back.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::{key::AuditKey, link::Link, problem::Problem, remark::Start, row};
use crate::{error::StoreError, private};

/// The head, within the folder.
const FILE: &str = "audit.head";

/// The file's first line.
const TITLE: &str = "sallyport audit head 2";

/// Room for a head and more, so that one that was added to is seen to be.
const BYTES_MAX: usize = 512;

/// A record that the log has held for sure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) last: Link,
}

/// What was found in place of a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// A head with the right seal.
    Head(Head),
    /// No file, or an empty one, which protects as little.
    Nothing,
    /// A file without the right seal.
    Foreign,
}

impl Head {
    /// Reads the head. Without a key there is none that could be believed.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is not private.
    pub(super) fn read(folder: &Path, key: Option<&AuditKey>) -> Result<Found, StoreError> {
        let bytes = private::read(&path(folder), BYTES_MAX)?.unwrap_or_default();
        if bytes.is_empty() {
            return Ok(Found::Nothing);
        }
        // Only the very bytes that would be written count: a seal says nothing about others.
        let head = std::str::from_utf8(&bytes).ok().and_then(Self::parse);
        let sealed = head.zip(key).filter(|(head, key)| head.render(key).as_bytes() == bytes);
        Ok(sealed.map_or(Found::Foreign, |(head, _)| Found::Head(head)))
    }

    /// Writes the head. Only whoever holds the database's write lock may call this.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub(super) fn write(self, folder: &Path, key: &AuditKey) -> Result<(), StoreError> {
        private::overwrite(&path(folder), self.render(key).as_bytes())
    }

    fn parse(text: &str) -> Option<Self> {
        let last = text.lines().find_map(|line| line.strip_prefix("last "))?;
        Some(Self { last: last.parse().ok()? })
    }

    /// Every head has the same length, for the sake of [`private::overwrite`].
    fn render(self, key: &AuditKey) -> String {
        let Link { seq, hash } = self.last;
        let text = format!("{TITLE}\nlast {seq:020}:{hash}\n");
        let seal = key.seal(text.as_bytes());
        format!("{text}seal {seal}\n")
    }
}

impl Found {
    /// The record that a head vouches for.
    pub(super) fn last(self) -> Link {
        match self {
            Self::Head(head) => head.last,
            Self::Nothing | Self::Foreign => Link::GENESIS,
        }
    }

    /// Compares with the log, which ends with `end`. Whether what follows the head fits is for those
    /// to say who walk along the chain.
    ///
    /// No head and no log is a log that has not begun: whoever can remove both can remove the
    /// whole folder too.
    pub(super) fn compare(
        self,
        connection: &Connection,
        end: Link,
    ) -> rusqlite::Result<Option<Problem>> {
        let what = match self {
            Self::Nothing if end == Link::GENESIS => return Ok(None),
            Self::Head(head) => return misfit(connection, head.last, end),
            Self::Nothing => "the last one, but audit.head, which would confirm it, is missing",
            Self::Foreign => "the last one, but audit.head was changed, or made with another key",
        };
        Ok(Some(Problem { seq: end.seq, what: what.to_owned() }))
    }
}

fn misfit(connection: &Connection, last: Link, end: Link) -> rusqlite::Result<Option<Problem>> {
    if end.seq < last.seq {
        return Ok(Some(Problem::of_run(end.seq + 1, last.seq, "cut off")));
    }
    if end == last || last == Link::GENESIS {
        return Ok(None);
    }
    let found = match row::link(connection, last.seq)? {
        Some(found) => found,
        // Removed rightly, between the commit and the head that followed it.
        None => {
            let start = Start::find(connection, row::first_seq(connection)?.unwrap_or(1))?.link;
            if last.seq < start.seq { last } else { start }
        }
    };
    let what = "not the one that was written last".to_owned();
    Ok((found != last).then_some(Problem { seq: last.seq, what }))
}

fn path(folder: &Path) -> PathBuf {
    folder.join(FILE)
}
