//! Recorded lists of models, and refusals to give one.

use sallyport_contract::Secret;
use sallyport_model::{
    ModelEndpoint, ModelError,
    catalog::{self, ModelCatalogError},
};
use serde_json::Value;

use crate::{
    cassettes::{self, Exchange, Recordings},
    play::{Delivery, KEY, Post},
    tally,
};

/// Least number of recordings.
const LISTS_MIN: usize = 3;

#[tokio::test]
async fn every_recorded_list_of_models_is_read() {
    let Some(recordings) = cassettes::recordings() else { return };
    let Recordings { lists, .. } = &recordings;
    for exchange in lists {
        let post = Post::open().await;
        let base_url = format!("{}{}", post.base_url, exchange.path.trim_end_matches("/models"));
        let key = Some(Secret::new(KEY));
        let endpoint = ModelEndpoint {
            key,
            ..ModelEndpoint::new(exchange.wire.protocol(), base_url, "test-model")
        };
        let body = Delivery::Whole(exchange.body.as_bytes());
        let (listed, seen) =
            tokio::join!(catalog::list_models(&endpoint), post.serve(exchange, body));
        assert_eq!(seen.path.split('?').next(), Some(exchange.path.as_str()));
        check(exchange, listed.map(|listed| listed.into_iter().map(|one| one.name).collect()));
    }
    crate::say(&format!("{} recorded lists of models covered", lists.len()));
    let is_other = !tally::is_known(&recordings);
    assert!(is_other || lists.len() >= LISTS_MIN, "only {}", lists.len());
}

#[track_caller]
fn check(exchange: &Exchange, listed: Result<Vec<String>, ModelCatalogError>) {
    let body: Value = serde_json::from_str(&exchange.body).unwrap_or_default();
    match listed {
        Ok(names) => {
            let wanted = body["data"].as_array().into_iter().flatten();
            let wanted = wanted.map(|one| one["id"].as_str());
            assert!(names.iter().map(|name| Some(name.as_str())).eq(wanted), "{names:?}");
        }
        Err(error) => {
            let message = body["error"]["message"].as_str().unwrap_or_default();
            assert!(error.to_string().contains(message), "{error}");
            let is_right = match &error {
                ModelCatalogError::Model(ModelError::Credentials { .. }) => {
                    matches!(exchange.status, 400 | 401)
                }
                ModelCatalogError::Model(ModelError::Refused { status, .. }) => {
                    *status == exchange.status
                }
                _ => false,
            };
            assert!(is_right, "{}: {error:?}", exchange.file);
        }
    }
}
