//! One request and its response, over a connection of its own.

use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http::{HeaderValue, Request, header};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper::{
    body::Incoming,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use url::Url;
use wasmtime_wasi_http::{Error, WasiBody};

use super::{HttpGate, Passed, Response, dial};
use crate::limits::HEADER_BYTES_MAX;

/// Header lines of a response.
const HEADERS_MAX: usize = 100;

/// Longest wait for the head of a response, and for the next piece of its body. The call's own time
/// limit is usually nearer.
const SILENCE_TIME_MAX: Duration = Duration::from_secs(60);

/// Sends a request that has passed the gate.
pub(super) async fn send(gate: &HttpGate, passed: Passed) -> Result<Response, Error> {
    let what = passed.what.clone();
    let result = exchange(gate, passed).await;
    let status = result.as_ref().ok().map(|(response, _)| response.status().as_u16());
    gate.ledger.requested(what, status);
    result
}

async fn exchange(gate: &HttpGate, passed: Passed) -> Result<Response, Error> {
    let Passed { url, what, request, options } = passed;
    let method = request.method().as_str();
    let stream = dial::connect(gate, method, &url, &what, options.connect_timeout).await?;
    if url.scheme() == "https" {
        let stream = gate.tls.wrap(url.host_str().unwrap_or_default(), stream).await?;
        converse(gate, &url, request, options, stream).await
    } else {
        converse(gate, &url, request, options, stream).await
    }
}

async fn converse(
    gate: &HttpGate,
    url: &Url,
    request: Request<WasiBody>,
    options: wasmtime_wasi_http::RequestOptions,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> Result<Response, Error> {
    let (sender, connection) = http1::Builder::new()
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEADER_BYTES_MAX)
        .handshake::<_, WasiBody>(TokioIo::new(stream))
        .await?;
    // The connection has to be driven while the head is awaited and while the body is read; its
    // task ends when the guest drops the response.
    let driver = wasmtime_wasi::runtime::spawn(connection);
    let request = on_the_wire(request, url)?;
    let response = head(sender, request, clamp(options.first_byte_timeout)).await?;
    let limit = gate.grant.limits().http_body_bytes;
    let idle = clamp(options.between_bytes_timeout);
    let ledger = gate.ledger.clone();
    let response = response.map(|body| capped(body, limit, idle, ledger));
    let io = async move { driver.await.map_err(Error::from) };
    Ok((response, Box::new(io)))
}

async fn head(
    mut sender: SendRequest<WasiBody>,
    request: Request<WasiBody>,
    wait: Duration,
) -> Result<http::Response<Incoming>, Error> {
    match tokio::time::timeout(wait, sender.send_request(request)).await {
        Ok(response) => Ok(response?),
        Err(_) => Err(Error::HttpResponseTimeout),
    }
}

/// Puts the rebuilt path on the request line and the rebuilt host into its header, so that nothing
/// of the address is sent that was not checked.
fn on_the_wire(request: Request<WasiBody>, url: &Url) -> Result<Request<WasiBody>, Error> {
    let (mut parts, body) = request.into_parts();
    let target = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    parts.uri = target.parse().map_err(|_| Error::HttpRequestUriInvalid)?;
    let host = match url.port() {
        Some(port) => format!("{}:{port}", url.host_str().unwrap_or_default()),
        None => url.host_str().unwrap_or_default().to_owned(),
    };
    let host = HeaderValue::try_from(host).map_err(|_| Error::HttpRequestUriInvalid)?;
    parts.headers.insert(header::HOST, host);
    Ok(Request::from_parts(parts, body))
}

/// A guest may ask for less patience, never for more.
fn clamp(asked: Option<Duration>) -> Duration {
    asked.map_or(SILENCE_TIME_MAX, |asked| asked.min(SILENCE_TIME_MAX))
}

/// A body that ends in an error when it is too large or falls silent.
fn capped(body: Incoming, limit: u64, idle: Duration, ledger: crate::ledger::Ledger) -> WasiBody {
    let frames = stream::unfold(Some((body, limit)), move |state| {
        let ledger = ledger.clone();
        async move {
            let (body, left) = state?;
            match next_frame(body, left, limit, idle).await {
                Ok(Some((frame, body, left))) => Some((Ok(frame), Some((body, left)))),
                Ok(None) => None,
                Err(error) => {
                    if let Error::HttpResponseBodySize(_) = error {
                        ledger.limit_reached(format!("{limit} bytes of one response"));
                    }
                    Some((Err(error), None))
                }
            }
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

async fn next_frame(
    mut body: Incoming,
    left: u64,
    limit: u64,
    idle: Duration,
) -> Result<Option<(Frame<Bytes>, Incoming, u64)>, Error> {
    let frame = tokio::time::timeout(idle, body.frame()).await;
    let Some(frame) = frame.map_err(|_| Error::ConnectionReadTimeout)? else { return Ok(None) };
    let frame = frame?;
    let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
    let left = left.checked_sub(bytes).ok_or(Error::HttpResponseBodySize(Some(limit)))?;
    Ok(Some((frame, body, left)))
}
