//! A body on its way out: counted, and cut off before a secret in it is whole.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use sallyport_contract::redact::ScanStream;
use url::Url;
use wasmtime_wasi_http::{Error, WasiBody};

use super::{HttpGate, pass::Passed};
use crate::ledger::Traffic;

/// Why a body was cut off. The connection is cut off with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Cut {
    /// It would have carried a secret.
    #[error("the body would carry a secret")]
    Secret,
    /// It is too long, or all bodies of the call are.
    #[error("the body has more than {0} bytes")]
    Size(u64),
    /// The guest did not finish what it began.
    #[error("the body was not finished")]
    Unfinished,
}

impl From<Cut> for Error {
    fn from(cut: Cut) -> Self {
        match cut {
            Cut::Secret => Self::HttpRequestDenied,
            Cut::Size(bytes) => Self::HttpRequestBodySize(Some(bytes)),
            Cut::Unfinished => Self::HttpProtocolError,
        }
    }
}

/// A guest's body as it is sent.
pub(super) struct Outgoing {
    body: WasiBody,
    gate: HttpGate,
    url: Url,
    what: String,
    watch: ScanStream,
    bytes: u64,
    traffic: Arc<Traffic>,
}

impl Outgoing {
    pub(super) fn new(
        gate: &HttpGate,
        url: &Url,
        passed: &Passed,
        body: WasiBody,
        traffic: Arc<Traffic>,
    ) -> Self {
        let (gate, url, what) = (gate.clone(), url.clone(), passed.what.clone());
        Self { body, gate, url, what, watch: passed.watch.stream(), bytes: 0, traffic }
    }

    /// Lets a piece pass as a whole or not at all: the last byte of a secret never leaves.
    fn admit(&mut self, piece: &Bytes) -> Result<(), Cut> {
        if let Some(name) = self.watch.push(piece) {
            self.gate.carries_secret(&self.what, &self.url, name);
            return Err(Cut::Secret);
        }
        self.bytes += piece.len() as u64;
        self.gate.take_body(self.bytes, piece.len() as u64).map_err(Cut::Size)?;
        self.traffic.sent(piece.len() as u64);
        Ok(())
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(cx)) else {
            return Poll::Ready(None);
        };
        // Trailers are nothing that a guest may announce, so none are sent.
        let piece = frame.map_err(|_| Cut::Unfinished).map(Frame::into_data);
        Poll::Ready(match piece {
            Ok(Ok(piece)) => Some(self.admit(&piece).map(|()| Frame::data(piece))),
            Ok(Err(_trailers)) => None,
            Err(cut) => Some(Err(cut)),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
