//! The open questions in PostgreSQL.

use sallyport_contract::async_trait;
use tokio_postgres::Row;

use super::{
    PostgresStore,
    error::PgError,
    transaction::{self, Tx},
    values::{Columns, escape, escape_option, hash_key},
};
use crate::{
    error::StoreError,
    questions::{
        AnswerResult, CLOSED_AGE_MS_MAX, QUESTIONS_OPEN_MAX, QuestionStore, StoredAnswer,
        StoredQuestion,
    },
    sql_integer::to_sql_integer,
};

/// The table. `key` is the hash of the id. An answer is set once; `received` says whether its asker
/// has it.
pub(super) const TABLE: &str = "
    CREATE TABLE question (
        key BYTEA PRIMARY KEY,
        id TEXT COLLATE \"C\" NOT NULL,
        user_id TEXT NOT NULL,
        text TEXT NOT NULL,
        hash TEXT NOT NULL,
        asked_ms BIGINT NOT NULL,
        expires_ms BIGINT NOT NULL,
        answer TEXT,
        carrier TEXT,
        answered_ms BIGINT,
        received BOOLEAN NOT NULL DEFAULT FALSE
    );
    CREATE INDEX question_user ON question USING hash (user_id);
";

/// The columns of a question, as [`read_question`] reads them.
pub(super) const COLUMNS: &str = "id, user_id, text, hash, asked_ms, expires_ms";

#[async_trait]
impl QuestionStore for PostgresStore {
    async fn publish_question(&self, question: StoredQuestion) -> Result<(), StoreError> {
        question.check_lengths()?;
        self.write(question, |tx, question| Box::pin(publish_in(tx, question))).await
    }

