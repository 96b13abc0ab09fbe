//! The way out of a component: one request over `wasi:http/outgoing-handler`.

use std::time::Instant;

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
    HttpError, Method, Request, Response,
    url::{self, Target},
};

/// How much is read or written at once: the guest's memory grows by what is in flight.
const CHUNK_BYTES_MAX: u64 = 64 * 1024;

/// One exchange with its deadline.
struct Exchange<'a> {
    request: &'a Request,
    started: Instant,
}

/// Sends a request and reads the whole answer.
pub(crate) fn send(request: &Request) -> Result<Response, HttpError> {
    let exchange = Exchange { request, started: Instant::now() };
    let outgoing = outgoing(request, url::split(&request.url)?)?;
    let body = outgoing.body().map_err(|()| refused("the body"))?;
    let answer = handle(outgoing, Some(options(request))).map_err(|e| exchange.error(e))?;
    exchange.write(body)?;
    exchange.wait(answer.subscribe())?;
    let response = answer
        .get()
        .and_then(Result::ok)
        .ok_or_else(|| exchange.unreachable("no answer"))?
        .map_err(|e| exchange.error(e))?;
    exchange.read(response)
}

fn outgoing(request: &Request, target: Target<'_>) -> Result<OutgoingRequest, HttpError> {
    let headers: Vec<_> = request
        .headers
        .iter()
        .map(|(name, value)| (name.clone(), value.clone().into_bytes()))
        .collect();
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
    }
}

/// Tells the host the same limit that is kept here. A host that cannot keep it says so, and the
/// exchange's own deadline holds anyway.
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

impl Exchange<'_> {
    fn write(&self, body: OutgoingBody) -> Result<(), HttpError> {
        if !self.request.body.is_empty() {
            let stream = body.write().map_err(|()| refused("the body"))?;
            self.write_all(&stream)?;
        }
        OutgoingBody::finish(body, None).map_err(|e| self.error(e))
    }

    fn write_all(&self, stream: &OutputStream) -> Result<(), HttpError> {
        let mut rest = self.request.body.as_slice();
        while !rest.is_empty() {
            self.wait(stream.subscribe())?;
            let room = stream.check_write().map_err(|e| self.stream_error(e))?;
            let bytes = usize::try_from(room.min(CHUNK_BYTES_MAX)).unwrap_or(0).min(rest.len());
            let (now, later) = rest.split_at(bytes);
            stream.write(now).map_err(|e| self.stream_error(e))?;
            rest = later;
        }
        stream.flush().map_err(|e| self.stream_error(e))?;
        self.wait(stream.subscribe())
    }

    fn read(&self, response: IncomingResponse) -> Result<Response, HttpError> {
        let status = response.status();
        let headers = response
            .headers()
            .entries()
            .into_iter()
            .filter_map(|(name, value)| Some((name, String::from_utf8(value).ok()?)))
            .collect();
        let body = response.consume().map_err(|()| self.unreachable("the answer has no body"))?;
        Ok(Response { status, headers, body: self.read_body(&body)? })
    }

    fn read_body(&self, body: &IncomingBody) -> Result<Vec<u8>, HttpError> {
        let stream: InputStream =
            body.stream().map_err(|()| self.unreachable("the answer has no body"))?;
        let mut bytes = Vec::new();
        loop {
            match stream.read(CHUNK_BYTES_MAX) {
                Ok(chunk) if chunk.is_empty() => self.wait(stream.subscribe())?,
                Ok(chunk) => bytes.extend(chunk),
                Err(StreamError::Closed) => return Ok(bytes),
                Err(error) => return Err(self.stream_error(error)),
            }
            if bytes.len() > self.request.body_bytes_max {
                return Err(self.request.too_large());
            }
        }
    }

    /// Waits until something is ready or the request has used up its time.
    fn wait(&self, ready: Pollable) -> Result<(), HttpError> {
        let left = self.request.timeout.saturating_sub(self.started.elapsed());
        let timer = subscribe_duration(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX));
        if poll(&[&ready, &timer]).contains(&0) { Ok(()) } else { Err(self.timeout()) }
    }

    fn error(&self, code: ErrorCode) -> HttpError {
        match code {
            ErrorCode::HttpRequestDenied | ErrorCode::DestinationIpProhibited => {
                HttpError::Denied { origin: self.request.origin() }
            }
            ErrorCode::DnsTimeout
            | ErrorCode::ConnectionTimeout
            | ErrorCode::ConnectionReadTimeout
            | ErrorCode::ConnectionWriteTimeout
            | ErrorCode::HttpResponseTimeout => self.timeout(),
            ErrorCode::HttpResponseBodySize(_) => self.request.too_large(),
            ErrorCode::HttpRequestUriInvalid
            | ErrorCode::HttpRequestUriTooLong
            | ErrorCode::HttpRequestMethodInvalid
            | ErrorCode::HttpRequestHeaderSize(_)
            | ErrorCode::HttpRequestHeaderSectionSize(_)
            | ErrorCode::HttpRequestBodySize(_) => HttpError::Invalid { reason: words(&code) },
            other => self.unreachable(&words(&other)),
        }
    }

    /// A body that is cut off says why only through the error behind the stream.
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
        HttpError::Timeout { origin: self.request.origin(), waited: self.request.timeout }
    }

    fn unreachable(&self, reason: &str) -> HttpError {
        HttpError::Unreachable { origin: self.request.origin(), reason: reason.to_owned() }
    }
}

/// The commonest reasons in plain words; the names of the others speak for themselves.
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
