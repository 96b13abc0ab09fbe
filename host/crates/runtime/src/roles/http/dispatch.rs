//! Handles one request, from its head to its response.

use std::{
    net::SocketAddr,
    sync::{Arc, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header, uri::Authority};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use hyper_util::rt::TokioIo;
use sallyport_http_server::{HandshakeError, answer_handshake};
use sallyport_sandbox::roles::HttpBody;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::protocol::{Role, WebSocketConfig},
};

use super::{
    HttpSite, RouteHandler, WebSocketHandler,
    check::{self, HttpRefusal},
    connections::KnownPeer,
    key::{self, CredentialCheckResult},
};

/// Longest body of a request in bytes: the most that a plugin receives at once.
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// Timeout of reading a whole body.
const BODY_TIME_MAX: Duration = Duration::from_secs(30);

/// How much of an oversized body is still read, and for how long, because a client that is cut off
/// while it sends may never read the refusal.
const EXCESS_BYTES_MAX: usize = 8 * 1024 * 1024;
const EXCESS_TIME_MAX: Duration = Duration::from_secs(1);

/// Most concurrent WebSockets at one address.
const WEB_SOCKETS_MAX: usize = 64;

/// Longest message on a WebSocket in bytes: the limit of an input.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// Most unsent bytes for a client that does not read.
const UNSENT_BYTES_MAX: usize = 1024 * 1024;

const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

const NOT_FOUND: HttpRefusal = HttpRefusal(StatusCode::NOT_FOUND, "nothing is served here");
const NOT_UPGRADED: HttpRefusal =
    HttpRefusal(StatusCode::UPGRADE_REQUIRED, "only web sockets are served here");
const NOT_A_HANDSHAKE: HttpRefusal =
    HttpRefusal(StatusCode::BAD_REQUEST, "this is not a WebSocket handshake");
const UNSUPPORTED_VERSION: HttpRefusal =
    HttpRefusal(StatusCode::UPGRADE_REQUIRED, "use WebSocket version 13");
const TOO_LONG: HttpRefusal =
    HttpRefusal(StatusCode::PAYLOAD_TOO_LARGE, "the body is longer than 1 MiB");
const TOO_SLOW: HttpRefusal =
    HttpRefusal(StatusCode::REQUEST_TIMEOUT, "the body did not come in time");
const INCOMPLETE_BODY: HttpRefusal =
    HttpRefusal(StatusCode::BAD_REQUEST, "the body ends in the middle");
const RATE_EXCEEDED: HttpRefusal =
    HttpRefusal(StatusCode::TOO_MANY_REQUESTS, "too many requests: wait a second");
const CONCURRENCY_EXCEEDED: HttpRefusal =
    HttpRefusal(StatusCode::SERVICE_UNAVAILABLE, "too many requests at once: wait a second");

