//! The tasks in SQLite.

use rusqlite::{Connection, OptionalExtension, Row, params};
use sallyport_contract::async_trait;

use super::{SqliteStore, transaction_error::TransactionError};
use crate::{
    error::StoreError,
    process::{self, ProcessIdentity, ProcessLiveness},
    sql_integer::{from_sql_integer, to_sql_integer},
    tasks::{NewTask, StoredTask, TASKS_MAX, TaskEnd, TaskState, TaskStore},
};

/// The table. The end is set once.
pub(super) const TABLE: &str = "
    CREATE TABLE task (
        id TEXT NOT NULL PRIMARY KEY,
        user TEXT NOT NULL,
        name TEXT NOT NULL,
        process TEXT NOT NULL,
        created_ms INTEGER NOT NULL,
        updated_ms INTEGER NOT NULL,
        expires_ms INTEGER NOT NULL,
        end_kind TEXT,
        end_body TEXT
    ) STRICT, WITHOUT ROWID;
";

#[async_trait]
impl TaskStore for SqliteStore {
    async fn add_task(&self, task: NewTask) -> Result<(), StoreError> {
        task.check_lengths()?;
        self.write(move |connection| add_in(connection, task)).await
    }

    async fn end_task(&self, id: &str, end: TaskEnd, now_ms: u64) -> Result<bool, StoreError> {
        end.check_lengths()?;
        let id = id.to_owned();
        let sql = "UPDATE task SET end_kind = ?2, end_body = ?3, updated_ms = ?4
            WHERE id = ?1 AND end_kind IS NULL";
        self.write(move |connection| {
            let TaskEnd { kind, body } = end;
            connection.execute(sql, params![id, kind, body, to_sql_integer(now_ms)])
        })
        .await
        .map(|changed| changed == 1)
    }

    async fn find_task(
        &self,
        user: &str,
        id: &str,
        now_ms: u64,
    ) -> Result<Option<StoredTask>, StoreError> {
        let (user, id, now_ms) = (user.to_owned(), id.to_owned(), to_sql_integer(now_ms));
        let sql = "SELECT * FROM task WHERE id = ?1 AND user = ?2 AND expires_ms > ?3";
        self.read(move |connection| {
            connection.query_row(sql, params![id, user, now_ms], read_task).optional()
        })
        .await
    }
}

fn add_in(connection: &Connection, task: NewTask) -> Result<(), TransactionError> {
    let NewTask { id, user, name, created_ms, expires_ms } = task;
    let (created_ms, expires_ms) = (to_sql_integer(created_ms), to_sql_integer(expires_ms));
    connection.execute("DELETE FROM task WHERE expires_ms <= ?1", [created_ms])?;
    let sql = "SELECT count(*) FROM task WHERE user = ?1";
    let count: i64 = connection.query_row(sql, [&user], |row| row.get(0))?;
    if usize::try_from(count).unwrap_or(usize::MAX) >= TASKS_MAX {
        return Err(StoreError::TooManyTasks { count_max: TASKS_MAX }.into());
    }
    let sql = "INSERT INTO task (id, user, name, process, created_ms, updated_ms, expires_ms)
        VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6)";
    let process = ProcessIdentity::current_process().to_string();
    connection.execute(sql, params![id, user, name, process, created_ms, expires_ms])?;
    Ok(())
}

fn read_task(row: &Row<'_>) -> rusqlite::Result<StoredTask> {
    let process: String = row.get("process")?;
    let end_kind: Option<String> = row.get("end_kind")?;
    let state = match end_kind {
        Some(kind) => TaskState::Ended(TaskEnd { kind, body: row.get("end_body")? }),
        None if process::liveness_by_name(&process) == ProcessLiveness::Ended => TaskState::CutOff,
        None => TaskState::Running,
    };
    let task = NewTask {
        id: row.get("id")?,
        user: row.get("user")?,
        name: row.get("name")?,
        created_ms: from_sql_integer(row.get("created_ms")?),
        expires_ms: from_sql_integer(row.get("expires_ms")?),
    };
    Ok(StoredTask { task, updated_ms: from_sql_integer(row.get("updated_ms")?), state })
}
