//! Requests that are repeated with the same key do their work once.
//!
//! The first one runs in a task of its own, so it ends even if its client goes away, and the client
//! gets the reply when it asks again with the same key. A key belongs to a user and to one request:
//! with another body it is refused. Keys are kept for a day, in memory.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
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

/// How long a key is kept.
const KEY_TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Most keys of all users. Each takes a few hundred bytes, and its reply.
const KEYS_MAX: usize = 4096;

/// Most keys of one user, so that one cannot push out those of the others.
const KEYS_OF_USER_MAX: usize = 512;

/// Longest reply that is kept.
const REPLY_BYTES_MAX: usize = 16 << 10;

/// The result of the work of a request: its status, and its reply as JSON. After a problem nothing
/// was done.
pub(crate) type WorkResult = Result<(StatusCode, Bytes), Problem>;

type SharedReply = Shared<BoxFuture<'static, WorkResult>>;

/// The keys of a day.
#[derive(Default)]
pub(crate) struct IdempotencyDesk {
    keys: Arc<Mutex<KnownKeys>>,
}

#[derive(Default)]
struct KnownKeys(HashMap<KeyName, KnownKey>);

/// A user and a key.
type KeyName = (String, String);

struct KnownKey {
    fingerprint: [u8; 32],
    since: Instant,
    /// `None` if the reply is too long to keep.
    reply: Option<SharedReply>,
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
    fn key(&self) -> Result<Option<String>, Problem> {
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
        key.map(|key| Some(key.to_owned())).ok_or_else(invalid)
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
            Ok(response) => response,
            Err(problem) => problem.into_response(),
        }
    }

    async fn try_reply<W>(
        &self,
        request: KeyedRequest<'_>,
        begin: impl FnOnce() -> Result<W, Problem>,
    ) -> Result<Response, Problem>
    where
        W: Future<Output = WorkResult> + Send + 'static,
    {
        let Some(key) = request.key()? else {
            let (status, body) = begin()?.await?;
            return Ok(json_response(status, body));
        };
        let name = (request.user.to_owned(), key);
        let reply = self.begin_or_join(name, request.fingerprint(), begin)?;
        let (status, body) = reply.await?;
        Ok(json_response(status, body))
    }

    fn begin_or_join<W>(
        &self,
        name: KeyName,
        fingerprint: [u8; 32],
        begin: impl FnOnce() -> Result<W, Problem>,
    ) -> Result<SharedReply, Problem>
    where
        W: Future<Output = WorkResult> + Send + 'static,
    {
        let mut keys = lock(&self.keys);
        if let Some(known) = keys.0.get(&name) {
            return known.reply_for(&fingerprint);
        }
        keys.make_room(&name.0)?;
        let work = begin()?;
        let (desk, done) = (Arc::clone(&self.keys), name.clone());
        let work = async move {
            let result = work.await;
            lock(&desk).end_work(&done, &result);
            result
        };
        let task = tokio::spawn(work.in_current_span());
        let reply = async move { task.await.unwrap_or_else(|_| Err(Problem::stopping())) };
        let reply = reply.boxed().shared();
        let known = KnownKey { fingerprint, since: Instant::now(), reply: Some(reply.clone()) };
        keys.0.insert(name, known);
        Ok(reply)
    }
}

impl KnownKey {
    fn reply_for(&self, fingerprint: &[u8; 32]) -> Result<SharedReply, Problem> {
        if self.fingerprint != *fingerprint {
            let title = "the key was used for another request; choose a new one for each";
            return Err(Problem::new(ProblemKind::KeyReused, title));
        }
        self.reply.clone().ok_or_else(|| {
            let title = "the request was done, and its reply was too long to keep";
            Problem::new(ProblemKind::ReplyForgotten, title)
        })
    }

    fn has_ended(&self) -> bool {
        self.reply.as_ref().is_none_or(|reply| reply.peek().is_some())
    }
}

