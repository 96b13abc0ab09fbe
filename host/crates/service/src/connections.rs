//! The routes of connections: the accounts of a user at the services of plugins.
//!
//! Connecting leads the user's browser to the service and back to `/oauth/callback/PLUGIN`. Whoever
//! comes back has to be who began: the browser with its cookie, or the program with its token. Only
//! then is the account connected, to the user who began.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Path, RawQuery, State},
    response::{IntoResponse, Response},
};
use http::{HeaderMap, StatusCode, header};
use sallyport_connections::AccountService;
use sallyport_contract::PluginName;
use sallyport_runtime::{
    clock::now_ms,
    connections::{
        AccountError, ConnectionDesk, ConnectionFacts,
        login::{Connected, LoginError, PendingServerLogin, SignInAnswer},
    },
    registry::RegisteredPlugin,
};
use sallyport_store::ConnectionStatus;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    access::caller_of_token,
    browser_login::CONNECT_COOKIE,
    caller::RequestCaller,
    console::{NoticePage, answer_url, read_answer, show_notice},
    pending_return::RETURN_TIME_MAX_MS,
    pending_sign_ins::{PendingSignIn, ReturningParty, SignInRefusal},
    problem::{Problem, ProblemKind},
    request_body::JsonReply,
    service::Service,
    sign_on::SignOnOutcome,
};

/// The page of the console that shows connections.
const CONNECTIONS_PAGE: &str = "/console#/connections";

/// The accounts that plugins can use for you.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ConnectionList {
    connections: Vec<ServedConnection>,
}

/// What is known of your account at the service of a plugin.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ServedConnection {
    /// The plugin.
    plugin: PluginName,
    /// The service, as people call it.
    name: String,
    status: ServedStatus,
    /// Who the account belongs to, according to the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<String>,
    /// The permissions that it has.
    scopes: Vec<String>,
    /// The permissions that the plugin needs.
    required_scopes: Vec<String>,
    /// When its token ends, in milliseconds since 1970, if the service says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_ms: Option<u64>,
    /// Whether the token is refreshed by itself.
    is_refreshed: bool,
}

/// Whether an account can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ServedStatus {
    /// It can.
    Connected,
    /// The service refused it: connect it again.
    Expired,
    /// There is none.
    Disconnected,
}

/// Where to sign in.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SignInPlace {
    /// The address at the service, for your browser.
    url: String,
    /// Until when it can be used, in milliseconds since 1970.
    expires_ms: u64,
}

/// What the service sends back with the browser.
#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "it describes the query, which is read with each part at most once")]
pub(crate) struct CallbackQuery {
    /// The state of the sign-in.
    state: Option<String>,
    /// The code, if the user agreed.
    code: Option<String>,
    /// The service that answers.
    iss: Option<String>,
    /// The service's word for its refusal.
    error: Option<String>,
    /// The same for people.
    error_description: Option<String>,
}

/// A sign-in that was finished by a program.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FinishedSignIn {
    plugin: PluginName,
    /// The permissions that the plugin needs and you did not give.
    missing_scopes: Vec<String>,
    /// Whether the account is refreshed by itself.
    is_refreshed: bool,
}

pub(crate) async fn list(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<RequestCaller>,
) -> Result<JsonReply<ConnectionList>, Problem> {
    let known = desk(&service)?.list(&caller.user.name).await?;
    let registry = service.host.registry();
    let ready = registry.entries().filter(|entry| entry.is_ready());
    let connections = ready.filter_map(|entry| entry.account_service()).map(|account| {
        let plugin = account.plugin.as_str();
        served_connection(account, known.iter().find(|one| one.plugin_key == plugin))
    });
    Ok(JsonReply(ConnectionList { connections: connections.collect() }))
}

