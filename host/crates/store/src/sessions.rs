//! Sessions: the complete history of each conversation, as an append-only list of records.
//!
//! A record is one entry of the session's journal: a kind, a time and a body. The body is JSON to
//! its writer and plain text here. A body is stored once under its hash, however many records use
//! it, so a fork costs one row per record and no text. A body is removed with the last record that
//! uses it.
//!
//! **Whose it is.** A session belongs to one user, and so do its kept results. Each access names
//! the user; for another one the session does not exist. An id is unique among all users.
//!
//! **Who may write.** A writer passes the number of records that it knows of. If another process
//! has appended some meanwhile, nothing is written and the call fails with an error that reports
//! this, so two processes that continue the same session never mix their records.
//!
//! **What a crash may leave.** Records are written in one commit with everything that belongs to
//! them. A killed process leaves all records that it had committed, and their texts can be
//! searched. A removal that is cut short is finished by the next one; the session itself is gone
//! from the first commit on.

use sallyport_contract::async_trait;
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::{StoreError, check_length};

/// Longest id. Leaves room for a time and enough random characters in any usual notation.
const ID_BYTES_MAX: usize = 64;

/// Longest name of a user. The host assigns it.
const USER_BYTES_MAX: usize = 1024;

/// Most records of one session. A turn makes some tens, so this is enough for years. A process that
/// continues a session keeps all of them in memory.
pub(crate) const RECORDS_MAX: u64 = 100_000;

/// Most records per page.
pub(crate) const PAGE_RECORDS_MAX: u32 = 256;

/// Bytes of bodies after which a page ends. A single body may be far longer.
pub(crate) const PAGE_BYTES: usize = 1 << 20;

/// Longest query. Users type a few words; each costs a walk through the index.
pub(crate) const QUERY_BYTES_MAX: usize = 1024;

/// Most ids that are named when a prefix is ambiguous. More would not help the user to choose.
pub(crate) const CANDIDATES_MAX: usize = 5;

/// Longest title. A list shows one line per session.
const TITLE_CHARS_MAX: usize = 120;

/// Longest name of a model. The names in a large registry are half as long.
const MODEL_BYTES_MAX: usize = 256;

/// Longest path of a folder, which is also Linux's limit.
const FOLDER_BYTES_MAX: usize = 4096;

/// A session to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// The user whose session it is.
    pub user: String,
    /// The unique id: ASCII letters, digits, `-`, `_` and `.`.
    pub id: String,
    /// The title. One that is too long is cut.
    pub title: String,
    /// The name of the model.
    pub model: String,
    /// The folder in which it was started.
    pub folder: Option<String>,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: u64,
}

/// A session, without its records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StoredSession {
    /// The user whose session it is.
    pub user: String,
    /// The unique id.
    pub id: String,
    /// The title.
    pub title: String,
    /// The name of the model that it uses.
    pub model: String,
    /// The folder in which it was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: u64,
    /// The time of its last record, or of its creation, in milliseconds since 1970.
    pub updated_ms: u64,
    /// The session that it was forked from, which may have been removed.
    pub parent_id: Option<String>,
    /// How many of its records were copied from the parent.
    pub parent_records: u64,
    /// How many records it has.
    pub records: u64,
    /// The total usage of its records.
    #[serde(flatten)]
    pub used: StoredUsage,
}

/// The usage of a record or of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StoredUsage {
    /// Turns of the conversation.
    pub turns: u64,
    /// Tokens that the model read and wrote, in total.
    pub tokens: u64,
    /// Cost in millionths of a US dollar, as far as prices are known; `None` if none is known.
    pub cost_micro_usd: Option<u64>,
}

/// A session with its key in the database.
#[derive(Debug)]
pub(crate) struct SessionRow {
    pub(crate) key: i64,
    pub(crate) session: StoredSession,
    /// The highest number that a kept result of it has had, or of those that a fork shares.
    pub(crate) last_kept: u64,
}

/// What changes in a session's row when records are appended.
pub(crate) struct SessionTotals {
    pub(crate) records: u64,
    pub(crate) updated_ms: u64,
    pub(crate) used: StoredUsage,
}

impl StoredSession {
    /// Adds records, if the session has `expected` of them by now.
    ///
    /// # Errors
    ///
    /// It has another number of records, or would have too many.
    pub(crate) fn totals_with(
        &self,
        expected: u64,
        records: &[NewRecord],
    ) -> Result<SessionTotals, StoreError> {
        let (id, found) = (self.id.clone(), self.records);
        if found != expected {
            return Err(StoreError::ConcurrentAppend { id, expected, found });
        }
        let total = found.saturating_add(records.len() as u64);
        if total > RECORDS_MAX {
            return Err(StoreError::SessionFull { id, records_max: RECORDS_MAX });
        }
        let used = records.iter().fold(self.used, |used, record| used.saturating_add(record.used));
        let updated_ms = records.iter().map(|record| record.at_ms).max().unwrap_or(0);
        Ok(SessionTotals { records: total, updated_ms, used })
    }
}

