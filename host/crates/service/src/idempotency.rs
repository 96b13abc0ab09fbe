//! Requests that are repeated with the same key do their work once, also after a restart.
//!
//! The first one runs in a task of its own, so it ends even if its client goes away, and the client
//! gets the reply when it asks again with the same key. A key belongs to a user and to one request:
//! with another body it is refused. The store has the key before the work begins, and the reply once
//! it is done; an end that cannot be stored at once is kept in memory until it can (`keyed_work`). Work
//! that the program's end cut off may have had an effect: its key is answered with that, and never done
//! again.

use std::{
    future::{self, Future},
    panic::AssertUnwindSafe,
    sync::Arc,
};

use axum::{
    body::Bytes,
    response::{IntoResponse, Response},
};
use futures::FutureExt;
use http::{HeaderMap, StatusCode, header};
use sallyport_runtime::clock::now_ms;
use sallyport_store::{IdempotencyKey, IdempotencyStore, KeyState, KeyedReply, KnownKey};
use serde::Serialize;
use sha2::{Digest, Sha256};
use tracing::Instrument as _;

use crate::{
    keyed_work::{KeyEnd, KeyedWork, KeyedWorks, SharedReply, UnsettledKey, check_room},
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

/// The keys of requests.
pub(crate) struct IdempotencyDesk {
    works: Arc<KeyedWorks>,
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
        Self { works: Arc::new(KeyedWorks::new(store)) }
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
        // A reply that is kept needs no place among the limits that work has. The second look is for
        // work that ended between the look into the memory and the one into the store.
        for _ in 0..2 {
            if let Some(reply) = self.reply_from_memory(&key, &fingerprint).await {
                return reply;
            }
            match self.works.store.find_key(&key, now_ms()).await? {
                None => break,
                Some(known) if known.state == KeyState::BegunHere => {}
                Some(known) => return known_reply(known, &fingerprint),
            }
        }
        self.begin_or_join(key, fingerprint, begin)?.await
    }

    /// The reply of work of this process with the same key that has not ended, or whose end the store
    /// does not have. `None` if there is none, or if it did nothing and its key is free now.
    async fn reply_from_memory(
        &self,
        key: &IdempotencyKey,
        fingerprint: &[u8; 32],
    ) -> Option<Result<(StatusCode, Bytes), Problem>> {
        let work = self.works.table().get(key).cloned()?;
        if let KeyedWork::Unsettled(unsettled) = &work
            && unsettled.end == KeyEnd::NotDone
        {
            let freed = self.works.free(Arc::clone(unsettled)).await;
            return freed.err().map(Err);
        }
        Some(match joined_reply(&work, fingerprint) {
            Ok(reply) => reply.await,
            Err(problem) => Err(problem),
        })
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
        let mut table = self.works.table();
        // It may have begun while the store was asked.
        if let Some(work) = table.get(&key) {
            return joined_reply(work, &fingerprint);
        }
        check_room(&table, &key.user)?;
        let work = do_once(Arc::clone(&self.works), key.clone(), fingerprint, begin()?);
        let task = tokio::spawn(work.in_current_span());
        let reply = async move { task.await.unwrap_or_else(|_| Err(Problem::stopping())) };
        let reply = reply.boxed().shared();
        table.insert(key, KeyedWork::Running { fingerprint, reply: reply.clone() });
        Ok(reply)
    }
}

/// The reply of work that this process knows, for a further request with its key.
fn joined_reply(work: &KeyedWork, fingerprint: &[u8; 32]) -> Result<SharedReply, Problem> {
    let unsettled = match work {
        KeyedWork::Running { fingerprint: known, reply } => {
            return check_fingerprint(known, fingerprint).map(|()| reply.clone());
        }
        KeyedWork::Unsettled(unsettled) => unsettled,
    };
    unsettled.hurry();
    let state = match &unsettled.end {
        KeyEnd::Done(reply) => KeyState::Done(reply.clone()),
        KeyEnd::CutOff => KeyState::CutOff,
        // The store could not free the key a moment ago.
        KeyEnd::NotDone => return Err(Problem::store_unavailable()),
    };
    let known = KnownKey { fingerprint: unsettled.fingerprint, state };
    Ok(future::ready(known_reply(known, fingerprint)).boxed().shared())
}