fn served_connection(
    account: &AccountService,
    facts: Option<&ConnectionFacts>,
) -> ServedConnection {
    let status = facts.map_or(ServedStatus::Disconnected, served_status);
    let facts = facts.filter(|_| status != ServedStatus::Disconnected);
    let text =
        |facts: &ConnectionFacts| Some(facts.account().to_owned()).filter(|one| !one.is_empty());
    let scopes = facts.map(|facts| facts.scope.split_whitespace().map(str::to_owned).collect());
    ServedConnection {
        plugin: account.plugin.clone(),
        name: account.shown_name.clone(),
        status,
        account: facts.and_then(text),
        scopes: scopes.unwrap_or_default(),
        required_scopes: account.auth.required_scopes.clone(),
        expires_ms: facts.and_then(|facts| facts.expires_at),
        is_refreshed: facts.is_some_and(|facts| facts.has_refresh_token),
    }
}

fn served_status(facts: &ConnectionFacts) -> ServedStatus {
    match facts.status {
        ConnectionStatus::Active => ServedStatus::Connected,
        ConnectionStatus::Expired => ServedStatus::Expired,
        ConnectionStatus::Disconnected => ServedStatus::Disconnected,
    }
}

/// Begins a sign-in. A browser gets a cookie, which it has to bring back.
pub(crate) async fn connect(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<RequestCaller>,
    Path(plugin): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let account = find_account(&service, &plugin)?;
    let redirect = answer_url(&service, &headers, &format!("/oauth/callback/{}", account.plugin))?;
    let is_over_tls = redirect.scheme() == "https";
    let login = PendingServerLogin::begin(&account, redirect.as_str()).map_err(|error| {
        let problem = Problem::new(ProblemKind::ToolUnavailable, "the sign-in cannot begin");
        problem.with_detail(error.to_string())
    })?;
    let url = login.address().to_owned();
    let is_browser = caller.is_browser();
    let begun_ms = now_ms();
    let begun = PendingSignIn { caller, login, is_over_tls, begun_ms };
    let browser_id = service.sign_ins.add(begun, is_browser);
    let browser_id = browser_id
        .map_err(|_| Problem::new(ProblemKind::Internal, "the system has no random bytes"))?;
    let place = SignInPlace { url, expires_ms: begun_ms + RETURN_TIME_MAX_MS };
    let mut reply = JsonReply(place).into_response();
    if let Some(browser_id) = browser_id {
        let cookie = CONNECT_COOKIE.set(&headers, is_over_tls, browser_id.expose());
        reply.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(reply)
}

/// Finishes a sign-in, when the browser or the program that began it comes back.
pub(crate) async fn callback(
    State(service): State<Arc<Service>>,
    Path(plugin): Path<String>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let program = match headers.contains_key(header::AUTHORIZATION) {
        true => Some(caller_of_token(&service, &headers)?),
        false => None,
    };
    let wants_page = program.is_none() && accepts_html(&headers);
    let is_program = program.is_some();
    let finished = finish(&service, &plugin, program, &headers, query.as_deref()).await;
    match finished {
        Ok((finished, _)) if is_program => Ok(JsonReply(finished).into_response()),
        Ok((_, is_over_tls)) => Ok(to_console(&headers, is_over_tls)),
        Err(refusal) if wants_page => Ok(show_refusal(&refusal)),
        Err(refusal) => Err(refusal.into()),
    }
}

/// Whether the other side shows pages.
fn accepts_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|line| line.to_str().ok());
    accepted.into_iter().any(|line| line.contains("text/html"))
}

