//! Redirects: returned to the guest, or followed if its policy allows it.
//!
//! Each request of a chain passes the whole gate like any other: the new URL is rebuilt and
//! checked, the user may be asked, and the name is resolved again. Headers that authenticate the
//! client to one origin are not sent to another, and the host adds no secret to a request that a
//! server of another origin chose.

use std::mem;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Empty};
use sallyport_policy::rebuild_url;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

use super::{
    HttpGate, Response,
    exchange::{PreparedRequest, UnreadResponse, exchange_request},
    headers, request_url,
    timeouts::ExchangeTimeouts,
};

/// Sends a guest's request, and the redirected requests that follow from it.
pub(super) async fn send_with_redirects(
    gate: &HttpGate,
    request: Request<WasiBody>,
    options: RequestOptions,
) -> Result<Response, Error> {
    let timeouts = ExchangeTimeouts::new(&gate.run_context, options)?;
    let (head, mut body) = request.into_parts();
    let url = rebuild_url(&head.uri).map_err(|error| gate.request_form_error(error))?;
    let (method, headers) = (head.method, head.headers);
    let mut prepared = PreparedRequest { method, url, headers, has_left_origin: false };
    for followed in 0.. {
        let sent = mem::replace(&mut body, empty_body());
        let answer = exchange_request(gate, &timeouts, &prepared, sent).await?;
        let limit = gate.run_context.current_grant().limits().http_redirects;
        let Some((method, location)) =
            redirect_target(&prepared.method, &answer).filter(|_| limit > 0)
        else {
            return answer.into_guest_response(gate, timeouts);
        };
        if followed >= limit {
            let limit = format!("{limit} redirects of one request (limits.http-redirects)");
            gate.run_context.effect_log.record_limit(limit);
            break;
        }
        prepared = gate.build_redirect_request(&prepared, method, location)?;
    }
    Err(Error::LoopDetected)
}

/// The method and location of a redirect that can be followed without a body.
fn redirect_target<'a>(
    method: &Method,
    answer: &'a UnreadResponse,
) -> Option<(Method, &'a HeaderValue)> {
    let is_read = *method == Method::GET || *method == Method::HEAD;
    let next_method = match answer.response.status() {
        StatusCode::SEE_OTHER if *method == Method::POST => Some(Method::GET),
        StatusCode::SEE_OTHER if is_read => Some(method.clone()),
        StatusCode::MOVED_PERMANENTLY
        | StatusCode::FOUND
        | StatusCode::TEMPORARY_REDIRECT
        | StatusCode::PERMANENT_REDIRECT => {
            // The body has been consumed and cannot be sent again.
            (is_read && answer.traffic.sent_bytes() == 0).then(|| method.clone())
        }
        _ => None,
    };
    Some((next_method?, answer.response.headers().get(header::LOCATION)?))
}

impl HttpGate {
    /// Builds the request for a redirect.
    fn build_redirect_request(
        &self,
        from: &PreparedRequest,
        method: Method,
        location: &HeaderValue,
    ) -> Result<PreparedRequest, Error> {
        let url = request_url::resolve_redirect_url(&from.url, location);
        let url = url.map_err(|error| self.request_form_error(error))?;
        if from.url.scheme() == "https" && url.scheme() != "https" {
            let what = self.request_name(method.as_str(), &url);
            return Err(
                self.refuse_request(&what, "a redirect leads from https down to http".to_owned())
            );
        }
        let mut headers = from.headers.clone();
        headers::drop_body_headers(&mut headers);
        let leaves_origin = url.origin() != from.url.origin();
        if leaves_origin {
            let redactor = self.run_context.authorizer().redactor();
            headers::drop_credential_headers(&mut headers, |value| {
                redactor.find_secret(value).is_some()
            });
        }
        let has_left_origin = from.has_left_origin || leaves_origin;
        Ok(PreparedRequest { method, url, headers, has_left_origin })
    }
}

fn empty_body() -> WasiBody {
    Empty::<Bytes>::new().map_err(|never| match never {}).boxed_unsync()
}
