//! The head: a file beside the database that says how far the log goes, so that a log whose end was
//! cut off is noticed.
//!
//! It is written before a commit, to name the record that the log is about to end with, and once
//! more after it. A process that is killed between the two leaves a head that names both ends, and
//! the log has one of them: nothing was cut. In any other case the log must end where the head
//! says. What goes unnoticed so is one group of records, when it is cut off after a crash and
//! before the next record is written.

use std::path::{Path, PathBuf};

use super::{key::AuditKey, link::Link, problem::Problem};
use crate::{error::StoreError, private};

/// The head, within the folder.
const FILE: &str = "audit.head";

/// The file's first line.
const TITLE: &str = "sallyport audit head 1";

/// Room for a head and more, so that one that was added to is seen to be.
const BYTES_MAX: usize = 512;

/// Where the log ends, or is about to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    /// The last record for sure.
    pub(super) last: Link,
    /// The last record if the commit under way succeeds; the same when none is.
    pub(super) next: Link,
}

/// What was found in place of a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// A head with the right seal.
    Head(Head),
    /// No file.
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
        let Some(bytes) = private::read(&path(folder), BYTES_MAX)? else {
            return Ok(Found::Nothing);
        };
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
        let line = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.parse().ok());
        Some(Self { last: line("last ")?, next: line("next ")? })
    }

    /// Every head has the same length, for the sake of [`private::overwrite`].
    fn render(self, key: &AuditKey) -> String {
        let line = |Link { seq, hash }| format!("{seq:020}:{hash}");
        let text = format!("{TITLE}\nlast {}\nnext {}\n", line(self.last), line(self.next));
        let seal = key.seal(text.as_bytes());
        format!("{text}seal {seal}\n")
    }
}

impl Found {
    /// The end that a head vouches for.
    pub(super) fn last(self) -> Link {
        match self {
            Self::Head(head) => head.last,
            Self::Nothing | Self::Foreign => Link::GENESIS,
        }
    }

    /// Compares with the end of the log.
    ///
    /// No head and no log is a log that has not begun: whoever can remove both can remove the
    /// whole folder too.
    pub(super) fn compare(self, end: Link) -> Option<Problem> {
        let what = match self {
            Self::Nothing if end == Link::GENESIS => return None,
            Self::Head(head) if end == head.last || end == head.next => return None,
            Self::Head(head) => return Some(misfit(head.last, end)),
            Self::Nothing => "the last one, but audit.head, which would confirm it, is missing",
            Self::Foreign => "the last one, but audit.head was changed, or made with another key",
        };
        Some(Problem { seq: end.seq, what: what.to_owned() })
    }
}

fn misfit(last: Link, end: Link) -> Problem {
    if end.seq < last.seq {
        let what = "cut off, or lost in a failure of the power";
        Problem::of_run(end.seq + 1, last.seq, what)
    } else if last.seq < end.seq {
        let what = "added, or audit.head is an old one";
        Problem::of_run(last.seq + 1, end.seq, what)
    } else {
        Problem { seq: end.seq, what: "not the one that was written last".to_owned() }
    }
}

fn path(folder: &Path) -> PathBuf {
    folder.join(FILE)
}
