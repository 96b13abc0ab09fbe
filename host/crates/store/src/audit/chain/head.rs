//! The head: a file outside of the database that records how far the log goes, so that a log whose end
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

use std::path::Path;

use super::{key::AuditKey, link::ChainLink, remark::ChainStart};
use crate::{audit::AuditProblem, error::StoreError, private_files};

/// The file's first line.
const TITLE: &str = "sallyport audit head 2";

/// Larger than any head, so that bytes appended to one are detected.
const BYTES_MAX: usize = 512;

/// A record that is certain to have been in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AuditHead {
    pub(crate) last: ChainLink,
}

/// The contents of the head file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadFileContent {
    /// A head with the right seal.
    Head(AuditHead),
    /// No file, or an empty one, which protects just as little.
    Nothing,
    /// A file without the right seal.
    Foreign,
}

impl AuditHead {
    /// Reads the head. Without a key, no head can be trusted.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is not private.
    pub(crate) fn read_file(
        path: &Path,
        key: Option<&AuditKey>,
    ) -> Result<HeadFileContent, StoreError> {
        let bytes = private_files::read_private_file(path, BYTES_MAX)?.unwrap_or_default();
        if bytes.is_empty() {
            return Ok(HeadFileContent::Nothing);
        }
        // The seal only covers the exact bytes that `render` writes, so any other bytes are
        // rejected.
        let head = std::str::from_utf8(&bytes).ok().and_then(Self::parse);
        let sealed =
            head.zip(key).filter(|(head, key)| head.render_sealed(key).as_bytes() == bytes);
        Ok(sealed.map_or(HeadFileContent::Foreign, |(head, _)| HeadFileContent::Head(head)))
    }

    /// Writes the head. The caller must hold the lock of the log's writers.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub(crate) fn write_file(self, path: &Path, key: &AuditKey) -> Result<(), StoreError> {
        private_files::overwrite_fixed_size(path, self.render_sealed(key).as_bytes())
    }

    /// Writes the head unless the file names this record or a later one: another process may have
    /// written further records and a newer head meanwhile, so the head never moves back. The caller
    /// must hold the lock of the log's writers.
    ///
    /// A missing key, or a foreign file instead of the head, is reported by the next check of the log.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written.
    pub(crate) fn advance_file(
        self,
        path: &Path,
        key: Option<&AuditKey>,
    ) -> Result<(), StoreError> {
        let Some(key) = key else { return Ok(()) };
        match Self::read_file(path, Some(key))? {
            HeadFileContent::Head(head) if head.last.seq >= self.last.seq => Ok(()),
            HeadFileContent::Foreign => Ok(()),
            HeadFileContent::Head(_) | HeadFileContent::Nothing => self.write_file(path, key),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let last = text.lines().find_map(|line| line.strip_prefix("last "))?;
        Some(Self { last: last.parse().ok()? })
    }

    /// Every head has the same length, as [`private_files::overwrite_fixed_size`] requires.
    fn render_sealed(self, key: &AuditKey) -> String {
        let ChainLink { seq, hash } = self.last;
        let text = format!("{TITLE}\nlast {seq:020}:{hash}\n");
        let seal = key.seal_head(text.as_bytes());
        format!("{text}seal {seal}\n")
    }
}

impl HeadFileContent {
    /// The record that the head vouches for.
    pub(crate) fn last_link(self) -> ChainLink {
        match self {
            Self::Head(head) => head.last,
            Self::Nothing | Self::Foreign => ChainLink::GENESIS,
        }
    }

    /// Compares the head with the log, which ends with `end`. Does not check that the records after
    /// the head fit the chain; a walk along the chain does.
    ///
    /// No head and no records means that the log has not begun: anyone who can remove both can
    /// remove the whole folder too.
    pub(crate) fn compare_with_log<L: LogView>(
        self,
        log: &L,
        end: ChainLink,
    ) -> Result<Option<AuditProblem>, L::Error> {
        let what = match self {
            Self::Nothing if end == ChainLink::GENESIS => return Ok(None),
            Self::Head(head) => return find_head_mismatch(log, head.last, end),
            Self::Nothing => "the last one, but audit.head, which would confirm it, is missing",
            Self::Foreign => "the last one, but audit.head was changed, or made with another key",
        };
        Ok(Some(AuditProblem { seq: end.seq, what: what.to_owned() }))
    }
}

/// What a head is compared with, asked for only if it is needed.
pub(crate) trait LogView {
    /// The log cannot be read.
    type Error;

    /// Returns the link of the record with this number, if it exists.
    fn read_link(&self, seq: u64) -> Result<Option<ChainLink>, Self::Error>;

    /// Returns the start of the log.
    fn find_start(&self) -> Result<ChainStart, Self::Error>;
}

fn find_head_mismatch<L: LogView>(
    log: &L,
    last: ChainLink,
    end: ChainLink,
) -> Result<Option<AuditProblem>, L::Error> {
    if end.seq < last.seq {
        return Ok(Some(AuditProblem::from_range(end.seq + 1, last.seq, "cut off")));
    }
    if end == last || last == ChainLink::GENESIS {
        return Ok(None);
    }
    let found = match log.read_link(last.seq)? {
        Some(found) => found,
        // Pruned, and the process ended between that commit and the head that should have followed.
        None => {
            let start = log.find_start()?.link;
            if last.seq < start.seq { last } else { start }
        }
    };
    let what = "not the one that was written last".to_owned();
    Ok((found != last).then_some(AuditProblem { seq: last.seq, what }))
}