/// Does work whose key is not known yet, and stores what came of it. Another program may have begun
/// it meanwhile.
async fn do_once(
    works: Arc<KeyedWorks>,
    key: IdempotencyKey,
    fingerprint: [u8; 32],
    work: impl Future<Output = WorkResult>,
) -> Result<(StatusCode, Bytes), Problem> {
    let begun_ms = now_ms();
    let ended = |fingerprint, end| UnsettledKey::new(key.clone(), fingerprint, begun_ms, end);
    let (reply, ended) = match works.store.begin_key(&key, fingerprint, begun_ms).await {
        Ok(None) => {
            let result = AssertUnwindSafe(work).catch_unwind().await;
            let result = result.unwrap_or_else(|_| Err(WorkFailure::CutOff(Problem::broken())));
            let end = key_end(&result);
            (result.map_err(Problem::from), Some(ended(fingerprint, end)))
        }
        // This process works on no request with the key, because this one has its place in the table.
        Ok(Some(known)) if known.state == KeyState::BegunHere => {
            let orphan = ended(known.fingerprint, KeyEnd::CutOff);
            (known_reply(known, &fingerprint), Some(orphan))
        }
        Ok(Some(known)) => (known_reply(known, &fingerprint), None),
        Err(error) => {
            let end = error.may_have_written().then(|| ended(fingerprint, KeyEnd::NotDone));
            (Err(error.into()), end)
        }
    };
    match ended {
        Some(ended) => works.end(ended).await,
        None => drop(works.table().remove(&key)),
    }
    reply
}

