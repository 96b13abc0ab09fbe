//! The rows of the log in PostgreSQL, unverified.

use blake3::Hash;
use futures::TryStreamExt;
use tokio_postgres::Row;

use crate::{
    audit::{
        AuditFilter,
        chain::{AuditRow, link::ChainLink, remark::ChainStart, walk::ChainWalk},
    },
    postgres::{
        error::PgError,
        transaction::{self, Tx},
        values::{Columns, escape},
    },
};

/// Rows per page.
const PAGE_ROWS: i64 = 256;

/// Where a page begins, and in which order.
#[derive(Debug, Clone)]
pub(super) struct Page {
    from: i64,
    after: i64,
    newest_first: bool,
}

impl Page {
    pub(super) fn first(filter: &AuditFilter) -> Self {
        let after = filter.after_seq.map(|seq| i64::try_from(seq).unwrap_or(i64::MAX));
        let from = if filter.newest_first { i64::MAX } else { i64::MIN };
        Self { from, after: after.unwrap_or(i64::MIN), newest_first: filter.newest_first }
    }

    /// The page after one with these rows; `None` after the last.
    pub(super) fn after(&self, rows: &[AuditRow]) -> Option<Self> {
        let last = i64::try_from(rows.last()?.link.seq).ok()?;
        let from = last.checked_add(if self.newest_first { -1 } else { 1 })?;
        Some(Self { from, ..self.clone() })
    }
}

pub(super) async fn read_page(tx: &Tx<'_>, page: &Page) -> Result<Vec<AuditRow>, PgError> {
    let (compare, order) = if page.newest_first { ("<=", "DESC") } else { (">=", "") };
    let sql = format!(
        "SELECT seq, text, hash FROM audit WHERE seq {compare} $1 AND seq > $2
         ORDER BY seq {order} LIMIT $3"
    );
    let rows = tx.rows(&sql, &[&page.from, &page.after, &PAGE_ROWS]).await?;
    transaction::read_all(&rows, read_row)
}

/// Reads a row. A hash of another length reads as zeros, which no record fits.
pub(super) fn read_row(row: &Row) -> Result<AuditRow, PgError> {
    let hash = row.value::<&[u8]>("hash")?.try_into().unwrap_or_default();
    let link = ChainLink { seq: row.number("seq")?, hash: Hash::from_bytes(hash) };
    Ok(AuditRow { link, text: row.text("text")?.into_bytes() })
}

/// Reads the last rows of the log, newest first.
pub(super) async fn read_last_rows(tx: &Tx<'_>, count: i64) -> Result<Vec<AuditRow>, PgError> {
    let sql = "SELECT seq, text, hash FROM audit ORDER BY seq DESC LIMIT $1";
    transaction::read_all(&tx.rows(sql, &[&count]).await?, read_row)
}

/// Returns the link of the row with this number, if it exists.
pub(super) async fn read_link(tx: &Tx<'_>, seq: u64) -> Result<Option<ChainLink>, PgError> {
    let sql = "SELECT seq, text, hash FROM audit WHERE seq = $1";
    let number = i64::try_from(seq).unwrap_or(i64::MAX);
    tx.row(sql, &[&number]).await?.map(|row| Ok(read_row(&row)?.link)).transpose()
}

/// Finds the start of the log.
pub(super) async fn find_start(tx: &Tx<'_>) -> Result<ChainStart, PgError> {
    let first = tx.count("SELECT coalesce(min(seq), 1) FROM audit", &[]).await?;
    if first <= 1 {
        return Ok(ChainStart::GENESIS);
    }
    let sql = "SELECT seq, text, hash FROM audit WHERE is_remark ORDER BY seq DESC";
    let rows = tx.rows(sql, &[]).await?;
    ChainStart::from_remarks(
        rows.iter().map(|row| Ok::<_, PgError>(read_row(row)?.text().to_owned())),
    )
}

/// Takes a walk over all records with a number up to `through`.
pub(super) async fn walk_through(
    walk: &mut ChainWalk<'_>,
    tx: &Tx<'_>,
    through: u64,
) -> Result<(), PgError> {
    let sql = "SELECT seq, text, hash FROM audit WHERE seq <= $1 ORDER BY seq";
    let through = i64::try_from(through).unwrap_or(i64::MAX);
    let mut rows = std::pin::pin!(tx.stream(sql, &[&through]).await?);
    while let Some(row) = rows.try_next().await? {
        walk.visit_record(&read_row(&row)?);
    }
    walk.report_mismatch();
    Ok(())
}

/// Adds records with their links.
pub(super) async fn insert_records(
    tx: &Tx<'_>,
    records: &[(ChainLink, String)],
) -> Result<(), PgError> {
    if records.is_empty() {
        return Ok(());
    }
    let numbers: Vec<i64> =
        records.iter().map(|(link, _)| i64::try_from(link.seq).unwrap_or(i64::MAX)).collect();
    let texts: Vec<String> = records.iter().map(|(_, text)| escape(text).into_owned()).collect();
    let hashes: Vec<&[u8]> =
        records.iter().map(|(link, _)| link.hash.as_bytes().as_slice()).collect();
    let sql = "INSERT INTO audit (seq, text, hash)
        SELECT * FROM unnest($1::bigint[], $2::text[], $3::bytea[])";
    tx.execute(sql, &[&numbers, &texts, &hashes]).await.map(drop)
}
