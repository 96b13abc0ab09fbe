//! The routes for machines that watch the service: health, readiness, metrics.

use std::sync::Arc;

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::header;
use sallyport_contract::LOCAL_USER;
use sallyport_store::SessionFilter;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    metrics::METRICS_TYPE,
    problem::{Problem, ProblemKind},
    request_body::JsonReply,
    service::Service,
};

/// The service answers.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct HealthReport {
    status: HealthStatus,
}

/// The state of the service.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HealthStatus {
    /// It works.
    Ok,
}

pub(crate) async fn health() -> JsonReply<HealthReport> {
    JsonReply(HealthReport { status: HealthStatus::Ok })
}

/// Whether the service takes requests: it does not stop, and can read its store and its tokens.
pub(crate) async fn readiness(
    State(service): State<Arc<Service>>,
) -> Result<JsonReply<HealthReport>, Problem> {
    if service.stop.is_cancelled() {
        return Err(Problem::stopping());
    }
    if service.tokens.problem().is_some() {
        let title = "the file of tokens cannot be read, so nobody is let in";
        return Err(Problem::new(ProblemKind::StoreUnavailable, title));
    }
    let filter = SessionFilter { limit: Some(1), ..SessionFilter::of_user(LOCAL_USER) };
    service.host.store().sessions.list(filter).await?;
    Ok(health().await)
}

pub(crate) async fn metrics(State(service): State<Arc<Service>>) -> Response {
    let text = service.metrics.to_text(service.gauges());
    ([(header::CONTENT_TYPE, METRICS_TYPE)], text).into_response()
}
