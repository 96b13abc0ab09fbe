//! The body of a record, stored once under its hash, with its words.

use tokio_postgres::Row;

use crate::postgres::{
    error::PgError,
    transaction::Tx,
    values::{Columns, escape},
    words::IndexedWords,
};

/// Stores a body unless it is stored already, and returns its key. A known body is locked, so that
/// no other transaction removes it before this one uses it.
pub(super) async fn find_or_insert_body(
    tx: &Tx<'_>,
    text: &str,
    search: &str,
) -> Result<i64, PgError> {
    let hash = blake3::hash(text.as_bytes());
    let hash = hash.as_bytes().as_slice();
    let sql = "SELECT key FROM body WHERE hash = $1 FOR KEY SHARE";
    if let Some(row) = tx.row(sql, &[&hash]).await? {
        return row.value("key");
    }
    // Another transaction may have stored it since.
    let sql = "INSERT INTO body (hash, text, word_text, words, word_count)
        VALUES ($1, $2, $3, $4::text::tsvector, $5)
        ON CONFLICT (hash) DO UPDATE SET hash = excluded.hash RETURNING key";
    let IndexedWords { text: word_text, vector, count } = IndexedWords::from_text(search);
    let row = tx.row(sql, &[&hash, &escape(text), &word_text, &vector, &count]).await?;
    row.map_or_else(
        || Err(PgError::Foreign("a body has no key".to_owned())),
        |row| row.value("key"),
    )
}

/// Removes those of the given bodies that no record and no kept result uses.
pub(super) async fn remove_unused_bodies(tx: &Tx<'_>, keys: &[i64]) -> Result<(), PgError> {
    let sql = "DELETE FROM body WHERE key = ANY($1)
        AND NOT EXISTS (SELECT 1 FROM record WHERE body = body.key)
        AND NOT EXISTS (SELECT 1 FROM kept_result WHERE body = body.key)";
    tx.execute(sql, &[&keys]).await.map(drop)
}

/// Reads the columns `text` and `hash`; `None` if the text does not match its hash.
pub(super) fn read_verified_text(row: &Row) -> Result<Option<String>, PgError> {
    let (text, hash) = (row.text("text")?, row.value::<&[u8]>("hash")?);
    Ok((blake3::hash(text.as_bytes()).as_bytes() == hash).then_some(text))
}
