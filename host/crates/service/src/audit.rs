//! The route of the audit.

use std::sync::Arc;

use axum::{Extension, extract::State};
use sallyport_contract::Decision;
use sallyport_store::{AuditEntry, AuditFilter, AuditKind, audit::AuditRecord};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    caller::RequestCaller,
    problem::Problem,
    request_body::{JsonReply, QueryParameters},
    role::{ServiceUser, UserRole},
    service::Service,
};

/// Records in one page.
const PAGE_DEFAULT: usize = 100;

/// Most records in one page.
const PAGE_MAX: usize = 1000;

/// Selects records. A field that is absent is not checked.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AuditQuery {
    /// The plugin's name.
    plugin: Option<String>,
    /// The tool's name within its plugin.
    tool: Option<String>,
    /// How a call ended: completed, failed, denied, …
    outcome: Option<String>,
    /// The decision.
    decision: Option<Decision>,
    /// What a record is about.
    kind: Option<AuditKind>,
    /// The session.
    session: Option<String>,
    /// The user whose calls they are. Operators may name others than themselves.
    user: Option<String>,
    /// Only denied calls, and calls that were refused something while they ran.
    denied: bool,
    /// Not before this time, in milliseconds since 1970.
    since_ms: Option<u64>,
    /// Before this time, in milliseconds since 1970.
    until_ms: Option<u64>,
    /// Only records with a higher number.
    after_seq: Option<u64>,
    /// Most records, up to 1000.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
    /// Newest record first.
    newest_first: bool,
}

/// A page of records.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AuditPage {
    records: Vec<NumberedRecord>,
}

/// A record with its place in the log.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct NumberedRecord {
    /// Its number.
    seq: u64,
    /// Its hash in the chain, in hexadecimal.
    hash: String,
    /// The record. Absent if the line in the log is not one.
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<AuditRecord>,
}

pub(crate) async fn list(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<RequestCaller>,
    QueryParameters(query): QueryParameters<AuditQuery>,
) -> Result<JsonReply<AuditPage>, Problem> {
    let filter = readable_filter(query, &caller.user)?;
    let entries = service.host.read_audit(filter).await?;
    let is_operator = caller.user.role >= UserRole::Operator;
    // A line that is not a record says of nobody that it is theirs.
    let entries = entries.into_iter().filter(|entry| is_operator || entry.record.is_some());
    let records =
        entries.map(|AuditEntry { seq, hash, record, .. }| NumberedRecord { seq, hash, record });
    Ok(JsonReply(AuditPage { records: records.collect() }))
}

/// The filter for what a user may read: everything for operators, their own for others. Another
/// user's records do not exist, so asking for them finds none.
fn readable_filter(query: AuditQuery, reader: &ServiceUser) -> Result<AuditFilter, Problem> {
    let limit = query.limit.unwrap_or(PAGE_DEFAULT);
    if !(1..=PAGE_MAX).contains(&limit) {
        return Err(Problem::bad_request(format!("limit must be from 1 to {PAGE_MAX}")));
    }
    let is_operator = reader.role >= UserRole::Operator;
    let is_foreign = query.user.as_ref().is_some_and(|user| *user != reader.name);
    let caller = if is_operator { query.user } else { Some(reader.name.clone()) };
    Ok(AuditFilter {
        plugin: query.plugin,
        tool: query.tool,
        outcome: query.outcome,
        decision: query.decision,
        kind: query.kind,
        session: query.session,
        caller,
        denied: query.denied,
        since_ms: query.since_ms,
        until_ms: query.until_ms,
        after_seq: query.after_seq,
        limit: Some(if is_foreign && !is_operator { 0 } else { limit }),
        newest_first: query.newest_first,
        ..AuditFilter::default()
    })
}