/// Longest kind: one word that the writer chooses.
const KIND_BYTES_MAX: usize = 64;

/// Longest body. An input contains its pictures and sounds in an encoding that makes them a third
/// longer; providers accept some tens of megabytes of them.
const BODY_BYTES_MAX: usize = 64 << 20;

/// A record that is about to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRecord {
    /// The kind of the record, in one word.
    pub kind: String,
    /// The record as JSON.
    pub body: String,
    /// The text by which users search for the record; empty for a record that no user would search
    /// for. A body that is stored already keeps the search text that it was first stored with.
    pub search_text: String,
    /// The time of the record, in milliseconds since 1970.
    pub at_ms: u64,
    /// The record's share of the session's usage.
    pub used: StoredUsage,
}

/// A stored record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRecord {
    /// Its place in the session: 0 for the first record.
    pub seq: u64,
    /// The kind of the record, in one word.
    pub kind: String,
    /// The record as JSON.
    pub body: String,
    /// The time of the record, in milliseconds since 1970.
    pub at_ms: u64,
    /// The record's share of the session's usage.
    pub used: StoredUsage,
}

/// The conditions that a session must meet. A field that is `None` is not checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFilter {
    /// A session of this user.
    pub user: String,
    /// Started in this folder.
    pub folder: Option<String>,
    /// Last used before this time, in milliseconds since 1970.
    pub before_ms: Option<u64>,
    /// At most this many sessions.
    pub limit: Option<usize>,
}

/// A record that matches a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSearchMatch {
    /// The session's id.
    pub session_id: String,
    /// The session's title.
    pub title: String,
    /// The record's place in the session.
    pub seq: u64,
    /// The kind of the record, in one word.
    pub kind: String,
    /// The time of the record, in milliseconds since 1970.
    pub at_ms: u64,
    /// The part of the text with the most matches, in pieces.
    pub snippet: Vec<SnippetPiece>,
}

/// A piece of a snippet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnippetPiece {
    /// The text of the piece, as it was written.
    pub text: String,
    /// Whether the piece matches the query, rather than being context.
    pub found: bool,
}

/// All sessions of the store. Every method fails if the database cannot be used.
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// Creates a session without records.
    ///
    /// # Errors
    ///
    /// The id exists already or is invalid, or a text is too long.
    async fn create(&self, session: NewSession) -> Result<(), StoreError>;

    /// Appends records to a session that has `expected` of them, all or none, and returns the new
    /// number of records.
    ///
    /// # Errors
    ///
    /// [`StoreError::ConcurrentAppend`] if the session has another number of records by now; no
    /// session of the user has this id; there are too many records; or one is too long.
    async fn append_records(
        &self,
        user: &str,
        id: &str,
        expected: u64,
        records: Vec<NewRecord>,
    ) -> Result<u64, StoreError>;

    /// Returns the session of a user with exactly this id.
    ///
    /// # Errors
    ///
    /// No session of the user has this id.
    async fn get(&self, user: &str, id: &str) -> Result<StoredSession, StoreError>;

    /// Returns a page of the records of a session, in order, starting at number `from`; nothing at
    /// the end. Pages keep a long session from being in memory twice. `session` is what
    /// [`get`](Self::get) returned before the first page: records that were appended since then are
    /// not included.
    ///
    /// # Errors
    ///
    /// The session is gone, or the next record is damaged.
    async fn read_page(
        &self,
        session: &StoredSession,
        from: u64,
    ) -> Result<Vec<StoredRecord>, StoreError>;

    /// Returns the sessions that meet the conditions, most recently used first.
    async fn list(&self, filter: SessionFilter) -> Result<Vec<StoredSession>, StoreError>;

    /// Returns the session of a user with this id, or the only one whose id starts with `prefix`.
    ///
    /// # Errors
    ///
    /// No session of the user matches, or several do.
    async fn find_by_prefix(&self, user: &str, prefix: &str) -> Result<StoredSession, StoreError>;

    /// Returns the most recently used session of a user that has records; with a folder, only
    /// sessions started in it.
    async fn latest_session(
        &self,
        user: &str,
        folder: Option<&str>,
    ) -> Result<Option<StoredSession>, StoreError>;

    /// Returns the records of a user's sessions that contain all words of a query, best first, at
    /// most `hits_max`.
    ///
    /// A word of at least three bytes also matches longer words that begin with it, ranked lower.
    /// Words in double quotes match exactly and next to each other. Every text is a valid query; no
    /// other character has a meaning. A record that a fork shares with its parent is only found in
    /// the parent, as long as the parent exists.
    ///
    /// # Errors
    ///
    /// The query is too long.
    async fn search_records(
        &self,
        user: &str,
        query: &str,
        hits_max: usize,
    ) -> Result<Vec<SessionSearchMatch>, StoreError>;

    /// Changes the title of a session. A title that is too long is cut.
    ///
    /// # Errors
    ///
    /// No session of the user has this id.
    async fn rename(&self, user: &str, id: &str, title: &str) -> Result<(), StoreError>;

    /// Records the model that a session uses from now on.
    ///
    /// # Errors
    ///
    /// No session of the user has this id, or the name is too long.
    async fn switch_model(&self, user: &str, id: &str, model: &str) -> Result<(), StoreError>;

    /// Creates a session of the same user with the first `records` of another, and with its title,
    /// model and folder.
    ///
    /// # Errors
    ///
    /// No session of the user has the id `from`, it has fewer records, or the new id exists already or is
    /// invalid.
    async fn fork(
        &self,
        user: &str,
        from: &str,
        records: u64,
        id: &str,
        at_ms: u64,
    ) -> Result<(), StoreError>;

    /// Removes a session with its approvals, and all bodies that no other session uses. Forks keep
    /// the records that they share with it.
    ///
    /// # Errors
    ///
    /// No session of the user has this id. If the database fails, the session may be gone already,
    /// and the next removal removes the rest.
    async fn remove(&self, user: &str, id: &str) -> Result<(), StoreError>;

    /// Removes the sessions that were last used before a time, in milliseconds since 1970, and all
    /// but the `keep_max` most recently used of each user. Returns how many were removed.
    ///
    /// # Errors
    ///
    /// As with [`remove`](Self::remove).
    async fn prune(&self, before_ms: u64, keep_max: usize) -> Result<usize, StoreError>;
}

