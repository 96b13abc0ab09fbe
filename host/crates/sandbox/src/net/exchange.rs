//! One request and its response, over a connection of its own.

use std::{error::Error as _, io, sync::Arc};

use http::{HeaderMap, Method, Request, Response};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use tracing::{Span, field::Empty};
use url::{Position, Url};
use wasmtime_wasi::runtime::AbortOnDropJoinHandle;
use wasmtime_wasi_http::{Error, WasiBody};

use super::{
    HttpGate,
    dial::{self, BoxedConnection, RequestTargetForm},
    headers, incoming,
    limited_connection::{LimitedConnection, ResponseHeadLimit, ResponseHeadTooLong},
    outgoing::{RequestBodyError, ScannedRequestBody},
    proxy, repeat,
    request_check::PermittedRequest,
    timeouts::{ExchangeStep, ExchangeTimeouts},
};
use crate::{
    effect_log::RequestTraffic,
    limits::HEADER_BYTES_MAX,
    pending_body::{BodyBufferError, PendingBody},
};

/// Most header lines of a response. Servers of one site send up to some hundred; their bytes are
/// limited separately ([`HEADER_BYTES_MAX`]).
const HEADERS_MAX: usize = 1000;

/// A request without its body, ready to be sent.
pub(super) struct PreparedRequest {
    pub(super) method: Method,
    pub(super) url: Url,
    /// The headers as the guest set them.
    pub(super) headers: HeaderMap,
    /// Whether a redirect has led away from the origin that the guest requested, even if another
    /// one led back.
    pub(super) has_left_origin: bool,
}

/// A response whose body has not been read.
pub(super) struct UnreadResponse {
    pub(super) response: Response<Incoming>,
    pub(super) traffic: Arc<RequestTraffic>,
    /// Drives the connection, which ends when this is dropped.
    driver: AbortOnDropJoinHandle<Result<(), hyper::Error>>,
}

impl UnreadResponse {
    /// Converts the response for the guest, together with the future that drives the connection
    /// while the guest reads.
    pub(super) fn into_guest_response(
        self,
        gate: &HttpGate,
        timeouts: ExchangeTimeouts,
    ) -> Result<super::Response, Error> {
        let response = incoming::build_guest_response(gate, timeouts, self.response, self.traffic)?;
        let driver = self.driver;
        Ok((response, Box::new(async move { driver.await.map_err(Error::from) })))
    }
}

/// Sends a request if it passes the gate, and waits for the head of the response.
pub(super) async fn exchange_request(
    gate: &HttpGate,
    timeouts: &ExchangeTimeouts,
    prepared: &PreparedRequest,
    body: WasiBody,
) -> Result<UnreadResponse, Error> {
    let body = PendingBody::new(body);
    let permitted = gate.permit_request(prepared, &body).await?;
    let body = body.into_body().map_err(|error| gate.refuse_lost_body(&permitted.what, error))?;
    repeat::send_with_account(gate, timeouts, prepared, &permitted, body).await
}

/// Sends a request that may leave, and waits for the head of the response.
#[tracing::instrument(
    name = "http_request",
    skip_all,
    fields(
        method = %prepared.method,
        host = prepared.url.host_str(),
        port = prepared.url.port_or_known_default(),
        status = Empty,
        error = Empty,
    )
)]
pub(super) async fn send_permitted(
    gate: &HttpGate,
    timeouts: &ExchangeTimeouts,
    prepared: &PreparedRequest,
    permitted: &PermittedRequest,
    body: WasiBody,
) -> Result<UnreadResponse, Error> {
    let result = send_to_server(gate, timeouts, prepared, permitted, body).await;
    let span = Span::current();
    match &result {
        Ok(answer) => span.record("status", answer.response.status().as_u16()),
        // The error can name what the server sent.
        Err(_) => span.record("error", "_OTHER"),
    };
    result
}

async fn send_to_server(
    gate: &HttpGate,
    timeouts: &ExchangeTimeouts,
    prepared: &PreparedRequest,
    permitted: &PermittedRequest,
    body: WasiBody,
) -> Result<UnreadResponse, Error> {
    let traffic = gate.run_context.effect_log.record_request(permitted.what.clone());
    let (transport, form) = dial::connect_to_host(gate, timeouts, prepared, permitted).await?;
    let transport = match prepared.url.scheme() {
        // A simulated server is not on a network, so nothing needs to be hidden.
        "https" if gate.simulated_network.is_none() => {
            gate.tls.wrap_connection(timeouts, &prepared.url, transport).await?
        }
        _ => transport,
    };
    let body = ScannedRequestBody::new(gate, &prepared.url, permitted, body, Arc::clone(&traffic));
    let request = build_request(prepared, form, permitted, body)?;
    permitted
        .credentials
        .iter()
        .for_each(|credential| credential.record_use(&gate.run_context.effect_log));
    let answer = send_over_connection(gate, timeouts, transport, request, traffic).await?;
    if form == RequestTargetForm::Absolute {
        proxy::check_proxy_status(answer.response.status())?;
    }
    answer.traffic.set_status(answer.response.status().as_u16());
    incoming::check_response_head(answer.response.status(), answer.response.headers())?;
    Ok(answer)
}