/// Answers a request, or refuses it.
pub(super) async fn answer_request(
    site: &HttpSite,
    peer: SocketAddr,
    known_peer: &KnownPeer,
    request: Request<Incoming>,
) -> Response<HttpBody> {
    let mut response =
        check_and_dispatch(site, peer, known_peer, request).await.unwrap_or_else(refusal_response);
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

async fn check_and_dispatch(
    site: &HttpSite,
    peer: SocketAddr,
    known_peer: &KnownPeer,
    request: Request<Incoming>,
) -> Result<Response<HttpBody>, HttpRefusal> {
    let (method, uri, headers) = (request.method(), request.uri(), request.headers());
    let authority = check::check_target(site.addr, site.public, method, uri, headers)?;
    let is_websocket = headers.contains_key(header::UPGRADE);
    match site.check_credentials(uri, is_websocket, headers) {
        CredentialCheckResult::Allowed => {}
        // A WebSocket handshake cannot be redirected, so the key in its address is enough.
        CredentialCheckResult::AllowedForSocket | CredentialCheckResult::Redirect { .. }
            if is_websocket => {}
        CredentialCheckResult::Redirect { location, cookie } if is_read_only_method(method) => {
            return Ok(redirect_with_cookie(&location, cookie));
        }
        CredentialCheckResult::AllowedForSocket
        | CredentialCheckResult::Redirect { .. }
        | CredentialCheckResult::Refused => return Err(check::INVALID_TOKEN),
    }
    known_peer.mark_known();
    let found = site.find_route(uri.path(), is_websocket);
    let route = found.ok_or_else(|| match site.find_route(uri.path(), !is_websocket) {
        Some(_) if !is_websocket => NOT_UPGRADED,
        _ => NOT_FOUND,
    })?;
    site.rate_limiter.check().map_err(|_| RATE_EXCEEDED)?;
    match &route.handler {
        RouteHandler::WebSocket(socket_handler) => {
            upgrade_to_websocket(site, socket_handler, peer, request)
        }
        RouteHandler::Http(request_handler) => {
            let read_permit = site.read_permits.try_acquire().map_err(|_| CONCURRENCY_EXCEEDED)?;
            let request = read_whole_request(authority, request).await?;
            drop(read_permit);
            let _permit = site.answer_permits.try_acquire().map_err(|_| CONCURRENCY_EXCEEDED)?;
            Ok(request_handler.handle_request(request).await)
        }
    }
}

fn is_read_only_method(method: &Method) -> bool {
    [Method::GET, Method::HEAD].contains(method)
}

/// Reads the whole request, and removes everything that is not for the plugin.
async fn read_whole_request(
    authority: Authority,
    request: Request<Incoming>,
) -> Result<Request<Full<Bytes>>, HttpRefusal> {
    let (mut head, body) = request.into_parts();
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    let uri = Uri::builder().scheme("http").authority(authority).path_and_query(path);
    head.uri = uri.build().map_err(|_| NOT_FOUND)?;
    key::remove_credentials(&mut head.headers);
    let body = read_body(body).await?;
    Ok(Request::from_parts(head, Full::new(body)))
}

async fn read_body(mut body: Incoming) -> Result<Bytes, HttpRefusal> {
    if body.size_hint().lower() > BODY_BYTES_MAX as u64 {
        return Err(drain_oversized_body(body).await);
    }
    let read = Limited::new(&mut body, BODY_BYTES_MAX).collect();
    match tokio::time::timeout(BODY_TIME_MAX, read).await {
        Err(_) => Err(TOO_SLOW),
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(drain_oversized_body(body).await),
        Ok(Err(_)) => Err(INCOMPLETE_BODY),
    }
}

/// Drains an oversized body, so that the client reads the refusal.
async fn drain_oversized_body(mut body: Incoming) -> HttpRefusal {
    let drained = async {
        let mut remaining = EXCESS_BYTES_MAX;
        while let Some(Ok(frame)) = body.frame().await {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            let Some(rest) = remaining.checked_sub(bytes) else { break };
            remaining = rest;
        }
    };
    // A client that sends for longer is cut off.
    let _ = tokio::time::timeout(EXCESS_TIME_MAX, drained).await;
    TOO_LONG
}

/// Upgrades the connection to a WebSocket.
fn upgrade_to_websocket(
    site: &HttpSite,
    socket_handler: &Arc<dyn WebSocketHandler>,
    peer: SocketAddr,
    mut request: Request<Incoming>,
) -> Result<Response<HttpBody>, HttpRefusal> {
    let response = websocket_response(&mut request)?;
    let mut socket_tasks = site.socket_tasks.lock().unwrap_or_else(PoisonError::into_inner);
    while socket_tasks.try_join_next().is_some() {}
    if socket_tasks.len() >= WEB_SOCKETS_MAX {
        return Err(CONCURRENCY_EXCEEDED);
    }
    let (socket_handler, upgrade) = (Arc::clone(socket_handler), hyper::upgrade::on(&mut request));
    socket_tasks.spawn(async move {
        // The upgrade fails if the client disconnects before the response is sent.
        let Ok(upgraded) = upgrade.await else { return };
        let (io, limits) = (TokioIo::new(upgraded), Some(websocket_config()));
        let socket = WebSocketStream::from_raw_socket(io, Role::Server, limits).await;
        socket_handler.handle_socket(socket, peer).await;
    });
    Ok(response)
}

/// Returns the response to a valid handshake.
fn websocket_response<B>(request: &mut Request<B>) -> Result<Response<HttpBody>, HttpRefusal> {
    let answered = answer_handshake(request, || text_body(Bytes::new()));
    let mut response = answered.map_err(|error| match error {
        HandshakeError::NoHandshake => NOT_A_HANDSHAKE,
        HandshakeError::OtherVersion => UNSUPPORTED_VERSION,
    })?;
    response.headers_mut().insert(header::CACHE_CONTROL, NO_STORE);
    Ok(response)
}

fn websocket_config() -> WebSocketConfig {
    WebSocketConfig::default()
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX))
        .max_write_buffer_size(UNSENT_BYTES_MAX)
}

/// Redirects a browser to the address without the key.
fn redirect_with_cookie(location: &str, cookie: HeaderValue) -> Response<HttpBody> {
    let Ok(location) = HeaderValue::from_str(location) else { return refusal_response(NOT_FOUND) };
    let mut response = plain_text_response(StatusCode::SEE_OTHER, Bytes::new());
    let headers = response.headers_mut();
    headers.insert(header::LOCATION, location);
    headers.insert(header::SET_COOKIE, cookie);
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

fn refusal_response(HttpRefusal(status, message): HttpRefusal) -> Response<HttpBody> {
    let mut response = plain_text_response(status, format!("{message}\n").into());
    let headers = response.headers_mut();
    match status {
        StatusCode::UNAUTHORIZED => {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        StatusCode::UPGRADE_REQUIRED => {
            headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
            headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        }
        _ => {}
    }
    response
}

fn plain_text_response(status: StatusCode, text: Bytes) -> Response<HttpBody> {
    let mut response = Response::new(text_body(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, NO_STORE);
    response
}

pub(super) fn text_body(text: Bytes) -> HttpBody {
    Full::new(text).map_err(|never| match never {}).boxed_unsync()
}
