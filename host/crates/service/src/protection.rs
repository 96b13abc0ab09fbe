//! What every request and every answer goes through: the names of host and origin, the headers that
//! browsers obey, the form of errors, and the count.

use std::sync::Arc;

use axum::{
    body::{self, Body},
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderName, HeaderValue, Uri, header, uri::Authority};
use tracing::Instrument as _;

use crate::{
    console::HTML_TYPE,
    origin::{ServiceNames, named_host},
    problem::{PROBLEM_TYPE, Problem, ProblemKind},
    request_span::{record_answer, request_span},
    service::Service,
};

/// Headers of every answer. The API serves data, so a browser has nothing to run, to frame or to keep.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
];

/// Tells browsers for a year that this name is reached over TLS alone.
const TLS_ONLY: (HeaderName, &str) = (header::STRICT_TRANSPORT_SECURITY, "max-age=31536000");

/// The names of this machine.
const LOCAL_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The media types of errors that are our own.
const OWN_TYPES: [&str; 2] = [PROBLEM_TYPE, HTML_TYPE];

/// Longest text of the library's that is kept in an error, in bytes.
const LIBRARY_TEXT_BYTES_MAX: usize = 4096;

/// The route of a request that has none, among the counters.
const NO_ROUTE: &str = "none";

/// Checks a request, answers it, and completes the answer.
pub(crate) async fn protect(
    State(service): State<Arc<Service>>,
    route: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    let names = &service.names;
    let scheme = if names.is_reached_over_tls(request.headers()) { "https" } else { "http" };
    let span = request_span(request.method(), request.headers(), route.as_ref(), scheme);
    let is_tls_only = is_tls_only(request.headers(), names);
    let response = match check_names(request.headers(), request.uri(), names) {
        Ok(()) => with_problem(next.run(request).instrument(span.clone()).await).await,
        Err(problem) => problem.into_response(),
    };
    record_answer(&span, &response);
    let route = route.as_ref().map_or(NO_ROUTE, MatchedPath::as_str);
    service.metrics.count_request(route, response.status());
    with_headers(response, is_tls_only)
}

/// Whether a browser should reach the name of a request over TLS alone. The names of this machine
/// are those of other services, too, which may have none.
fn is_tls_only(headers: &HeaderMap, names: &ServiceNames) -> bool {
    let is_foreign = named_host(headers).is_some_and(|host| !is_local_host(&host));
    is_foreign && names.is_reached_over_tls(headers)
}

fn is_local_host(host: &Authority) -> bool {
    LOCAL_HOSTS.iter().any(|name| host.host().eq_ignore_ascii_case(name))
}

/// A page that a browser shows may not reach the service by its own origin, nor by a name that it
/// has made point to this machine.
fn check_names(headers: &HeaderMap, uri: &Uri, names: &ServiceNames) -> Result<(), Problem> {
    let host = requested_host(headers, uri)
        .ok_or_else(|| Problem::bad_request("the name of the host is missing, or is none"))?;
    let public = names.public_origin.as_ref();
    let is_known = is_local_host(&host) || public.is_some_and(|public| public.is_host(&host));
    if names.is_local && !is_known {
        let title = "the service is not at this name; use 127.0.0.1 or localhost";
        return Err(Problem::new(ProblemKind::WrongHost, title));
    }
    match headers.get(header::ORIGIN) {
        Some(origin)
            if !is_same_origin(origin, &host, names)
                && !public.is_some_and(|public| public.is_origin(origin)) =>
        {
            let title = "pages of another origin cannot use the service";
            Err(Problem::new(ProblemKind::ForeignOrigin, title))
        }
        _ => Ok(()),
    }
}

/// The one name that a request gives the host.
fn requested_host(headers: &HeaderMap, uri: &Uri) -> Option<Authority> {
    let host = named_host(headers)?;
    // A request can also have the name in its target.
    uri.authority().is_none_or(|target| target == &host).then_some(host)
}

/// Whether a page of the service itself made a request. Behind a proxy, both schemes can be its own;
/// with TLS of its own, a page without TLS is another's.
fn is_same_origin(origin: &HeaderValue, host: &Authority, names: &ServiceNames) -> bool {
    let origin = origin.to_str().unwrap_or_default();
    let schemes: &[&str] = if names.has_tls { &["https://"] } else { &["http://", "https://"] };
    let rest = schemes.iter().find_map(|scheme| origin.strip_prefix(scheme));
    rest.is_some_and(|rest| rest.eq_ignore_ascii_case(host.as_str()))
}

/// Gives an error of the library the form that all errors have. Pages are the console's own.
async fn with_problem(response: Response) -> Response {
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    let content_type = response.headers().get(header::CONTENT_TYPE);
    if !is_error || content_type.is_some_and(|value| OWN_TYPES.iter().any(|own| value == own)) {
        return response;
    }
    let (head, body) = response.into_parts();
    let text = library_text(body).await;
    let mut replaced = Problem::from_library(status, &text).into_response();
    if let Some(methods) = head.headers.get(header::ALLOW) {
        replaced.headers_mut().insert(header::ALLOW, methods.clone());
    }
    replaced
}

