//! Outgoing requests of a component, over `wasi:http/outgoing-handler`.

use std::time::{Duration, Instant};

use wasip2::{
    clocks::monotonic_clock::subscribe_duration,
    http::{
        outgoing_handler::handle,
        types::{
            ErrorCode, Fields, IncomingBody, IncomingResponse, Method as WasiMethod, OutgoingBody,
            OutgoingRequest, RequestOptions, Scheme,
        },
    },
    io::{
        poll::{Pollable, poll},
        streams::{InputStream, OutputStream, StreamError},
    },
};

use super::{
    HttpError, Method, Request, Stream,
    url::{self, Target},
};

/// Most bytes per read or write. Data in flight takes memory of the guest.
const CHUNK_BYTES_MAX: u64 = 64 * 1024;

/// A request in progress, with its deadline.
#[derive(Debug)]
struct Exchange {
    origin: String,
    body_bytes_max: usize,
    timeout: Duration,
    started: Instant,
}

/// Why a body was not written to its end.
enum BodyWriteError {
    /// Nobody reads it any more.
    Closed,
    Failed(HttpError),
}

impl From<HttpError> for BodyWriteError {
    fn from(error: HttpError) -> Self {
        Self::Failed(error)
    }
}

/// A body that is still arriving.
///
/// Fields are dropped in their order, and WASI requires that a stream is dropped before its body.
#[derive(Debug)]
pub(crate) struct Body {
    stream: InputStream,
    _body: IncomingBody,
    _response: IncomingResponse,
    exchange: Exchange,
}

/// Sends a request and waits until the response begins.
pub(crate) fn open(request: &Request) -> Result<Stream, HttpError> {
    let exchange = Exchange::of(request);
    let outgoing = outgoing(request, url::split(&request.url)?)?;
    let body = outgoing.body().map_err(|()| refused("the body"))?;
    let answer = handle(outgoing, Some(options(request))).map_err(|e| exchange.error(e))?;
    exchange.write(body, &request.body)?;
    exchange.wait(answer.subscribe())?;
    let response = answer
        .get()
        .and_then(Result::ok)
        .ok_or_else(|| exchange.unreachable("no answer"))?
        .map_err(|e| exchange.error(e))?;
    let (status, headers) = (response.status(), headers(&response));
    Ok(Stream::new(status, headers, Body::of(response, exchange)?, request.room()))
}

fn headers(response: &IncomingResponse) -> Vec<(String, String)> {
    let entries = response.headers().entries().into_iter();
    entries.filter_map(|(name, value)| Some((name, String::from_utf8(value).ok()?))).collect()
}

fn outgoing(request: &Request, target: Target<'_>) -> Result<OutgoingRequest, HttpError> {
    let mut headers: Vec<_> = request
        .headers
        .iter()
        .map(|(name, value)| (name.clone(), value.clone().into_bytes()))
        .collect();
    // Many servers refuse a body of unknown length, and the body is whole already.
    let has_length = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let has_no_body = matches!(request.method, Method::Get | Method::Head | Method::Delete);
    if !has_length && !(has_no_body && request.body.is_empty()) {
        headers.push(("content-length".to_owned(), request.body.len().to_string().into_bytes()));
    }
    let headers = Fields::from_list(&headers)
        .map_err(|e| HttpError::Invalid { reason: format!("a header is refused: {e}") })?;
    let scheme = if target.scheme == "https" { Scheme::Https } else { Scheme::Http };
    let path = match target.path_and_query {
        path if path.starts_with('/') => path.to_owned(),
        query => format!("/{query}"),
    };
    let outgoing = OutgoingRequest::new(headers);
    outgoing.set_method(&method(request.method)).map_err(|()| refused("the method"))?;
    outgoing.set_scheme(Some(&scheme)).map_err(|()| refused("the scheme"))?;
    outgoing.set_authority(Some(target.authority)).map_err(|()| refused("the host name"))?;
    outgoing.set_path_with_query(Some(&path)).map_err(|()| refused("the path"))?;
    Ok(outgoing)
}

fn method(method: Method) -> WasiMethod {
    match method {
        Method::Get => WasiMethod::Get,
        Method::Head => WasiMethod::Head,
        Method::Post => WasiMethod::Post,
        Method::Put => WasiMethod::Put,
        Method::Patch => WasiMethod::Patch,
        Method::Delete => WasiMethod::Delete,
        Method::Report => WasiMethod::Other(method.word().to_owned()),
    }
}

/// Passes the timeout to the host. Errors are ignored, because the exchange checks its own deadline
/// anyway.
fn options(request: &Request) -> RequestOptions {
    let nanos = u64::try_from(request.timeout.as_nanos()).ok();
    let options = RequestOptions::new();
    let _ = options.set_connect_timeout(nanos);
    let _ = options.set_first_byte_timeout(nanos);
    let _ = options.set_between_bytes_timeout(nanos);
    options
}

fn refused(what: &str) -> HttpError {
    HttpError::Invalid { reason: format!("{what} is refused") }
}

impl Body {
    fn of(response: IncomingResponse, exchange: Exchange) -> Result<Self, HttpError> {
        let none = |()| exchange.unreachable("the answer has no body");
        let body = response.consume().map_err(none)?;
        let stream = body.stream().map_err(none)?;
        Ok(Self { stream, _body: body, _response: response, exchange })
    }

