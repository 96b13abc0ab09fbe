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

use crate::{
    Plugin,
    abi::http::{GuestResponse, HttpHandler},
    effect_log::EffectLog,
    net,
    role_links::{ListenerInputLink, RoleLinks},
    run_body::{RunBody, box_run_body},
    run_context::RunContext,
};

/// The body of the 502 response.
const BAD_GATEWAY_TEXT: &str = "the plugin gave no answer\n";

/// A body as it leaves the sandbox.
pub type HttpBody = UnsyncBoxBody<Bytes, HttpBodyError>;

/// The reason why a body ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HttpBodyError {
    /// The body is longer than the policy allows.
    #[error("the body has more than {0} bytes")]
    TooLong(u64),
    /// The plugin ended before the body did.
    #[error("the plugin ended before its answer was whole")]
    Unfinished,
}

/// A request that is being answered.
pub struct ServedRequest {
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
    pub fn serve_request<B>(
        self: &Arc<Self>,
        call: AdmittedCall,
        inbox: Option<Arc<dyn SessionInbox>>,
        ui_session: Option<Arc<dyn UiSession>>,
        request: Request<B>,
    ) -> ServedRequest
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn StdError + Send + Sync>>,
    {
        let listener_input = inbox.map(|inbox| ListenerInputLink { inbox, connection: None });
        let links = RoleLinks { listener_input, ui_session, ..RoleLinks::default() };
        let (response_sender, given) = oneshot::channel();
        let body = request_body_fn(self.http_handler(), request, response_sender);
        let (client_gone, run_ended) = (CancellationToken::new(), CancellationToken::new());
        let (report_sender, report_receiver) = oneshot::channel();
        tokio::spawn({
            let (plugin, client_gone, ended) =
                (Arc::clone(self), client_gone.clone(), run_ended.clone().drop_guard());
            async move {
                let _ended = ended;
                let (abandoned, run) = (
                    call.abandoned_effects().clone(),
                    plugin.run_call(Arc::new(call), links, body),
                );
                // A run that is given up has left its effects with the call when this returns.
                let completed = client_gone.run_until_cancelled(run).await;
                let _ = report_sender.send(match completed {
                    Some(completed) => {
                        plugin.build_report(completed, |(), effect_log| run_outcome(effect_log))
                    }
                    None => cancelled_report(&abandoned),
                });
            }
        });
        let response = Box::pin(build_response(given, run_ended, client_gone.drop_guard()));
        let report = async { report_receiver.await.unwrap_or_else(|_| Outcome::Cancelled.into()) };
        ServedRequest { response, report: Box::pin(report) }
    }
}

/// The outcome of a run that has returned.
fn run_outcome(effect_log: &EffectLog) -> Outcome {
    let Some(limit) = effect_log.reached_limit() else {
        return Outcome::Completed(ToolOutput::default());
    };
    let message = format!("the limit of {limit} is reached");
    Outcome::Failed(CallFailure::new(FailureKind::LimitReached, message))
}

/// The record of a run that was given up.
fn cancelled_report(abandoned: &AbandonedEffects) -> CallReport {
    CallReport { effects: abandoned.take_effects(), ..CallReport::from(Outcome::Cancelled) }
}

/// The response that a guest has begun.
struct ResponseStart {
    guest_response: GuestResponse,
    run_context: Arc<RunContext>,
    stopped_early: Arc<AtomicBool>,
}

impl ResponseStart {
    /// The response, if it can be sent.
    fn into_response(self) -> Option<(Response<WasiBody>, Arc<RunContext>, Arc<AtomicBool>)> {
        let answer =
            self.guest_response.ok().filter(|answer| !answer.status().is_informational())?;
        Some((answer, self.run_context, self.stopped_early))
    }
}

/// Records whether a guest was stopped before it returned. It is dropped before the guest's
/// resources, so that the end of a body that their removal causes is not taken for a regular one.
struct ReturnGuard {
    stopped_early: Arc<AtomicBool>,
    has_returned: bool,
}

impl Drop for ReturnGuard {
    fn drop(&mut self) {
        self.stopped_early.store(!self.has_returned, Ordering::SeqCst);
    }
}

/// Passes the request to the guest, and the beginning of its response to `give`.
fn request_body_fn<B>(
    handler: Option<Arc<HttpHandler>>,
    request: Request<B>,
    response_sender: oneshot::Sender<ResponseStart>,
) -> RunBody<()>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    box_run_body(move |store, instance| {
        Box::pin(async move {
            let Some(handler) = handler else { return HttpHandler::missing_export_error() };
            let run_context = Arc::clone(&store.data().run_context);
            let request = limit_request_body(request, &run_context);
            let stopped_early = Arc::new(AtomicBool::new(false));
            let mut return_guard =
                ReturnGuard { stopped_early: Arc::clone(&stopped_early), has_returned: false };
            let hand_over = move |given| {
                drop(response_sender.send(ResponseStart {
                    guest_response: given,
                    run_context,
                    stopped_early,
                }))
            };
            let result = handler.handle_request(store, instance, request, hand_over).await;
            return_guard.has_returned = result.is_ok();
            result
        })
    })
}

/// The request with a limit on its body.
fn limit_request_body<B>(request: Request<B>, run_context: &Arc<RunContext>) -> Request<WasiBody>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    let limit = run_context.current_grant().limits().http_body_bytes;
    let run_context = Arc::clone(run_context);
    request.map(|body| {
        let body = Limited::new(body, usize::try_from(limit).unwrap_or(usize::MAX));
        let broken = move |error: Box<dyn StdError + Send + Sync>| {
            if error.is::<LengthLimitError>() {
                record_body_limit(&run_context, limit);
                return Error::HttpRequestBodySize(Some(limit));
            }
            Error::HttpProtocolError
        };
        body.map_err(broken).boxed_unsync()
    })
}

