//! Requests that are repeated with the same key do their work once, also after a restart.
//!
//! The first one runs in a task of its own, so it ends even if its client goes away, and the client
//! gets the reply when it asks again with the same key. A key belongs to a user and to one request:
//! with another body it is refused. The store has the key before the work begins, and the reply once
//! it is done. Work that the program's end cut off may have had an effect: its key is answered with
//! that, and never done again.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::{
    body::Bytes,
    response::{IntoResponse, Response},
};
use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use http::{HeaderMap, StatusCode, header};
use sallyport_runtime::gate::now_ms;
use sallyport_store::{IdempotencyKey, IdempotencyStore, KeyState, KeyedReply, KnownKey};
use serde::Serialize;
use sha2::{Digest, Sha256};
use tracing::Instrument as _;

use crate::{
    problem::{Problem, ProblemKind},
    request_body::JSON_TYPE,
};

/// The header with the key.
pub(crate) const KEY_HEADER: &str = "idempotency-key";

/// Longest key.
const KEY_CHARS_MAX: usize = 255;

/// The result of the work of a request: its status, and its reply as JSON.
pub(crate) type WorkResult = Result<(StatusCode, Bytes), WorkFailure>;

/// Why there is no reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WorkFailure {
    /// Nothing was done, so the request can be made again.
    NotDone(Problem),
    /// The work was stopped, and may have had an effect.
    CutOff(Problem),
}

impl From<Problem> for WorkFailure {
    fn from(problem: Problem) -> Self {
        Self::NotDone(problem)
    }
}

impl From<WorkFailure> for Problem {
    fn from(failure: WorkFailure) -> Self {
        match failure {
            WorkFailure::NotDone(problem) | WorkFailure::CutOff(problem) => problem,
        }
    }
}

type SharedReply = Shared<BoxFuture<'static, Result<(StatusCode, Bytes), Problem>>>;

/// The keys of requests.
pub(crate) struct IdempotencyDesk {
    store: Arc<dyn IdempotencyStore>,
    /// The work of this program that has not ended, so that others with its key can wait for it.
    running: Arc<Mutex<HashMap<IdempotencyKey, RunningWork>>>,
}

struct RunningWork {
    fingerprint: [u8; 32],
    reply: SharedReply,
}

/// A request that may have a key.
pub(crate) struct KeyedRequest<'a> {
    pub(crate) user: &'a str,
    pub(crate) headers: &'a HeaderMap,
    /// The route with what the path names.
    pub(crate) target: String,
    /// The body.
    pub(crate) body: &'a [u8],
}

impl KeyedRequest<'_> {
    /// The key. `None` if there is none.
    fn key(&self) -> Result<Option<IdempotencyKey>, Problem> {
        let mut values = self.headers.get_all(KEY_HEADER).iter();
        let Some(value) = values.next() else { return Ok(None) };
        let key =
            value.to_str().ok().map(str::trim).filter(|key| {
                !key.is_empty() && key.len() <= KEY_CHARS_MAX && values.next().is_none()
            });
        let invalid = || {
            let title = "Idempotency-Key must be one text of 1 to 255 visible ASCII characters";
            Problem::bad_request(title)
        };
        let user = self.user.to_owned();
        key.map(|key| Some(IdempotencyKey { user, key: key.to_owned() })).ok_or_else(invalid)
    }

    fn fingerprint(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update((self.target.len() as u64).to_le_bytes());
        hash.update(self.target.as_bytes());
        hash.update(self.body);
        hash.finalize().into()
    }
}

impl IdempotencyDesk {
    pub(crate) fn new(store: Arc<dyn IdempotencyStore>) -> Self {
        Self { store, running: Arc::default() }
    }

    /// Does the work of a request, or returns the reply of an earlier one with the same key.
    ///
    /// `begin` makes the work, and fails if it cannot begin. Without a key the work ends with the
    /// client.
    pub(crate) async fn reply<W>(
        &self,
        request: KeyedRequest<'_>,
        begin: impl FnOnce() -> Result<W, Problem>,
    ) -> Response
    where
        W: Future<Output = WorkResult> + Send + 'static,
    {
        match self.try_reply(request, begin).await {
            Ok((status, body)) => json_response(status, body),
            Err(problem) => problem.into_response(),
        }
    }

    async fn try_reply<W>(
        &self,
        request: KeyedRequest<'_>,
        begin: impl FnOnce() -> Result<W, Problem>,
    ) -> Result<(StatusCode, Bytes), Problem>
    where
        W: Future<Output = WorkResult> + Send + 'static,
    {
        let Some(key) = request.key()? else { return Ok(begin()?.await?) };
        let fingerprint = request.fingerprint();
        if let Some(running) = self.running_reply(&key, &fingerprint) {
            return running?.await;
        }
        // A reply that is kept needs no place among the limits that work has.
        if let Some(known) = self.store.find_key(&key, now_ms()).await? {
            return self.reply_of_known(&key, &fingerprint, known).await;
        }
        self.begin_or_join(key, fingerprint, begin)?.await
    }

