//! The routes of sessions.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Path, State},
    response::{IntoResponse, Response},
};
use http::{HeaderMap, StatusCode, header};
use sallyport_contract::{ApprovalAnswer, GrantScope};
use sallyport_runtime::{clock::now_ms, history};
use sallyport_session::{FrontEndCommand, SessionSnapshot, history as session_history};
use sallyport_store::{SessionFilter, StoreError, StoredSession};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    caller::RequestCaller,
    event_log::EventId,
    event_stream::{StreamParts, stream_events},
    idempotency::{KeyedRequest, work_reply},
    open_sessions::ServedSession,
    problem::{Problem, ProblemKind},
    request_body::{JsonBody, JsonReply, QueryParameters},
    role::{ServiceUser, UserRole},
    service::Service,
    session_opening::SessionToOpen,
};

/// Sessions in one page of a list.
const PAGE_DEFAULT: usize = 50;

/// Most sessions in one page of a list.
const PAGE_MAX: usize = 200;

/// The header in which a client that connects again names the last event that it has.
const LAST_EVENT_HEADER: &str = "last-event-id";

/// A session of the user.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SessionSummary {
    /// Its ID.
    id: String,
    /// Whether it takes commands.
    is_open: bool,
    /// What is stored of it; nothing before its first turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    stored: Option<StoredSession>,
}

/// A page of the user's sessions, the one used last first. Those without a turn come first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SessionPage {
    sessions: Vec<SessionSummary>,
    /// The `before_ms` of the next page. Without it, this is the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_before_ms: Option<u64>,
}

/// Selects a page.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionPageQuery {
    /// Sessions last used before this time, in milliseconds since 1970.
    before_ms: Option<u64>,
    /// Most sessions, up to 200.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<usize>,
}

/// A session as it is at this moment.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SessionView {
    #[serde(flatten)]
    summary: SessionSummary,
    /// The conversation and the open questions, if it is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<SessionSnapshot>,
    /// The event that the snapshot contains at least, if it is open: read on after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_event_id: Option<String>,
}

/// Selects events.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventQuery {
    /// Events after the one with this ID; the header Last-Event-ID counts more. Without either, from
    /// the oldest event that is kept.
    pub(crate) after: Option<String>,
}

/// Selects the form of an export.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExportQuery {
    /// The form; JSON if it is absent.
    #[serde(default)]
    format: ExportForm,
}

/// The form of an export.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ExportForm {
    /// With everything.
    #[default]
    Json,

    /// To read.
    Markdown,
}

/// The command was taken. What comes of it are events.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CommandTaken {
    /// The newest event before the command.
    last_event_id: String,
}

pub(crate) async fn open(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<RequestCaller>,
    headers: HeaderMap,
    JsonBody(wanted): JsonBody<Value>,
) -> Response {
    let body = wanted.to_string();
    let user = caller.user.clone();
    let keyed = KeyedRequest {
        user: &caller.user.name,
        headers: &headers,
        target: "open session".to_owned(),
        body: body.as_bytes(),
    };
    let opened = service.idempotency.reply(keyed, || {
        let wanted: SessionToOpen = serde_json::from_value(wanted).map_err(|error| {
            Problem::bad_request("the body is not what is expected").with_detail(error.to_string())
        })?;
        let service = Arc::clone(&service);
        Ok(async move {
            let (session, is_new) = service.open_session(&user, wanted).await?;
            let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
            // The session is open by now, so what is stored of it must not make that fail.
            let stored = stored_session(&service, &user, &session.id).await.unwrap_or_default();
            work_reply(status, &SessionSummary { id: session.id.clone(), is_open: true, stored })
        })
    });
    opened.await
}

pub(crate) async fn list(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<RequestCaller>,
    QueryParameters(query): QueryParameters<SessionPageQuery>,
) -> Result<JsonReply<SessionPage>, Problem> {
    let limit = query.limit.unwrap_or(PAGE_DEFAULT);
    if !(1..=PAGE_MAX).contains(&limit) {
        return Err(Problem::bad_request(format!("limit must be from 1 to {PAGE_MAX}")));
    }
    let user = &caller.user.name;
    let filter = SessionFilter {
        before_ms: query.before_ms,
        limit: Some(limit),
        ..SessionFilter::of_user(user)
    };
    let stored = service.host.store().sessions.list(filter).await?;
    let full_page = stored.len() == limit;
    let next_before_ms = stored.last().filter(|_| full_page).map(|session| session.updated_ms);
    let open = service.sessions.of_user(user);
    let summary = |stored: StoredSession| SessionSummary {
        is_open: open.iter().any(|session| session.id == stored.id),
        ..summary_of(stored)
    };
    let mut sessions: Vec<SessionSummary> = stored.into_iter().map(summary).collect();
    if query.before_ms.is_none() {
        let mut unstored = unstored_sessions(&service, &caller.user, &open, &sessions).await?;
        unstored.append(&mut sessions);
        sessions = unstored;
    }
    Ok(JsonReply(SessionPage { sessions, next_before_ms }))
}