async fn finish(
    service: &Arc<Service>,
    plugin: &str,
    program: Option<RequestCaller>,
    headers: &HeaderMap,
    query: Option<&str>,
) -> Result<(FinishedSignIn, bool), SignInRefusal> {
    let answer = read_answer(query.unwrap_or_default()).ok_or(SignInRefusal::NoAnswer)?;
    let party = match &program {
        Some(caller) => ReturningParty::Program(caller),
        None => ReturningParty::Browser(CONNECT_COOKIE.find_ids(headers)),
    };
    let begun = service.sign_ins.take(&answer.state, plugin, party, now_ms())?;
    if !begun.caller.is_valid(service) {
        return Err(SignInRefusal::LoginEnded);
    }
    let outcome = match answer.outcome {
        SignOnOutcome::Code(code) => SignInAnswer::Code(code),
        SignOnOutcome::Refused(word, words) => SignInAnswer::Refused(words.unwrap_or(word)),
        SignOnOutcome::Nothing => return Err(SignInRefusal::NoAnswer),
    };
    let is_over_tls = begun.is_over_tls;
    let plugin = begun.login.plugin().clone();
    let connected = exchange(service, begun, answer.issuer, outcome).await?;
    let Connected { missing_scopes, has_refresh_token } = connected;
    Ok((FinishedSignIn { plugin, missing_scopes, is_refreshed: has_refresh_token }, is_over_tls))
}

/// Has the code exchanged and the account kept, in a task of its own: a code counts once, so a
/// browser that goes away must not lose the account.
async fn exchange(
    service: &Arc<Service>,
    begun: PendingSignIn,
    issuer: Option<String>,
    outcome: SignInAnswer,
) -> Result<Connected, SignInRefusal> {
    let desk = service.host.connections().ok_or(SignInRefusal::NotKept)?;
    let task = tokio::spawn(async move {
        let user = begun.caller.user.name.clone();
        begun.login.finish(&desk, &user, issuer.as_deref(), outcome).await
    });
    match task.await {
        Ok(finished) => finished.map_err(refusal_of),
        Err(_) => Err(SignInRefusal::NotKept),
    }
}

fn refusal_of(error: LoginError) -> SignInRefusal {
    match error {
        // The text may name a file of the host.
        LoginError::Account(AccountError::Key { .. } | AccountError::Store(_)) => {
            SignInRefusal::NotKept
        }
        error => SignInRefusal::ByService(error.to_string()),
    }
}

fn to_console(headers: &HeaderMap, is_over_tls: bool) -> Response {
    let cookie = CONNECT_COOKIE.remove(headers, is_over_tls);
    let place = [(header::LOCATION, CONNECTIONS_PAGE)];
    let mut reply = (StatusCode::SEE_OTHER, place).into_response();
    reply.headers_mut().append(header::SET_COOKIE, cookie);
    reply
}

fn show_refusal(refusal: &SignInRefusal) -> Response {
    let page = NoticePage {
        title: "Account not connected",
        heading: "The account is not connected",
        why: &refusal.to_string(),
        hint: refusal.hint(),
        back: (CONNECTIONS_PAGE, "Back to your connections"),
    };
    show_notice(refusal.status(), &page)
}

pub(crate) async fn disconnect(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<RequestCaller>,
    Path(plugin): Path<String>,
) -> Result<StatusCode, Problem> {
    let plugin: PluginName = plugin.parse().map_err(|_| no_account())?;
    match desk(&service)?.disconnect(&caller.user.name, &plugin).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(no_account()),
    }
}

fn desk(service: &Service) -> Result<Arc<ConnectionDesk>, Problem> {
    service.host.connections().ok_or_else(no_account)
}

fn find_account(service: &Service, plugin: &str) -> Result<Arc<AccountService>, Problem> {
    let registry = service.host.registry();
    let entry = registry.find_plugin(plugin).ok().filter(|entry| entry.is_ready());
    let account = entry.and_then(|entry| RegisteredPlugin::account_service(entry)).cloned();
    account.ok_or_else(no_account)
}

fn no_account() -> Problem {
    Problem::not_found("there is no such account")
}

impl From<AccountError> for Problem {
    fn from(error: AccountError) -> Self {
        match error {
            AccountError::Store(error) => error.into(),
            AccountError::Key { .. } => {
                Self::new(ProblemKind::StoreUnavailable, "the accounts cannot be read now")
            }
            error => Self::new(ProblemKind::Internal, error.to_string()),
        }
    }
}
