//! A plugin that answers HTTP requests: one request and its response, within the limits of any run.
//!
//! The response is passed on while the guest writes it. The head waits for the first piece of the
//! body, so that a guest that fails immediately is distinguished from one that answers. The client
//! receives a plain 502 for any failure; the record has the details.

use std::{
    borrow::Cow,
    error::Error as StdError,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body::{Body, Frame};
use http_body_util::{
    BodyExt, Full, LengthLimitError, Limited, StreamBody, combinators::UnsyncBoxBody,
};
use sallyport_contract::{
    AbandonedEffects, AdmittedCall, BoxFuture, CallFailure, CallReport, FailureKind, Outcome,
    ToolOutput,
    redact::RedactStream,
    services::{SessionInbox, UiSession},
};
use sallyport_policy::ByteSize;
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};
use wasmtime_wasi_http::{Error, WasiBody};

use super::{Inlet, RoleLinks};
use crate::{
    Plugin,
    abi::http::{Given, HttpHandler},
    case::Case,
    ledger::Ledger,
    net, run,
};

/// The body of the 502 response.
const NO_ANSWER: &str = "the plugin gave no answer\n";

/// A body as it leaves the sandbox.
pub type HttpBody = UnsyncBoxBody<Bytes, BodyError>;

/// The reason why a body ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// The body is longer than the policy allows.
    #[error("the body has more than {0} bytes")]
    TooLong(u64),
    /// The plugin ended before the body did.
    #[error("the plugin ended before its answer was whole")]
    Unfinished,
}

/// A request that is being answered.
pub struct Served {
    /// The response. Dropping this, or the body before its end, stops the run.
    pub response: BoxFuture<'static, Response<HttpBody>>,
    /// The record of the run. It is available when the run has ended, which may be after the
    /// response.
    pub report: BoxFuture<'static, CallReport>,
}

impl Plugin {
    /// Answers a request with an absolute URI, whose scheme and authority are passed to the guest
    /// instead of the `Host` header's. Input goes to `inbox`, commands and drawings to `seat`. The
    /// run starts immediately, in a task of its own.
    pub fn serve<B>(
        self: &Arc<Self>,
        call: AdmittedCall,
        inbox: Option<Arc<dyn SessionInbox>>,
        seat: Option<Arc<dyn UiSession>>,
        request: Request<B>,
    ) -> Served
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn StdError + Send + Sync>>,
    {
        let inlet = inbox.map(|inbox| Inlet { inbox, connection: None });
        let links = RoleLinks { inlet, seat, ..RoleLinks::default() };
        let (give, given) = oneshot::channel();
        let body = answer(self.http(), request, give);
        let (gone, over) = (CancellationToken::new(), CancellationToken::new());
        let (tell, told) = oneshot::channel();
        tokio::spawn({
            let (plugin, gone, ended) = (Arc::clone(self), gone.clone(), over.clone().drop_guard());
            async move {
                let _ended = ended;
                let (trail, run) =
                    (call.abandoned_effects().clone(), plugin.run_for(Arc::new(call), links, body));
                // A run that is given up has left its effects on its trail when this returns.
                let ran = gone.run_until_cancelled(run).await;
                let _ = tell.send(match ran {
                    Some(ran) => plugin.report(ran, |(), ledger| outcome(ledger)),
                    None => cancelled(&trail),
                });
            }
        });
        let response = Box::pin(respond(given, over, gone.drop_guard()));
        let report = async { told.await.unwrap_or_else(|_| Outcome::Cancelled.into()) };
        Served { response, report: Box::pin(report) }
    }
}

/// The outcome of a run that has returned.
fn outcome(ledger: &Ledger) -> Outcome {
    let Some(limit) = ledger.limit() else { return Outcome::Completed(ToolOutput::default()) };
    let message = format!("the limit of {limit} is reached");
    Outcome::Failed(CallFailure::new(FailureKind::LimitReached, message))
}

/// The record of a run that was given up.
fn cancelled(trail: &AbandonedEffects) -> CallReport {
    CallReport { effects: trail.take_effects(), ..CallReport::from(Outcome::Cancelled) }
}

/// The response that a guest has begun.
struct Begun {
    given: Given,
    case: Arc<Case>,
    broke: Arc<AtomicBool>,
}

impl Begun {
    /// The response, if it can be sent.
    fn answer(self) -> Option<(Response<WasiBody>, Arc<Case>, Arc<AtomicBool>)> {
        let answer = self.given.ok().filter(|answer| !answer.status().is_informational())?;
        Some((answer, self.case, self.broke))
    }
}

/// Records whether a guest was stopped before it returned. It is dropped before the guest's
/// resources, so that the end of a body that their removal causes is not taken for a regular one.
struct AtWork {
    broke: Arc<AtomicBool>,
    has_returned: bool,
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.broke.store(!self.has_returned, Ordering::SeqCst);
    }
}

/// Passes the request to the guest, and the beginning of its response to `give`.
fn answer<B>(
    handler: Option<Arc<HttpHandler>>,
    request: Request<B>,
    give: oneshot::Sender<Begun>,
) -> run::Body<()>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    run::body(move |store, instance| {
        Box::pin(async move {
            let Some(handler) = handler else { return HttpHandler::absent() };
            let case = Arc::clone(&store.data().case);
            let request = limited(request, &case);
            let broke = Arc::new(AtomicBool::new(false));
            let mut at_work = AtWork { broke: Arc::clone(&broke), has_returned: false };
            let hand_over = move |given| drop(give.send(Begun { given, case, broke }));
            let result = handler.handle(store, instance, request, hand_over).await;
            at_work.has_returned = result.is_ok();
            result
        })
    })
}

