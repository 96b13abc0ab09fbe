//! Finding what was said, in all sessions.

use rusqlite::{Connection, Row, params};

use super::session::check_length;
use crate::{
    database::{signed, unsigned},
    error::StoreError,
    words,
};

/// Longest query. People type a few words; each costs a walk through the index.
const QUERY_BYTES_MAX: usize = 1024;

/// Words of a text that are shown around what was found: two lines of a terminal.
const SNIPPET_WORDS: u32 = 24;

/// A record that holds what was looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The session's id.
    pub session_id: String,
    /// The session's title.
    pub title: String,
    /// The record's place in the session.
    pub seq: u64,
    /// What the record is, in one word.
    pub kind: String,
    /// When it was made, in milliseconds since 1970.
    pub at_ms: u64,
    /// The place of the text where most of the words stand, in pieces.
    pub snippet: Vec<Piece>,
}

/// A piece of a text that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The piece, as it was written.
    pub text: String,
    /// Whether it is what was looked for, and not what stands around it.
    pub found: bool,
}

/// Checks that a query can be answered.
///
/// # Errors
///
/// It is too long.
pub(super) fn check(query: &str) -> Result<(), StoreError> {
    check_length("a query", query, QUERY_BYTES_MAX)
}

/// Finds the records that hold all words of a query, the best first, of equals the newest.
pub(super) fn search(
    connection: &Connection,
    query: &str,
    hits_max: usize,
) -> rusqlite::Result<Vec<Hit>> {
    let Some(query) = words::query(query) else { return Ok(Vec::new()) };
    let mut hits = Vec::new();
    for found in bodies(connection, &query, hits_max)? {
        let left = hits_max - hits.len();
        if left == 0 {
            break;
        }
        hits.extend(records(connection, &found, left)?);
    }
    Ok(hits)
}

/// A body that holds the words.
struct Found {
    body: i64,
    /// Less is better.
    rank: f64,
    snippet: Vec<Piece>,
}

/// Each of them is the body of one record at least, so no more are needed than hits are wanted.
///
/// The index is walked twice, so that snippets are made of the best alone: each takes a walk
/// through its text. The sign before `rowid` keeps that from becoming a walk for each of them.
fn bodies(connection: &Connection, query: &str, count_max: usize) -> rusqlite::Result<Vec<Found>> {
    let sql = "WITH best AS MATERIALIZED (
            SELECT rowid AS body FROM words WHERE words MATCH ?1
            ORDER BY rank, rowid DESC LIMIT ?2
        )
        SELECT rowid, rank, snippet(words, 0, ?3, ?4, '…', ?5) AS snippet
        FROM words WHERE words MATCH ?1 AND +rowid IN (SELECT body FROM best)";
    let (begin, end) = (words::FOUND_BEGIN.to_string(), words::FOUND_END.to_string());
    let values = params![query, signed(count_max as u64), begin, end, SNIPPET_WORDS];
    let read = |row: &Row<'_>| {
        let snippet = pieces(&row.get::<_, String>("snippet")?);
        Ok(Found { body: row.get("rowid")?, rank: row.get("rank")?, snippet })
    };
    let mut statement = connection.prepare(sql)?;
    let mut found: Vec<Found> = statement.query_map(values, read)?.collect::<Result<_, _>>()?;
    found.sort_by(|a, b| a.rank.total_cmp(&b.rank).then(b.body.cmp(&a.body)));
    Ok(found)
}

fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for part in text.split_inclusive([words::FOUND_BEGIN, words::FOUND_END]) {
        let found = part.ends_with(words::FOUND_END);
        let text = words::restored(part.trim_end_matches([words::FOUND_BEGIN, words::FOUND_END]));
        if !text.is_empty() {
            pieces.push(Piece { text, found });
        }
    }
    pieces
}

/// Lists the records with a body, without those that a fork shares with a parent that is there.
fn records(connection: &Connection, found: &Found, count_max: usize) -> rusqlite::Result<Vec<Hit>> {
    let sql = "SELECT session.id, session.title, seq, kind, at_ms
        FROM record JOIN session ON session.key = record.session
        LEFT JOIN session AS parent ON parent.id = session.parent_id
        WHERE body = ?1 AND (parent.id IS NULL OR seq >= session.parent_records)
        ORDER BY at_ms DESC, session.key DESC, seq DESC LIMIT ?2";
    let read = |row: &Row<'_>| {
        Ok(Hit {
            session_id: row.get("id")?,
            title: row.get("title")?,
            seq: unsigned(row.get("seq")?),
            kind: row.get("kind")?,
            at_ms: unsigned(row.get("at_ms")?),
            snippet: found.snippet.clone(),
        })
    };
    let values = (found.body, signed(count_max as u64));
    connection.prepare(sql)?.query_map(values, read)?.collect()
}
