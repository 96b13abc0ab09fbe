//! The head: a file next to the database that records how far the log goes, so that a log whose end
//! was cut off is detected.
//!
//! The head names a record that is on the disk, and is only written once that record is. So a
//! crash, a full disk or a power failure never leaves a log that ends before its head. A process
//! that is killed before it writes the new head leaves a log that goes further than its head.
//! Records after the head still have to fit the chain, and the chain cannot be continued without
//! the key.
//!
//! Two things go undetected: records after the head that are cut off before the next head is
//! written, and, as when a whole folder is restored, records after an older copy of the head that
//! is put back.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::{key::AuditKey, link::Link, problem::Problem, remark::Start, row};
use crate::{error::StoreError, private};

/// The head, within the folder.
const FILE: &str = "audit.head";

/// The file's first line.
const TITLE: &str = "sallyport audit head 2";

/// Larger than any head, so that bytes appended to one are detected.
const BYTES_MAX: usize = 512;

/// A record that is certain to have been in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) last: Link,
}

/// The contents of the head file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// A head with the right seal.
    Head(Head),
    /// No file, or an empty one, which protects just as little.
    Nothing,
    /// A file without the right seal.
    Foreign,
}

impl Head {
    /// Reads the head. Without a key, no head can be trusted.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is not private.
    pub(super) fn read(folder: &Path, key: Option<&AuditKey>) -> Result<Found, StoreError> {
        let bytes = private::read(&path(folder), BYTES_MAX)?.unwrap_or_default();
        if bytes.is_empty() {
            return Ok(Found::Nothing);
        }
        // The seal only covers the exact bytes that `render` writes, so any other bytes are
        // rejected.
        let head = std::str::from_utf8(&bytes).ok().and_then(Self::parse);
        let sealed = head.zip(key).filter(|(head, key)| head.render(key).as_bytes() == bytes);
        Ok(sealed.map_or(Found::Foreign, |(head, _)| Found::Head(head)))
    }

    /// Writes the head. The caller must hold the database's write lock.
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

    /// Every head has the same length, as [`private::overwrite`] requires.
    fn render(self, key: &AuditKey) -> String {
        let Link { seq, hash } = self.last;
        let text = format!("{TITLE}\nlast {seq:020}:{hash}\n");
        let seal = key.seal(text.as_bytes());
        format!("{text}seal {seal}\n")
    }
}

impl Found {
    /// The record that the head vouches for.
    pub(super) fn last(self) -> Link {
        match self {
            Self::Head(head) => head.last,
            Self::Nothing | Self::Foreign => Link::GENESIS,
        }
    }

    /// Compares the head with the log, which ends with `end`. Does not check that the records after
    /// the head fit the chain; a walk along the chain does.
    ///
    /// No head and no records means that the log has not begun: anyone who can remove both can
    /// remove the whole folder too.
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
        // Pruned, and the process ended between that commit and the head that should have followed.
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
