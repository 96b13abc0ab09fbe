//! Finding memories: by meaning, by words, and in order of time.

use futures::TryStreamExt;
use tokio_postgres::Row;

use super::read_memory;
use crate::{
    error::StoreError,
    memories::{
        MemoryCriterion, MemoryMatch, MemoryQuery, MemoryQueryResult, StoredMemory,
        vector::StoredVector,
    },
    postgres::{
        error::PgError,
        rank::{self, Rarity},
        transaction::{Tx, Values},
        values::{Columns, escape, escape_option},
        words::WordQuery,
    },
    sql_integer::to_sql_integer,
};

/// The search key in the form that the database takes. Without any words, the search finds nothing.
pub(super) enum SearchKey {
    Vector(StoredVector),
    Words(Option<WordQuery>),
}

/// A memory that was found, and how close it is.
type Found = (i64, f64);

impl SearchKey {
    /// # Errors
    ///
    /// The vector is invalid.
    pub(super) fn from_criterion(criterion: &MemoryCriterion) -> Result<Self, StoreError> {
        match criterion {
            MemoryCriterion::Vector(vector) => StoredVector::from_vector(vector).map(Self::Vector),
            MemoryCriterion::Words(text) => Ok(Self::Words(WordQuery::any_of(text))),
        }
    }
}

pub(super) async fn recall_memories(
    tx: &Tx<'_>,
    wanted: &MemoryQuery,
    key: &SearchKey,
) -> Result<MemoryQueryResult, PgError> {
    let (found, not_compared) = match key {
        SearchKey::Words(None) => return Ok(MemoryQueryResult::default()),
        SearchKey::Words(Some(query)) => (find_by_words(tx, wanted, query).await?, 0),
        SearchKey::Vector(vector) => {
            let found = find_by_vector(tx, wanted, vector).await?;
            (found, count_not_compared(tx, &wanted.user, vector).await?)
        }
    };
    Ok(MemoryQueryResult { matches: read_matches(tx, wanted, &found).await?, not_compared })
}

/// Leaves out the sources that the model sees: those of the session `$n` from the turn `$n + 1` on.
fn not_visible_sql(session: usize) -> String {
    let turn = session + 1;
    format!("(${session}::text IS NULL OR session_id <> ${session} OR turn < ${turn}::bigint)")
}

/// The values of [`not_visible_sql`].
fn visible_values(wanted: &MemoryQuery) -> (Option<String>, Option<i64>) {
    let visible = wanted.visible_turns.as_ref();
    let session = visible.map(|visible| escape(&visible.session_id).into_owned());
    (session, visible.map(|visible| to_sql_integer(visible.from_turn)))
}

/// Compares all vectors of a user. They come one after the other, so only the best are in memory.
async fn find_by_vector(
    tx: &Tx<'_>,
    wanted: &MemoryQuery,
    vector: &StoredVector,
) -> Result<Vec<Found>, PgError> {
    let sql = format!(
        "SELECT key, vector FROM memory
         WHERE user_id = $1 AND embedder = $2 AND dimensions = $3 AND vector IS NOT NULL
         AND EXISTS (SELECT 1 FROM memory_source WHERE memory = memory.key AND {})",
        not_visible_sql(4)
    );
    let (session, turn) = visible_values(wanted);
    let StoredVector { embedder, dimensions, bytes } = vector;
    let (user, embedder) = (escape(&wanted.user), escape(embedder));
    let own = bytes.as_deref().unwrap_or_default();
    let values: Values<'_> = &[&user, &embedder, dimensions, &session, &turn];
    let mut rows = std::pin::pin!(tx.stream(&sql, values).await?);
    let mut best: Vec<Found> = Vec::new();
    while let Some(row) = rows.try_next().await? {
        let similarity = cosine(own, row.value("vector")?);
        keep_best(&mut best, (row.value("key")?, similarity), wanted.limit);
    }
    Ok(best)
}

/// Keeps the closest memories, closest first; of equal ones, the newest.
fn keep_best(best: &mut Vec<Found>, next: Found, limit: usize) {
    let is_before = |known: &Found| known.1 > next.1 || (known.1 == next.1 && known.0 > next.0);
    let place = best.partition_point(is_before);
    if place < limit {
        best.insert(place, next);
        best.truncate(limit);
    }
}

/// The cosine of the angle of two vectors of the same length, which are scaled to length one.
fn cosine(one: &[u8], other: &[u8]) -> f64 {
    let numbers = |bytes: &[u8; 4]| f64::from(f32::from_le_bytes(*bytes));
    let (one, _) = one.as_chunks::<4>();
    let (other, _) = other.as_chunks::<4>();
    one.iter().zip(other).map(|(a, b)| numbers(a) * numbers(b)).sum()
}

async fn find_by_words(
    tx: &Tx<'_>,
    wanted: &MemoryQuery,
    query: &WordQuery,
) -> Result<Vec<Found>, PgError> {
    let condition = format!(
        "user_id = $7 AND EXISTS (SELECT 1 FROM memory_source WHERE memory = memory.key AND {})",
        not_visible_sql(8)
    );
    let sql = rank::best_sql("memory", &condition, Rarity::Counted);
    let user = escape(&wanted.user);
    let texts = tx.count("SELECT count(*) FROM memory WHERE user_id = $1", &[&user]).await?;
    let (session, turn) = visible_values(wanted);
    let own: Values<'_> = &[&user, &session, &turn];
    let mut found = rank::find_best(tx, &sql, query, wanted.limit, (texts, own)).await?;
    let best = found.first().map_or(1.0, |(_, score)| *score).max(f64::MIN_POSITIVE);
    found.iter_mut().for_each(|(_, score)| *score /= best);
    Ok(found)
}