/// The request with a limit on its body.
fn limited<B>(request: Request<B>, case: &Arc<Case>) -> Request<WasiBody>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    let limit = case.grant().limits().http_body_bytes;
    let case = Arc::clone(case);
    request.map(|body| {
        let body = Limited::new(body, usize::try_from(limit).unwrap_or(usize::MAX));
        let broken = move |error: Box<dyn StdError + Send + Sync>| {
            if error.is::<LengthLimitError>() {
                too_long(&case, limit);
                return Error::HttpRequestBodySize(Some(limit));
            }
            Error::HttpProtocolError
        };
        body.map_err(broken).boxed_unsync()
    })
}

/// Waits until the guest has begun its response and written the first piece of the body.
async fn respond(
    mut given: oneshot::Receiver<Begun>,
    over: CancellationToken,
    gone: DropGuard,
) -> Response<HttpBody> {
    let begun = tokio::select! {
        biased;
        begun = &mut given => begun.ok(),
        () = over.cancelled() => given.try_recv().ok(),
    };
    let Some((answer, case, broke)) = begun.and_then(Begun::answer) else {
        // The client gets the 502, but the guest may have other work to finish.
        gone.disarm();
        return no_answer();
    };
    let (head, body) = answer.into_parts();
    let redactor = case.warden().redactor();
    let clean = Some(redactor.redact_stream());
    let mut serving = Serving { body, over, gone: Some(gone), case, broke, bytes: 0, clean };
    let Ok(first) = serving.next().await else { return no_answer() };
    let mut response = Response::new(match first {
        None => whole(Bytes::new()),
        Some(first) => serving.streamed(first),
    });
    *response.status_mut() = head.status;
    *response.headers_mut() = net::answered(&redactor, &head.headers);
    response
}

fn no_answer() -> Response<HttpBody> {
    let mut response = Response::new(whole(Bytes::from_static(NO_ANSWER.as_bytes())));
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

fn whole(bytes: Bytes) -> HttpBody {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

/// A body that is being sent.
struct Serving {
    body: WasiBody,
    /// Cancelled when the run has ended.
    over: CancellationToken,
    /// Stops the run when the client drops the body before its end.
    gone: Option<DropGuard>,
    case: Arc<Case>,
    broke: Arc<AtomicBool>,
    bytes: u64,
    /// `None` once the body has ended.
    clean: Option<RedactStream>,
}

impl Serving {
    /// Returns the next piece, or `None` at the end. After the end, regular or not, the guest may
    /// continue with other work.
    async fn next(&mut self) -> Result<Option<Bytes>, BodyError> {
        let piece = self.piece().await;
        if let Ok(None) | Err(_) = piece
            && let Some(gone) = self.gone.take()
        {
            gone.disarm();
        }
        piece
    }

    async fn piece(&mut self) -> Result<Option<Bytes>, BodyError> {
        while let Some(clean) = &mut self.clean {
            let Some(frame) = frame(&mut self.body, &self.over).await? else { break };
            // A guest may not announce trailers, so none are sent.
            let Ok(bytes) = frame.into_data() else { continue };
            let piece = match clean.push(&bytes) {
                Cow::Borrowed(all) if all.len() == bytes.len() => bytes.clone(),
                part => Bytes::from(part.into_owned()),
            };
            self.admit(bytes.len())?;
            if !piece.is_empty() {
                return Ok(Some(piece));
            }
        }
        self.end()
    }

    fn admit(&mut self, bytes: usize) -> Result<(), BodyError> {
        let limit = self.case.grant().limits().http_body_bytes;
        self.bytes += bytes as u64;
        if self.bytes > limit {
            too_long(&self.case, limit);
            return Err(BodyError::TooLong(limit));
        }
        Ok(())
    }

    /// Returns the bytes that were held back.
    fn end(&mut self) -> Result<Option<Bytes>, BodyError> {
        let Some(clean) = self.clean.take() else { return Ok(None) };
        if self.broke.load(Ordering::SeqCst) {
            return Err(BodyError::Unfinished);
        }
        let rest = clean.finish();
        Ok((!rest.is_empty()).then(|| Bytes::from(rest)))
    }

    fn streamed(self, first: Bytes) -> HttpBody {
        let rest = stream::try_unfold(self, |mut serving| async move {
            Ok(serving.next().await?.map(|bytes| (bytes, serving)))
        });
        let pieces = stream::iter([Ok(first)]).chain(rest);
        StreamBody::new(pieces.map_ok(Frame::data)).boxed_unsync()
    }
}

/// The next frame of the guest's body. Once its run has ended, only frames that are already
/// available.
async fn frame(
    body: &mut WasiBody,
    over: &CancellationToken,
) -> Result<Option<Frame<Bytes>>, BodyError> {
    let frame = tokio::select! {
        biased;
        frame = body.frame() => Some(frame),
        () = over.cancelled() => body.frame().now_or_never(),
    };
    let frame = frame.ok_or(BodyError::Unfinished)?;
    frame.transpose().map_err(|_| BodyError::Unfinished)
}

fn too_long(case: &Case, limit: u64) {
    case.ledger.limit_reached(format!("{} of one body (limits.http-body)", ByteSize(limit)));
}