impl NewSession {
    /// # Errors
    ///
    /// The id is invalid, or a text is too long.
    pub(crate) fn check_fields(&self) -> Result<(), StoreError> {
        check_id(&self.id)?;
        check_length("the name of a user", &self.user, USER_BYTES_MAX)?;
        check_model(&self.model)?;
        check_length("a folder", self.folder.as_deref().unwrap_or_default(), FOLDER_BYTES_MAX)
    }
}

impl SessionFilter {
    /// All sessions of a user.
    pub fn of_user(user: impl Into<String>) -> Self {
        Self { user: user.into(), folder: None, before_ms: None, limit: None }
    }
}

impl NewRecord {
    /// # Errors
    ///
    /// The kind or the body is too long. A search text of any length is accepted.
    pub(crate) fn check_lengths(&self) -> Result<(), StoreError> {
        check_length("the kind of a record", &self.kind, KIND_BYTES_MAX)?;
        check_length("a record", &self.body, BODY_BYTES_MAX)
    }
}

impl StoredUsage {
    /// Returns the sum of both. Counts saturate; the cost is `None` if both are.
    pub fn saturating_add(self, other: Self) -> Self {
        let costs = [self.cost_micro_usd, other.cost_micro_usd];
        Self {
            turns: self.turns.saturating_add(other.turns),
            tokens: self.tokens.saturating_add(other.tokens),
            cost_micro_usd: costs.into_iter().flatten().reduce(u64::saturating_add),
        }
    }
}

/// Checks an id. Ids are typed on command lines and used in file names.
///
/// # Errors
///
/// The id is too long, empty, or has other characters than ASCII letters, digits, `-`, `_` and `.`.
pub(crate) fn check_id(id: &str) -> Result<(), StoreError> {
    check_length("the id of a session", id, ID_BYTES_MAX)?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if id.is_empty() || !id.bytes().all(fits) {
        return Err(StoreError::InvalidSessionId { text: id.to_owned() });
    }
    Ok(())
}

/// # Errors
///
/// The name is too long.
pub(crate) fn check_model(name: &str) -> Result<(), StoreError> {
    check_length("the name of a model", name, MODEL_BYTES_MAX)
}

/// The error for an id that no session has.
pub(crate) fn missing_session_error(id: &str) -> StoreError {
    StoreError::SessionNotFound { id: id.chars().take(ID_BYTES_MAX).collect() }
}

/// Cuts a title to its longest length, with an ellipsis at the end.
pub(crate) fn truncate_title(title: &str) -> String {
    match title.char_indices().nth(TITLE_CHARS_MAX) {
        None => title.to_owned(),
        Some(_) => title.chars().take(TITLE_CHARS_MAX - 1).chain(['…']).collect(),
    }
}

/// Chooses the session that a prefix means. `found` are the first few whose ids begin with it, in
/// order.
///
/// # Errors
///
/// There is none, or there are several.
pub(crate) fn choose_by_prefix(
    mut found: Vec<StoredSession>,
    prefix: &str,
) -> Result<StoredSession, StoreError> {
    if prefix.is_empty() || found.is_empty() {
        return Err(missing_session_error(prefix));
    }
    // An id that equals the prefix sorts before the longer ones.
    if found[0].id == prefix || found.len() == 1 {
        return Ok(found.swap_remove(0));
    }
    let mut candidates: Vec<String> = found.into_iter().map(|session| session.id).collect();
    candidates.truncate(CANDIDATES_MAX);
    Err(StoreError::AmbiguousSessionPrefix { prefix: prefix.to_owned(), candidates })
}
