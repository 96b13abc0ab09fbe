//! The requests of a client.
//!
//! A request that changes the order of things in a session, such as a prompt or a cancel, takes
//! effect before the next message is read. Those that open, close or delete the same session run one
//! after the other, in the order of the client. All others run beside each other.

use std::sync::Arc;

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    prompt::ContentBlock,
    rpc::{RequestId, RpcError, TRACE_PARENT},
    server::AcpServer,
    session_config::QuestionMode,
    session_params::{ListParams, OpenKind, OpenParams},
};

/// The version of the protocol.
const PROTOCOL_VERSION: u16 = 1;

/// The parameters of `initialize`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitializeParams {
    /// Any version is answered with ours.
    #[serde(rename = "protocolVersion")]
    _protocol_version: Value,
    #[serde(default)]
    client_capabilities: Value,
}

/// The parameters of a request about one session.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SessionParams {
    session_id: String,
}

/// The parameters of `session/prompt`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptParams {
    session_id: String,
    prompt: Vec<ContentBlock>,
    #[serde(default, rename = "_meta")]
    meta: Value,
}

/// The parameters of `session/set_mode`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ModeParams {
    session_id: String,
    mode_id: String,
}

/// The parameters of `session/set_config_option`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConfigParams {
    session_id: String,
    config_id: String,
    value: Value,
}

/// The parameters of `$/cancel_request`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CancelRequestParams {
    request_id: RequestId,
}

/// How a request continues.
enum RequestOutcome {
    Done(Result<Value, RpcError>),
    /// The session answers it at the end of the turn.
    AnsweredLater,
    /// It continues beside other requests.
    Open(OpenKind, OpenParams),
    List(ListParams),
    Close(String),
    Delete(String),
    Authenticate,
}

impl RequestOutcome {
    /// The session that the request opens, closes or deletes, if it exists by now.
    fn session_to_change(&self) -> Option<&str> {
        match self {
            Self::Open(OpenKind::Load | OpenKind::Resume, params) => params.session_id.as_deref(),
            Self::Close(session_id) | Self::Delete(session_id) => Some(session_id),
            Self::Open(OpenKind::New, _)
            | Self::Done(_)
            | Self::AnsweredLater
            | Self::List(_)
            | Self::Authenticate => None,
        }
    }
}

/// Handles a request. It does not wait for anything.
pub(crate) fn handle_request(server: &Arc<AcpServer>, id: RequestId, method: &str, params: Value) {
    let outcome = begin_request(server, &id, method, params)
        .unwrap_or_else(|error| RequestOutcome::Done(Err(error)));
    let server = Arc::clone(server);
    // Taken before the next message is read, so that the client's order counts.
    let place = outcome.session_to_change().map(|session_id| server.take_place(session_id));
    tokio::spawn(async move {
        let _turn = match place {
            Some(place) => Some(place.reach().await),
            None => None,
        };
        let result = match outcome {
            RequestOutcome::AnsweredLater => return,
            RequestOutcome::Done(result) => result,
            RequestOutcome::Open(kind, params) => server.open_session(kind, params).await,
            RequestOutcome::List(params) => server.list_sessions(params).await,
            RequestOutcome::Close(session_id) => server.close_session(&session_id).await,
            RequestOutcome::Delete(session_id) => server.delete_session(&session_id).await,
            RequestOutcome::Authenticate => server.authenticate().await,
        };
        server.output().answer(id, result).await;
    });
}

fn begin_request(
    server: &Arc<AcpServer>,
    id: &RequestId,
    method: &str,
    params: Value,
) -> Result<RequestOutcome, RpcError> {
    Ok(match method {
        "initialize" => RequestOutcome::Done(initialize(server, parse_params(params)?)),
        "authenticate" => RequestOutcome::Authenticate,
        "session/new" => RequestOutcome::Open(OpenKind::New, parse_params(params)?),
        "session/load" => RequestOutcome::Open(OpenKind::Load, parse_params(params)?),
        "session/resume" => RequestOutcome::Open(OpenKind::Resume, parse_params(params)?),
        "session/list" => RequestOutcome::List(match params {
            Value::Null => ListParams::default(),
            params => parse_params(params)?,
        }),
        "session/close" => RequestOutcome::Close(session_param(params)?),
        "session/delete" => RequestOutcome::Delete(session_param(params)?),
        "session/prompt" => {
            let PromptParams { session_id, prompt, meta } = parse_params(params)?;
            // One that is not valid begins a trace of its own, as the standard has it.
            let caller = meta[TRACE_PARENT].as_str().and_then(|text| text.parse().ok());
            server.find_session(&session_id)?.begin_prompt(id.clone(), prompt, caller)?;
            RequestOutcome::AnsweredLater
        }
        "session/set_mode" => {
            let ModeParams { session_id, mode_id } = parse_params(params)?;
            let mode = QuestionMode::from_id(&mode_id)?;
            server.find_session(&session_id)?.set_mode(mode);
            RequestOutcome::Done(Ok(json!({})))
        }
        "session/set_config_option" => {
            let ConfigParams { session_id, config_id, value } = parse_params(params)?;
            RequestOutcome::Done(server.set_config_option(&session_id, &config_id, &value))
        }
        other => return Err(RpcError::method_not_found(other)),
    })
}

/// Handles a notification. One that is not known, or that makes no sense, is ignored, because
/// nothing answers it.
pub(crate) fn handle_notification(server: &AcpServer, method: &str, params: Value) {
    match method {
        "session/cancel" => {
            let session = session_param(params).and_then(|id| server.find_session(&id));
            session.into_iter().for_each(|session| session.cancel_prompt());
        }
        "$/cancel_request" => {
            let request = parse_params(params).map(|CancelRequestParams { request_id }| request_id);
            request.into_iter().for_each(|request| server.cancel_request(&request));
        }
        _ => {}
    }
}

fn parse_params<T: DeserializeOwned>(params: Value) -> Result<T, RpcError> {
    serde_json::from_value(params).map_err(|error| RpcError::invalid_params(error.to_string()))
}

fn session_param(params: Value) -> Result<String, RpcError> {
    parse_params(params).map(|SessionParams { session_id }| session_id)
}

fn initialize(server: &AcpServer, params: InitializeParams) -> Result<Value, RpcError> {
    let capabilities = &params.client_capabilities;
    server.note_client(capabilities["session"]["notices"].is_object());
    let has_terminal = capabilities["auth"]["terminal"] == true;
    Ok(json!({
        "protocolVersion": PROTOCOL_VERSION,
        "agentInfo": {
            "name": "sallyport",
            "title": "Sallyport",
            "version": env!("CARGO_PKG_VERSION"),
        },
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": { "image": true, "audio": true, "embeddedContext": true },
            "mcpCapabilities": { "http": true, "sse": false },
            "sessionCapabilities": { "list": {}, "resume": {}, "close": {}, "delete": {} },
        },
        "authMethods": server.auth_methods(has_terminal),
    }))
}