    /// The reply to a request whose key the store knew a moment ago. Meanwhile this program may have
    /// begun its work, or ended it.
    async fn reply_of_known(
        &self,
        key: &IdempotencyKey,
        fingerprint: &[u8; 32],
        known: KnownKey,
    ) -> Result<(StatusCode, Bytes), Problem> {
        if let Some(running) = self.running_reply(key, fingerprint) {
            return running?.await;
        }
        let newest = self.store.find_key(key, now_ms()).await?;
        known_reply(newest.unwrap_or(known), fingerprint)
    }

    /// The reply of work of this program with the same key, if it has not ended.
    fn running_reply(
        &self,
        key: &IdempotencyKey,
        fingerprint: &[u8; 32],
    ) -> Option<Result<SharedReply, Problem>> {
        lock(&self.running).get(key).map(|running| running.reply_for(fingerprint))
    }

    fn begin_or_join<W>(
        &self,
        key: IdempotencyKey,
        fingerprint: [u8; 32],
        begin: impl FnOnce() -> Result<W, Problem>,
    ) -> Result<SharedReply, Problem>
    where
        W: Future<Output = WorkResult> + Send + 'static,
    {
        let mut running = lock(&self.running);
        // It may have begun while the store was asked.
        if let Some(work) = running.get(&key) {
            return work.reply_for(&fingerprint);
        }
        let work = begin()?;
        let (store, desk) = (Arc::clone(&self.store), Arc::clone(&self.running));
        let done = key.clone();
        let work = async move {
            let result = do_once(&*store, &done, fingerprint, work).await;
            lock(&desk).remove(&done);
            result
        };
        let task = tokio::spawn(work.in_current_span());
        let reply = async move { task.await.unwrap_or_else(|_| Err(Problem::stopping())) };
        let reply = reply.boxed().shared();
        running.insert(key, RunningWork { fingerprint, reply: reply.clone() });
        Ok(reply)
    }
}

impl RunningWork {
    fn reply_for(&self, fingerprint: &[u8; 32]) -> Result<SharedReply, Problem> {
        check_fingerprint(&self.fingerprint, fingerprint).map(|()| self.reply.clone())
    }
}

/// Does work whose key is not known yet, and stores what came of it. Another program may have begun
/// it meanwhile.
async fn do_once(
    store: &dyn IdempotencyStore,
    key: &IdempotencyKey,
    fingerprint: [u8; 32],
    work: impl Future<Output = WorkResult>,
) -> Result<(StatusCode, Bytes), Problem> {
    if let Some(known) = store.begin_key(key, fingerprint, now_ms()).await? {
        return known_reply(known, &fingerprint);
    }
    let result = work.await;
    // What cannot be stored stays "begun", and is never done again: the client has its reply now.
    let _ = match &result {
        Ok((status, body)) => {
            let reply = KeyedReply { status: status.as_u16(), body: Some(body.to_vec()) };
            store.end_key(key, reply).await
        }
        Err(WorkFailure::NotDone(_)) => store.release_key(key).await,
        Err(WorkFailure::CutOff(_)) => store.cut_off_key(key).await,
    };
    Ok(result?)
}

/// The reply to a request whose key the store knows.
fn known_reply(known: KnownKey, fingerprint: &[u8; 32]) -> Result<(StatusCode, Bytes), Problem> {
    check_fingerprint(&known.fingerprint, fingerprint)?;
    match known.state {
        KeyState::Done(KeyedReply { status, body: Some(body) }) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
            Ok((status, body.into()))
        }
        KeyState::Done(KeyedReply { body: None, .. }) => {
            let title = "the request was done, and its reply was too long to keep";
            Err(Problem::new(ProblemKind::ReplyForgotten, title))
        }
        KeyState::Running => {
            let title = "another process of the service works on the request";
            let problem = Problem::new(ProblemKind::RequestRunning, title);
            Err(problem.with_detail("ask again with the same key in a moment"))
        }
        KeyState::CutOff => {
            let title = "the service ended while it worked on the request, and does not repeat it";
            let problem = Problem::new(ProblemKind::OutcomeUnknown, title);
            Err(problem.with_detail("look at what it did, in the audit; a new key makes it again"))
        }
    }
}

fn check_fingerprint(known: &[u8; 32], fingerprint: &[u8; 32]) -> Result<(), Problem> {
    if known == fingerprint {
        return Ok(());
    }
    let title = "the key was used for another request; choose a new one for each";
    Err(Problem::new(ProblemKind::KeyReused, title))
}

