//! Memory by meaning: finds stored texts by their embeddings, or by their words.
//!
//! An embedding model is called for two purposes: to embed an input, and to embed memories that
//! have no vector yet, a few with every turn. If no model is configured, or it does not answer, the
//! words of the texts are searched, and the user is notified once.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering},
    },
    time::Duration,
};

use sallyport_contract::BoxFuture;
use sallyport_model::{Embedder, ModelError};
use sallyport_session::{
    RecallError, RecallQuery, RecalledMemory, SessionMemory, history::PastTurn,
};
use sallyport_store::{
    HostStore, StoreError,
    memories::{
        EmbeddingVector, MemoryCriterion, MemoryMatch, MemoryQuery, MemorySelection, NewMemory,
        StoredMemory, StoredMemoryKind, VisibleTurns,
    },
};
use tokio::time::timeout;

use crate::{clock::now_ms, gate::MessageSink};

/// Maximum wait for embeddings before an answer. The session's remaining time is for the search.
const EMBEDDING_TIME_MAX: Duration = Duration::from_secs(2);

/// Maximum number of memories that are embedded in one request, together with the input.
const BACKLOG_MAX: usize = 32;

/// Maximum length of a text that is embedded, in bytes. Most embedding models accept this much. A
/// longer text would make the model refuse the whole request.
const TEXT_BYTES_MAX: usize = 8 * 1024;

/// Maximum length in bytes for a model that refused a longer text. The smallest models read a few
/// hundred words.
const SHORT_TEXT_BYTES_MAX: usize = 1024;

/// The number of requests to skip after the model did not answer, two for each turn, so that the
/// user does not wait at every input.
const SKIPPED_REQUESTS: u32 = 8;

/// Maximum number of memories that are found for one input. The session takes as many as fit.
const MATCHES_MAX: usize = 64;

/// Minimum cosine similarity of a memory that is recalled by its vector. Common models rate
/// unrelated texts below it. Initial memories have no minimum, since the user chose them.
const SIMILARITY_MIN: f64 = 0.3;

/// The memories of one user, across sessions.
pub struct UserMemories {
    store: HostStore,
    user: String,
    embedder: Option<Arc<dyn Embedder>>,
    message_sink: MessageSink,
    has_warned: AtomicBool,
    /// The number of requests that are still skipped.
    skipped_requests: AtomicU32,
    /// Maximum length of a text for this model, in bytes, as far as it is known.
    text_bytes_max: AtomicUsize,
    /// The dimensions of the last vector; 0 before the first.
    dimensions: AtomicUsize,
}

/// The memories of one user, as one session recalls them.
struct SessionRecall {
    memories: Arc<UserMemories>,
    session_id: String,
    /// Whether the session is stored.
    is_stored: bool,
    /// The initial memories that are already stored.
    initial_memories: Mutex<Vec<String>>,
}