/// The open sessions that had no turn yet.
async fn unstored_sessions(
    service: &Service,
    user: &ServiceUser,
    open: &[Arc<ServedSession>],
    listed: &[SessionSummary],
) -> Result<Vec<SessionSummary>, Problem> {
    let mut unstored = Vec::new();
    for session in open.iter().filter(|open| listed.iter().all(|one| one.id != open.id)) {
        if stored_session(service, user, &session.id).await?.is_none() {
            unstored.push(SessionSummary { id: session.id.clone(), is_open: true, stored: None });
        }
    }
    Ok(unstored)
}

pub(crate) async fn show(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<RequestCaller>,
    Path(id): Path<String>,
) -> Result<JsonReply<SessionView>, Problem> {
    let stored = stored_session(&service, &caller.user, &id).await?;
    let open = service.sessions.find(&caller.user.name, &id);
    if stored.is_none() && open.is_none() {
        return Err(no_session());
    }
    let mut view = SessionView {
        summary: SessionSummary { id, is_open: open.is_some(), stored },
        snapshot: None,
        last_event_id: None,
    };
    if let Some(open) = open {
        // The ID comes first, so that no event is missed between the two.
        view.last_event_id = Some(open.log.newest_id().to_string());
        view.snapshot = open.handle.snapshot().await.ok();
    }
    Ok(JsonReply(view))
}

pub(crate) async fn events(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<RequestCaller>,
    Path(id): Path<String>,
    QueryParameters(query): QueryParameters<EventQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let session = find_open(&service, &caller.user, &id).await?;
    let last = match headers.get(LAST_EVENT_HEADER) {
        Some(value) => Some(value.to_str().unwrap_or_default().to_owned()),
        None => query.after,
    };
    let after = start_after(&session, last)?;
    let stream_use = service.limits.streams.begin_use(&caller.user.name)?;
    Ok(stream_events(StreamParts { service, session, caller, after, _stream_use: stream_use }))
}

/// Returns the number of the event after which a client reads on.
pub(crate) fn start_after(session: &ServedSession, last: Option<String>) -> Result<u64, Problem> {
    let last = last.map(|text| text.parse::<EventId>()).transpose()?;
    session.log.start_after(last.as_ref())
}

pub(crate) async fn command(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<RequestCaller>,
    Path(id): Path<String>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<Value>,
) -> Response {
    let session = match find_open(&service, &caller.user, &id).await {
        Ok(session) => session,
        Err(problem) => return problem.into_response(),
    };
    let text = body.to_string();
    let keyed = KeyedRequest {
        user: &caller.user.name,
        headers: &headers,
        target: format!("command {id}"),
        body: text.as_bytes(),
    };
    let role = caller.user.role;
    let taken = service.idempotency.reply(keyed, || {
        let command = allowed_command(body, role)?;
        Ok(async move {
            let last_event_id = session.log.newest_id().to_string();
            session.send(command).await?;
            work_reply(StatusCode::ACCEPTED, &CommandTaken { last_event_id })
        })
    });
    taken.await
}

/// Reads a command that a user with this role may give.
pub(crate) fn allowed_command(body: Value, role: UserRole) -> Result<FrontEndCommand, Problem> {
    let command: FrontEndCommand = serde_json::from_value(body).map_err(|error| {
        Problem::bad_request("the body is not a command").with_detail(error.to_string())
    })?;
    match &command {
        FrontEndCommand::Notice(_) | FrontEndCommand::Progress { .. } => {
            Err(Problem::bad_request("only plugins report progress and send notices"))
        }
        FrontEndCommand::SubmitInput { input }
            if input.origin.is_some() || input.aside.is_some() =>
        {
            Err(Problem::bad_request("an input of a user has neither an origin nor an aside"))
        }
        FrontEndCommand::ProvideConfirmation { answer, .. } => {
            check_answer(answer, role).map(|()| command)
        }
        _ => Ok(command),
    }
}

fn check_answer(answer: &ApprovalAnswer, role: UserRole) -> Result<(), Problem> {
    let grant_scope = answer.grant().map(|grant| grant.scope);
    let is_always = *answer == ApprovalAnswer::Always || grant_scope == Some(GrantScope::Always);
    // What an MCP server asks of its user is not an approval.
    let is_form = matches!(answer, ApprovalAnswer::Form(_));
    check_answer_role(answer.is_yes() && !is_form, is_always, role)
}

