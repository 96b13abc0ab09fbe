//! Idempotency keys: requests that a client may repeat, because each is done once.
//!
//! A key belongs to a user and to one request, which its fingerprint tells from others. It is stored
//! before the request is done, and its reply afterwards. A key whose process ended in between is cut
//! off: whether its request was done is never known, and it is not done again.

use sallyport_contract::async_trait;

use crate::error::{StoreError, check_length};

/// How long a key is kept, in milliseconds: a day.
pub const KEY_AGE_MS_MAX: u64 = 24 * 60 * 60 * 1000;

/// Most keys of all users. The oldest that has ended makes room.
pub const KEYS_MAX: usize = 4096;

/// Most keys of one user, so that one cannot push out those of the others.
pub const KEYS_OF_USER_MAX: usize = 512;

/// Longest reply that is kept, in bytes.
pub const REPLY_BYTES_MAX: usize = 16 * 1024;

/// Longest name of a user or key, in bytes.
const NAME_BYTES_MAX: usize = 1024;

/// A user's key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey {
    /// The user.
    pub user: String,
    /// The key, as the client chose it.
    pub key: String,
}

/// A key of an earlier request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownKey {
    /// Tells its request from others.
    pub fingerprint: [u8; 32],
    /// What became of its request.
    pub state: KeyState,
}

/// What became of the request of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyState {
    /// This process has begun it, and has not stored what came of it.
    BegunHere,
    /// Another process works on it.
    Running,
    /// Its process ended before the request did.
    CutOff,
    /// It was done.
    Done(KeyedReply),
}

/// The reply to a request that was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyedReply {
    /// The status of the answer.
    pub status: u16,
    /// The body; `None` if it was longer than [`REPLY_BYTES_MAX`].
    pub body: Option<Vec<u8>>,
}

/// The keys of all users. Every method fails if the database cannot be used.
#[async_trait]
pub trait IdempotencyStore: Send + Sync {
    /// Stores the key of a request that this process begins, and returns `None`. If it is known, it
    /// stays as it is and is returned. Of several processes that begin at the same time, one does.
    /// Keys that are older than [`KEY_AGE_MS_MAX`] at `now_ms` are forgotten.
    ///
    /// # Errors
    ///
    /// A name is too long, or too many requests with a key are running.
    async fn begin_key(
        &self,
        key: &IdempotencyKey,
        fingerprint: [u8; 32],
        now_ms: u64,
    ) -> Result<Option<KnownKey>, StoreError>;

    /// Returns a key, unless it is older than [`KEY_AGE_MS_MAX`] at `now_ms`.
    async fn find_key(
        &self,
        key: &IdempotencyKey,
        now_ms: u64,
    ) -> Result<Option<KnownKey>, StoreError>;

    /// Stores the reply to a request that this process began and that was done. A body that is too
    /// long is not kept. Like the two methods below, it changes nothing if this process does not have
    /// the key, because another one may have it by the time that an earlier failure is repaired.
    async fn end_key(&self, key: &IdempotencyKey, reply: KeyedReply) -> Result<(), StoreError>;

    /// Forgets the key of a request that this process began and that was not done, so that it can be
    /// made again.
    async fn release_key(&self, key: &IdempotencyKey) -> Result<(), StoreError>;

    /// Marks a request of this process that ended before it was done: whether it had an effect is not
    /// known.
    async fn cut_off_key(&self, key: &IdempotencyKey) -> Result<(), StoreError>;
}

impl IdempotencyKey {
    pub(crate) fn check_lengths(&self) -> Result<(), StoreError> {
        check_length("the name of a user", &self.user, NAME_BYTES_MAX)?;
        check_length("an idempotency key", &self.key, NAME_BYTES_MAX)
    }
}

impl KeyedReply {
    /// The reply without a body that is too long.
    #[must_use]
    pub fn bounded(self) -> Self {
        Self { body: self.body.filter(|body| body.len() <= REPLY_BYTES_MAX), ..self }
    }
}
