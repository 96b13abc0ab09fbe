//! Embedders against a scripted server on the loopback interface.

mod answers;
mod requests;

use std::{sync::Arc, time::Duration};

use sallyport_contract::Secret;
use sallyport_model::{
    Embedder, EmbeddingEndpoint, ModelError, ProviderProtocol, connect_embedder,
};
use serde_json::{Value, json};

use crate::{
    asking::KEY,
    server::{Server, Step, plain},
};

/// A timeout far above what these tests need, so that a hanging test still ends.
const PATIENCE: Duration = Duration::from_secs(60);

/// The protocols with embeddings, one for each form.
const PROTOCOLS: [ProviderProtocol; 3] =
    [ProviderProtocol::OpenAiChat, ProviderProtocol::Gemini, ProviderProtocol::Ollama];

fn embedder(protocol: ProviderProtocol, server: &Server) -> Arc<dyn Embedder> {
    let endpoint = EmbeddingEndpoint {
        key: Some(Secret::new(KEY)),
        time_max: PATIENCE,
        ..EmbeddingEndpoint::new(protocol, server.base_url.clone(), "test-model")
    };
    connect_embedder(&endpoint).unwrap()
}

/// An answer of a protocol with these vectors.
fn answer(protocol: ProviderProtocol, vectors: &[Value]) -> Value {
    let numbered = |(index, vector)| json!({ "index": index, "embedding": vector });
    match protocol {
        ProviderProtocol::Gemini => {
            let vectors: Vec<Value> =
                vectors.iter().map(|vector| json!({ "values": vector })).collect();
            json!({ "embeddings": vectors })
        }
        ProviderProtocol::Ollama => json!({ "embeddings": vectors }),
        _ => {
            json!({ "data": vectors.iter().enumerate().map(numbered).collect::<Vec<Value>>() })
        }
    }
}

fn sends(body: &Value) -> Vec<Step> {
    plain(200, "content-type: application/json\r\n", &body.to_string())
}

fn texts(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("text {number}")).collect()
}

/// Sends one answer to an embedder that asks for two texts.
async fn play(protocol: ProviderProtocol, body: &Value) -> Result<Vec<Vec<f32>>, ModelError> {
    let server = Server::start(sends(body)).await;
    embedder(protocol, &server).embed(&texts(2)).await
}