/// Returns the reply of work that was done.
pub(crate) fn work_reply<T: Serialize>(status: StatusCode, value: &T) -> WorkResult {
    let body = serde_json::to_vec(value);
    let body = body.map_err(|_| Problem::new(ProblemKind::Internal, "the reply is not JSON"))?;
    Ok((status, body.into()))
}

fn json_response(status: StatusCode, body: Bytes) -> Response {
    (status, [(header::CONTENT_TYPE, JSON_TYPE)], body).into_response()
}

fn lock(
    running: &Mutex<HashMap<IdempotencyKey, RunningWork>>,
) -> MutexGuard<'_, HashMap<IdempotencyKey, RunningWork>> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http::HeaderValue;
    use sallyport_store::{HostStore, idempotency::REPLY_BYTES_MAX};
    use tempfile::TempDir;

    use super::*;

    /// The user, the key and the body of a request.
    type Asked<'r> = (&'r str, Option<&'r str>, &'r str);

    /// A desk over a store in a folder, as each start of the program makes one.
    fn desk(folder: &TempDir) -> IdempotencyDesk {
        let store = HostStore::open(&folder.path().join("store")).unwrap();
        IdempotencyDesk::new(store.idempotency)
    }

    /// Makes a request, and returns the status.
    async fn ask(
        desk: &IdempotencyDesk,
        done: &Arc<AtomicUsize>,
        (user, key, body): Asked<'_>,
        result: WorkResult,
    ) -> u16 {
        let mut headers = HeaderMap::new();
        if let Some(key) = key {
            headers.insert(KEY_HEADER, HeaderValue::from_str(key).unwrap());
        }
        let target = "call clock.get_time".to_owned();
        let request = KeyedRequest { user, headers: &headers, target, body: body.as_bytes() };
        let done = Arc::clone(done);
        let begin = || {
            Ok(async move {
                done.fetch_add(1, Ordering::Relaxed);
                result
            })
        };
        desk.reply(request, begin).await.status().as_u16()
    }

    fn reply_of(bytes: usize) -> WorkResult {
        Ok((StatusCode::CREATED, Bytes::from(vec![b'1'; bytes])))
    }

    /// Every row is the first or a later request of its key, at a desk of its own: a restart lies
    /// between any two.
    #[tokio::test]
    async fn a_request_with_a_key_does_its_work_once_whatever_restarts() {
        let busy = || Err(WorkFailure::NotDone(Problem::too_many("busy")));
        let cut_off = || Err(WorkFailure::CutOff(Problem::stopping()));
        let long = || reply_of(REPLY_BYTES_MAX + 1);
        let rows: [(Asked<'_>, WorkResult, u16, usize); 14] = [
            (("ann", None, "1"), reply_of(1), 201, 1),
            (("ann", None, "1"), reply_of(1), 201, 2),
            (("ann", Some("k"), "1"), reply_of(1), 201, 3),
            (("ann", Some("k"), "1"), reply_of(1), 201, 3),
            (("ann", Some("k"), "2"), reply_of(1), 422, 3),
            (("ben", Some("k"), "2"), reply_of(1), 201, 4),
            (("ann", Some("long"), "1"), long(), 201, 5),
            (("ann", Some("long"), "1"), reply_of(1), 409, 5),
            (("ann", Some("busy"), "1"), busy(), 429, 6),
            (("ann", Some("busy"), "1"), reply_of(1), 201, 7),
            (("ann", Some("cut"), "1"), cut_off(), 503, 8),
            (("ann", Some("cut"), "1"), reply_of(1), 409, 8),
            (("ann", Some(""), "1"), reply_of(1), 400, 8),
            (("ann", Some(&"k".repeat(256)), "1"), reply_of(1), 400, 8),
        ];
        let folder = TempDir::new().unwrap();
        let (lasting, done) = (desk(&folder), Arc::<AtomicUsize>::default());
        for (index, (request, result, status, times)) in rows.into_iter().enumerate() {
            let fresh = desk(&folder);
            let desk = if index % 2 == 0 { &fresh } else { &lasting };
            assert_eq!(ask(desk, &done, request, result).await, status, "row {index}");
            assert_eq!(done.load(Ordering::Relaxed), times, "row {index}");
        }
    }

    #[tokio::test]
    async fn those_who_ask_meanwhile_wait_for_the_same_work() {
        let folder = TempDir::new().unwrap();
        let (desk, done) = (desk(&folder), Arc::<AtomicUsize>::default());
        for round in 1..=20 {
            let key = format!("k{round}");
            let asks = (0..8).map(|_| ask(&desk, &done, ("ann", Some(&key), ""), reply_of(1)));
            let statuses = futures::future::join_all(asks).await;
            assert_eq!(statuses, [201; 8], "round {round}");
            assert_eq!(done.load(Ordering::Relaxed), round, "done once");
        }
        assert!(lock(&desk.running).is_empty());
    }
}