/// Waits until the guest has begun its response and written the first piece of the body.
async fn build_response(
    mut given: oneshot::Receiver<ResponseStart>,
    run_ended: CancellationToken,
    client_gone: DropGuard,
) -> Response<HttpBody> {
    let started = tokio::select! {
        biased;
        begun = &mut given => begun.ok(),
        () = run_ended.cancelled() => given.try_recv().ok(),
    };
    let Some((answer, run_context, stopped_early)) = started.and_then(ResponseStart::into_response)
    else {
        // The client gets the 502, but the guest may have other work to finish.
        client_gone.disarm();
        return bad_gateway_response();
    };
    let (head, body) = answer.into_parts();
    let redactor = run_context.authorizer().redactor();
    let redaction = Some(redactor.redact_stream());
    let mut body_stream = ResponseBodyStream {
        body,
        run_ended,
        client_gone: Some(client_gone),
        run_context,
        stopped_early,
        bytes: 0,
        redaction,
    };
    let Ok(first) = body_stream.next_chunk().await else { return bad_gateway_response() };
    let mut response = Response::new(match first {
        None => full_body(Bytes::new()),
        Some(first) => body_stream.into_http_body(first),
    });
    *response.status_mut() = head.status;
    *response.headers_mut() = net::prepare_response_headers(&redactor, &head.headers);
    response
}

fn bad_gateway_response() -> Response<HttpBody> {
    let mut response = Response::new(full_body(Bytes::from_static(BAD_GATEWAY_TEXT.as_bytes())));
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

fn full_body(bytes: Bytes) -> HttpBody {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

/// A body that is being sent.
struct ResponseBodyStream {
    body: WasiBody,
    /// Cancelled when the run has ended.
    run_ended: CancellationToken,
    /// Stops the run when the client drops the body before its end.
    client_gone: Option<DropGuard>,
    run_context: Arc<RunContext>,
    stopped_early: Arc<AtomicBool>,
    bytes: u64,
    /// `None` once the body has ended.
    redaction: Option<RedactStream>,
}

impl ResponseBodyStream {
    /// Returns the next piece, or `None` at the end. After the end, regular or not, the guest may
    /// continue with other work.
    async fn next_chunk(&mut self) -> Result<Option<Bytes>, HttpBodyError> {
        let piece = self.read_chunk().await;
        if let Ok(None) | Err(_) = piece
            && let Some(client_gone) = self.client_gone.take()
        {
            client_gone.disarm();
        }
        piece
    }

    async fn read_chunk(&mut self) -> Result<Option<Bytes>, HttpBodyError> {
        while let Some(redaction) = &mut self.redaction {
            let Some(frame) = next_frame(&mut self.body, &self.run_ended).await? else { break };
            // A guest may not announce trailers, so none are sent.
            let Ok(bytes) = frame.into_data() else { continue };
            let piece = match redaction.push(&bytes) {
                Cow::Borrowed(all) if all.len() == bytes.len() => bytes.clone(),
                part => Bytes::from(part.into_owned()),
            };
            self.count_bytes(bytes.len())?;
            if !piece.is_empty() {
                return Ok(Some(piece));
            }
        }
        self.finish_redaction()
    }

    fn count_bytes(&mut self, bytes: usize) -> Result<(), HttpBodyError> {
        let limit = self.run_context.current_grant().limits().http_body_bytes;
        self.bytes += bytes as u64;
        if self.bytes > limit {
            record_body_limit(&self.run_context, limit);
            return Err(HttpBodyError::TooLong(limit));
        }
        Ok(())
    }

    /// Returns the bytes that were held back.
    fn finish_redaction(&mut self) -> Result<Option<Bytes>, HttpBodyError> {
        let Some(redaction) = self.redaction.take() else { return Ok(None) };
        if self.stopped_early.load(Ordering::SeqCst) {
            return Err(HttpBodyError::Unfinished);
        }
        let rest = redaction.finish();
        Ok((!rest.is_empty()).then(|| Bytes::from(rest)))
    }

    fn into_http_body(self, first: Bytes) -> HttpBody {
        let rest = stream::try_unfold(self, |mut body_stream| async move {
            Ok(body_stream.next_chunk().await?.map(|bytes| (bytes, body_stream)))
        });
        let pieces = stream::iter([Ok(first)]).chain(rest);
        StreamBody::new(pieces.map_ok(Frame::data)).boxed_unsync()
    }
}

/// The next frame of the guest's body. Once its run has ended, only frames that are already
/// available.
async fn next_frame(
    body: &mut WasiBody,
    run_ended: &CancellationToken,
) -> Result<Option<Frame<Bytes>>, HttpBodyError> {
    let frame = tokio::select! {
        biased;
        frame = body.frame() => Some(frame),
        () = run_ended.cancelled() => body.frame().now_or_never(),
    };
    let frame = frame.ok_or(HttpBodyError::Unfinished)?;
    frame.transpose().map_err(|_| HttpBodyError::Unfinished)
}

fn record_body_limit(run_context: &RunContext, limit: u64) {
    run_context
        .effect_log
        .record_limit(format!("{} of one body (limits.http-body)", ByteSize(limit)));
}
