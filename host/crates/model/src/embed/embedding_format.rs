//! The three request and answer forms of embedding servers.

use serde_json::{Value, json};

use super::{DIMENSIONS_MAX, EmbeddingEndpoint};
use crate::{endpoint::EndpointSettingsError, gemini, protocol::ProviderProtocol};

/// The form of requests and answers of one endpoint.
#[derive(Debug)]
pub(super) struct EmbeddingFormat {
    /// The path of the method, below the base address.
    pub(super) path: String,
    model: String,
    protocol: ProviderProtocol,
}

impl EmbeddingFormat {
    /// Returns the form for an endpoint.
    ///
    /// # Errors
    ///
    /// Returns [`EndpointSettingsError::NoEmbeddings`] if the protocol has no embeddings.
    pub(super) fn from_endpoint(
        endpoint: &EmbeddingEndpoint,
    ) -> Result<Self, EndpointSettingsError> {
        let model = endpoint.model.trim();
        let (path, model) = match endpoint.protocol {
            ProviderProtocol::OpenAiChat | ProviderProtocol::OpenAiResponses => {
                ("embeddings".to_owned(), model.to_owned())
            }
            ProviderProtocol::Gemini => {
                let path = format!("{}:batchEmbedContents", gemini::resource_path(model));
                (path, gemini::resource_name(model))
            }
            ProviderProtocol::Ollama => ("api/embed".to_owned(), model.to_owned()),
            ProviderProtocol::Anthropic => return Err(EndpointSettingsError::NoEmbeddings),
        };
        Ok(Self { path, model, protocol: endpoint.protocol })
    }

    /// Returns the body of a request.
    pub(super) fn request_body(&self, texts: &[String]) -> Vec<u8> {
        let body = if self.protocol == ProviderProtocol::Gemini {
            let requests = texts.iter().map(
                |text| json!({ "model": self.model, "content": { "parts": [{ "text": text }] } }),
            );
            json!({ "requests": requests.collect::<Vec<Value>>() })
        } else {
            json!({ "model": self.model, "input": texts })
        };
        body.to_string().into_bytes()
    }

    /// Returns `count` vectors from an answer, in the order of the texts.
    pub(super) fn parse_vectors(
        &self,
        answer: &Value,
        count: usize,
    ) -> Result<Vec<Vec<f32>>, String> {
        let list = match self.protocol {
            ProviderProtocol::Gemini | ProviderProtocol::Ollama => answer.get("embeddings"),
            _ => answer.get("data"),
        };
        let list = list.and_then(Value::as_array).ok_or("there are no vectors in it")?;
        if list.len() != count {
            return Err(format!("it has {} vectors for {count} texts", list.len()));
        }
        match self.protocol {
            ProviderProtocol::Gemini => {
                list.iter().map(|entry| parse_vector(entry.get("values"))).collect()
            }
            ProviderProtocol::Ollama => {
                list.iter().map(|entry| parse_vector(Some(entry))).collect()
            }
            _ => {
                let entries = sort_by_index(list)?.into_iter();
                entries.map(|entry| parse_vector(entry.get("embedding"))).collect()
            }
        }
    }
}

/// Sorts vectors into the order of their texts. A server that does not number them sends them in
/// order.
fn sort_by_index(list: &[Value]) -> Result<Vec<&Value>, String> {
    let mut placed: Vec<Option<&Value>> = vec![None; list.len()];
    for (place, entry) in list.iter().enumerate() {
        let given_index = entry.get("index").and_then(Value::as_u64);
        let index = given_index.map_or(Some(place), |index| usize::try_from(index).ok());
        match index.and_then(|index| placed.get_mut(index)) {
            Some(slot @ None) => *slot = Some(entry),
            _ => return Err("its vectors are numbered wrongly".to_owned()),
        }
    }
    Ok(placed.into_iter().flatten().collect())
}

fn parse_vector(numbers: Option<&Value>) -> Result<Vec<f32>, String> {
    let numbers = numbers.and_then(Value::as_array).ok_or("a vector is not a list of numbers")?;
    if numbers.is_empty() || numbers.len() > DIMENSIONS_MAX {
        let count = numbers.len();
        return Err(format!("a vector has {count} numbers, 1 to {DIMENSIONS_MAX} are accepted"));
    }
    let numbers = numbers.iter().map(|number| Some(number.as_f64()? as f32));
    let vector: Option<Vec<f32>> = numbers.collect();
    let vector = vector.filter(|vector| vector.iter().all(|number| number.is_finite()));
    vector.ok_or_else(|| "a vector holds something else than finite numbers".to_owned())
}
