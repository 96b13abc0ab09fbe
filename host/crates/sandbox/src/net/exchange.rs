//! One request and its response, over a connection of its own.

use std::{error::Error as _, io, sync::Arc};

use http::{HeaderMap, Method, Request, Response};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use url::{Position, Url};
use wasmtime_wasi::runtime::AbortOnDropJoinHandle;
use wasmtime_wasi_http::{Error, WasiBody};

use super::{
    HttpGate,
    dial::{self, Form, Line},
    headers, incoming,
    outgoing::{Cut, Outgoing},
    pass::Passed,
    patience::{Patience, Step},
    pending::PendingBody,
    proxy,
    wire::{HeadSeen, HeadTooLong, Wire},
};
use crate::{ledger::Traffic, limits::HEADER_BYTES_MAX};

/// Most header lines of a response. Servers of one site send up to some hundred; their bytes are
/// limited separately ([`HEADER_BYTES_MAX`]).
const HEADERS_MAX: usize = 1000;

/// A request without its body, ready to be sent.
pub(super) struct Sending {
    pub(super) method: Method,
    pub(super) url: Url,
    /// The headers as the guest set them.
    pub(super) headers: HeaderMap,
    /// Whether a redirect has led away from the origin that the guest requested, even if another
    /// one led back.
    pub(super) is_led_astray: bool,
}

/// A response whose body has not been read.
pub(super) struct Answer {
    pub(super) response: Response<Incoming>,
    pub(super) traffic: Arc<Traffic>,
    /// Drives the connection, which ends when this is dropped.
    driver: AbortOnDropJoinHandle<Result<(), hyper::Error>>,
}

impl Answer {
    /// Converts the response for the guest, together with the future that drives the connection
    /// while the guest reads.
    pub(super) fn receive(
        self,
        gate: &HttpGate,
        patience: Patience,
    ) -> Result<super::Response, Error> {
        let response = incoming::receive(gate, patience, self.response, self.traffic)?;
        let driver = self.driver;
        Ok((response, Box::new(async move { driver.await.map_err(Error::from) })))
    }
}

/// Sends a request if it passes the gate, and waits for the head of the response.
pub(super) async fn exchange(
    gate: &HttpGate,
    patience: &Patience,
    sending: &Sending,
    body: WasiBody,
) -> Result<Answer, Error> {
    let body = PendingBody::new(body);
    let passed = gate.pass(sending, &body).await?;
    let traffic = gate.case.ledger.requested(passed.what.clone());
    let (line, form) = dial::connect(gate, patience, sending, &passed).await?;
    let line = match sending.url.scheme() {
        "https" => gate.tls.wrap(patience, &sending.url, line).await?,
        _ => line,
    };
    let body = Outgoing::new(gate, &sending.url, &passed, body.into_body(), Arc::clone(&traffic));
    let request = request(sending, form, &passed, body)?;
    passed.credentials.iter().for_each(|credential| credential.note(&gate.case.ledger));
    let answer = converse(gate, patience, line, request, traffic).await?;
    if form == Form::Whole {
        proxy::check_answer(answer.response.status())?;
    }
    answer.traffic.answered(answer.response.status().as_u16());
    incoming::check_head(answer.response.status(), answer.response.headers())?;
    Ok(answer)
}

/// Builds the request from the rebuilt URL and its host, so that no unchecked part of the address
/// is sent, and adds the credentials.
fn request(
    sending: &Sending,
    form: Form,
    passed: &Passed,
    body: Outgoing,
) -> Result<Request<Outgoing>, Error> {
    let url = &sending.url;
    let target = match form {
        Form::Path => &url[Position::BeforePath..Position::AfterQuery],
        Form::Whole => &url[..Position::AfterQuery],
    };
    let mut request = Request::new(body);
    *request.method_mut() = sending.method.clone();
    *request.uri_mut() = target.parse().map_err(|_| Error::HttpRequestUriInvalid)?;
    *request.headers_mut() = headers::complete(&sending.headers, url, &passed.credentials)?;
    Ok(request)
}

async fn converse(
    gate: &HttpGate,
    patience: &Patience,
    line: Line,
    request: Request<Outgoing>,
    traffic: Arc<Traffic>,
) -> Result<Answer, Error> {
    let (wire, head) = Wire::new(line);
    let (mut sender, connection) = http1::Builder::new()
        .max_headers(HEADERS_MAX)
        .max_header_size(HEADER_BYTES_MAX)
        .max_buf_size(HEADER_BYTES_MAX)
        .handshake::<_, Outgoing>(TokioIo::new(wire))
        .await?;
    // The connection must be driven while the head is awaited and while the body is read.
    let driver = wasmtime_wasi::runtime::spawn(connection);
    let response = patience.wait(Step::Head, sender.send_request(request)).await?;
    let response = response.map_err(|error| gate.broken_head(&error, &head))?;
    head.lift();
    Ok(Answer { response, traffic, driver })
}

impl HttpGate {
    /// The error of a broken exchange for the guest.
    pub(super) fn broken(&self, error: &hyper::Error) -> Error {
        if let Some(cut) = error.source().and_then(|cause| cause.downcast_ref::<Cut>()) {
            return (*cut).into();
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
    fn broken_head(&self, error: &hyper::Error, head: &HeadSeen) -> Error {
        if !error.is_parse_too_large() && !is_head_too_long(error) {
            return self.broken(error);
        }
        let (limit, bytes_max) = match head.bytes() < HEADER_BYTES_MAX as u64 {
            true => (format!("{HEADERS_MAX} header lines in a response"), None),
            false => {
                let limit = format!("{HEADER_BYTES_MAX} bytes of headers in a response");
                (limit, u32::try_from(HEADER_BYTES_MAX).ok())
            }
        };
        self.case.ledger.limit_reached(limit);
        Error::HttpResponseHeaderSectionSize(bytes_max)
    }
}

fn is_head_too_long(error: &hyper::Error) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    let inner = cause.and_then(io::Error::get_ref);
    inner.is_some_and(|inner| inner.is::<HeadTooLong>())
}
