//! Connections over HTTP, at one address of this machine.
//!
//! A server at a loopback address is reached by every program of this machine, and through a browser
//! by every page. So the names of host and origin are checked, and a token can be demanded; at any
//! other address it has to be.

use std::{
    convert::Infallible, error::Error, future::Future, net::SocketAddr, sync::Arc, time::Duration,
};

use constant_time_eq::constant_time_eq;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited, combinators::BoxBody};
use hyper::body::{Body, Bytes, Incoming};
use rmcp::transport::{
    StreamableHttpServerConfig, StreamableHttpService, common::http_header::HEADER_SESSION_ID,
    streamable_http_server::session::local::LocalSessionManager,
};
use sallyport_contract::Secret;
use sallyport_http_server::{HttpConnectionLimits, HttpConnections};
use tokio::{net::TcpListener, sync::Semaphore, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    handler::McpConnection,
    server::McpServer,
    stdio::{ConnectionEnd, LAST_ANSWERS_TIME_MAX},
};

/// The path of the endpoint.
pub const HTTP_PATH: &str = "/mcp";

/// Longest body of a request in bytes, as of a message over standard input.
const BODY_BYTES_MAX: usize = 8 << 20;

/// Most sessions at the same time, and most requests without a session. Each has a few kilobytes.
const SESSIONS_MAX: usize = 64;

/// A client opens two or three connections.
const CONNECTION_LIMITS: HttpConnectionLimits =
    HttpConnectionLimits { count_max: 256, head_bytes_max: 32 << 10, time_max: None };

/// How long a client may take to send the body of a request.
const BODY_TIME_MAX: Duration = Duration::from_secs(30);

/// When a client may try again that found no place.
const RETRY_AFTER_SECONDS: &str = "10";

/// The origins of pages that this machine serves itself, at any port.
const LOCAL_ORIGINS: [&str; 6] = [
    "http://localhost:*",
    "https://localhost:*",
    "http://127.0.0.1:*",
    "https://127.0.0.1:*",
    "http://[::1]:*",
    "https://[::1]:*",
];

type HttpService = StreamableHttpService<McpConnection, LocalSessionManager>;
type HttpResponse = Response<BoxBody<Bytes, Infallible>>;

/// Where clients are served.
pub struct HttpEndpoint {
    /// The open address.
    pub listener: TcpListener,
    /// The token that each request has to show, if any.
    pub token: Option<Secret>,
}

/// Serves clients until `stop`. It returns when every call has ended and has its record.
pub async fn serve_http(
    server: Arc<McpServer>,
    endpoint: HttpEndpoint,
    stop: impl Future<Output = ()>,
) -> ConnectionEnd {
    let HttpEndpoint { listener, token } = endpoint;
    let closing = CancellationToken::new();
    let is_local = listener.local_addr().is_ok_and(|address| address.ip().is_loopback());
    let places = Arc::new(Semaphore::new(SESSIONS_MAX));
    let service = http_service(Arc::clone(&server), Arc::clone(&places), closing.clone(), is_local);
    let guarded = Arc::new(GuardedService { service, places, token });
    let mut connections = HttpConnections::new(CONNECTION_LIMITS, closing.clone());
    let answer = move |request, _| {
        let guarded = Arc::clone(&guarded);
        async move { guarded.answer(request).await }
    };
    tokio::select! {
        () = connections.accept(&listener, answer) => {}
        () = stop => {}
    }
    drop(listener);
    server.stop().await;
    closing.cancel();
    connections.end(LAST_ANSWERS_TIME_MAX).await;
    ConnectionEnd::Stopped
}

fn http_service(
    server: Arc<McpServer>,
    places: Arc<Semaphore>,
    closing: CancellationToken,
    is_local: bool,
) -> HttpService {
    let config = StreamableHttpServerConfig::default()
        .with_cancellation_token(closing)
        .with_max_request_body_bytes(BODY_BYTES_MAX)
        .with_allowed_origins(LOCAL_ORIGINS)
        .enforce_origin_validation();
    // The names of another machine are unknown here; its clients show the token.
    let config = if is_local { config } else { config.disable_allowed_hosts() };
    let connect = move || match Arc::clone(&places).try_acquire_owned() {
        Ok(place) => Ok(McpConnection::with_place(Arc::clone(&server), Some(place))),
        Err(_) => Err(std::io::Error::other("there are too many sessions")),
    };
    HttpService::new(connect, Arc::new(LocalSessionManager::default()), config)
}