impl KnownKeys {
    /// Notes the end of some work. Those who wait for it have the reply in any case.
    fn end_work(&mut self, name: &KeyName, result: &WorkResult) {
        match (result, self.0.get_mut(name)) {
            // Nothing was done, so the request can be made again.
            (Err(_), _) => drop(self.0.remove(name)),
            (Ok((_, body)), Some(key)) if body.len() > REPLY_BYTES_MAX => key.reply = None,
            _ => {}
        }
    }

    /// Forgets what is old, and then the oldest that has ended, if there are too many.
    fn make_room(&mut self, user: &str) -> Result<(), Problem> {
        self.0.retain(|_, key| key.since.elapsed() < KEY_TIME_MAX);
        let own = self.0.keys().filter(|(owner, _)| owner == user).count();
        if own < KEYS_OF_USER_MAX && self.0.len() < KEYS_MAX {
            return Ok(());
        }
        let is_candidate = |name: &KeyName| own < KEYS_OF_USER_MAX || name.0 == user;
        let ended = self.0.iter().filter(|(name, key)| is_candidate(name) && key.has_ended());
        let oldest = ended.min_by_key(|(_, key)| key.since).map(|(name, _)| name.clone());
        let oldest =
            oldest.ok_or_else(|| Problem::too_many("too many requests with a key are running"))?;
        self.0.remove(&oldest);
        Ok(())
    }
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

fn lock(keys: &Mutex<KnownKeys>) -> MutexGuard<'_, KnownKeys> {
    keys.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http::HeaderValue;

    use super::*;

    /// Makes a request whose reply has `bytes` bytes, and returns the status.
    async fn ask(
        desk: &IdempotencyDesk,
        done: &Arc<AtomicUsize>,
        (user, key, body): (&str, Option<&str>, &str),
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
        Ok((StatusCode::OK, Bytes::from(vec![b'1'; bytes])))
    }

    #[tokio::test]
    async fn a_request_with_a_key_does_its_work_once() {
        let (desk, done) = (IdempotencyDesk::default(), Arc::<AtomicUsize>::default());
        let busy = || Err(Problem::too_many("busy"));
        let rows = [
            (("ann", None, "1"), reply_of(1), 200, 1),
            (("ann", None, "1"), reply_of(1), 200, 2),
            (("ann", Some("k"), "1"), reply_of(1), 200, 3),
            (("ann", Some("k"), "1"), reply_of(1), 200, 3),
            (("ann", Some("k"), "2"), reply_of(1), 422, 3),
            (("ben", Some("k"), "2"), reply_of(1), 200, 4),
            (("ann", Some("long"), "1"), reply_of(REPLY_BYTES_MAX + 1), 200, 5),
            (("ann", Some("long"), "1"), reply_of(1), 409, 5),
            (("ann", Some("busy"), "1"), busy(), 429, 6),
            (("ann", Some("busy"), "1"), reply_of(1), 200, 7),
            (("ann", Some(""), "1"), reply_of(1), 400, 7),
            (("ann", Some(&"k".repeat(256)), "1"), reply_of(1), 400, 7),
        ];
        for (index, (request, result, status, times)) in rows.into_iter().enumerate() {
            assert_eq!(ask(&desk, &done, request, result).await, status, "row {index}");
            assert_eq!(done.load(Ordering::Relaxed), times, "row {index}");
        }
    }

    #[tokio::test]
    async fn the_number_of_keys_is_bounded() {
        let (desk, done) = (IdempotencyDesk::default(), Arc::<AtomicUsize>::default());
        for number in 0..KEYS_OF_USER_MAX + 10 {
            let key = number.to_string();
            assert_eq!(ask(&desk, &done, ("ann", Some(&key), ""), reply_of(1)).await, 200);
        }
        assert_eq!(lock(&desk.keys).0.len(), KEYS_OF_USER_MAX);
        let newest = (KEYS_OF_USER_MAX + 9).to_string();
        let times = done.load(Ordering::Relaxed);
        assert_eq!(ask(&desk, &done, ("ann", Some(&newest), ""), reply_of(1)).await, 200);
        assert_eq!(done.load(Ordering::Relaxed), times, "the newest are kept");
    }
}