impl UserMemories {
    /// Creates the memories of a user in `store`. Reports through `tell` when they are searched by
    /// words only.
    pub fn new(
        store: HostStore,
        user: &str,
        embedder: Option<Arc<dyn Embedder>>,
        message_sink: MessageSink,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            user: user.to_owned(),
            embedder,
            message_sink,
            has_warned: AtomicBool::new(false),
            skipped_requests: AtomicU32::new(0),
            text_bytes_max: AtomicUsize::new(TEXT_BYTES_MAX),
            dimensions: AtomicUsize::new(0),
        })
    }

    /// Returns the recall of one session. If `is_kept` is false, nothing is stored.
    pub fn recall_for_session(
        self: &Arc<Self>,
        session_id: &str,
        is_stored: bool,
    ) -> Arc<dyn SessionMemory> {
        Arc::new(SessionRecall {
            memories: Arc::clone(self),
            session_id: session_id.to_owned(),
            is_stored,
            initial_memories: Mutex::default(),
        })
    }

    fn warn_once(&self, why: &str) {
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            (self.message_sink)(&format!("memories are found by words only: {why}"));
        }
    }

    /// Embeds texts. Returns `None` if the model is missing, is paused, or does not answer.
    async fn embed_texts(&self, texts: &[&str]) -> Option<Vec<Vec<f32>>> {
        let Some(embedder) = &self.embedder else {
            self.warn_once("no embedding model is configured");
            return None;
        };
        if self.take_skipped_request() {
            return None;
        }
        let why = match timeout(EMBEDDING_TIME_MAX, self.embed_with_retry(&**embedder, texts)).await
        {
            Ok(Ok(vectors)) => {
                let dimensions = vectors.last().map_or(0, Vec::len);
                self.dimensions.store(dimensions, Ordering::Relaxed);
                return Some(vectors);
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("{} returned no embedding in time", embedder.name()),
        };
        self.skipped_requests.store(SKIPPED_REQUESTS, Ordering::Relaxed);
        self.warn_once(&why);
        None
    }

    /// Embeds texts. If the model refuses them, retries once with shorter texts, because one text
    /// that is too long would block all others.
    async fn embed_with_retry(
        &self,
        embedder: &dyn Embedder,
        texts: &[&str],
    ) -> Result<Vec<Vec<f32>>, ModelError> {
        let bytes_max = self.text_bytes_max.load(Ordering::Relaxed);
        let answer = embedder.embed(&truncate_texts(texts, bytes_max)).await;
        let is_long = |text: &&str| text.len() > SHORT_TEXT_BYTES_MAX;
        let may_be_shorter = bytes_max > SHORT_TEXT_BYTES_MAX && texts.iter().any(is_long);
        if !may_be_shorter
            || !matches!(answer, Err(ModelError::Refused { .. } | ModelError::TooLong { .. }))
        {
            return answer;
        }
        let answer = embedder.embed(&truncate_texts(texts, SHORT_TEXT_BYTES_MAX)).await;
        if answer.is_ok() {
            self.text_bytes_max.store(SHORT_TEXT_BYTES_MAX, Ordering::Relaxed);
        }
        answer
    }

    /// Counts down one skipped request. Returns whether there was one.
    fn take_skipped_request(&self) -> bool {
        let fewer = |left: u32| left.checked_sub(1);
        self.skipped_requests.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer).is_ok()
    }

    /// Embeds a text, and some of the memories that have no vector yet. If the text is empty,
    /// embeds only the memories. Returns `None` for a vector of zeros.
    async fn embed_with_backlog(&self, text: &str) -> Result<Option<Vec<f32>>, RecallError> {
        let unembedded = self.memories_without_vector().await?;
        let mut texts: Vec<&str> = unembedded.iter().map(|memory| memory.text.as_str()).collect();
        if !text.trim().is_empty() {
            texts.push(text);
        }
        if texts.is_empty() {
            return Ok(None);
        }
        let Some(mut vectors) = self.embed_texts(&texts).await else { return Ok(None) };
        let own = if vectors.len() > unembedded.len() { vectors.pop() } else { None };
        self.store_vectors(unembedded, vectors).await?;
        Ok(own.filter(|values| is_nonzero_vector(values)))
    }

    /// Returns the memories that have no vector of the current model and its current dimensions.
    async fn memories_without_vector(&self) -> Result<Vec<StoredMemory>, RecallError> {
        let Some(embedder) = &self.embedder else { return Ok(Vec::new()) };
        let name = embedder.name();
        let dimensions = Some(self.dimensions.load(Ordering::Relaxed)).filter(|n| *n > 0);
        let memories = &self.store.memories;
        let found = memories.list_without_vector(&self.user, (name, dimensions), BACKLOG_MAX).await;
        found.map_err(recall_error)
    }

    async fn store_vectors(
        &self,
        unembedded: Vec<StoredMemory>,
        vectors: Vec<Vec<f32>>,
    ) -> Result<(), RecallError> {
        let Some(embedder) = self.embedder.as_ref().filter(|_| !unembedded.is_empty()) else {
            return Ok(());
        };
        let (memories, user, embedder) = (&self.store.memories, &self.user, embedder.name());
        for (memory, values) in unembedded.iter().zip(vectors) {
            if is_nonzero_vector(&values) {
                let vector = EmbeddingVector { embedder: embedder.to_owned(), values };
                memories.store_vector(user, memory.id, vector).await.map_err(recall_error)?;
            } else {
                let marked = memories.mark_unembeddable(user, memory.id, embedder).await;
                marked.map_err(recall_error)?;
            }
        }
        Ok(())
    }

    /// Finds the nearest memories by vector, and those without a comparable vector by words.
    async fn find_memories(
        &self,
        query: &str,
        vector: Option<Vec<f32>>,
        session_id: &str,
        from_turn: Option<u64>,
    ) -> Result<Vec<MemoryMatch>, RecallError> {
        let visible_turns = from_turn
            .map(|from_turn| VisibleTurns { session_id: session_id.to_owned(), from_turn });
        let recall = async |criterion| {
            let query = MemoryQuery {
                user: self.user.clone(),
                criterion,
                limit: MATCHES_MAX,
                visible_turns: visible_turns.clone(),
            };
            self.store.memories.recall(query).await.map_err(recall_error)
        };
        let by_words = || recall(MemoryCriterion::Words(query.to_owned()));
        let (Some(values), Some(embedder)) = (vector, &self.embedder) else {
            return Ok(by_words().await?.matches);
        };
        let (name, dimensions) = (embedder.name(), values.len());
        let vector = EmbeddingVector { embedder: name.to_owned(), values };
        let by_vector = recall(MemoryCriterion::Vector(vector)).await?;
        let mut found = by_vector.matches;
        found.retain(is_similar_enough);
        if by_vector.not_compared > 0 {
            let is_other = |one: &MemoryMatch| {
                let memory = &one.memory;
                memory.embedder.as_deref() != Some(name) || memory.dimensions != Some(dimensions)
            };
            found.extend(by_words().await?.matches.into_iter().filter(is_other));
        }
        Ok(found)
    }
}

