//! The open questions in SQLite.

use rusqlite::{Connection, OptionalExtension, Row, params};
use sallyport_contract::async_trait;

use super::{SqliteStore, transaction_error::TransactionError};
use crate::{
    error::StoreError,
    questions::{
        AnswerResult, CLOSED_AGE_MS_MAX, QUESTIONS_OPEN_MAX, QuestionStore, StoredAnswer,
        StoredQuestion,
    },
    sql_integer::to_sql_integer,
};

/// The table. An answer is set once; `received` says whether its asker has it.
pub(super) const TABLE: &str = "
    CREATE TABLE question (
        id TEXT NOT NULL PRIMARY KEY,
        user TEXT NOT NULL,
        text TEXT NOT NULL,
        hash TEXT NOT NULL,
        asked_ms INTEGER NOT NULL,
        expires_ms INTEGER NOT NULL,
        answer TEXT,
        carrier TEXT,
        answered_ms INTEGER,
        received INTEGER NOT NULL DEFAULT 0
    ) STRICT, WITHOUT ROWID;
";

#[async_trait]
impl QuestionStore for SqliteStore {
    async fn publish_question(&self, question: StoredQuestion) -> Result<(), StoreError> {
        question.check_lengths()?;
        self.write(move |connection| publish_in(connection, question)).await
    }

    async fn open_questions(
        &self,
        user: &str,
        now_ms: u64,
    ) -> Result<Vec<StoredQuestion>, StoreError> {
        let (user, now_ms) = (user.to_owned(), to_sql_integer(now_ms));
        let sql = "SELECT id, user, text, hash, asked_ms, expires_ms FROM question
            WHERE user = ?1 AND answer IS NULL AND expires_ms > ?2 ORDER BY asked_ms, id";
        self.read(move |connection| {
            let mut statement = connection.prepare(sql)?;
            let rows = statement.query_map(params![user, now_ms], read_question)?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        })
        .await
    }

    async fn answer_question(
        &self,
        user: &str,
        id: &str,
        hash: &str,
        answer: StoredAnswer,
    ) -> Result<AnswerResult, StoreError> {
        answer.check_lengths()?;
        let (user, id, hash) = (user.to_owned(), id.to_owned(), hash.to_owned());
        self.write(move |connection| answer_in(connection, &user, &id, &hash, &answer)).await
    }

    async fn find_answer(&self, id: &str) -> Result<Option<StoredAnswer>, StoreError> {
        let id = id.to_owned();
        self.read(move |connection| find_answer_in(connection, &id)).await
    }

    async fn close_question(&self, id: &str, kept: Option<&str>) -> Result<(), StoreError> {
        let (id, kept) = (id.to_owned(), kept.map(str::to_owned));
        let sql = "UPDATE question SET received = 1, text = '', answer = coalesce(?2, answer)
            WHERE id = ?1";
        self.write(move |connection| connection.execute(sql, params![id, kept])).await.map(drop)
    }

    async fn is_received(&self, id: &str) -> Result<bool, StoreError> {
        let id = id.to_owned();
        let sql = "SELECT received FROM question WHERE id = ?1";
        self.read(move |connection| {
            connection.query_row(sql, [id], |row| row.get::<_, bool>(0)).optional()
        })
        .await
        .map(|received| received.unwrap_or(false))
    }

    async fn withdraw_question(&self, id: &str) -> Result<(), StoreError> {
        let id = id.to_owned();
        let sql = "DELETE FROM question WHERE id = ?1 AND answer IS NULL";
        self.write(move |connection| connection.execute(sql, [id])).await.map(drop)
    }
}

fn publish_in(connection: &Connection, question: StoredQuestion) -> Result<(), TransactionError> {
    let StoredQuestion { id, user, text, hash, asked_ms, expires_ms } = question;
    remove_ended(connection, asked_ms)?;
    if count_open(connection, &user, asked_ms)? >= QUESTIONS_OPEN_MAX {
        return Err(StoreError::TooManyQuestions { count_max: QUESTIONS_OPEN_MAX }.into());
    }
    let sql = "INSERT INTO question (id, user, text, hash, asked_ms, expires_ms)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let (asked_ms, expires_ms) = (to_sql_integer(asked_ms), to_sql_integer(expires_ms));
    connection.execute(sql, params![id, user, text, hash, asked_ms, expires_ms])?;
    Ok(())
}

/// Sets the answer, if it is the first one, in time, and about this very question.
fn answer_in(
    connection: &Connection,
    user: &str,
    id: &str,
    hash: &str,
    answer: &StoredAnswer,
) -> rusqlite::Result<AnswerResult> {
    let sql = "UPDATE question SET answer = ?4, carrier = ?5, answered_ms = ?6
        WHERE id = ?1 AND user = ?2 AND hash = ?3 AND answer IS NULL AND expires_ms > ?6";
    let StoredAnswer { answer, carrier, at_ms } = answer;
    let at_ms = to_sql_integer(*at_ms);
    let values = params![id, user, hash, answer, carrier, at_ms];
    if connection.execute(sql, values)? == 1 {
        return Ok(AnswerResult::Accepted);
    }
    let sql = "SELECT hash FROM question WHERE id = ?1 AND user = ?2";
    let found: Option<String> =
        connection.query_row(sql, params![id, user], |row| row.get(0)).optional()?;
    Ok(match (found, find_answer_in(connection, id)?) {
        (None, _) => AnswerResult::NotAsked,
        (Some(known), _) if known != hash => AnswerResult::OtherHash,
        (Some(_), Some(before)) => AnswerResult::AnsweredBefore(before),
        (Some(_), None) => AnswerResult::Expired,
    })
}

fn find_answer_in(connection: &Connection, id: &str) -> rusqlite::Result<Option<StoredAnswer>> {
    let sql = "SELECT answer, carrier, answered_ms FROM question
        WHERE id = ?1 AND answer IS NOT NULL";
    connection.query_row(sql, [id], read_answer).optional()
}

fn read_answer(row: &Row<'_>) -> rusqlite::Result<StoredAnswer> {
    Ok(StoredAnswer {
        answer: row.get(0)?,
        carrier: row.get(1)?,
        at_ms: row.get::<_, i64>(2)?.unsigned_abs(),
    })
}

fn read_question(row: &Row<'_>) -> rusqlite::Result<StoredQuestion> {
    Ok(StoredQuestion {
        id: row.get(0)?,
        user: row.get(1)?,
        text: row.get(2)?,
        hash: row.get(3)?,
        asked_ms: row.get::<_, i64>(4)?.unsigned_abs(),
        expires_ms: row.get::<_, i64>(5)?.unsigned_abs(),
    })
}

fn count_open(connection: &Connection, user: &str, now_ms: u64) -> rusqlite::Result<usize> {
    let sql = "SELECT count(*) FROM question
        WHERE user = ?1 AND answer IS NULL AND expires_ms > ?2";
    let count: i64 =
        connection.query_row(sql, params![user, to_sql_integer(now_ms)], |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// Removes the questions that expired, or were answered, a while ago.
fn remove_ended(connection: &Connection, now_ms: u64) -> rusqlite::Result<usize> {
    let before = to_sql_integer(now_ms.saturating_sub(CLOSED_AGE_MS_MAX));
    connection.execute("DELETE FROM question WHERE expires_ms < ?1", [before])
}