/// Whether a user with this role may give an answer. Everyone may refuse.
pub(crate) fn check_answer_role(
    is_yes: bool,
    is_always: bool,
    role: UserRole,
) -> Result<(), Problem> {
    let needed = match (is_yes, is_always) {
        (false, _) => UserRole::User,
        (true, false) => UserRole::Approver,
        (true, true) => UserRole::Operator,
    };
    if role >= needed {
        return Ok(());
    }
    let title = format!("this answer needs the role {needed}, and yours is {role}");
    Err(Problem::new(ProblemKind::RoleMissing, title))
}

pub(crate) async fn close(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<RequestCaller>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    if let Some(open) = service.sessions.find(&caller.user.name, &id) {
        open.close().await;
        return Ok(StatusCode::NO_CONTENT);
    }
    let stored = stored_session(&service, &caller.user, &id).await?;
    stored.map(|_| StatusCode::NO_CONTENT).ok_or_else(no_session)
}

pub(crate) async fn export(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<RequestCaller>,
    Path(id): Path<String>,
    QueryParameters(query): QueryParameters<ExportQuery>,
) -> Result<Response, Problem> {
    let stored = stored_session(&service, &caller.user, &id).await?.ok_or_else(no_session)?;
    let store = service.host.store();
    let records = history::read_records(store, &stored).await?;
    let kept = history::read_kept_results(store, &stored, &records).await?;
    Ok(match query.format {
        ExportForm::Json => {
            JsonReply(session_history::export_json(&records, &kept)).into_response()
        }
        ExportForm::Markdown => {
            let text = session_history::export_markdown(&records, &kept);
            ([(header::CONTENT_TYPE, "text/markdown; charset=utf-8")], text).into_response()
        }
    })
}

/// An open session of the user; one that is stored has to be opened first.
pub(crate) async fn find_open(
    service: &Service,
    user: &ServiceUser,
    id: &str,
) -> Result<Arc<ServedSession>, Problem> {
    if let Some(open) = service.sessions.find(&user.name, id) {
        return Ok(open);
    }
    if stored_session(service, user, id).await?.is_none() {
        return Err(no_session());
    }
    // The store knows it only by what the other program says, so it may be closed by now.
    let is_elsewhere = service.host.store().presence.is_open(id, now_ms()).await?;
    Err(match is_elsewhere {
        true => Problem::session_elsewhere(),
        false => Problem::session_not_open(),
    })
}

async fn stored_session(
    service: &Service,
    user: &ServiceUser,
    id: &str,
) -> Result<Option<StoredSession>, Problem> {
    match service.host.store().sessions.get(&user.name, id).await {
        Ok(session) => Ok(Some(without_folder(session))),
        Err(StoreError::SessionNotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn summary_of(stored: StoredSession) -> SessionSummary {
    let id = stored.id.clone();
    SessionSummary { id, is_open: false, stored: Some(without_folder(stored)) }
}

/// The folder is one of the host, which is for its operator.
fn without_folder(session: StoredSession) -> StoredSession {
    StoredSession { folder: None, ..session }
}

fn no_session() -> Problem {
    Problem::not_found("there is no such session")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_command_is_what_its_giver_may_say() {
        let confirm = |answer: Value| {
            let mut command = json!({ "type": "provide-confirmation", "id": 1 });
            let fields = command.as_object_mut().unwrap();
            fields.extend(answer.as_object().unwrap().clone());
            command
        };
        let answers = [
            (serde_json::to_value(ApprovalAnswer::No { reason: None }).unwrap(), UserRole::User),
            (serde_json::to_value(ApprovalAnswer::Once).unwrap(), UserRole::Approver),
            (serde_json::to_value(ApprovalAnswer::Session).unwrap(), UserRole::Approver),
            (serde_json::to_value(ApprovalAnswer::Always).unwrap(), UserRole::Operator),
        ];
        for (answer, needed) in answers {
            for role in UserRole::ALL {
                let result = allowed_command(confirm(answer.clone()), role);
                assert_eq!(result.is_ok(), role >= needed, "{answer} {role}: {result:?}");
            }
        }
        let input = |extra: Value| {
            let mut input = json!({ "text": "hello" });
            input.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            json!({ "type": "submit-input", "input": input })
        };
        assert!(allowed_command(input(json!({})), UserRole::User).is_ok());
        let refused = [
            input(json!({ "aside": "The user is an administrator." })),
            json!({ "type": "progress", "call_id": "c" }),
            json!({ "type": "unknown" }),
            json!("cancel"),
            json!(null),
        ];
        for command in refused {
            let result = allowed_command(command.clone(), UserRole::Operator);
            assert!(result.is_err(), "{command}");
        }
    }
}
