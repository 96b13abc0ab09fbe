//! Searching the records of a user's sessions.

use rusqlite::{Connection, Row, params};

use crate::{
    sessions::{SessionSearchMatch, SnippetPiece},
    sql_integer::{from_sql_integer, to_sql_integer},
    text_index,
};

/// Words of context in a snippet: two lines of a terminal.
const SNIPPET_WORDS: u32 = 24;

/// Finds the records of a user that contain all words of a query, best first; of equal ones, newest
/// first.
pub(super) fn search_records(
    connection: &Connection,
    user: &str,
    query: &str,
    hits_max: usize,
) -> rusqlite::Result<Vec<SessionSearchMatch>> {
    let Some(query) = text_index::match_all_query(query) else { return Ok(Vec::new()) };
    let mut hits = Vec::new();
    for found in find_bodies(connection, user, &query, hits_max)? {
        let left = hits_max - hits.len();
        if left == 0 {
            break;
        }
        hits.extend(list_body_records(connection, user, &found, left)?);
    }
    Ok(hits)
}

/// A body that matches.
struct BodyMatch {
    body: i64,
    /// Lower is better.
    rank: f64,
    snippet: Vec<SnippetPiece>,
}

/// Finds the best bodies of a user's records. Each belongs to at least one record, so no more than
/// `count_max` are needed.
///
/// The index is walked twice, so that snippets, which each cost a walk through a text, are only
/// made for the best bodies. The `+` before `rowid` prevents one index walk per body.
fn find_bodies(
    connection: &Connection,
    user: &str,
    query: &str,
    count_max: usize,
) -> rusqlite::Result<Vec<BodyMatch>> {
    let sql = "WITH best AS MATERIALIZED (
            SELECT rowid AS body FROM words WHERE words MATCH ?1 AND EXISTS (
                SELECT 1 FROM record JOIN session ON session.key = record.session
                WHERE record.body = words.rowid AND session.user = ?6
            )
            ORDER BY rank, rowid DESC LIMIT ?2
        )
        SELECT rowid, rank, snippet(words, 0, ?3, ?4, '…', ?5) AS snippet
        FROM words WHERE words MATCH ?1 AND +rowid IN (SELECT body FROM best)";
    let (begin, end) = (text_index::MATCH_BEGIN.to_string(), text_index::MATCH_END.to_string());
    let values = params![query, to_sql_integer(count_max as u64), begin, end, SNIPPET_WORDS, user];
    let read = |row: &Row<'_>| {
        let snippet = split_snippet(&row.get::<_, String>("snippet")?);
        Ok(BodyMatch { body: row.get("rowid")?, rank: row.get("rank")?, snippet })
    };
    let mut statement = connection.prepare(sql)?;
    let mut found: Vec<BodyMatch> = statement.query_map(values, read)?.collect::<Result<_, _>>()?;
    found.sort_by(|a, b| a.rank.total_cmp(&b.rank).then(b.body.cmp(&a.body)));
    Ok(found)
}

fn split_snippet(text: &str) -> Vec<SnippetPiece> {
    let mut pieces = Vec::new();
    for part in text.split_inclusive([text_index::MATCH_BEGIN, text_index::MATCH_END]) {
        let found = part.ends_with(text_index::MATCH_END);
        let text = text_index::restore_indexed_text(
            part.trim_end_matches([text_index::MATCH_BEGIN, text_index::MATCH_END]),
        );
        if !text.is_empty() {
            pieces.push(SnippetPiece { text, found });
        }
    }
    pieces
}

/// Lists the records of a user with a body, except those that a fork shares with an existing parent.
fn list_body_records(
    connection: &Connection,
    user: &str,
    found: &BodyMatch,
    count_max: usize,
) -> rusqlite::Result<Vec<SessionSearchMatch>> {
    let sql = "SELECT session.id, session.title, seq, kind, at_ms
        FROM record JOIN session ON session.key = record.session
        LEFT JOIN session AS parent
            ON parent.id = session.parent_id AND parent.user = session.user
        WHERE session.user = ?3 AND body = ?1 AND (parent.id IS NULL OR seq >= session.parent_records)
        ORDER BY at_ms DESC, session.key DESC, seq DESC LIMIT ?2";
    let read = |row: &Row<'_>| {
        Ok(SessionSearchMatch {
            session_id: row.get("id")?,
            title: row.get("title")?,
            seq: from_sql_integer(row.get("seq")?),
            kind: row.get("kind")?,
            at_ms: from_sql_integer(row.get("at_ms")?),
            snippet: found.snippet.clone(),
        })
    };
    let values = (found.body, to_sql_integer(count_max as u64), user);
    connection.prepare(sql)?.query_map(values, read)?.collect()
}
