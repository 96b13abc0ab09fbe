//! Finding memories: by meaning, by words, and in order of time.

use rusqlite::{Connection, Row, ToSql, named_params, params};

use super::read_memory;
use crate::{
    error::StoreError,
    memories::{
        MemoryCriterion, MemoryMatch, MemoryQuery, MemoryQueryResult, StoredMemory,
        vector::StoredVector,
    },
    sql_integer::{from_sql_integer, to_sql_integer},
    text_index,
};

/// The search key in the form that the database takes. Without any words, the search finds nothing.
pub(super) enum MemorySearchKey {
    Vector(StoredVector),
    Words(Option<String>),
}

impl MemorySearchKey {
    /// # Errors
    ///
    /// The vector is invalid.
    pub(super) fn from_criterion(criterion: &MemoryCriterion) -> Result<Self, StoreError> {
        match criterion {
            MemoryCriterion::Vector(vector) => StoredVector::from_vector(vector).map(Self::Vector),
            MemoryCriterion::Words(text) => Ok(Self::Words(text_index::match_any_query(text))),
        }
    }
}

pub(super) fn recall_memories(
    connection: &Connection,
    wanted: &MemoryQuery,
    key: &MemorySearchKey,
) -> rusqlite::Result<MemoryQueryResult> {
    match key {
        MemorySearchKey::Vector(vector) => Ok(MemoryQueryResult {
            matches: recall_by_vector(connection, wanted, vector)?,
            not_compared: count_not_compared(connection, &wanted.user, vector)?,
        }),
        MemorySearchKey::Words(None) => Ok(MemoryQueryResult::default()),
        MemorySearchKey::Words(Some(words)) => Ok(MemoryQueryResult {
            matches: recall_by_words(connection, wanted, words)?,
            not_compared: 0,
        }),
    }
}

/// Leaves out the sources that the model sees.
const NOT_VISIBLE_SQL: &str = "(:session IS NULL OR session_id <> :session OR turn < :turn)";

/// Leaves out no source.
const ALL_TURNS_SQL: &str = "TRUE";

/// Reads the memories whose keys `best` selects, lowest score first, each with its latest source
/// among those that `places` accepts. Looks up sources for the selected keys only.
fn select_memories_sql(best: &str, places: &str) -> String {
    format!(
        "SELECT memory.key AS key, memory.text AS text, embedder, dimensions,
         session_id, turn, kind, at_ms, score
         FROM ({best}) AS best JOIN memory ON memory.key = best.key
         JOIN memory_source AS source ON source.memory = memory.key
         AND (source.session_id, source.turn, source.kind) = (
             SELECT session_id, turn, kind FROM memory_source
             WHERE memory = best.key AND {places}
             ORDER BY at_ms DESC, session_id, turn DESC, kind LIMIT 1
         )
         ORDER BY score, memory.key DESC"
    )
}

fn recall_by_vector(
    connection: &Connection,
    wanted: &MemoryQuery,
    vector: &StoredVector,
) -> rusqlite::Result<Vec<MemoryMatch>> {
    let best = format!(
        "SELECT key, vec_distance_cosine(vector, :vector) AS score FROM memory
         WHERE user = :user AND embedder = :embedder AND dimensions = :dimensions
         AND EXISTS (SELECT 1 FROM memory_source WHERE memory = memory.key AND {NOT_VISIBLE_SQL})
         ORDER BY score, key DESC LIMIT :limit"
    );
    let StoredVector { embedder, dimensions, bytes } = vector;
    let own: [(&str, &dyn ToSql); 3] =
        [(":vector", bytes), (":embedder", embedder), (":dimensions", dimensions)];
    query_matches(connection, &select_memories_sql(&best, NOT_VISIBLE_SQL), wanted, &own, |row| {
        let distance: f64 = row.get("score")?;
        Ok(MemoryMatch { memory: read_memory(row)?, similarity: 1.0 - distance })
    })
}

