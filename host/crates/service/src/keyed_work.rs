//! The requests with a key that this process works on, or whose end the store does not have yet.
//!
//! The end of a request may not be stored, because the database is away at that moment. The row of its
//! key then names this process as one that works on it, and another process can only answer "ask
//! again". So the end stays here and is tried again until the store has it, or until the key is
//! forgotten anyway. If this process ends first, the key is cut off.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::body::Bytes;
use futures::future::{BoxFuture, Shared};
use http::StatusCode;
use sallyport_runtime::clock::now_ms;
use sallyport_store::{
    IdempotencyKey, IdempotencyStore, KeyedReply, StoreError,
    idempotency::{KEY_AGE_MS_MAX, KEYS_MAX, KEYS_OF_USER_MAX},
};
use tokio::{sync::Notify, time::timeout};

use crate::problem::Problem;

/// First pause before an end is stored again. Each further one is twice as long.
const RETRY_PAUSE_MIN: Duration = Duration::from_secs(1);

/// Longest pause. After an outage, every key is settled within a minute.
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(60);

/// The reply of work that runs, for everybody who waits for it.
pub(crate) type SharedReply = Shared<BoxFuture<'static, Result<(StatusCode, Bytes), Problem>>>;

/// The keys that this process works on. There are at most as many as the store keeps, because
/// [`check_room`] refuses others, and each reply has at most the length that the store
/// takes.
pub(crate) type KeyTable = HashMap<IdempotencyKey, KeyedWork>;

/// The work of one key.
#[derive(Clone)]
pub(crate) enum KeyedWork {
    /// It has not ended.
    Running {
        /// Tells its request from others.
        fingerprint: [u8; 32],
        /// What everybody waits for.
        reply: SharedReply,
    },
    /// It has ended, and the store does not know how.
    Unsettled(Arc<UnsettledKey>),
}

/// What the store has to learn about a request that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyEnd {
    /// It was done.
    Done(KeyedReply),
    /// Nothing was done, so its key is free.
    NotDone,
    /// It may have had an effect, and is not done again.
    CutOff,
}

/// The end of a request that the store does not have yet.
pub(crate) struct UnsettledKey {
    pub(crate) key: IdempotencyKey,
    pub(crate) fingerprint: [u8; 32],
    pub(crate) begun_ms: u64,
    pub(crate) end: KeyEnd,
    /// Whether nothing is left to do. It is locked during each attempt, so that no attempt comes
    /// after another request has begun with the key.
    is_settled: tokio::sync::Mutex<bool>,
    /// Ends the pause before the next attempt.
    repeated: Notify,
}

/// The work of this process, and the store that has to know its ends.
pub(crate) struct KeyedWorks {
    pub(crate) store: Arc<dyn IdempotencyStore>,
    table: Mutex<KeyTable>,
}

impl KeyEnd {
    async fn store(
        &self,
        store: &dyn IdempotencyStore,
        key: &IdempotencyKey,
    ) -> Result<(), StoreError> {
        match self {
            Self::Done(reply) => store.end_key(key, reply.clone()).await,
            Self::NotDone => store.release_key(key).await,
            Self::CutOff => store.cut_off_key(key).await,
        }
    }
}

impl UnsettledKey {
    pub(crate) fn new(
        key: IdempotencyKey,
        fingerprint: [u8; 32],
        begun_ms: u64,
        end: KeyEnd,
    ) -> Self {
        let (is_settled, repeated) = (tokio::sync::Mutex::new(false), Notify::new());
        Self { key, fingerprint, begun_ms, end, is_settled, repeated }
    }

    /// Whether the store forgets the key anyway.
    fn is_too_old(&self) -> bool {
        now_ms().saturating_sub(self.begun_ms) >= KEY_AGE_MS_MAX
    }

    /// Has the end stored without a further pause.
    pub(crate) fn hurry(&self) {
        self.repeated.notify_one();
    }
}

impl KeyedWorks {
    pub(crate) fn new(store: Arc<dyn IdempotencyStore>) -> Self {
        Self { store, table: Mutex::default() }
    }

    pub(crate) fn table(&self) -> MutexGuard<'_, KeyTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the end of a request and forgets it. If it cannot be stored now, it stays here until it
    /// can.
    pub(crate) async fn end(self: &Arc<Self>, ended: UnsettledKey) {
        let ended = Arc::new(ended);
        if self.settle(&ended).await.is_err() {
            let unsettled = KeyedWork::Unsettled(Arc::clone(&ended));
            self.table().insert(ended.key.clone(), unsettled);
            tokio::spawn(Arc::clone(self).keep_settling(ended));
        }
    }

    /// Stores the end of a request, unless that was done meanwhile, and forgets it.
    async fn settle(&self, unsettled: &UnsettledKey) -> Result<(), StoreError> {
        let mut is_settled = unsettled.is_settled.lock().await;
        if *is_settled {
            return Ok(());
        }
        if !unsettled.is_too_old() {
            unsettled.end.store(&*self.store, &unsettled.key).await?;
        }
        *is_settled = true;
        self.table().remove(&unsettled.key);
        Ok(())
    }

    async fn keep_settling(self: Arc<Self>, unsettled: Arc<UnsettledKey>) {
        let mut pause = RETRY_PAUSE_MIN;
        loop {
            // A repetition does not wait for the pause.
            let _ = timeout(pause, unsettled.repeated.notified()).await;
            if self.settle(&unsettled).await.is_ok() {
                return;
            }
            pause = (pause * 2).min(RETRY_PAUSE_MAX);
        }
    }

    /// Frees a key whose request did nothing, so that it can be made again. It is done to its end
    /// even if the client goes away.
    pub(crate) async fn free(
        self: &Arc<Self>,
        unsettled: Arc<UnsettledKey>,
    ) -> Result<(), Problem> {
        let works = Arc::clone(self);
        let settled = tokio::spawn(async move { works.settle(&unsettled).await });
        Ok(settled.await.map_err(|_| Problem::stopping())??)
    }
}

/// # Errors
///
/// The user, or all users together, have as many keys here as the store would keep.
pub(crate) fn check_room(table: &KeyTable, user: &str) -> Result<(), Problem> {
    let own = table.keys().filter(|key| key.user == user).count();
    if table.len() >= KEYS_MAX || own >= KEYS_OF_USER_MAX {
        return Err(Problem::too_many("too many requests with a key are running"));
    }
    Ok(())
}