fn recall_error(error: StoreError) -> RecallError {
    RecallError { message: error.to_string() }
}

/// Returns whether a memory that was compared by its vector is close enough to be recalled.
fn is_similar_enough(found: &MemoryMatch) -> bool {
    found.similarity >= SIMILARITY_MIN || found.memory.kind == StoredMemoryKind::Initial
}

impl SessionRecall {
    /// Stores the initial memories of the session, once.
    async fn store_initial_memories(&self, initial: &[String]) -> Result<(), RecallError> {
        let is_new =
            *self.initial_memories.lock().unwrap_or_else(PoisonError::into_inner) != initial;
        if !self.is_stored || !is_new {
            return Ok(());
        }
        for text in initial.iter().filter(|text| !text.trim().is_empty()) {
            let memory = self.new_memory(text, 0, StoredMemoryKind::Initial);
            self.memories.store.memories.store_memory(memory).await.map_err(recall_error)?;
        }
        *self.initial_memories.lock().unwrap_or_else(PoisonError::into_inner) = initial.to_vec();
        Ok(())
    }

    async fn recall_memories(
        &self,
        recall_query: RecallQuery<'_>,
    ) -> Result<Vec<RecalledMemory>, RecallError> {
        self.store_initial_memories(recall_query.memories).await?;
        let vector = self.memories.embed_with_backlog(recall_query.query).await?;
        let by_words = vector.is_none();
        let from_turn = first_turn_of_last_run(recall_query.visible_turns);
        let found = self
            .memories
            .find_memories(recall_query.query, vector, &self.session_id, from_turn)
            .await?;
        // Leave out the initial memories of other sessions.
        let is_own = |one: &MemoryMatch| {
            let text = one.memory.text.as_str();
            let is_known = || recall_query.memories.iter().any(|initial| initial.trim() == text);
            one.memory.kind != StoredMemoryKind::Initial || is_known()
        };
        let found: Vec<MemoryMatch> = found.into_iter().filter(is_own).collect();
        let rest = if by_words || !self.is_stored {
            unmatched_initial_memories(recall_query.memories, &found)
        } else {
            Vec::new()
        };
        Ok(found.into_iter().map(|one| self.to_recalled(one)).chain(rest).collect())
    }

    fn to_recalled(&self, found: MemoryMatch) -> RecalledMemory {
        let MemoryMatch { memory, similarity } = found;
        let is_same_session =
            memory.session_id == self.session_id && memory.kind == StoredMemoryKind::Turn;
        RecalledMemory {
            id: memory.id.to_string(),
            text: memory.text,
            similarity: similarity as f32,
            turn: is_same_session.then(|| usize::try_from(memory.turn).unwrap_or(usize::MAX)),
        }
    }

    async fn store_turn(&self, turn: &PastTurn) -> Result<(), RecallError> {
        let Some(text) = turn.memory_text().filter(|_| self.is_stored) else { return Ok(()) };
        let number = turn.number as u64;
        self.forget_stored_turn(number).await?;
        let memory = self.new_memory(&text, number, StoredMemoryKind::Turn);
        self.memories.store.memories.store_memory(memory).await.map_err(recall_error)?;
        self.memories.embed_with_backlog("").await.map(drop)
    }

    async fn forget_stored_turn(&self, turn: u64) -> Result<(), RecallError> {
        let which = MemorySelection::Turn { session_id: self.session_id.clone(), turn };
        let forgotten = self.memories.store.memories.forget(&self.memories.user, which).await;
        forgotten.map(drop).map_err(recall_error)
    }

    /// Returns a memory of this session without a vector.
    fn new_memory(&self, text: &str, turn: u64, kind: StoredMemoryKind) -> NewMemory {
        new_memory(&self.memories.user, text, &self.session_id, turn, kind)
    }
}

