//! Incoming requests over `wasi:http/incoming-handler`.

use wasip2::{
    http::types::{
        Fields, IncomingBody, IncomingRequest, Method, OutgoingBody, OutgoingResponse,
        ResponseOutparam,
    },
    io::streams::{OutputStream, StreamError},
};

use crate::{
    http::Response,
    log,
    plugin::Serves,
    serve::{BODY_BYTES_MAX, Request},
};

/// Most bytes per read.
const READ_BYTES: u64 = 64 * 1024;

/// Most bytes that WASI accepts in one blocking write with a flush.
const WRITE_BYTES_MAX: usize = 4096;

/// Answers one request with the plugin's handler.
pub fn handle<P: Serves>(request: IncomingRequest, answer: ResponseOutparam) {
    let response = match read(&request) {
        Ok(request) => P::serve(request),
        Err(refusal) => refusal,
    };
    send(response, answer);
}

fn read(request: &IncomingRequest) -> Result<Request, Response> {
    let path = request.path_with_query().unwrap_or_default();
    let entries = request.headers().entries().into_iter();
    let headers =
        entries.filter_map(|(name, value)| Some((name, String::from_utf8(value).ok()?))).collect();
    let body = match request.consume() {
        Ok(body) => read_body(&body)?,
        Err(()) => Vec::new(),
    };
    Ok(Request { headers, body, ..Request::new(word(request.method()), &path) })
}

fn read_body(body: &IncomingBody) -> Result<Vec<u8>, Response> {
    let broken = || Response::new(400, "the body could not be read");
    let stream = body.stream().map_err(|()| broken())?;
    let mut bytes = Vec::new();
    loop {
        match stream.blocking_read(READ_BYTES) {
            Ok(piece) => bytes.extend(piece),
            Err(StreamError::Closed) => return Ok(bytes),
            Err(StreamError::LastOperationFailed(_)) => return Err(broken()),
        }
        if bytes.len() > BODY_BYTES_MAX {
            return Err(Response::new(413, "the body is too long"));
        }
    }
}

fn word(method: Method) -> String {
    let word = match method {
        Method::Get => "GET",
        Method::Head => "HEAD",
        Method::Post => "POST",
        Method::Put => "PUT",
        Method::Delete => "DELETE",
        Method::Connect => "CONNECT",
        Method::Options => "OPTIONS",
        Method::Trace => "TRACE",
        Method::Patch => "PATCH",
        Method::Other(word) => return word,
    };
    word.to_owned()
}

fn send(response: Response, answer: ResponseOutparam) {
    let Response { status, headers, body } = response;
    let headers: Vec<_> =
        headers.into_iter().map(|(name, value)| (name, value.into_bytes())).collect();
    let fields = Fields::from_list(&headers).unwrap_or_else(|error| {
        log::warn(format!("the headers of an answer are refused and left out: {error}"));
        Fields::new()
    });
    let outgoing = OutgoingResponse::new(fields);
    if outgoing.set_status_code(status).is_err() {
        log::warn(format!("{status} is not a status; the answer is sent with 200"));
    }
    let outgoing_body = outgoing.body();
    ResponseOutparam::set(answer, Ok(outgoing));
    if let Ok(outgoing_body) = outgoing_body {
        send_body(outgoing_body, &body);
    }
}

/// Ignores errors: a client that has disconnected cannot receive one.
fn send_body(outgoing: OutgoingBody, bytes: &[u8]) {
    if let Ok(stream) = outgoing.write() {
        let _ = write(&stream, bytes);
    }
    let _ = OutgoingBody::finish(outgoing, None);
}

fn write(stream: &OutputStream, bytes: &[u8]) -> Result<(), StreamError> {
    bytes.chunks(WRITE_BYTES_MAX).try_for_each(|piece| stream.blocking_write_and_flush(piece))
}