/// Builds the request from the rebuilt URL and its host, so that no unchecked part of the address
/// is sent, and adds the credentials.
fn build_request(
    prepared: &PreparedRequest,
    form: RequestTargetForm,
    permitted: &PermittedRequest,
    body: ScannedRequestBody,
) -> Result<Request<ScannedRequestBody>, Error> {
    let url = &prepared.url;
    let target = match form {
        RequestTargetForm::Origin => &url[Position::BeforePath..Position::AfterQuery],
        RequestTargetForm::Absolute => &url[..Position::AfterQuery],
    };
    let mut request = Request::new(body);
    *request.method_mut() = prepared.method.clone();
    *request.uri_mut() = target.parse().map_err(|_| Error::HttpRequestUriInvalid)?;
    *request.headers_mut() =
        headers::complete_headers(&prepared.headers, url, &permitted.credentials)?;
    Ok(request)
}

async fn send_over_connection(
    gate: &HttpGate,
    timeouts: &ExchangeTimeouts,
    transport: BoxedConnection,
    request: Request<ScannedRequestBody>,
    traffic: Arc<RequestTraffic>,
) -> Result<UnreadResponse, Error> {
    let (limited, head_limit) = LimitedConnection::new(transport);
    let (mut sender, connection) = http1::Builder::new()
        .max_headers(HEADERS_MAX)
        .max_header_size(HEADER_BYTES_MAX)
        .max_buf_size(HEADER_BYTES_MAX)
        .handshake::<_, ScannedRequestBody>(TokioIo::new(limited))
        .await?;
    // The connection must be driven while the head is awaited and while the body is read.
    let driver = wasmtime_wasi::runtime::spawn(connection);
    // The server answers after the body has been sent, which may take as long as the exchange.
    let activity = request.body().activity();
    let sent = sender.send_request(request);
    let response = timeouts.wait_for_active_step(ExchangeStep::Head, &activity, sent).await?;
    let response = response.map_err(|error| gate.response_head_error(&error, &head_limit))?;
    head_limit.lift_limit();
    Ok(UnreadResponse { response, traffic, driver })
}

impl HttpGate {
    /// Refuses a request whose body was to be shown to the user and is lost, although the request
    /// was allowed while the body was read. A server must not take a part for the whole.
    fn refuse_lost_body(&self, what: &str, error: BodyBufferError) -> Error {
        self.refuse_request(what, format!("{error}; it is allowed by now, so it can be repeated"))
    }

    /// The error of a broken exchange for the guest.
    pub(super) fn exchange_error(&self, error: &hyper::Error) -> Error {
        if let Some(body_error) =
            error.source().and_then(|cause| cause.downcast_ref::<RequestBodyError>())
        {
            return (*body_error).into();
        }
        let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
        match cause.map(io::Error::kind) {
            Some(io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) => {
                Error::HttpProtocolError
            }
            Some(_) => Error::HttpResponseIncomplete,
            None if error.is_incomplete_message() || error.is_closed() => {
                Error::HttpResponseIncomplete
            }
            None => Error::HttpProtocolError,
        }
    }

    /// The error of an exchange that broke before the head of a response was complete. A head that
    /// is too long is recorded as a limit.
    fn response_head_error(&self, error: &hyper::Error, head_limit: &ResponseHeadLimit) -> Error {
        if !error.is_parse_too_large() && !is_head_too_long(error) {
            return self.exchange_error(error);
        }
        let (limit, bytes_max) = match head_limit.received_bytes() < HEADER_BYTES_MAX as u64 {
            true => (format!("{HEADERS_MAX} header lines in a response"), None),
            false => {
                let limit = format!("{HEADER_BYTES_MAX} bytes of headers in a response");
                (limit, u32::try_from(HEADER_BYTES_MAX).ok())
            }
        };
        self.run_context.effect_log.record_limit(limit);
        Error::HttpResponseHeaderSectionSize(bytes_max)
    }
}

fn is_head_too_long(error: &hyper::Error) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    let inner = cause.and_then(io::Error::get_ref);
    inner.is_some_and(|inner| inner.is::<ResponseHeadTooLong>())
}
