//! The rank of texts that match a query: BM25, with the constants of SQLite's index.

use super::{
    error::PgError,
    transaction::{Tx, Values},
    values::Columns,
    words::WordQuery,
};
use crate::sql_integer::to_sql_integer;

/// Most texts that are ranked, those with most matches first. A query that more texts match is too
/// general for its best one to matter.
const RANKED_MAX: i64 = 5000;

/// How rare a word is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rarity {
    /// All texts have all words, so it is no difference.
    Equal,
    /// A rare word counts more, among as many texts as the value `$6` says.
    Counted,
}

/// Writes a query for the keys of the best texts of a table, best first, as `key` and `score`.
///
/// `condition` selects the texts that may be found; it may use values from `$7` on, which
/// [`find_best`] takes.
pub(super) fn best_sql(table: &str, condition: &str, rarity: Rarity) -> String {
    let weight = match rarity {
        Rarity::Equal => "1.0::float8 + 0 * $6::bigint",
        Rarity::Counted => "greatest(ln(($6::bigint - count(*) + 0.5) / (count(*) + 0.5)), 1e-6)",
    };
    format!(
        "WITH found AS MATERIALIZED (
            SELECT key, words, word_count FROM {table}
            WHERE words @@ $1::text::tsquery AND {condition}
            ORDER BY ts_rank(words, $1::text::tsquery) DESC, key DESC LIMIT $4
        ), query AS (
            SELECT * FROM unnest($2::text[], $3::boolean[]) WITH ORDINALITY
                AS query (word, is_prefix, number)
        ), hit AS (
            SELECT key, word_count, number, sum(cardinality(positions))::float8 AS times
            FROM found, unnest(words) AS own JOIN query ON own.lexeme = query.word
                OR (query.is_prefix AND starts_with(own.lexeme, query.word))
            GROUP BY key, word_count, number
        ), weight AS (
            SELECT number, ({weight})::float8 AS weight FROM hit GROUP BY number
        ), average AS (SELECT greatest(avg(word_count), 1)::float8 AS words FROM found)
        SELECT key, sum(weight * times * 2.2
            / (times + 1.2 * (0.25 + 0.75 * word_count / average.words)))::float8 AS score
        FROM hit JOIN weight USING (number), average GROUP BY key
        ORDER BY score DESC, key DESC LIMIT $5"
    )
}

/// Finds the best texts of a table, best first: their keys and scores.
///
/// `texts` is how many there are, if that counts. `own` are the values of the condition.
pub(super) async fn find_best(
    tx: &Tx<'_>,
    sql: &str,
    query: &WordQuery,
    limit: usize,
    (texts, own): (u64, Values<'_>),
) -> Result<Vec<(i64, f64)>, PgError> {
    let (limit, texts) = (to_sql_integer(limit as u64), to_sql_integer(texts));
    let WordQuery { condition, words, are_prefixes, .. } = query;
    let fixed: Values<'_> = &[condition, words, are_prefixes, &RANKED_MAX, &limit, &texts];
    let rows = tx.rows(sql, &[fixed, own].concat()).await?;
    rows.iter().map(|row| Ok((row.value("key")?, row.value("score")?))).collect()
}