fn key_end(result: &WorkResult) -> KeyEnd {
    match result {
        Ok((status, body)) => {
            let reply = KeyedReply { status: status.as_u16(), body: Some(body.to_vec()) };
            KeyEnd::Done(reply.bounded())
        }
        Err(WorkFailure::NotDone(_)) => KeyEnd::NotDone,
        Err(WorkFailure::CutOff(_)) => KeyEnd::CutOff,
    }
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
        KeyState::CutOff | KeyState::BegunHere => {
            let title = "the work on the request was cut off, and is not repeated";
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

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicBool, AtomicUsize, Ordering},
        time::Duration,
    };

    use http::HeaderValue;
    use sallyport_contract::async_trait;
    use sallyport_store::{
        HostStore, StoreError,
        idempotency::{KEYS_MAX, KEYS_OF_USER_MAX, REPLY_BYTES_MAX},
    };
    use tempfile::TempDir;

    use super::*;
    use crate::keyed_work::KeyTable;

    /// The user, the key and the body of a request.
    type Asked<'r> = (&'r str, Option<&'r str>, &'r str);

    /// A desk over a store in a folder, as each start of the program makes one.
    fn desk(folder: &TempDir) -> IdempotencyDesk {
        let store = HostStore::open(&folder.path().join("store")).unwrap();
        IdempotencyDesk::new(store.idempotency)
    }

    /// A store whose database goes away.
    struct FailingStore {
        inner: Arc<dyn IdempotencyStore>,
        /// Whether the ends of requests are not written.
        loses_ends: AtomicBool,
        /// Whether a begin is written, and reported as one that may not be.
        doubts_begins: AtomicBool,
    }

    impl FailingStore {
        fn new(folder: &TempDir) -> Arc<Self> {
            let inner = HostStore::open(&folder.path().join("store")).unwrap().idempotency;
            let (loses_ends, doubts_begins) = (AtomicBool::new(true), AtomicBool::new(false));
            Arc::new(Self { inner, loses_ends, doubts_begins })
        }

        fn check_ends(&self) -> Result<(), StoreError> {
            match self.loses_ends.load(Ordering::SeqCst) {
                true => Err(StoreError::OutcomeUnknown { database: "a test".to_owned() }),
                false => Ok(()),
            }
        }
    }

    #[async_trait]
    impl IdempotencyStore for FailingStore {
        async fn begin_key(
            &self,
            key: &IdempotencyKey,
            fingerprint: [u8; 32],
            now_ms: u64,
        ) -> Result<Option<KnownKey>, StoreError> {
            let begun = self.inner.begin_key(key, fingerprint, now_ms).await?;
            match self.doubts_begins.load(Ordering::SeqCst) {
                true => Err(StoreError::OutcomeUnknown { database: "a test".to_owned() }),
                false => Ok(begun),
            }
        }

        async fn find_key(
            &self,
            key: &IdempotencyKey,
            now_ms: u64,
        ) -> Result<Option<KnownKey>, StoreError> {
            self.inner.find_key(key, now_ms).await
        }

        async fn end_key(&self, key: &IdempotencyKey, reply: KeyedReply) -> Result<(), StoreError> {
            self.check_ends()?;
            self.inner.end_key(key, reply).await
        }

        async fn release_key(&self, key: &IdempotencyKey) -> Result<(), StoreError> {
            self.check_ends()?;
            self.inner.release_key(key).await
        }

        async fn cut_off_key(&self, key: &IdempotencyKey) -> Result<(), StoreError> {
            self.check_ends()?;
            self.inner.cut_off_key(key).await
        }
    }

    /// Makes a request, and returns the status.
    async fn ask(
        desk: &IdempotencyDesk,
        done: &Arc<AtomicUsize>,
        asked: Asked<'_>,
        result: WorkResult,
    ) -> u16 {
        let reply = try_ask(desk, done, asked, result).await;
        reply.map_or_else(|problem| problem.into_response().status().as_u16(), |(s, _)| s.as_u16())
    }

    /// Makes a request, and returns what it gets.
    async fn try_ask(
        desk: &IdempotencyDesk,
        done: &Arc<AtomicUsize>,
        (user, key, body): Asked<'_>,
        result: WorkResult,
    ) -> Result<(StatusCode, Bytes), Problem> {
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
        desk.try_reply(request, begin).await
    }

    /// Waits until the store has the end of every request.
    async fn wait_until_settled(desk: &IdempotencyDesk) {
        let settled = async {
            while !desk.works.table().is_empty() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), settled).await.unwrap();
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
        assert!(desk.works.table().is_empty());
    }

    #[tokio::test]
    async fn a_reply_that_cannot_be_stored_is_given_again_and_stored_later() {
        let folder = TempDir::new().unwrap();
        let (store, done) = (FailingStore::new(&folder), Arc::<AtomicUsize>::default());
        let failing = IdempotencyDesk::new(Arc::clone(&store) as _);
        let repeat = || ask(&failing, &done, ("ann", Some("k"), "1"), reply_of(9));
        for _ in 0..3 {
            assert_eq!(repeat().await, 201);
        }
        assert_eq!(ask(&failing, &done, ("ann", Some("k"), "2"), reply_of(1)).await, 422);
        store.loses_ends.store(false, Ordering::SeqCst);
        wait_until_settled(&failing).await;
        let fresh = desk(&folder);
        for desk in [&fresh, &failing] {
            let again = try_ask(desk, &done, ("ann", Some("k"), "1"), reply_of(1)).await;
            assert_eq!(again, reply_of(9).map_err(Problem::from));
        }
        assert_eq!(done.load(Ordering::Relaxed), 1, "done once");
    }

    #[tokio::test]
    async fn a_request_that_did_nothing_is_made_again_although_its_key_was_not_released_at_once() {
        let folder = TempDir::new().unwrap();
        let (store, done) = (FailingStore::new(&folder), Arc::<AtomicUsize>::default());
        let failing = IdempotencyDesk::new(Arc::clone(&store) as _);
        let busy = Err(WorkFailure::NotDone(Problem::too_many("busy")));
        assert_eq!(ask(&failing, &done, ("ann", Some("k"), "1"), busy).await, 429);
        let refused = try_ask(&failing, &done, ("ann", Some("k"), "1"), reply_of(1)).await;
        assert_eq!(refused, Err(Problem::store_unavailable()), "as a first request");
        store.loses_ends.store(false, Ordering::SeqCst);
        assert_eq!(ask(&failing, &done, ("ann", Some("k"), "2"), reply_of(1)).await, 201);
        assert_eq!(done.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn a_key_whose_begin_may_have_been_stored_is_free_again() {
        let folder = TempDir::new().unwrap();
        let (store, done) = (FailingStore::new(&folder), Arc::<AtomicUsize>::default());
        let failing = IdempotencyDesk::new(Arc::clone(&store) as _);
        store.doubts_begins.store(true, Ordering::SeqCst);
        assert_eq!(ask(&failing, &done, ("ann", Some("k"), "1"), reply_of(1)).await, 503);
        store.doubts_begins.store(false, Ordering::SeqCst);
        store.loses_ends.store(false, Ordering::SeqCst);
        assert_eq!(ask(&failing, &done, ("ann", Some("k"), "1"), reply_of(1)).await, 201);
        assert_eq!(done.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn a_key_of_this_process_that_nothing_works_on_is_cut_off_and_not_running() {
        let folder = TempDir::new().unwrap();
        let (store, done) = (FailingStore::new(&folder), Arc::<AtomicUsize>::default());
        store.loses_ends.store(false, Ordering::SeqCst);
        let one = IdempotencyDesk::new(Arc::clone(&store) as _);
        let orphan = IdempotencyKey { user: "ann".to_owned(), key: "k".to_owned() };
        let headers = HeaderMap::new();
        let target = "call clock.get_time".to_owned();
        let request = KeyedRequest { user: "ann", headers: &headers, target, body: b"1" };
        store.begin_key(&orphan, request.fingerprint(), now_ms()).await.unwrap();
        let problem = try_ask(&one, &done, ("ann", Some("k"), "1"), reply_of(1)).await.unwrap_err();
        assert_eq!(problem.kind, ProblemKind::OutcomeUnknown);
        assert_eq!(ask(&one, &done, ("ann", Some("k"), "2"), reply_of(1)).await, 422);
        assert_eq!(done.load(Ordering::Relaxed), 0);
        let known = store.find_key(&orphan, now_ms()).await.unwrap().unwrap();
        assert_eq!(known.state, KeyState::CutOff, "other services do not wait for it either");
    }

    #[tokio::test]
    async fn work_that_panics_is_cut_off_and_does_not_run_for_ever() {
        let folder = TempDir::new().unwrap();
        let desk = desk(&folder);
        let mut headers = HeaderMap::new();
        headers.insert(KEY_HEADER, HeaderValue::from_static("k"));
        let mut kinds = Vec::new();
        for _ in 0..2 {
            let target = "call clock.get_time".to_owned();
            let request = KeyedRequest { user: "ann", headers: &headers, target, body: b"" };
            let begin = || Ok(async { panic!("a bug") });
            kinds.push(desk.try_reply(request, begin).await.unwrap_err().kind);
        }
        assert_eq!(kinds, [ProblemKind::Internal, ProblemKind::OutcomeUnknown]);
    }

    #[test]
    fn ends_that_cannot_be_stored_are_bounded_for_each_user_and_for_all() {
        let mut table = KeyTable::new();
        let mut fill = |user: &str, count: usize| {
            for number in 0..count {
                let key = IdempotencyKey { user: user.to_owned(), key: number.to_string() };
                let unsettled = UnsettledKey::new(key.clone(), [0; 32], 0, KeyEnd::NotDone);
                table.insert(key, KeyedWork::Unsettled(Arc::new(unsettled)));
            }
            (check_room(&table, user).is_ok(), check_room(&table, "eve").is_ok())
        };
        assert_eq!(fill("ann", KEYS_OF_USER_MAX - 1), (true, true));
        assert_eq!(fill("ann", KEYS_OF_USER_MAX), (false, true));
        for number in 2..KEYS_MAX / KEYS_OF_USER_MAX {
            assert_eq!(fill(&number.to_string(), KEYS_OF_USER_MAX), (false, true));
        }
        assert_eq!(fill("zoe", KEYS_OF_USER_MAX), (false, false));
    }
}