fn recall_by_words(
    connection: &Connection,
    wanted: &MemoryQuery,
    words: &str,
) -> rusqlite::Result<Vec<MemoryMatch>> {
    let sql = select_memories_sql(&best_by_words_sql(NOT_VISIBLE_SQL), NOT_VISIBLE_SQL);
    let mut found = query_matches(connection, &sql, wanted, &[(":words", &words)], |row| {
        // A lower score is better, and all scores are negative.
        Ok(MemoryMatch { memory: read_memory(row)?, similarity: -row.get::<_, f64>("score")? })
    })?;
    let best = found.first().map_or(1.0, |found| found.similarity).max(f64::MIN_POSITIVE);
    found.iter_mut().for_each(|found| found.similarity /= best);
    Ok(found)
}

fn best_by_words_sql(places: &str) -> String {
    format!(
        "SELECT rowid AS key, bm25(memory_words) AS score FROM memory_words
         WHERE memory_words MATCH :words
         AND EXISTS (SELECT 1 FROM memory WHERE key = memory_words.rowid AND user = :user)
         AND EXISTS (
             SELECT 1 FROM memory_source WHERE memory = memory_words.rowid AND {places}
         )
         ORDER BY score, key DESC LIMIT :limit"
    )
}

fn query_matches(
    connection: &Connection,
    sql: &str,
    wanted: &MemoryQuery,
    own: &[(&str, &dyn ToSql)],
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<MemoryMatch>,
) -> rusqlite::Result<Vec<MemoryMatch>> {
    let session = wanted.visible_turns.as_ref().map(|visible| &visible.session_id);
    let turn = wanted.visible_turns.as_ref().map(|visible| to_sql_integer(visible.from_turn));
    let limit = to_sql_integer(wanted.limit as u64);
    let mut values: Vec<(&str, &dyn ToSql)> = own.to_vec();
    values.extend_from_slice(named_params! {
        ":user": wanted.user, ":session": session, ":turn": turn, ":limit": limit,
    });
    connection.prepare(sql)?.query_map(values.as_slice(), read)?.collect()
}

fn count_not_compared(
    connection: &Connection,
    user: &str,
    vector: &StoredVector,
) -> rusqlite::Result<u64> {
    let sql = "SELECT count(*) FROM memory WHERE user = ?1
        AND (embedder IS NOT ?2 OR dimensions IS NOT ?3)";
    let values = params![user, vector.embedder, vector.dimensions];
    connection.query_row(sql, values, |row| row.get(0)).map(from_sql_integer)
}

pub(super) fn list_newest(
    connection: &Connection,
    user: &str,
    count_max: usize,
) -> rusqlite::Result<Vec<StoredMemory>> {
    let best = "SELECT memory AS key, -max(at_ms) AS score FROM memory_source
        WHERE memory IN (SELECT key FROM memory WHERE user = ?1)
        GROUP BY memory ORDER BY score, key DESC LIMIT ?2";
    let values = params![user, to_sql_integer(count_max as u64)];
    connection
        .prepare(&select_memories_sql(best, ALL_TURNS_SQL))?
        .query_map(values, read_memory)?
        .collect()
}

pub(super) fn list_without_vector(
    connection: &Connection,
    user: &str,
    (embedder, dimensions): (&str, Option<usize>),
    count_max: usize,
) -> rusqlite::Result<Vec<StoredMemory>> {
    // A length that is unknown on either side counts as equal.
    let best = "SELECT key, key AS score FROM memory WHERE user = ?1
        AND (embedder IS NOT ?2 OR dimensions <> ?3) ORDER BY key LIMIT ?4";
    let dimensions = dimensions.map(|dimensions| to_sql_integer(dimensions as u64));
    let values = params![user, embedder, dimensions, to_sql_integer(count_max as u64)];
    connection
        .prepare(&select_memories_sql(best, ALL_TURNS_SQL))?
        .query_map(values, read_memory)?
        .collect()
}

pub(super) fn search_memories(
    connection: &Connection,
    user: &str,
    query: &str,
    count_max: usize,
) -> rusqlite::Result<Vec<StoredMemory>> {
    let Some(words) = text_index::match_all_query(query) else { return Ok(Vec::new()) };
    let limit = to_sql_integer(count_max as u64);
    let values = named_params! { ":words": words, ":user": user, ":limit": limit };
    let sql = select_memories_sql(&best_by_words_sql(ALL_TURNS_SQL), ALL_TURNS_SQL);
    connection.prepare(&sql)?.query_map(values, read_memory)?.collect()
}
