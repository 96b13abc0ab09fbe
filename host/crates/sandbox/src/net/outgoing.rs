//! An outgoing body: counted, and cut off before any part of a secret has left.
//!
//! Bytes that may be the beginning of a secret are held back until the following bytes decide, or
//! the body ends. The length of the body stays the same.

use std::{
    borrow::Cow,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use sallyport_contract::redact::ScanStream;
use url::Url;
use wasmtime_wasi_http::{Error, WasiBody};

use super::{HttpGate, request_check::PermittedRequest, timeouts::StepActivity};
use crate::effect_log::RequestTraffic;

/// The reason why a body was cut off. The connection is closed with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum RequestBodyError {
    /// The body contains a secret.
    #[error("the body would carry a secret")]
    Secret,
    /// The body exceeds its limit, or all bodies of the call exceed theirs.
    #[error("the body has more than {0} bytes")]
    Size(u64),
    /// The guest did not finish the body.
    #[error("the body was not finished")]
    Unfinished,
}

impl From<RequestBodyError> for Error {
    fn from(body_error: RequestBodyError) -> Self {
        match body_error {
            RequestBodyError::Secret => Self::HttpRequestDenied,
            RequestBodyError::Size(bytes) => Self::HttpRequestBodySize(Some(bytes)),
            RequestBodyError::Unfinished => Self::HttpProtocolError,
        }
    }
}

/// A guest's body as it is sent.
pub(super) struct ScannedRequestBody {
    body: WasiBody,
    gate: HttpGate,
    url: Url,
    what: String,
    /// `None` once the body has ended.
    scan: Option<ScanStream>,
    bytes: u64,
    traffic: Arc<RequestTraffic>,
    activity: StepActivity,
}

impl ScannedRequestBody {
    pub(super) fn new(
        gate: &HttpGate,
        url: &Url,
        permitted: &PermittedRequest,
        body: WasiBody,
        traffic: Arc<RequestTraffic>,
    ) -> Self {
        let (gate, url, what) = (gate.clone(), url.clone(), permitted.what.clone());
        let scan = Some(permitted.scanner.start_body_scan());
        Self { body, gate, url, what, scan, bytes: 0, traffic, activity: StepActivity::default() }
    }

    /// When a piece of the body was last sent.
    pub(super) fn activity(&self) -> StepActivity {
        self.activity.clone()
    }

    /// Accepts a piece and returns the bytes that may leave now.
    fn scan_chunk(&mut self, piece: &Bytes) -> Result<Bytes, RequestBodyError> {
        self.bytes += piece.len() as u64;
        self.gate
            .count_body_bytes(self.bytes, piece.len() as u64)
            .map_err(RequestBodyError::Size)?;
        let Some(scan) = &mut self.scan else { return Ok(Bytes::new()) };
        let clear = scan.push(piece).map(|clear| match clear {
            Cow::Borrowed(clear) => piece.slice_ref(clear),
            Cow::Owned(clear) => Bytes::from(clear),
        });
        self.release_bytes(clear)
    }

    /// Returns the bytes that were held back, after the last piece.
    fn finish_scan(&mut self) -> Result<Bytes, RequestBodyError> {
        let rest = self.scan.take().map_or(Ok(Vec::new()), ScanStream::finish);
        self.release_bytes(rest.map(Bytes::from))
    }

    fn release_bytes(&mut self, clear: Result<Bytes, String>) -> Result<Bytes, RequestBodyError> {
        let clear = clear.map_err(|name| {
            self.gate.refuse_secret(&self.what, &self.url, &name);
            RequestBodyError::Secret
        })?;
        self.traffic.add_sent_bytes(clear.len() as u64);
        self.activity.record(self.gate.run_context.clock.elapsed_time());
        Ok(clear)
    }
}

impl Body for ScannedRequestBody {
    type Data = Bytes;
    type Error = RequestBodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, RequestBodyError>>> {
        while self.scan.is_some() {
            let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
            // A guest may not announce trailers, so none are sent.
            let clear = match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(piece))) => self.scan_chunk(&piece),
                Some(Err(_)) => Err(RequestBodyError::Unfinished),
                Some(Ok(Err(_))) | None => self.finish_scan(),
            };
            match clear {
                Ok(clear) if clear.is_empty() => {}
                Ok(clear) => return Poll::Ready(Some(Ok(Frame::data(clear)))),
                Err(body_error) => {
                    self.scan = None;
                    return Poll::Ready(Some(Err(body_error)));
                }
            }
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.scan.is_none() || (self.bytes == 0 && self.body.is_end_stream())
    }

    /// The length of the whole body, which hyper asks for before the first piece.
    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
