//! Recorded requests for vectors, all of which were refused.

use std::time::Duration;

use futures::future::join_all;
use sallyport_contract::Secret;
use sallyport_model::{EmbeddingEndpoint, ModelError, connect_embedder};
use serde_json::Value;

use crate::{
    cassettes::{self, Exchange, Recordings},
    play::{Delivery, KEY, Post},
    tally, wires,
};

/// Least number of recordings.
const EMBEDDINGS_MIN: usize = 3;

/// A timeout far above what all attempts at one of them take.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn every_recorded_refusal_of_vectors_is_told() {
    let Some(recordings) = cassettes::recordings() else { return };
    let Recordings { embeddings, .. } = &recordings;
    join_all(embeddings.iter().map(cover)).await;
    crate::say(&format!("{} recorded refusals of vectors covered", embeddings.len()));
    let is_other = !tally::is_known(&recordings);
    assert!(is_other || embeddings.len() >= EMBEDDINGS_MIN, "only {}", embeddings.len());
}

async fn cover(exchange: &Exchange) {
    let post = Post::open().await;
    let method = if exchange.path.ends_with("/embeddings") { "/embeddings" } else { "/models/" };
    let base = &exchange.path[..exchange.path.find(method).unwrap_or(0)];
    let endpoint = EmbeddingEndpoint {
        key: Some(Secret::new(KEY)),
        time_max: PATIENCE,
        ..EmbeddingEndpoint::new(
            exchange.wire.protocol(),
            format!("{}{base}", post.base_url),
            wires::model(&exchange.path, &exchange.request).unwrap_or_default(),
        )
    };
    let (embedder, texts) = (connect_embedder(&endpoint).unwrap(), texts(&exchange.request));
    let serve = async {
        // Some refusals cause retries.
        loop {
            let seen = post.serve(exchange, Delivery::Whole(exchange.body.as_bytes())).await;
            assert_eq!(seen.path, exchange.path);
            assert_eq!(self::texts(&seen.body), texts);
        }
    };
    let refusal = tokio::select! {
        answer = embedder.embed(&texts) => answer.unwrap_err(),
        () = serve => unreachable!(),
    };
    check(exchange, &refusal);
}

/// The texts of a request, in either form.
fn texts(request: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match (&request["input"], &request["requests"]) {
        (Value::String(one), _) => vec![one.clone()],
        (Value::Array(all), _) => all.iter().filter_map(text).collect(),
        (_, requests) => {
            let parts = requests.as_array().into_iter().flatten();
            parts.filter_map(|one| text(&one["content"]["parts"][0]["text"])).collect()
        }
    }
}

#[track_caller]
fn check(exchange: &Exchange, refusal: &ModelError) {
    let body: Value = serde_json::from_str(&exchange.body).unwrap();
    let message = body["error"]["message"].as_str().unwrap();
    let ModelError::Refused { status, message: told, .. } = refusal else { panic!("{refusal:?}") };
    assert_eq!((*status, told.as_str()), (exchange.status, message), "{}", exchange.file);
}
