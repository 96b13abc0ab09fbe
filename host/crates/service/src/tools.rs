//! The routes of tools: list, check, call.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Path, State},
    response::{IntoResponse, Response},
};
use http::{HeaderMap, StatusCode};
use sallyport_contract::{
    CallReport, DenialReason, FailureKind, Outcome, RequestedCall, ToolDescriptor, ToolId,
};
use sallyport_runtime::{
    registry::{CallCheck, PluginLookupError},
    session_id::new_session_id,
};
use sallyport_session::BudgetRefusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    caller::RequestCaller,
    idempotency::{KeyedRequest, WorkFailure, WorkResult, work_reply},
    open_sessions::remove_details,
    problem::{Problem, ProblemKind},
    quota::QuotaUse,
    request_body::{JsonBody, JsonReply},
    service::Service,
};

/// The one call of a request.
const CALL_ID: &str = "call-1";

/// The tools of this moment.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ServedTools {
    /// In a stable order.
    tools: Vec<ToolDescriptor>,
}

/// What to call a tool with.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallBody {
    /// The arguments, as the tool's schema describes them.
    #[serde(default)]
    arguments: Map<String, Value>,
}

pub(crate) async fn list(State(service): State<Arc<Service>>) -> JsonReply<ServedTools> {
    JsonReply(ServedTools { tools: service.host.tools().to_vec() })
}

pub(crate) async fn check(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<RequestCaller>,
    Path(tool): Path<String>,
    JsonBody(body): JsonBody<CallBody>,
) -> Result<JsonReply<CallCheck>, Problem> {
    let tool = known_tool(&service, &tool)?;
    let arguments = Value::Object(body.arguments).to_string();
    let registry = service.host.registry();
    let check = registry.check_call(&caller.user.principal(), tool, arguments).await;
    check.map(JsonReply).map_err(|error| lookup_problem(&error))
}

pub(crate) async fn call(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<RequestCaller>,
    Path(tool): Path<String>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<CallBody>,
) -> Response {
    let tool = match known_tool(&service, &tool) {
        Ok(tool) => tool,
        Err(problem) => return problem.into_response(),
    };
    let arguments = Value::Object(body.arguments).to_string();
    let keyed = KeyedRequest {
        user: &caller.user.name,
        headers: &headers,
        target: format!("call {tool}"),
        body: arguments.as_bytes(),
    };
    let context = caller.user.principal().call_context(CALL_ID.to_owned(), &new_session_id());
    let call = RequestedCall { context, tool, arguments: arguments.clone() };
    let reply = service.idempotency.reply(keyed, || {
        let call_use = service.limits.calls.begin_use(&caller.user.name)?;
        Ok(make_call(Arc::clone(&service), call, call_use))
    });
    reply.await
}

/// Makes a call. The service's stop cancels it, and so does dropping the future; it has its record
/// in each case.
async fn make_call(service: Arc<Service>, call: RequestedCall, call_use: QuotaUse) -> WorkResult {
    let tool = call.tool.clone();
    // A call that begins while the service stops could end after its last record.
    let Some(_running) = service.begin_call() else { return Err(Problem::stopping().into()) };
    let report = tokio::select! {
        biased;
        () = service.stop.cancelled() => None,
        report = service.host.call_tool(call) => Some(report),
    };
    drop(call_use);
    let Some(mut report) = report else {
        service.metrics.count_call("cancelled");
        return Err(WorkFailure::CutOff(Problem::stopping()));
    };
    service.metrics.count_call(report.outcome.as_str());
    remove_details(&mut report);
    if let Some(problem) = refused_call_problem(&service, &tool, &report.outcome) {
        return Err(match report.effects.is_empty() {
            true => WorkFailure::NotDone(problem),
            false => WorkFailure::CutOff(problem),
        });
    }
    work_reply::<CallReport>(StatusCode::OK, &report)
}

/// The problem of a call that could not be made as it is: its arguments do not fit, it lacks the
/// account of its user, or a budget of the user stops it.
fn refused_call_problem(service: &Service, tool: &ToolId, outcome: &Outcome) -> Option<Problem> {
    match outcome {
        Outcome::InvalidArguments(failure) => Some(Problem::invalid_arguments(failure.sentences())),
        Outcome::Denied(denial) => match &denial.reason {
            DenialReason::BudgetSpent(spent) => Some(BudgetRefusal::Spent(spent.clone()).into()),
            DenialReason::BudgetUnreadable => Some(BudgetRefusal::Unreadable.into()),
            _ => None,
        },
        Outcome::Failed(failure) if failure.kind == FailureKind::AuthRequired => {
            let registry = service.host.registry();
            let plugin = registry.find_plugin(tool.plugin.as_str()).ok()?;
            plugin.account_service()?;
            let title = format!("the account of {} is not connected", tool.plugin);
            let problem = Problem::new(ProblemKind::ConnectionRequired, title);
            Some(problem.with_detail(failure.message.clone()))
        }
        _ => None,
    }
}

/// A tool that exists, whether it can be called or not.
fn known_tool(service: &Service, name: &str) -> Result<ToolId, Problem> {
    let tool: ToolId = name.parse().map_err(|_| no_tool())?;
    match service.host.registry().find_tool(&tool) {
        Ok(_) => Ok(tool),
        Err(error) => Err(lookup_problem(&error)),
    }
}

fn lookup_problem(error: &PluginLookupError) -> Problem {
    match error {
        PluginLookupError::Unknown { .. } => no_tool(),
        PluginLookupError::Unusable { .. } => {
            // The reason names what the operator has to mend.
            Problem::new(ProblemKind::ToolUnavailable, "the plugin of this tool cannot be used")
        }
    }
}

fn no_tool() -> Problem {
    Problem::not_found("there is no such tool")
}