async fn library_text(body: Body) -> String {
    let bytes = body::to_bytes(body, LIBRARY_TEXT_BYTES_MAX).await.unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Adds the headers. Only a page of the console has its own policy.
fn with_headers(mut response: Response, is_tls_only: bool) -> Response {
    for (name, value) in HEADERS.into_iter().chain(is_tls_only.then_some(TLS_ONLY)) {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_names_of_host_and_origin_count() {
        let rows = [
            ("127.0.0.1:80", None, true, true),
            ("localhost:1", None, true, true),
            ("LOCALHOST", None, true, true),
            ("[::1]:80", None, true, true),
            ("evil.example", None, true, false),
            ("evil.example", None, false, true),
            ("localhost.evil.example", None, true, false),
            ("127.0.0.1:80", Some("http://127.0.0.1:80"), true, true),
            ("team.example", Some("https://team.example"), false, true),
            ("team.example", Some("https://evil.example"), false, false),
            ("team.example", Some("https://team.example.evil"), false, false),
            ("127.0.0.1:80", Some("http://127.0.0.1:81"), true, false),
            ("127.0.0.1:80", Some("null"), true, false),
            ("127.0.0.1:80", Some(""), true, false),
            ("", None, true, false),
            ("a b", None, false, false),
        ];
        for (host, origin, is_local, want) in rows {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_str(host).unwrap());
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
            }
            let names = ServiceNames { is_local, ..ServiceNames::default() };
            let checked = check_names(&headers, &Uri::from_static("/v1/tools"), &names);
            assert_eq!(checked.is_ok(), want, "{host} {origin:?} {is_local}");
        }
    }

    #[test]
    fn a_request_with_two_names_has_none() {
        let mut headers = HeaderMap::new();
        let names = ServiceNames { is_local: true, ..ServiceNames::default() };
        assert!(check_names(&headers, &Uri::from_static("/"), &names).is_err());
        headers.append(header::HOST, HeaderValue::from_static("localhost"));
        let target = Uri::from_static("http://evil.example/");
        assert!(check_names(&headers, &target, &names).is_err());
        headers.append(header::HOST, HeaderValue::from_static("localhost"));
        assert!(check_names(&headers, &Uri::from_static("/"), &names).is_err());
    }

    #[test]
    fn a_proxy_adds_one_name_and_one_origin() {
        let public_origin = Some("https://team.example".parse().unwrap());
        let names = ServiceNames { is_local: true, has_tls: false, public_origin };
        let rows = [
            ("team.example", None, true),
            ("team.example", Some("https://team.example"), true),
            ("127.0.0.1:8420", Some("https://team.example"), true),
            ("127.0.0.1:8420", Some("http://127.0.0.1:8420"), true),
            ("127.0.0.1:8420", Some("http://team.example"), false),
            ("127.0.0.1:8420", Some("https://team.example:8443"), false),
            ("127.0.0.1:8420", Some("https://evil.example"), false),
            ("evil.example", None, false),
            ("team.example:8443", None, false),
        ];
        for (host, origin, want) in rows {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static(host));
            headers.extend(origin.map(|origin| (header::ORIGIN, HeaderValue::from_static(origin))));
            let checked = check_names(&headers, &Uri::from_static("/console"), &names);
            assert_eq!(checked.is_ok(), want, "{host} {origin:?}");
        }
    }

    /// Whether a request is taken, and whether browsers learn that its name is reached over TLS.
    fn check_tls(
        host: &'static str,
        origin: &'static str,
        names: &ServiceNames,
        want: (bool, bool),
    ) {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static(host));
        if !origin.is_empty() {
            headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
        }
        let is_taken = check_names(&headers, &Uri::from_static("/console"), names).is_ok();
        assert_eq!((is_taken, is_tls_only(&headers, names)), want, "{host} {origin} {names:?}");
    }

    #[test]
    fn with_tls_no_page_without_it_counts_and_browsers_keep_to_it() {
        let own = ServiceNames { has_tls: true, ..ServiceNames::default() };
        check_tls("team.example", "https://team.example", &own, (true, true));
        check_tls("team.example", "http://team.example", &own, (false, true));
        check_tls("team.example", "", &own, (true, true));
        check_tls("127.0.0.1:8420", "https://127.0.0.1:8420", &own, (true, false));
        check_tls("localhost", "http://localhost", &own, (false, false));
        let public_origin = Some("https://team.example".parse().unwrap());
        let behind_proxy = ServiceNames { public_origin, ..ServiceNames::default() };
        check_tls("team.example", "https://team.example", &behind_proxy, (true, true));
        check_tls("10.0.0.1:8420", "", &behind_proxy, (true, false));
        let plain = ServiceNames::default();
        check_tls("team.example", "https://team.example", &plain, (true, false));
    }
}
