//! A transaction, with its statements prepared once for each connection.

use deadpool_postgres::Transaction;
use tokio_postgres::{Row, RowStream, types::ToSql};

use super::{error::PgError, values};

/// The values of a statement.
pub(crate) type Values<'v> = &'v [&'v (dyn ToSql + Sync)];

/// A transaction that has begun.
pub(crate) struct Tx<'a>(Transaction<'a>);

impl<'a> Tx<'a> {
    pub(crate) fn new(transaction: Transaction<'a>) -> Self {
        Self(transaction)
    }

    /// Runs a statement and returns how many rows it changed.
    pub(crate) async fn execute(&self, sql: &str, values: Values<'_>) -> Result<u64, PgError> {
        let statement = self.0.prepare_cached(sql).await?;
        Ok(self.0.execute(&statement, values).await?)
    }

    /// Returns the rows of a query.
    pub(crate) async fn rows(&self, sql: &str, values: Values<'_>) -> Result<Vec<Row>, PgError> {
        let statement = self.0.prepare_cached(sql).await?;
        Ok(self.0.query(&statement, values).await?)
    }

    /// Returns the rows of a query as they come.
    pub(crate) async fn stream(&self, sql: &str, values: Values<'_>) -> Result<RowStream, PgError> {
        let statement = self.0.prepare_cached(sql).await?;
        Ok(self.0.query_raw(&statement, values.iter().copied()).await?)
    }

    /// Returns the first row of a query.
    pub(crate) async fn row(&self, sql: &str, values: Values<'_>) -> Result<Option<Row>, PgError> {
        Ok(self.rows(sql, values).await?.into_iter().next())
    }

    /// Returns the number in the first column of the only row of a query.
    pub(crate) async fn count(&self, sql: &str, values: Values<'_>) -> Result<u64, PgError> {
        match self.row(sql, values).await? {
            Some(row) => Ok(u64::try_from(row.try_get::<_, i64>(0)?).unwrap_or_default()),
            None => Ok(0),
        }
    }

    /// Returns the keys in the first column of a query.
    pub(crate) async fn keys(&self, sql: &str, values: Values<'_>) -> Result<Vec<i64>, PgError> {
        let rows = self.rows(sql, values).await?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    /// Runs several statements without values.
    pub(crate) async fn batch(&self, sql: &str) -> Result<(), PgError> {
        Ok(self.0.batch_execute(sql).await?)
    }

    /// Waits until no other transaction has locked this, and locks it up to the end of this one.
    pub(crate) async fn lock(&self, what: &str, whose: &str) -> Result<(), PgError> {
        let hash = values::hash_key(&[what, whose]);
        let key = hash.first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes));
        self.execute("SELECT pg_advisory_xact_lock($1)", &[&key]).await.map(drop)
    }

    pub(crate) async fn commit(self) -> Result<(), tokio_postgres::Error> {
        self.0.commit().await
    }
}

/// Reads each row.
pub(crate) fn read_all<T>(
    rows: &[Row],
    read: impl Fn(&Row) -> Result<T, PgError>,
) -> Result<Vec<T>, PgError> {
    rows.iter().map(read).collect()
}
