//! The tasks in PostgreSQL.

use sallyport_contract::async_trait;
use tokio_postgres::Row;

use super::{
    PostgresStore,
    error::PgError,
    holders::{self, LiveHolders},
    transaction::Tx,
    values::{Columns, escape, hash_key},
};
use crate::{
    error::StoreError,
    sql_integer::to_sql_integer,
    tasks::{NewTask, StoredTask, TASKS_MAX, TaskEnd, TaskState, TaskStore},
};

/// The table. `key` is the hash of the id. The end is set once.
pub(super) const TABLE: &str = "
    CREATE TABLE task (
        key BYTEA PRIMARY KEY,
        id TEXT NOT NULL,
        user_id TEXT NOT NULL,
        name TEXT NOT NULL,
        process TEXT NOT NULL,
        created_ms BIGINT NOT NULL,
        updated_ms BIGINT NOT NULL,
        expires_ms BIGINT NOT NULL,
        end_kind TEXT,
        end_body TEXT
    );
    CREATE INDEX task_user ON task USING hash (user_id);
";

#[async_trait]
impl TaskStore for PostgresStore {
    async fn add_task(&self, task: NewTask) -> Result<(), StoreError> {
        task.check_lengths()?;
        self.write((task, self.hold()), |tx, (task, holder)| Box::pin(add_in(tx, task, holder)))
            .await
    }

    async fn end_task(&self, id: &str, end: TaskEnd, now_ms: u64) -> Result<bool, StoreError> {
        end.check_lengths()?;
        self.write((id.to_owned(), end, now_ms), |tx, (id, TaskEnd { kind, body }, now_ms)| {
            Box::pin(async move {
                let sql = "UPDATE task SET end_kind = $2, end_body = $3, updated_ms = $4
                    WHERE key = $1 AND end_kind IS NULL";
                let (key, now_ms) = (hash_key(&[id]), to_sql_integer(*now_ms));
                Ok(tx.execute(sql, &[&key, &escape(kind), &escape(body), &now_ms]).await? == 1)
            })
        })
        .await
    }

    async fn find_task(
        &self,
        user: &str,
        id: &str,
        now_ms: u64,
    ) -> Result<Option<StoredTask>, StoreError> {
        let named = [user, id].map(str::to_owned);
        self.read((named, now_ms), |tx, ([user, id], now_ms)| {
            Box::pin(async move {
                let sql = "SELECT * FROM task WHERE key = $1 AND user_id = $2 AND expires_ms > $3";
                let values = (hash_key(&[id]), escape(user), to_sql_integer(*now_ms));
                let Some(row) = tx.row(sql, &[&values.0, &values.1, &values.2]).await? else {
                    return Ok(None);
                };
                read_task(&row, &LiveHolders::read(tx).await?).map(Some)
            })
        })
        .await
    }
}

async fn add_in(tx: &Tx<'_>, task: &NewTask, holder: &str) -> Result<(), PgError> {
    let NewTask { id, user, name, created_ms, expires_ms } = task;
    // Or two that add at once would both count one less than there are.
    tx.lock("tasks", user).await?;
    let (created_ms, expires_ms) = (to_sql_integer(*created_ms), to_sql_integer(*expires_ms));
    tx.execute("DELETE FROM task WHERE expires_ms <= $1", &[&created_ms]).await?;
    let sql = "SELECT count(*) FROM task WHERE user_id = $1";
    if tx.count(sql, &[&escape(user)]).await? >= TASKS_MAX as u64 {
        return Err(StoreError::TooManyTasks { count_max: TASKS_MAX }.into());
    }
    holders::renew(tx).await?;
    let sql = "INSERT INTO task
        (key, id, user_id, name, process, created_ms, updated_ms, expires_ms)
        VALUES ($1, $2, $3, $4, $5, $6, $6, $7)";
    let (key, texts) = (hash_key(&[id]), [id, user, name].map(|text| escape(text)));
    let [id, user, name] = &texts;
    tx.execute(sql, &[&key, id, user, name, &holder, &created_ms, &expires_ms]).await.map(drop)
}

fn read_task(row: &Row, live: &LiveHolders) -> Result<StoredTask, PgError> {
    let state = match row.text_option("end_kind")? {
        Some(kind) => {
            let body = row.text_option("end_body")?.unwrap_or_default();
            TaskState::Ended(TaskEnd { kind, body })
        }
        None if live.has_ended(&row.text("process")?) => TaskState::CutOff,
        None => TaskState::Running,
    };
    let task = NewTask {
        id: row.text("id")?,
        user: row.text("user_id")?,
        name: row.text("name")?,
        created_ms: row.number("created_ms")?,
        expires_ms: row.number("expires_ms")?,
    };
    Ok(StoredTask { task, updated_ms: row.number("updated_ms")?, state })
}
