//! Turns texts into vectors that are close if the texts are alike in meaning.
//!
//! An embedding endpoint uses the same connection as a chat model, with the same key, error
//! handling and retries. An answer is checked before anything is computed from it: it contains one
//! vector for each text, all of one dimension and with finite numbers only.

mod embedding_format;

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use sallyport_contract::{BoxFuture, Secret};
use tokio::time::{Instant, sleep};

use crate::{
    chat::ModelError,
    endpoint::{EndpointSettingsError, ModelEndpoint},
    protocol::ProviderProtocol,
    retry,
    wire::{self, ProviderConnection},
};

use self::embedding_format::EmbeddingFormat;

/// Longest wait for the vectors of one batch. A local server may load its model first.
const TIME_MAX: Duration = Duration::from_secs(60);

/// Most texts of one request: below the limit of every provider, and few enough for a small server
/// to answer in time.
const BATCH_TEXTS_MAX: usize = 64;

/// Most bytes of all texts of one request, unless a single text is longer. It is far below the
/// token limits of providers.
const BATCH_BYTES_MAX: usize = 128 * 1024;

/// Most numbers of one vector. The largest known models return half as many.
const DIMENSIONS_MAX: usize = 8192;

/// Where and how to reach an embedding model.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddingEndpoint {
    /// The wire format of the server.
    pub protocol: ProviderProtocol,
    /// Base address, like a chat model's: `https://api.openai.com/v1`.
    pub base_url: String,
    /// The model's name, as the provider knows it: `text-embedding-3-small`.
    pub model: String,
    /// The API key, sent as the protocol requires. Local servers often need none.
    pub key: Option<Secret>,
    /// Longest time for the vectors of one batch of texts, all attempts included.
    pub time_max: Duration,
}

impl EmbeddingEndpoint {
    /// Creates an endpoint for a model on the server of a chat model, with its key.
    pub fn from_chat_endpoint(endpoint: &ModelEndpoint, model: impl Into<String>) -> Self {
        Self {
            key: endpoint.key.clone(),
            ..Self::new(endpoint.protocol, endpoint.base_url.clone(), model)
        }
    }

    /// Creates an endpoint without a key and with a timeout of one minute.
    pub fn new(
        protocol: ProviderProtocol,
        base_url: impl Into<String>,
        model: impl Into<String>,
    ) -> Self {
        let (base_url, model) = (base_url.into(), model.into());
        Self { protocol, base_url, model, key: None, time_max: TIME_MAX }
    }

    /// Returns the chat endpoint that connects to the same server.
    fn chat_endpoint(&self) -> ModelEndpoint {
        ModelEndpoint {
            key: self.key.clone(),
            time_max: self.time_max,
            ..ModelEndpoint::new(self.protocol, self.base_url.clone(), self.model.clone())
        }
    }
}

/// A model that turns texts into vectors.
pub trait Embedder: Send + Sync {
    /// Returns a display name that changes with the model. Vectors of different names are not
    /// comparable.
    fn name(&self) -> &str;

    /// Returns one vector for each text, in their order. All vectors of one embedder have the same
    /// dimension. Providers refuse blank texts. Dropping the future cancels the request.
    ///
    /// # Errors
    ///
    /// Returns a [`ModelError`] if the provider gives no complete answer, or if its vectors are
    /// unusable.
    fn embed<'a>(&'a self, texts: &'a [String])
    -> BoxFuture<'a, Result<Vec<Vec<f32>>, ModelError>>;
}

/// Returns the embedder behind an endpoint. It does not connect before the first text.
///
/// # Errors
///
/// Returns an error with a hint if the settings cannot work, for instance if the protocol has no
/// embeddings.
pub fn connect_embedder(
    endpoint: &EmbeddingEndpoint,
) -> Result<Arc<dyn Embedder>, EndpointSettingsError> {
    let embedding_format = EmbeddingFormat::from_endpoint(endpoint)?;
    let server = endpoint.chat_endpoint();
    let connection =
        ProviderConnection::new(&server, &embedding_format.path, wire::auth_headers(&server)?)?;
    let (time_max, dimension) = (endpoint.time_max, OnceLock::new());
    Ok(Arc::new(RemoteEmbedder { format: embedding_format, connection, time_max, dimension }))
}

