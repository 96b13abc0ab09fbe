//! The span of a request, in the trace of its caller.

use axum::{extract::MatchedPath, response::Response};
use http::{HeaderMap, Method};
use sallyport_contract::TraceParent;
use tracing::{
    Span,
    field::{self, Empty},
    info_span,
};

/// The header that names the caller's place in a trace, as W3C Trace Context defines it.
const TRACE_PARENT_HEADER: &str = "traceparent";

/// The word for a method of the caller's own making, which could be anything.
const OTHER_METHOD: &str = "_OTHER";

/// Opens the span of a request.
pub(crate) fn request_span(
    method: &Method,
    headers: &HeaderMap,
    route: Option<&MatchedPath>,
    scheme: &'static str,
) -> Span {
    info_span!(
        "service_request",
        method = known_method(method),
        route = route.map(MatchedPath::as_str),
        scheme,
        traceparent = caller_trace(headers).map(field::display),
        status = Empty,
        error = Empty,
    )
}

/// Records the status of an answer. An error of the service, and not of its caller, is a failure.
pub(crate) fn record_answer(span: &Span, response: &Response) {
    let status = response.status();
    span.record("status", status.as_u16());
    if status.is_server_error() {
        span.record("error", status.as_str());
    }
}

/// The caller's place in a trace. A request with several has none, because it is not clear which
/// counts.
fn caller_trace(headers: &HeaderMap) -> Option<TraceParent> {
    let mut values = headers.get_all(TRACE_PARENT_HEADER).iter();
    let (value, None) = (values.next()?, values.next()) else { return None };
    value.to_str().ok()?.parse().ok()
}

fn known_method(method: &Method) -> &str {
    let known = [
        Method::GET,
        Method::POST,
        Method::PUT,
        Method::DELETE,
        Method::HEAD,
        Method::OPTIONS,
        Method::PATCH,
    ];
    if known.contains(method) { method.as_str() } else { OTHER_METHOD }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_valid_header_joins_a_trace() {
        let valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let rows = [(&[][..], false), (&[valid], true), (&["x"], false), (&[valid, valid], false)];
        for (values, is_joined) in rows {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(TRACE_PARENT_HEADER, value.parse().unwrap());
            }
            assert_eq!(caller_trace(&headers).is_some(), is_joined, "{headers:?}");
        }
    }

    #[test]
    fn a_method_that_nobody_defines_is_not_named() {
        let rows = [("POST", "POST"), ("get", "_OTHER"), ("SECRET", "_OTHER")];
        for (method, want) in rows {
            assert_eq!(known_method(&method.parse().unwrap()), want);
        }
    }
}