/// Reads the memories that were found, each with its latest source that the model does not see.
async fn read_matches(
    tx: &Tx<'_>,
    wanted: &MemoryQuery,
    found: &[Found],
) -> Result<Vec<MemoryMatch>, PgError> {
    let (session, turn) = visible_values(wanted);
    let sql = select_memories_sql(&not_visible_sql(2));
    let keys: Vec<i64> = found.iter().map(|(key, _)| *key).collect();
    let rows = tx.rows(&sql, &[&keys, &session, &turn]).await?;
    let read = |row: &Row| {
        let memory = read_memory(row)?;
        let place: i64 = row.value("place")?;
        let similarity = usize::try_from(place - 1).ok().and_then(|place| found.get(place));
        Ok(MemoryMatch {
            memory,
            similarity: similarity.map_or(0.0, |(_, similarity)| *similarity),
        })
    };
    rows.iter().map(read).collect()
}

/// Reads the memories with the keys `$1`, in that order, each with its latest source among those that
/// `places` accepts.
fn select_memories_sql(places: &str) -> String {
    format!(
        "SELECT memory.key AS key, memory.text AS text, embedder, dimensions, source.session_id
             AS session_id, source.turn AS turn, source.kind AS kind, source.at_ms AS at_ms, place
         FROM unnest($1::bigint[]) WITH ORDINALITY AS best (key, place)
         JOIN memory ON memory.key = best.key
         CROSS JOIN LATERAL (
             SELECT * FROM memory_source WHERE memory = best.key AND {places}
             ORDER BY at_ms DESC, session_id, turn DESC, kind LIMIT 1
         ) AS source
         ORDER BY place"
    )
}

async fn read_in_order(tx: &Tx<'_>, keys: &[i64]) -> Result<Vec<StoredMemory>, PgError> {
    let rows = tx.rows(&select_memories_sql("TRUE"), &[&keys]).await?;
    rows.iter().map(read_memory).collect()
}

async fn count_not_compared(
    tx: &Tx<'_>,
    user: &str,
    vector: &StoredVector,
) -> Result<u64, PgError> {
    let sql = "SELECT count(*) FROM memory WHERE user_id = $1
        AND (embedder IS DISTINCT FROM $2 OR dimensions IS DISTINCT FROM $3)";
    let embedder = escape_option(Some(&vector.embedder));
    tx.count(sql, &[&escape(user), &embedder, &vector.dimensions]).await
}

pub(super) async fn list_newest(
    tx: &Tx<'_>,
    user: &str,
    count_max: usize,
) -> Result<Vec<StoredMemory>, PgError> {
    let sql = "SELECT memory FROM memory_source JOIN memory ON memory.key = memory
        WHERE user_id = $1 GROUP BY memory ORDER BY max(at_ms) DESC, memory DESC LIMIT $2";
    let keys = tx.keys(sql, &[&escape(user), &to_sql_integer(count_max as u64)]).await?;
    read_in_order(tx, &keys).await
}

pub(super) async fn list_without_vector(
    tx: &Tx<'_>,
    user: &str,
    (embedder, dimensions): (&str, Option<usize>),
    count_max: usize,
) -> Result<Vec<StoredMemory>, PgError> {
    // A length that is unknown on either side counts as equal.
    let sql = "SELECT key FROM memory WHERE user_id = $1
        AND (embedder IS DISTINCT FROM $2 OR dimensions <> $3::bigint) ORDER BY key LIMIT $4";
    let dimensions = dimensions.map(|dimensions| to_sql_integer(dimensions as u64));
    let (embedder, limit) = (escape_option(Some(embedder)), to_sql_integer(count_max as u64));
    let keys = tx.keys(sql, &[&escape(user), &embedder, &dimensions, &limit]).await?;
    read_in_order(tx, &keys).await
}

pub(super) async fn search_memories(
    tx: &Tx<'_>,
    user: &str,
    query: &str,
    count_max: usize,
) -> Result<Vec<StoredMemory>, PgError> {
    let Some(query) = WordQuery::all_of(query) else { return Ok(Vec::new()) };
    let sql = rank::best_sql("memory", "user_id = $7", Rarity::Equal);
    let best = rank::find_best(tx, &sql, &query, count_max, (0, &[&escape(user)])).await?;
    let keys: Vec<i64> = best.iter().map(|(key, _)| *key).collect();
    read_in_order(tx, &keys).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_are_kept_in_order() {
        let mut best = Vec::new();
        for found in [(1, 0.5), (2, 0.9), (3, 0.1), (4, 0.9), (5, 0.7)] {
            keep_best(&mut best, found, 3);
        }
        assert_eq!(best, [(4, 0.9), (2, 0.9), (5, 0.7)]);
        keep_best(&mut best, (6, 1.0), 0);
        assert_eq!(best.len(), 3);
    }
}