    /// Waits for the next piece; `None` after the last one.
    pub(crate) fn piece(&mut self) -> Result<Option<Vec<u8>>, HttpError> {
        loop {
            match self.stream.read(CHUNK_BYTES_MAX) {
                Ok(chunk) if chunk.is_empty() => self.exchange.wait(self.stream.subscribe())?,
                Ok(chunk) => return Ok(Some(chunk)),
                Err(StreamError::Closed) => return Ok(None),
                Err(error) => return Err(self.exchange.stream_error(error)),
            }
        }
    }
}

impl Exchange {
    fn of(request: &Request) -> Self {
        Self {
            origin: request.origin(),
            body_bytes_max: request.body_bytes_max,
            timeout: request.timeout,
            started: Instant::now(),
        }
    }

    /// Sends the body. A server may answer before it has read all, and nobody reads on after the last
    /// byte of an announced length: then the stream is closed, and the answer tells what came of the
    /// request.
    fn write(&self, body: OutgoingBody, bytes: &[u8]) -> Result<(), HttpError> {
        if !bytes.is_empty() {
            let stream = body.write().map_err(|()| refused("the body"))?;
            match self.write_all(&stream, bytes) {
                Err(BodyWriteError::Closed) => return Ok(()),
                Err(BodyWriteError::Failed(error)) => return Err(error),
                Ok(()) => {}
            }
        }
        OutgoingBody::finish(body, None).map_err(|e| self.error(e))
    }

    fn write_all(&self, stream: &OutputStream, mut rest: &[u8]) -> Result<(), BodyWriteError> {
        let failed = |error| match error {
            StreamError::Closed => BodyWriteError::Closed,
            error => BodyWriteError::Failed(self.stream_error(error)),
        };
        while !rest.is_empty() {
            self.wait(stream.subscribe())?;
            let room = stream.check_write().map_err(failed)?;
            let bytes = usize::try_from(room.min(CHUNK_BYTES_MAX)).unwrap_or(0).min(rest.len());
            let (now, later) = rest.split_at(bytes);
            stream.write(now).map_err(failed)?;
            rest = later;
        }
        stream.flush().map_err(failed)?;
        Ok(self.wait(stream.subscribe())?)
    }

    /// Waits until `ready` fires or the timeout of the request expires.
    fn wait(&self, ready: Pollable) -> Result<(), HttpError> {
        let left = self.timeout.saturating_sub(self.started.elapsed());
        let timer = subscribe_duration(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX));
        if poll(&[&ready, &timer]).contains(&0) { Ok(()) } else { Err(self.timeout()) }
    }

    fn error(&self, code: ErrorCode) -> HttpError {
        match code {
            ErrorCode::HttpRequestDenied | ErrorCode::DestinationIpProhibited => {
                HttpError::Denied { origin: self.origin.clone() }
            }
            ErrorCode::DnsTimeout
            | ErrorCode::ConnectionTimeout
            | ErrorCode::ConnectionReadTimeout
            | ErrorCode::ConnectionWriteTimeout
            | ErrorCode::HttpResponseTimeout => self.timeout(),
            ErrorCode::HttpResponseBodySize(_) => HttpError::TooLarge {
                origin: self.origin.clone(),
                body_bytes_max: self.body_bytes_max,
            },
            ErrorCode::HttpRequestUriInvalid
            | ErrorCode::HttpRequestUriTooLong
            | ErrorCode::HttpRequestMethodInvalid
            | ErrorCode::HttpRequestHeaderSize(_)
            | ErrorCode::HttpRequestHeaderSectionSize(_)
            | ErrorCode::HttpRequestBodySize(_) => HttpError::Invalid { reason: words(&code) },
            other => self.unreachable(&words(&other)),
        }
    }

    /// Converts an error of a stream. Only the error behind the stream contains the cause.
    fn stream_error(&self, error: StreamError) -> HttpError {
        match error {
            StreamError::Closed => self.unreachable("the connection was closed"),
            StreamError::LastOperationFailed(error) => {
                match wasip2::http::types::http_error_code(&error) {
                    Some(code) => self.error(code),
                    None => self.unreachable("the connection broke"),
                }
            }
        }
    }

    fn timeout(&self) -> HttpError {
        HttpError::Timeout { origin: self.origin.clone(), waited: self.timeout }
    }

    fn unreachable(&self, reason: &str) -> HttpError {
        HttpError::Unreachable { origin: self.origin.clone(), reason: reason.to_owned() }
    }
}

/// Describes the most common errors in plain language, and names the others.
fn words(code: &ErrorCode) -> String {
    match code {
        ErrorCode::DnsError(_) | ErrorCode::DestinationNotFound => {
            "its name cannot be resolved".to_owned()
        }
        ErrorCode::ConnectionRefused => "the connection was refused".to_owned(),
        ErrorCode::ConnectionTerminated => "the connection was closed".to_owned(),
        ErrorCode::TlsCertificateError => "its certificate is not trusted".to_owned(),
        ErrorCode::InternalError(Some(reason)) => reason.clone(),
        other => format!("{other:?}").trim_start_matches("ErrorCode::").to_owned(),
    }
}
