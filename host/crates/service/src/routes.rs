//! The table of routes. The router and the OpenAPI document are made of it, so no route is without
//! a description, a check of the role, or a row in the tests.

use std::sync::Arc;

use axum::{Router, middleware};
use sallyport_contract::CallReport;
use sallyport_runtime::registry::CallCheck;
use sallyport_session::{FrontEndCommand, SessionEvent};
use schemars::SchemaGenerator;
use serde_json::Value;

use crate::{
    access::{RouteAccess, RouteGuard, guard_route},
    approvals::{self, AnswerTaken, AnswerToGive, ApprovalList, QuestionCard},
    audit::{self, AuditPage, AuditQuery},
    connections::{self, CallbackQuery, ConnectionList, FinishedSignIn, SignInPlace},
    console, event_socket,
    event_stream::EVENTS_TYPE,
    health::{self, HealthReport},
    metrics::METRICS_TYPE,
    openapi::describe_routes,
    plugins::{self, GrantTable, PluginList},
    problem::{Problem, ProblemKind},
    protection::protect,
    request_body::{JSON_TYPE as JSON, JsonReply},
    role::UserRole,
    route_spec::{RouteAnswer, RouteSpec},
    service::Service,
    session_opening::SessionToOpen,
    session_routes::{
        self, CommandTaken, EventQuery, ExportQuery, SessionPage, SessionPageQuery, SessionSummary,
        SessionView,
    },
    tools::{self, CallBody, ServedTools},
    usage::{self, UsageQuery, UsageReport},
};

const OPEN: RouteAccess = RouteAccess::Open;
const USER: RouteAccess = RouteAccess::Role(UserRole::User);
const OPERATOR: RouteAccess = RouteAccess::Role(UserRole::Operator);

/// All routes.
pub(crate) fn all_routes() -> Vec<RouteSpec> {
    let parts = [
        session_specs(),
        tool_specs(),
        connection_specs(),
        approval_specs(),
        record_specs(),
        watch_specs(),
    ];
    parts.into_iter().flatten().collect()
}

fn session_specs() -> Vec<RouteSpec> {
    let events = RouteSpec::get(USER, "/v1/sessions/{session_id}/events", session_routes::events);
    let export = RouteSpec::get(USER, "/v1/sessions/{session_id}/export", session_routes::export);
    let export_answer = RouteAnswer {
        status: 200,
        content: vec![
            (JSON, SchemaGenerator::subschema_for::<Value>),
            ("text/markdown", SchemaGenerator::subschema_for::<String>),
        ],
    };
    vec![
        RouteSpec::post("/v1/sessions", session_routes::open)
            .named("openSession", "Begins a session, or opens one that exists.")
            .body::<SessionToOpen>()
            .answers::<SessionSummary>(201)
            .answers::<SessionSummary>(200)
            .keyed(),
        RouteSpec::get(USER, "/v1/sessions", session_routes::list)
            .named("listSessions", "Lists your sessions, the one used last first.")
            .query::<SessionPageQuery>()
            .answers::<SessionPage>(200),
        RouteSpec::get(USER, "/v1/sessions/{session_id}", session_routes::show)
            .named("showSession", "Shows a session with its conversation and its open questions.")
            .answers::<SessionView>(200),
        RouteSpec { takes_event_id: true, ..events }
            .named("streamEvents", "Streams the events of an open session.")
            .query::<EventQuery>()
            .with_answer(RouteAnswer::new::<SessionEvent>(200, EVENTS_TYPE)),
        RouteSpec::get(USER, "/v1/sessions/{session_id}/socket", event_socket::open_socket)
            .named("openSocket", "Opens a WebSocket with the events of a session, for commands.")
            .query::<EventQuery>()
            .with_answer(RouteAnswer { status: 101, content: Vec::new() }),
        RouteSpec::post("/v1/sessions/{session_id}/commands", session_routes::command)
            .named("commandSession", "Gives an open session a command, such as an input.")
            .body::<FrontEndCommand>()
            .answers::<CommandTaken>(202)
            .keyed(),
        RouteSpec::post("/v1/sessions/{session_id}/close", session_routes::close)
            .named("closeSession", "Closes a session. It is kept and can be opened again.")
            .with_answer(RouteAnswer { status: 204, content: Vec::new() }),
        export
            .named("exportSession", "Exports a session with all its texts and files.")
            .query::<ExportQuery>()
            .with_answer(export_answer),
    ]
}

