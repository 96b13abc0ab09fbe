//! Memories: texts of a user's sessions, recalled by their meaning.
//!
//! Each text is stored once per user, with all its sources, however often it occurred. If a model
//! has embedded the text, its vector is stored with it. Vectors of different models or of different
//! lengths have different meanings. So only vectors of one model and length are compared, and a
//! recall reports how many memories were left out. Without vectors, the words of the texts are
//! searched.

pub(crate) mod vector;

use sallyport_contract::async_trait;

use crate::error::StoreError;

/// The kind of a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredMemoryKind {
    /// A memory that a session had from its start.
    Initial,
    /// A turn of a session.
    Turn,
}

/// A memory, with its latest source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMemory {
    /// The id of the memory.
    pub id: u64,
    /// The remembered text; untrusted.
    pub text: String,
    /// The session that it comes from.
    pub session_id: String,
    /// The turn of that session.
    pub turn: u64,
    /// The kind of the memory.
    pub kind: StoredMemoryKind,
    /// The time of the text, in milliseconds since 1970.
    pub at_ms: u64,
    /// The model that was asked for a vector, even if it could make none; `None` if no model was
    /// asked.
    pub embedder: Option<String>,
    /// How many numbers the vector has; `None` without a vector.
    pub dimensions: Option<usize>,
}

/// The parameters of a recall.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryQuery {
    /// The user whose memories are searched.
    pub user: String,
    /// The vector or the words to compare with.
    pub criterion: MemoryCriterion,
    /// At most this many.
    pub limit: usize,
    /// The turns that the model sees anyway, which are left out.
    pub visible_turns: Option<VisibleTurns>,
}

/// What memories are compared with.
#[derive(Debug, Clone, PartialEq)]
pub enum MemoryCriterion {
    /// The vector of a text.
    Vector(EmbeddingVector),
    /// The words of a text. Any of them matches; rare words weigh more.
    Words(String),
}

/// The part of a conversation that the model sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisibleTurns {
    /// The session.
    pub session_id: String,
    /// The first turn that it sees.
    pub from_turn: u64,
}

/// The result of a recall.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemoryQueryResult {
    /// The memories, closest first.
    pub matches: Vec<MemoryMatch>,
    /// How many memories could not be compared, because they have no vector, or one of another
    /// model or length.
    pub not_compared: u64,
}

/// A memory that was recalled.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryMatch {
    /// The memory.
    pub memory: StoredMemory,
    /// How close the memory is, at most 1. For vectors, the cosine of their angle; for words, the
    /// score relative to the best match.
    pub similarity: f64,
}

/// A text to remember.
#[derive(Debug, Clone, PartialEq)]
pub struct NewMemory {
    /// The user who owns the memory.
    pub user: String,
    /// The text. Surrounding whitespace is removed.
    pub text: String,
    /// The vector of the text.
    pub vector: Option<EmbeddingVector>,
    /// The session that it comes from.
    pub session_id: String,
    /// The turn of that session.
    pub turn: u64,
    /// The kind of the memory.
    pub kind: StoredMemoryKind,
    /// The time of the text, in milliseconds since 1970.
    pub at_ms: u64,
}

/// The vector that a model made of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddingVector {
    /// The model.
    pub embedder: String,
    /// The numbers. Only the direction of the vector counts, not its length.
    pub values: Vec<f32>,
}

/// Which memories of a user to forget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemorySelection {
    /// The memories with these ids.
    Ids(Vec<u64>),
    /// The memories that come from this session and from no other.
    Session(String),
    /// The memories that come from one turn of a session and from nowhere else.
    Turn {
        /// The session.
        session_id: String,
        /// The turn.
        turn: u64,
    },
    /// All memories.
    All,
}

/// The memories of all users. Every method fails if the database cannot be used.
#[async_trait]
pub trait MemoryStore: Send + Sync {
    /// Stores a text, and returns the id of the memory. A text that is stored already gets one more
    /// source, and the new vector if there is one. If the user has too many memories, the oldest
    /// are removed.
    ///
    /// # Errors
    ///
    /// The text is too long, or the vector is invalid.
    async fn store_memory(&self, memory: NewMemory) -> Result<u64, StoreError>;

    /// Returns the memories that are closest to a text, closest first.
    ///
    /// # Errors
    ///
    /// The vector is invalid.
    async fn recall(&self, wanted: MemoryQuery) -> Result<MemoryQueryResult, StoreError>;

    /// Returns the newest memories of a user, newest first, at most `count_max`.
    async fn list_newest(
        &self,
        user: &str,
        count_max: usize,
    ) -> Result<Vec<StoredMemory>, StoreError>;

    /// Returns the memories of a user that contain all words of a query, best first, at most
    /// `count_max`. Matches as [`search_records`](crate::SessionStore::search_records) does.
    ///
    /// # Errors
    ///
    /// The query is too long.
    async fn search(
        &self,
        user: &str,
        query: &str,
        count_max: usize,
    ) -> Result<Vec<StoredMemory>, StoreError>;

    /// Returns memories that still need a vector of this model, oldest first, at most `count_max`.
    ///
    /// Those are the memories whose vector no model was asked for, and those that have a vector of
    /// another model or, if `dimensions` is known, of another length.
    async fn list_without_vector(
        &self,
        user: &str,
        (embedder, dimensions): (&str, Option<usize>),
        count_max: usize,
    ) -> Result<Vec<StoredMemory>, StoreError>;

    /// Stores the vector that a model made of a memory. Returns whether the memory exists.
    ///
    /// # Errors
    ///
    /// The vector is invalid.
    async fn store_vector(
        &self,
        user: &str,
        id: u64,
        vector: EmbeddingVector,
    ) -> Result<bool, StoreError>;

    /// Records that a model cannot embed a memory, so that it is not asked again. Returns whether
    /// the memory exists.
    async fn mark_unembeddable(
        &self,
        user: &str,
        id: u64,
        embedder: &str,
    ) -> Result<bool, StoreError>;

    /// Forgets memories of a user, and returns their number.
    async fn forget(&self, user: &str, which: MemorySelection) -> Result<usize, StoreError>;
}

impl StoredMemoryKind {
    const ALL: [Self; 2] = [Self::Initial, Self::Turn];

    /// The kind in one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::Turn => "turn",
        }
    }

    /// The kind with this word.
    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}