    async fn open_questions(
        &self,
        user: &str,
        now_ms: u64,
    ) -> Result<Vec<StoredQuestion>, StoreError> {
        self.read((user.to_owned(), now_ms), |tx, (user, now_ms)| {
            Box::pin(async move {
                let sql = format!(
                    "SELECT {COLUMNS} FROM question
                     WHERE user_id = $1 AND answer IS NULL AND expires_ms > $2
                     ORDER BY asked_ms, id"
                );
                let rows = tx.rows(&sql, &[&escape(user), &to_sql_integer(*now_ms)]).await?;
                transaction::read_all(&rows, read_question)
            })
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
        let named = [user, id, hash].map(str::to_owned);
        self.write((named, answer), |tx, ([user, id, hash], answer)| {
            Box::pin(answer_in(tx, user, id, hash, answer))
        })
        .await
    }

    async fn find_answer(&self, id: &str) -> Result<Option<StoredAnswer>, StoreError> {
        self.read(id.to_owned(), |tx, id| Box::pin(find_answer_in(tx, id))).await
    }

    async fn close_question(&self, id: &str, kept: Option<&str>) -> Result<(), StoreError> {
        self.write((id.to_owned(), kept.map(str::to_owned)), |tx, (id, kept)| {
            Box::pin(async move {
                let sql = "UPDATE question
                    SET received = TRUE, text = '', answer = coalesce($2, answer) WHERE key = $1";
                let kept = escape_option(kept.as_deref());
                tx.execute(sql, &[&hash_key(&[id]), &kept]).await.map(drop)
            })
        })
        .await
    }

    async fn is_received(&self, id: &str) -> Result<bool, StoreError> {
        self.read(id.to_owned(), |tx, id| {
            Box::pin(async move {
                let sql = "SELECT received FROM question WHERE key = $1";
                let row = tx.row(sql, &[&hash_key(&[id])]).await?;
                row.map_or(Ok(false), |row| row.value("received"))
            })
        })
        .await
    }

    async fn withdraw_question(&self, id: &str) -> Result<(), StoreError> {
        self.write(id.to_owned(), |tx, id| {
            Box::pin(async move {
                let sql = "DELETE FROM question WHERE key = $1 AND answer IS NULL";
                tx.execute(sql, &[&hash_key(&[id])]).await.map(drop)
            })
        })
        .await
    }
}

async fn publish_in(tx: &Tx<'_>, question: &StoredQuestion) -> Result<(), PgError> {
    let StoredQuestion { id, user, text, hash, asked_ms, expires_ms } = question;
    // Or two that publish at once would both count one less than there are.
    tx.lock("questions", user).await?;
    let before = to_sql_integer(asked_ms.saturating_sub(CLOSED_AGE_MS_MAX));
    tx.execute("DELETE FROM question WHERE expires_ms < $1", &[&before]).await?;
    let (asked_ms, expires_ms) = (to_sql_integer(*asked_ms), to_sql_integer(*expires_ms));
    let sql = "SELECT count(*) FROM question
        WHERE user_id = $1 AND answer IS NULL AND expires_ms > $2";
    if tx.count(sql, &[&escape(user), &asked_ms]).await? >= QUESTIONS_OPEN_MAX as u64 {
        return Err(StoreError::TooManyQuestions { count_max: QUESTIONS_OPEN_MAX }.into());
    }
    let sql = "INSERT INTO question (key, id, user_id, text, hash, asked_ms, expires_ms)
        VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let (key, texts) = (hash_key(&[id]), [id, user, text, hash].map(|text| escape(text)));
    let [id, user, text, hash] = &texts;
    tx.execute(sql, &[&key, id, user, text, hash, &asked_ms, &expires_ms]).await.map(drop)
}

/// Sets the answer, if it is the first one, in time, and about this very question.
async fn answer_in(
    tx: &Tx<'_>,
    user: &str,
    id: &str,
    hash: &str,
    answer: &StoredAnswer,
) -> Result<AnswerResult, PgError> {
    let sql = "UPDATE question SET answer = $4, carrier = $5, answered_ms = $6
        WHERE key = $1 AND user_id = $2 AND hash = $3 AND answer IS NULL AND expires_ms > $6";
    let StoredAnswer { answer, carrier, at_ms } = answer;
    let (key, at_ms) = (hash_key(&[id]), to_sql_integer(*at_ms));
    let texts = [user, hash, answer, carrier].map(escape);
    let [own_user, own_hash, answer, carrier] = &texts;
    if tx.execute(sql, &[&key, own_user, own_hash, answer, carrier, &at_ms]).await? == 1 {
        return Ok(AnswerResult::Accepted);
    }
    let sql = "SELECT hash FROM question WHERE key = $1 AND user_id = $2";
    let known = match tx.row(sql, &[&key, own_user]).await? {
        Some(row) => row.text("hash")?,
        None => return Ok(AnswerResult::NotAsked),
    };
    if known != hash {
        return Ok(AnswerResult::OtherHash);
    }
    let before = find_answer_in(tx, id).await?;
    Ok(before.map_or(AnswerResult::Expired, AnswerResult::AnsweredBefore))
}

async fn find_answer_in(tx: &Tx<'_>, id: &str) -> Result<Option<StoredAnswer>, PgError> {
    let sql = "SELECT answer, carrier, answered_ms FROM question
        WHERE key = $1 AND answer IS NOT NULL";
    tx.row(sql, &[&hash_key(&[id])]).await?.as_ref().map(read_answer).transpose()
}

fn read_answer(row: &Row) -> Result<StoredAnswer, PgError> {
    Ok(StoredAnswer {
        answer: row.text("answer")?,
        carrier: row.text_option("carrier")?.unwrap_or_default(),
        at_ms: row.number_option("answered_ms")?.unwrap_or_default(),
    })
}

fn read_question(row: &Row) -> Result<StoredQuestion, PgError> {
    Ok(StoredQuestion {
        id: row.text("id")?,
        user: row.text("user_id")?,
        text: row.text("text")?,
        hash: row.text("hash")?,
        asked_ms: row.number("asked_ms")?,
        expires_ms: row.number("expires_ms")?,
    })
}
