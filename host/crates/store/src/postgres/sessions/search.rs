//! Searching the records of a user's sessions.

use tokio_postgres::Row;

use crate::{
    postgres::{
        error::PgError,
        rank::{self, Rarity},
        transaction::Tx,
        values::{Columns, escape},
        words::WordQuery,
    },
    sessions::{SessionSearchMatch, SnippetPiece},
    sql_integer::to_sql_integer,
};

/// Selects the bodies of a user's records.
const OF_USER: &str = "EXISTS (
    SELECT 1 FROM record JOIN session ON session.key = record.session
    WHERE record.body = body.key AND session.user_id = $7
)";

/// Finds the records of a user that contain all words of a query, best first; of equal ones, newest
/// first.
pub(super) async fn search_records(
    tx: &Tx<'_>,
    user: &str,
    query: &str,
    hits_max: usize,
) -> Result<Vec<SessionSearchMatch>, PgError> {
    let Some(query) = WordQuery::all_of(query) else { return Ok(Vec::new()) };
    let user = escape(user);
    let sql = rank::best_sql("body", OF_USER, Rarity::Equal);
    let best = rank::find_best(tx, &sql, &query, hits_max, (0, &[&user])).await?;
    let mut hits = Vec::new();
    for (body, _) in best {
        let left = hits_max - hits.len();
        if left == 0 {
            break;
        }
        let snippet = read_snippet(tx, &query, body).await?;
        hits.extend(list_body_records(tx, &user, body, left, &snippet).await?);
    }
    Ok(hits)
}

async fn read_snippet(
    tx: &Tx<'_>,
    query: &WordQuery,
    body: i64,
) -> Result<Vec<SnippetPiece>, PgError> {
    let row = tx.row("SELECT word_text FROM body WHERE key = $1", &[&body]).await?;
    let text: Option<String> = row.map_or(Ok(None), |row| row.value("word_text"))?;
    Ok(query.snippet(&text.unwrap_or_default()))
}

/// Lists the records of a user with a body, except those that a fork shares with an existing parent.
async fn list_body_records(
    tx: &Tx<'_>,
    user: &str,
    body: i64,
    count_max: usize,
    snippet: &[SnippetPiece],
) -> Result<Vec<SessionSearchMatch>, PgError> {
    let sql = "SELECT session.id AS id, session.title AS title, seq, kind, at_ms
        FROM record JOIN session ON session.key = record.session
        LEFT JOIN session AS parent
            ON parent.id = session.parent_id AND parent.user_id = session.user_id
        WHERE session.user_id = $3 AND body = $1
            AND (parent.id IS NULL OR seq >= session.parent_records)
        ORDER BY at_ms DESC, session.key DESC, seq DESC LIMIT $2";
    let rows = tx.rows(sql, &[&body, &to_sql_integer(count_max as u64), &user]).await?;
    let read = |row: &Row| {
        Ok(SessionSearchMatch {
            session_id: row.text("id")?,
            title: row.text("title")?,
            seq: row.number("seq")?,
            kind: row.text("kind")?,
            at_ms: row.number("at_ms")?,
            snippet: snippet.to_vec(),
        })
    };
    rows.iter().map(read).collect()
}