/// An embedding model on a server.
#[derive(Debug)]
struct RemoteEmbedder {
    format: EmbeddingFormat,
    connection: ProviderConnection,
    time_max: Duration,
    /// The dimension of its vectors, known once the first vector has arrived.
    dimension: OnceLock<usize>,
}

impl Embedder for RemoteEmbedder {
    fn name(&self) -> &str {
        self.connection.name()
    }

    fn embed<'a>(
        &'a self,
        texts: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<Vec<f32>>, ModelError>> {
        Box::pin(async move {
            let mut vectors = Vec::with_capacity(texts.len());
            for batch in split_batches(texts) {
                let answer = self.embed_batch(batch);
                vectors.extend(
                    self.connection.provider().run_with_timeout(self.time_max, answer).await?,
                );
            }
            Ok(vectors)
        })
    }
}

impl RemoteEmbedder {
    /// Requests the vectors of a batch, with retries.
    async fn embed_batch(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
        let (started, mut attempt) = (Instant::now(), 1);
        loop {
            let error = match self.request_batch(texts).await {
                Ok(vectors) => return Ok(vectors),
                Err(error) => error,
            };
            let wait = retry::next_wait(&error, attempt, started, self.time_max);
            let Some(wait) = wait else { return Err(error) };
            attempt += 1;
            sleep(wait).await;
        }
    }

    async fn request_batch(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
        let response = self.connection.post(self.format.request_body(texts), wire::JSON).await?;
        let answer = self.connection.read_json(response).await?;
        let vectors = self.format.parse_vectors(&answer, texts.len());
        let vectors = vectors.and_then(|vectors| self.check_dimensions(vectors));
        vectors.map_err(|problem| self.connection.provider().protocol_error(&problem))
    }

    /// Checks that all vectors have the dimension of the first vector that this embedder received.
    fn check_dimensions(&self, vectors: Vec<Vec<f32>>) -> Result<Vec<Vec<f32>>, String> {
        for vector in &vectors {
            let (dimension, expected) = (vector.len(), self.dimension.get().copied());
            let expected = expected.unwrap_or_else(|| *self.dimension.get_or_init(|| dimension));
            if dimension != expected {
                return Err(format!("a vector has {dimension} numbers, others have {expected}"));
            }
        }
        Ok(vectors)
    }
}

/// Splits texts into batches that a provider accepts in one request.
fn split_batches(mut texts: &[String]) -> impl Iterator<Item = &[String]> {
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |text: &&String| {
            bytes += text.len();
            bytes <= BATCH_BYTES_MAX
        };
        let count = texts.iter().take(BATCH_TEXTS_MAX).take_while(fits).count();
        let (batch, rest) = texts.split_at(count.max(1).min(texts.len()));
        texts = rest;
        (!batch.is_empty()).then_some(batch)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_hold_what_fits_and_lose_nothing() {
        let rows: [(Vec<usize>, Vec<usize>); 5] = [
            (vec![], vec![]),
            (vec![1; 3], vec![3]),
            (vec![1; 130], vec![64, 64, 2]),
            (vec![BATCH_BYTES_MAX + 1, 1, 1], vec![1, 2]),
            (vec![BATCH_BYTES_MAX / 2, BATCH_BYTES_MAX / 2, 1], vec![2, 1]),
        ];
        for (bytes, want) in rows {
            let texts: Vec<String> = bytes.iter().map(|bytes| "x".repeat(*bytes)).collect();
            assert_eq!(split_batches(&texts).map(<[_]>::len).collect::<Vec<_>>(), want);
        }
    }
}
