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
    coding::{BodyDecoder, ContentCoding, check_transfer_coding},
    headers::redact_headers,
    timeouts::{ExchangeStep, ExchangeTimeouts},
};
use crate::effect_log::RequestTraffic;

/// Refuses a response that two parsers could read differently, or that switches protocols.
///
/// hyper itself refuses other ambiguous framing: lengths that differ or are not numbers, a transfer
/// coding in HTTP/1.0, and folded header lines.
pub(super) fn check_response_head(status: StatusCode, headers: &HeaderMap) -> Result<(), Error> {
    if status == StatusCode::SWITCHING_PROTOCOLS {
        return Err(Error::HttpUpgradeFailed);
    }
    let is_framed_twice = headers.contains_key(header::TRANSFER_ENCODING)
        && headers.contains_key(header::CONTENT_LENGTH);
    if is_framed_twice { Err(Error::HttpProtocolError) } else { check_transfer_coding(headers) }
}

/// Converts a response for the guest.
pub(super) fn build_guest_response(
    gate: &HttpGate,
    timeouts: ExchangeTimeouts,
    answer: http::Response<Incoming>,
    traffic: Arc<RequestTraffic>,
) -> Result<http::Response<WasiBody>, Error> {
    let (mut head, body) = answer.into_parts();
    let coding = if body.is_end_stream() {
        ContentCoding::Identity
    } else {
        ContentCoding::from_headers(&head.headers)?
    };
    let redactor = gate.run_context.authorizer().redactor();
    if coding != ContentCoding::Identity {
        head.headers.remove(header::CONTENT_ENCODING);
        head.headers.remove(header::CONTENT_LENGTH);
    }
    if !redactor.is_empty() {
        head.headers.remove(header::CONTENT_LENGTH);
        head.headers = redact_headers(&redactor, &head.headers);
    }
    let arriving =
        LimitedResponseBody { body, gate: gate.clone(), timeouts, bytes: 0, trailers: None };
    let received = GuestResponseBody {
        source: BodySource::new(arriving, coding),
        gate: gate.clone(),
        bytes: 0,
        redaction: Some(redactor.redact_stream()),
        redactor,
        traffic,
    };
    let frames = stream::try_unfold(received, GuestResponseBody::next_frame);
    Ok(http::Response::from_parts(head, StreamBody::new(frames).boxed_unsync()))
}

/// A body as it arrives, with timeouts and the limit on bodies.
struct LimitedResponseBody {
    body: Incoming,
    gate: HttpGate,
    timeouts: ExchangeTimeouts,
    bytes: u64,
    trailers: Option<HeaderMap>,
}

impl LimitedResponseBody {
    async fn next_chunk(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let frame = self.timeouts.wait_for_step(ExchangeStep::Body, self.body.frame()).await?;
            let Some(frame) = frame else { return Ok(None) };
            match frame.map_err(|error| self.gate.exchange_error(&error))?.into_data() {
                Ok(bytes) => return self.count_chunk(bytes).map(Some),
                Err(frame) => self.trailers = frame.into_trailers().ok(),
            }
        }
    }

    /// Coded bytes have the same limit as decoded ones: a coding can consist of padding.
    fn count_chunk(&mut self, bytes: Bytes) -> Result<Bytes, Error> {
        self.bytes += bytes.len() as u64;
        self.gate.check_body_length(self.bytes).map_err(body_too_large_error)?;
        Ok(bytes)
    }

    fn into_byte_stream(self) -> impl Stream<Item = Result<Bytes, Error>> + Send {
        stream::try_unfold(self, |mut body| async move {
            Ok(body.next_chunk().await?.map(|bytes| (bytes, body)))
        })
    }
}

/// The source of a body's bytes.
enum BodySource {
    Plain(Box<LimitedResponseBody>),
    Coded(BodyDecoder),
}

impl BodySource {
    fn new(body: LimitedResponseBody, coding: ContentCoding) -> Self {
        match coding {
            ContentCoding::Identity => Self::Plain(Box::new(body)),
            ContentCoding::Gzip | ContentCoding::Deflate => {
                Self::Coded(BodyDecoder::new(body.into_byte_stream(), coding))
            }
        }
    }

    async fn next_chunk(&mut self) -> Result<Option<Bytes>, Error> {
        match self {
            Self::Plain(body) => body.next_chunk().await,
            Self::Coded(decoded) => decoded.next_chunk().await,
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
struct GuestResponseBody {
    source: BodySource,
    gate: HttpGate,
    bytes: u64,
    redactor: Arc<Redactor>,
    /// `None` once the body has ended.
    redaction: Option<RedactStream>,
    traffic: Arc<RequestTraffic>,
}

impl GuestResponseBody {
    /// Returns the next frame and the rest of the body.
    async fn next_frame(mut self) -> Result<Option<(Frame<Bytes>, Self)>, Error> {
        while let Some(clean) = &mut self.redaction {
            let Some(bytes) = self.source.next_chunk().await? else { break };
            self.bytes += bytes.len() as u64;
            self.gate
                .count_body_bytes(self.bytes, bytes.len() as u64)
                .map_err(body_too_large_error)?;
            let clean = match clean.push(&bytes) {
                Cow::Borrowed(all) if all.len() == bytes.len() => bytes,
                part => Bytes::from(part.into_owned()),
            };
            if !clean.is_empty() {
                return Ok(Some(self.into_frame(clean)));
            }
        }
        let rest = self.redaction.take().map(RedactStream::finish).unwrap_or_default();
        if !rest.is_empty() {
            return Ok(Some(self.into_frame(rest.into())));
        }
        let trailers = self.source.trailers();
        Ok(trailers.map(|all| (Frame::trailers(redact_headers(&self.redactor, &all)), self)))
    }

    fn into_frame(self, bytes: Bytes) -> (Frame<Bytes>, Self) {
        self.traffic.add_received_bytes(bytes.len() as u64);
        (Frame::data(bytes), self)
    }
}

fn body_too_large_error(limit: u64) -> Error {
    Error::HttpResponseBodySize(Some(limit))
}
