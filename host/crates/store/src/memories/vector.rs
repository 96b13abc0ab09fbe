//! A memory as it is checked before either database stores it.

use super::{EmbeddingVector, NewMemory};
use crate::error::{StoreError, check_length};

/// Longest text of a memory: a long turn. Embedding models read less.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// Most numbers of a vector. The longest vectors of providers have half as many.
const DIMENSIONS_MAX: usize = 8192;

/// Longest name of a model.
const EMBEDDER_BYTES_MAX: usize = 256;

/// Most memories of a user. A recall compares all vectors of a user; at the usual length, this many
/// take a tenth of a second.
pub(crate) const MEMORIES_MAX: u64 = 20_000;

/// Longest query that a user types.
pub(crate) const QUERY_BYTES_MAX: usize = 1024;

/// A vector as it is stored: scaled to length one, so that no sum over it overflows.
#[derive(Debug)]
pub(crate) struct StoredVector {
    pub(crate) embedder: String,
    pub(crate) dimensions: Option<i64>,
    /// The numbers one after the other, with the lowest byte first.
    pub(crate) bytes: Option<Vec<u8>>,
}

impl StoredVector {
    /// # Errors
    ///
    /// The vector is empty or zero, has too many numbers, or has one that is not finite; or the
    /// name of the model is too long.
    pub(crate) fn from_vector(vector: &EmbeddingVector) -> Result<Self, StoreError> {
        let EmbeddingVector { embedder, values } = vector;
        check_length("the name of a model", embedder, EMBEDDER_BYTES_MAX)?;
        let length = values.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
        let fits = (1..=DIMENSIONS_MAX).contains(&values.len());
        if !fits || !length.is_finite() || length == 0.0 {
            return Err(StoreError::InvalidVector { dimensions: values.len() });
        }
        let scaled = |value: &f32| ((f64::from(*value) / length) as f32).to_le_bytes();
        let bytes = values.iter().flat_map(scaled).collect();
        let dimensions = i64::try_from(values.len()).ok();
        Ok(Self { embedder: embedder.clone(), dimensions, bytes: Some(bytes) })
    }

    /// The entry for a text that the model cannot embed.
    pub(crate) fn unembeddable(embedder: &str) -> Self {
        Self { embedder: embedder.to_owned(), dimensions: None, bytes: None }
    }
}

/// # Errors
///
/// The text is too long, or the vector is invalid.
pub(crate) fn check_memory(memory: &NewMemory) -> Result<Option<StoredVector>, StoreError> {
    check_length("a memory", &memory.text, TEXT_BYTES_MAX)?;
    memory.vector.as_ref().map(StoredVector::from_vector).transpose()
}
