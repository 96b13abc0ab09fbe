//! An incoming response: its head and its body, decoded, limited and without secrets.
//!
//! A server may echo what it was sent, so the [`Redactor`](sallyport_contract::Redactor) sees every
//! part of a response in the form in which the guest will see it.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;
use futures::{Stream, stream};
use http::{HeaderMap, StatusCode, header};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Incoming;
use sallyport_contract::{Redactor, redact::RedactStream};
use wasmtime_wasi_http::{Error, WasiBody};

use super::{
    HttpGate,
    coding::{Coding, Decoded, check_transfer},
    headers::redacted,
    patience::{Patience, Step},
};
use crate::ledger::Traffic;

/// Refuses a response that two parsers could read differently, or that switches protocols.
///
/// hyper itself refuses other ambiguous framing: lengths that differ or are not numbers, a transfer
/// coding in HTTP/1.0, and folded header lines.
pub(super) fn check_head(status: StatusCode, headers: &HeaderMap) -> Result<(), Error> {
    if status == StatusCode::SWITCHING_PROTOCOLS {
        return Err(Error::HttpUpgradeFailed);
    }
    let is_framed_twice = headers.contains_key(header::TRANSFER_ENCODING)
        && headers.contains_key(header::CONTENT_LENGTH);
    if is_framed_twice { Err(Error::HttpProtocolError) } else { check_transfer(headers) }
}

/// Converts a response for the guest.
pub(super) fn receive(
    gate: &HttpGate,
    patience: Patience,
    answer: http::Response<Incoming>,
    traffic: Arc<Traffic>,
) -> Result<http::Response<WasiBody>, Error> {
    let (mut head, body) = answer.into_parts();
    let coding = if body.is_end_stream() { Coding::Identity } else { Coding::of(&head.headers)? };
    let redactor = gate.case.warden().redactor();
    if coding != Coding::Identity {
        head.headers.remove(header::CONTENT_ENCODING);
        head.headers.remove(header::CONTENT_LENGTH);
    }
    if !redactor.is_empty() {
        head.headers.remove(header::CONTENT_LENGTH);
        head.headers = redacted(&redactor, &head.headers);
    }
    let arriving = Arriving { body, gate: gate.clone(), patience, bytes: 0, trailers: None };
    let received = Received {
        source: Source::of(arriving, coding),
        gate: gate.clone(),
        bytes: 0,
        clean: Some(redactor.redact_stream()),
        redactor,
        traffic,
    };
    let frames = stream::try_unfold(received, Received::next);
    Ok(http::Response::from_parts(head, StreamBody::new(frames).boxed_unsync()))
}

/// A body as it arrives, with timeouts and the limit on bodies.
struct Arriving {
    body: Incoming,
    gate: HttpGate,
    patience: Patience,
    bytes: u64,
    trailers: Option<HeaderMap>,
}

impl Arriving {
    async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let frame = self.patience.wait(Step::Body, self.body.frame()).await?;
            let Some(frame) = frame else { return Ok(None) };
            match frame.map_err(|error| self.gate.broken(&error))?.into_data() {
                Ok(bytes) => return self.admit(bytes).map(Some),
                Err(frame) => self.trailers = frame.into_trailers().ok(),
            }
        }
    }

    /// Coded bytes have the same limit as decoded ones: a coding can consist of padding.
    fn admit(&mut self, bytes: Bytes) -> Result<Bytes, Error> {
        self.bytes += bytes.len() as u64;
        self.gate.check_body(self.bytes).map_err(too_large)?;
        Ok(bytes)
    }

    fn into_bytes(self) -> impl Stream<Item = Result<Bytes, Error>> + Send {
        stream::try_unfold(self, |mut body| async move {
            Ok(body.next().await?.map(|bytes| (bytes, body)))
        })
    }
}

/// The source of a body's bytes.
enum Source {
    Plain(Box<Arriving>),
    Coded(Decoded),
}

impl Source {
    fn of(body: Arriving, coding: Coding) -> Self {
        match coding {
            Coding::Identity => Self::Plain(Box::new(body)),
            Coding::Gzip | Coding::Deflate => Self::Coded(Decoded::of(body.into_bytes(), coding)),
        }
    }

    async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        match self {
            Self::Plain(body) => body.next().await,
            Self::Coded(decoded) => decoded.next().await,
        }
    }

    /// The trailers of the body. Trailers of a coded body are dropped.
    fn trailers(&mut self) -> Option<HeaderMap> {
        match self {
            Self::Plain(body) => body.trailers.take(),
            Self::Coded(_) => None,
        }
    }
}

/// A body as the guest receives it.
struct Received {
    source: Source,
    gate: HttpGate,
    bytes: u64,
    redactor: Arc<Redactor>,
    /// `None` once the body has ended.
    clean: Option<RedactStream>,
    traffic: Arc<Traffic>,
}

impl Received {
    /// Returns the next frame and the rest of the body.
    async fn next(mut self) -> Result<Option<(Frame<Bytes>, Self)>, Error> {
        while let Some(clean) = &mut self.clean {
            let Some(bytes) = self.source.next().await? else { break };
            self.bytes += bytes.len() as u64;
            self.gate.take_body(self.bytes, bytes.len() as u64).map_err(too_large)?;
            let clean = match clean.push(&bytes) {
                Cow::Borrowed(all) if all.len() == bytes.len() => bytes,
                part => Bytes::from(part.into_owned()),
            };
            if !clean.is_empty() {
                return Ok(Some(self.hand_over(clean)));
            }
        }
        let rest = self.clean.take().map(RedactStream::finish).unwrap_or_default();
        if !rest.is_empty() {
            return Ok(Some(self.hand_over(rest.into())));
        }
        let trailers = self.source.trailers();
        Ok(trailers.map(|all| (Frame::trailers(redacted(&self.redactor, &all)), self)))
    }

    fn hand_over(self, bytes: Bytes) -> (Frame<Bytes>, Self) {
        self.traffic.received(bytes.len() as u64);
        (Frame::data(bytes), self)
    }
}

fn too_large(limit: u64) -> Error {
    Error::HttpResponseBodySize(Some(limit))
}