fn tool_specs() -> Vec<RouteSpec> {
    vec![
        RouteSpec::get(USER, "/v1/tools", tools::list)
            .named("listTools", "Lists the tools with the schemas of their arguments.")
            .answers::<ServedTools>(200),
        RouteSpec::post("/v1/tools/{tool}/check", tools::check)
            .named("checkCall", "Checks a call without making it: arguments, rules and policy.")
            .body::<CallBody>()
            .answers::<CallCheck>(200),
        RouteSpec::post("/v1/tools/{tool}/call", tools::call)
            .named("callTool", "Calls a tool. The answer says how the call ended, also if denied.")
            .body::<CallBody>()
            .answers::<CallReport>(200)
            .keyed(),
        RouteSpec::get(USER, "/v1/plugins", plugins::list)
            .named("listPlugins", "Lists the plugins.")
            .answers::<PluginList>(200),
        RouteSpec::get(OPERATOR, "/v1/grants", plugins::grants)
            .named("listGrants", "Shows what the policy allows each plugin.")
            .answers::<GrantTable>(200),
    ]
}

fn connection_specs() -> Vec<RouteSpec> {
    vec![
        RouteSpec::get(USER, "/v1/connections", connections::list)
            .named("listConnections", "Lists your accounts at the services of plugins.")
            .answers::<ConnectionList>(200),
        RouteSpec::post("/v1/connections/{plugin}/connect", connections::connect)
            .named("connectAccount", "Begins a sign-in, and says where your browser has to go.")
            .answers::<SignInPlace>(200),
        RouteSpec::post("/v1/connections/{plugin}/disconnect", connections::disconnect)
            .named("disconnectAccount", "Ends a connection and removes its tokens.")
            .with_answer(RouteAnswer { status: 204, content: Vec::new() }),
        RouteSpec::get(OPEN, "/oauth/callback/{plugin}", connections::callback)
            .named(
                "finishSignIn",
                "Finishes a sign-in. The browser that began it comes here with its cookie, and is \
                 sent on; a program comes with its token.",
            )
            .query::<CallbackQuery>()
            .answers::<FinishedSignIn>(200)
            .with_answer(RouteAnswer { status: 303, content: Vec::new() }),
    ]
}

fn approval_specs() -> Vec<RouteSpec> {
    vec![
        RouteSpec::get(USER, "/v1/approvals", approvals::list)
            .named("listApprovals", "Lists the questions that wait: yours, or all for approvers.")
            .answers::<ApprovalList>(200),
        RouteSpec::get(USER, "/v1/approvals/{approval_id}", approvals::show)
            .named("showApproval", "Shows a question with everything that a yes covers.")
            .answers::<QuestionCard>(200),
        RouteSpec::post("/v1/approvals/{approval_id}/answer", approvals::answer)
            .named("answerApproval", "Answers a question. A yes names its hash.")
            .body::<AnswerToGive>()
            .answers::<AnswerTaken>(200),
    ]
}

fn record_specs() -> Vec<RouteSpec> {
    vec![
        RouteSpec::get(USER, "/v1/audit", audit::list)
            .named(
                "listAudit",
                "Shows records of decisions and calls: yours, or all for operators.",
            )
            .query::<AuditQuery>()
            .answers::<AuditPage>(200),
        RouteSpec::get(USER, "/v1/usage", usage::report)
            .named("showUsage", "Shows how many turns and tokens your sessions have used.")
            .query::<UsageQuery>()
            .answers::<UsageReport>(200),
    ]
}

fn watch_specs() -> Vec<RouteSpec> {
    vec![
        RouteSpec::get(OPEN, "/healthz", health::health)
            .named("health", "Says that the service answers.")
            .answers::<HealthReport>(200),
        RouteSpec::get(OPEN, "/readyz", health::readiness)
            .named("readiness", "Says whether the service takes requests.")
            .answers::<HealthReport>(200),
        RouteSpec::get(OPERATOR, "/metrics", health::metrics)
            .named("metrics", "Counts, in the text format of Prometheus.")
            .with_answer(RouteAnswer::new::<String>(200, METRICS_TYPE)),
        RouteSpec::get(OPEN, "/v1/openapi.json", document)
            .named("openapi", "Describes this API.")
            .answers::<Value>(200),
    ]
}

/// Makes the router. The routes of the console are its own pages', and in no document.
pub(crate) fn router(service: &Arc<Service>) -> Router {
    let router = all_routes().into_iter().fold(Router::new(), |router, route| {
        let guard = RouteGuard { service: Arc::clone(service), access: route.access };
        let guarded = middleware::from_fn_with_state(guard, guard_route);
        router.route(route.path, route.handler.route_layer(guarded))
    });
    router
        .merge(console::routes(service))
        .fallback(no_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(Arc::clone(service), protect))
        .with_state(Arc::clone(service))
}

async fn no_route() -> Problem {
    Problem::not_found("there is nothing at this path")
}

async fn wrong_method() -> Problem {
    Problem::new(ProblemKind::MethodNotAllowed, "this path does not take this method")
}

/// Returns the OpenAPI document of the service.
pub fn openapi_document() -> Value {
    describe_routes(&all_routes())
}

async fn document() -> JsonReply<Value> {
    JsonReply(openapi_document())
}
