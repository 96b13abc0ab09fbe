//! The kept results of sessions in PostgreSQL. Their texts are bodies, as those of records.

use sallyport_contract::async_trait;

use super::{body, session};
use crate::{
    error::StoreError,
    kept_results::{
        KeptResultLookup, KeptResultStore, NewKeptResult, SESSION_BYTES_MAX, SESSION_RESULTS_MAX,
    },
    postgres::{PostgresStore, error::PgError, transaction::Tx, values::Columns},
    sessions::SessionRow,
    sql_integer::to_sql_integer,
};

/// Kept results that are removed in one commit. Each may be long.
const STEP_RESULTS_MAX: i64 = 16;

#[async_trait]
impl KeptResultStore for PostgresStore {
    async fn keep(
        &self,
        user: &str,
        session_id: &str,
        result: NewKeptResult,
    ) -> Result<u64, StoreError> {
        result.check_length()?;
        let named = [user, session_id].map(str::to_owned);
        self.write((named, result), |tx, ([user, id], result)| {
            Box::pin(async move {
                keep_result(tx, &session::lock_session(tx, user, id).await?, result).await
            })
        })
        .await
    }

    async fn find(
        &self,
        user: &str,
        session_id: &str,
        number: u64,
    ) -> Result<KeptResultLookup, StoreError> {
        let named = [user, session_id].map(str::to_owned);
        self.read((named, number), |tx, ([user, id], number)| {
            Box::pin(async move {
                find_result(tx, &session::find_session(tx, user, id).await?, *number).await
            })
        })
        .await
    }
}

async fn keep_result(
    tx: &Tx<'_>,
    session: &SessionRow,
    result: &NewKeptResult,
) -> Result<u64, PgError> {
    let (key, number) = (session.key, session.last_kept.saturating_add(1));
    // No user searches for the text: the record of the call has its beginning.
    let body = body::find_or_insert_body(tx, &result.text, "").await?;
    let sql = "INSERT INTO kept_result (session, number, after_records, bytes, body)
        VALUES ($1, $2, $3, $4, $5)";
    let after_records = to_sql_integer(result.after_records);
    let bytes = to_sql_integer(result.text.len() as u64);
    tx.execute(sql, &[&key, &to_sql_integer(number), &after_records, &bytes, &body]).await?;
    set_last_kept(tx, key, to_sql_integer(number)).await?;
    remove_displaced_results(tx, key).await?;
    Ok(number)
}

async fn set_last_kept(tx: &Tx<'_>, key: i64, number: i64) -> Result<(), PgError> {
    let sql = "UPDATE session SET last_kept = $2 WHERE key = $1";
    tx.execute(sql, &[&key, &number]).await.map(drop)
}

/// Removes the oldest results until the rest is within both limits of a session.
async fn remove_displaced_results(tx: &Tx<'_>, key: i64) -> Result<(), PgError> {
    let sql = "DELETE FROM kept_result WHERE session = $1 AND number <= (
        SELECT coalesce(max(number), 0) FROM (
            SELECT number, sum(bytes) OVER newer AS bytes, count(*) OVER newer AS results
            FROM kept_result WHERE session = $1 WINDOW newer AS (ORDER BY number DESC)
        ) AS kept WHERE (bytes > $2::bigint OR results > $3) AND results > 1
    ) RETURNING body";
    let (bytes, results) = (to_sql_integer(SESSION_BYTES_MAX), to_sql_integer(SESSION_RESULTS_MAX));
    let bodies = tx.keys(sql, &[&key, &bytes, &results]).await?;
    body::remove_unused_bodies(tx, &bodies).await
}

async fn find_result(
    tx: &Tx<'_>,
    session: &SessionRow,
    number: u64,
) -> Result<KeptResultLookup, PgError> {
    let sql = "SELECT hash, text FROM kept_result JOIN body ON body.key = kept_result.body
        WHERE session = $1 AND number = $2";
    let row = tx.row(sql, &[&session.key, &to_sql_integer(number)]).await?;
    match row.as_ref().map(body::read_verified_text).transpose()? {
        Some(Some(text)) => Ok(KeptResultLookup::Found(text)),
        Some(None) => {
            let id = &session.session.id;
            Err(PgError::Foreign(format!("kept result {number} of session {id} is not whole")))
        }
        None if (1..=session.last_kept).contains(&number) => Ok(KeptResultLookup::Displaced),
        None => Ok(KeptResultLookup::Unknown),
    }
}

/// Gives a fork its part of the results of another session: those of its records.
pub(super) async fn copy_results(
    tx: &Tx<'_>,
    from: &SessionRow,
    to: i64,
    records: u64,
) -> Result<(), PgError> {
    let sql = "INSERT INTO kept_result (session, number, after_records, bytes, body)
        SELECT $2, number, after_records, bytes, body
        FROM kept_result WHERE session = $1 AND after_records < $3";
    let records = to_sql_integer(records);
    tx.execute(sql, &[&from.key, &to, &records]).await?;
    let last = last_shared_number(tx, from, records).await?;
    set_last_kept(tx, to, last).await
}

/// Returns the highest number of a result that the first records of a session may refer to. If all
/// of theirs are displaced, it is the one before the first that is left, because the oldest ones
/// are displaced.
async fn last_shared_number(
    tx: &Tx<'_>,
    session: &SessionRow,
    records: i64,
) -> Result<i64, PgError> {
    let sql = "SELECT coalesce(
            max(CASE WHEN after_records < $2 THEN number END), min(number) - 1
        ) AS last FROM kept_result WHERE session = $1";
    let row = tx.row(sql, &[&session.key, &records]).await?;
    let last: Option<i64> = row.map_or(Ok(None), |row| row.value("last"))?;
    Ok(last.unwrap_or_else(|| to_sql_integer(session.last_kept)))
}

/// Removes the first results of a session, and returns the keys of their bodies.
pub(super) async fn remove_first_results(tx: &Tx<'_>, key: i64) -> Result<Vec<i64>, PgError> {
    let sql = "DELETE FROM kept_result WHERE session = $1 AND number IN
        (SELECT number FROM kept_result WHERE session = $1 ORDER BY number LIMIT $2)
        RETURNING body";
    tx.keys(sql, &[&key, &STEP_RESULTS_MAX]).await
}
