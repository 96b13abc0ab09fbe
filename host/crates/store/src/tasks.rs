//! Calls that go on after their client was told so, and their results until the client comes for them.
//!
//! A task has one end, which is written once. The end of a task whose process is gone is never known:
//! its call may have done something, and is not made again. What a result is, is text here.

use sallyport_contract::async_trait;

use crate::error::{StoreError, check_length};

/// Most tasks of one user that are kept. A client that leaves them all to expire gets no more.
pub const TASKS_MAX: usize = 256;

/// Longest result of a task. A result as long as a policy may allow fits in the form of the protocol.
pub const TASK_RESULT_BYTES_MAX: usize = 16 << 20;

/// Longest id or name.
const SHORT_TEXT_BYTES_MAX: usize = 1024;

/// A task that begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTask {
    /// Its id, which nobody can guess.
    pub id: String,
    /// The user who may ask for it.
    pub user: String,
    /// What runs, for people.
    pub name: String,
    /// When it began, in milliseconds since 1970.
    pub created_ms: u64,
    /// When it is forgotten, in milliseconds since 1970.
    pub expires_ms: u64,
}

/// A task as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTask {
    /// What it was when it began.
    pub task: NewTask,
    /// When it last changed, in milliseconds since 1970.
    pub updated_ms: u64,
    /// Where it stands.
    pub state: TaskState,
}

/// Where a task stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskState {
    /// Its process runs, and so does it.
    Running,
    /// Its process has ended before it did.
    CutOff,
    /// It has ended.
    Ended(TaskEnd),
}

/// The end of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskEnd {
    /// How it ended, in one word.
    pub kind: String,
    /// What it brought, as JSON.
    pub body: String,
}

/// The tasks of all programs. Every method fails if the database cannot be used.
#[async_trait]
pub trait TaskStore: Send + Sync {
    /// Adds a task that runs in this process. Also removes those that have expired.
    ///
    /// # Errors
    ///
    /// A text is too long, or the user has too many tasks.
    async fn add_task(&self, task: NewTask) -> Result<(), StoreError>;

    /// Ends a task, unless it has ended. Returns whether this is its end.
    ///
    /// # Errors
    ///
    /// The result is too long.
    async fn end_task(&self, id: &str, end: TaskEnd, now_ms: u64) -> Result<bool, StoreError>;

    /// Returns a task of a user, unless it has expired.
    async fn find_task(
        &self,
        user: &str,
        id: &str,
        now_ms: u64,
    ) -> Result<Option<StoredTask>, StoreError>;
}

impl NewTask {
    pub(crate) fn check_lengths(&self) -> Result<(), StoreError> {
        [("the id of a task", &self.id), ("a user", &self.user), ("a task", &self.name)]
            .into_iter()
            .try_for_each(|(what, text)| check_length(what, text, SHORT_TEXT_BYTES_MAX))
    }
}

impl TaskEnd {
    pub(crate) fn check_lengths(&self) -> Result<(), StoreError> {
        check_length("the end of a task", &self.kind, SHORT_TEXT_BYTES_MAX)?;
        check_length("the result of a task", &self.body, TASK_RESULT_BYTES_MAX)
    }
}