impl SessionMemory for SessionRecall {
    fn find_memories<'a>(
        &'a self,
        recall_query: RecallQuery<'a>,
    ) -> BoxFuture<'a, Result<Vec<RecalledMemory>, RecallError>> {
        Box::pin(self.recall_memories(recall_query))
    }

    fn remember_turn<'a>(&'a self, turn: &'a PastTurn) -> BoxFuture<'a, Result<(), RecallError>> {
        Box::pin(self.store_turn(turn))
    }

    fn forget_turn(&self, turn: usize) -> BoxFuture<'_, Result<(), RecallError>> {
        Box::pin(self.forget_stored_turn(turn as u64))
    }
}

/// Cuts texts to the length that is embedded.
fn truncate_texts(texts: &[&str], bytes_max: usize) -> Vec<String> {
    texts.iter().map(|text| text[..text.floor_char_boundary(bytes_max)].to_owned()).collect()
}

/// Returns whether a vector can be compared with others. Some models return only zeros for a text.
fn is_nonzero_vector(values: &[f32]) -> bool {
    values.iter().any(|value| *value != 0.0)
}

/// Creates a memory without a vector.
fn new_memory(
    user: &str,
    text: &str,
    session_id: &str,
    turn: u64,
    kind: StoredMemoryKind,
) -> NewMemory {
    NewMemory {
        user: user.to_owned(),
        text: text.to_owned(),
        vector: None,
        session_id: session_id.to_owned(),
        turn,
        kind,
        at_ms: now_ms(),
    }
}

/// Returns the initial memories that the search did not find. They are recalled anyway: a search by
/// words shows too rarely when they matter.
fn unmatched_initial_memories(initial: &[String], found: &[MemoryMatch]) -> Vec<RecalledMemory> {
    let is_found = |text: &str| found.iter().any(|one| one.memory.text == text.trim());
    let rest = initial.iter().enumerate().filter(|(_, text)| !is_found(text));
    rest.map(|(index, text)| RecalledMemory {
        id: format!("known-{}", index + 1),
        text: text.clone(),
        similarity: 0.0,
        turn: None,
    })
    .collect()
}

/// Returns the first turn of the gapless run at the end of `shown`.
fn first_turn_of_last_run(visible_turns: &[usize]) -> Option<u64> {
    let last = visible_turns.last().copied()?;
    let run =
        visible_turns.iter().rev().zip((1..=last).rev()).take_while(|(turn, want)| *turn == want);
    run.last().map(|(turn, _)| *turn as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_without_a_gap_is_not_looked_for() {
        for (visible_turns, want) in [
            (&[][..], None),
            (&[1], Some(1)),
            (&[1, 2, 3], Some(1)),
            (&[1, 7, 8], Some(7)),
            (&[5], Some(5)),
        ] {
            assert_eq!(first_turn_of_last_run(visible_turns), want, "{visible_turns:?}");
        }
    }

    /// Even the nearest memory can be unrelated to an input.
    #[tokio::test]
    async fn what_has_nothing_to_do_with_an_input_is_not_recalled() {
        let folder = tempfile::tempdir().unwrap();
        let store = HostStore::open(&folder.path().join("state")).unwrap();
        let embedder: Arc<dyn Embedder> = Arc::new(ByFirstWord);
        let memories =
            UserMemories::new(store.clone(), "me", Some(embedder), Arc::new(|_: &str| {}));
        let turn = StoredMemoryKind::Turn;
        for (number, text) in (1..).zip(["locker code 4711", "puppy chews shoes"]) {
            let memory = new_memory("me", text, "s-1", number, turn);
            store.memories.store_memory(memory).await.unwrap();
        }
        memories.embed_with_backlog("").await.unwrap();
        for (input, want) in [
            ("puppy sleeps", &["puppy chews shoes"][..]),
            ("weather", &[]),
            ("locker", &["locker code 4711"]),
        ] {
            let vector = memories.embed_with_backlog(input).await.unwrap();
            let found = memories.find_memories(input, vector, "s-2", None).await.unwrap();
            let texts: Vec<&str> = found.iter().map(|one| one.memory.text.as_str()).collect();
            assert_eq!(texts, want, "{input}");
        }
    }

    /// Texts are similar if their first words are equal, and slightly similar otherwise.
    struct ByFirstWord;

    impl Embedder for ByFirstWord {
        fn name(&self) -> &str {
            "by-first-word"
        }

        fn embed<'a>(
            &'a self,
            texts: &'a [String],
        ) -> BoxFuture<'a, Result<Vec<Vec<f32>>, ModelError>> {
            let vector = |text: &String| {
                let place =
                    ["locker", "puppy", "weather"].iter().position(|word| text.starts_with(word));
                let mut vector = vec![0.2; 3];
                vector[place.unwrap_or(0)] = 1.8;
                vector
            };
            let vectors = texts.iter().map(vector).collect();
            Box::pin(std::future::ready(Ok(vectors)))
        }
    }
}