/// The service behind the checks of path and token.
struct GuardedService {
    service: HttpService,
    /// The places for sessions, and for requests without one.
    places: Arc<Semaphore>,
    token: Option<Secret>,
}

impl GuardedService {
    async fn answer(&self, request: Request<Incoming>) -> HttpResponse {
        if !self.is_authorised(&request) {
            let problem = match request.headers().contains_key(header::AUTHORIZATION) {
                true => "the token is not valid",
                false => "a token is missing",
            };
            let mut response = text_response(StatusCode::UNAUTHORIZED, problem);
            let scheme = header::HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
            return response;
        }
        let has_session = request.headers().contains_key(HEADER_SESSION_ID);
        match request.uri().path() {
            // The library would answer that the server has failed.
            HTTP_PATH if !has_session && self.places.available_permits() == 0 => {
                let mut response = text_response(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "too many sessions are open; end one, or try again later",
                );
                let seconds = header::HeaderValue::from_static(RETRY_AFTER_SECONDS);
                response.headers_mut().insert(header::RETRY_AFTER, seconds);
                response
            }
            HTTP_PATH => self.handle(request).await,
            _ => text_response(StatusCode::NOT_FOUND, "the endpoint is /mcp"),
        }
    }

    async fn handle(&self, request: Request<Incoming>) -> HttpResponse {
        let (head, body) = request.into_parts();
        let is_end = head.method == Method::DELETE;
        let body = match read_body(body).await {
            Ok(body) => body,
            Err((status, text)) => return text_response(status, text),
        };
        let mut response = self.service.handle(Request::from_parts(head, Full::new(body))).await;
        // The session has ended by now, and clients warn about any other answer.
        if is_end && response.status() == StatusCode::ACCEPTED {
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        response
    }

    fn is_authorised(&self, request: &Request<Incoming>) -> bool {
        let Some(token) = &self.token else { return true };
        let shown = request.headers().get(header::AUTHORIZATION);
        let shown = shown.and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
        shown.is_some_and(|shown| constant_time_eq(shown, token.expose().as_bytes()))
    }
}

/// Reads a whole body, so that a client that sends one slowly holds its connection for a limited
/// time.
async fn read_body<B>(body: B) -> Result<Bytes, (StatusCode, &'static str)>
where
    B: Body,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let body = Limited::new(body, BODY_BYTES_MAX).collect();
    match timeout(BODY_TIME_MAX, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err((StatusCode::PAYLOAD_TOO_LARGE, "the body is longer than 8 MiB"))
        }
        Ok(Err(_)) => Err((StatusCode::BAD_REQUEST, "the body has no end")),
        Err(_) => Err((StatusCode::REQUEST_TIMEOUT, "the body took longer than 30 seconds")),
    }
}

fn text_response(status: StatusCode, text: &'static str) -> HttpResponse {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *response.status_mut() = status;
    response
}

/// Whether an address needs a token: every one that other machines can reach.
pub fn needs_token(address: &SocketAddr) -> bool {
    !address.ip().is_loopback()
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use http_body_util::StreamBody;
    use hyper::body::Frame;

    use super::*;

    /// Otherwise 256 such clients would keep everybody else out.
    #[tokio::test(start_paused = true)]
    async fn a_body_that_never_ends_holds_its_connection_for_a_limited_time() {
        let first = stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"{")))]);
        let body = StreamBody::new(futures::StreamExt::chain(first, stream::pending()));
        let began = tokio::time::Instant::now();
        assert_eq!(read_body(body).await.unwrap_err().0, StatusCode::REQUEST_TIMEOUT);
        assert_eq!(began.elapsed(), BODY_TIME_MAX);
    }

    #[tokio::test]
    async fn a_body_that_is_too_long_is_refused() {
        let rows = [(BODY_BYTES_MAX, true), (BODY_BYTES_MAX + 1, false)];
        for (length, is_read) in rows {
            let read = read_body(Full::new(Bytes::from(vec![b' '; length]))).await;
            assert_eq!(read.is_ok(), is_read, "{length}");
        }
    }
}
