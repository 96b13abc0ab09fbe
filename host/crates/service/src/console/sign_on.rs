//! Logging in at the identity server: the pages ask where to go, the browser goes there, and returns
//! with an answer.
//!
//! The browser returns by a link of another site, so the answer shows by its state and by a cookie
//! that this browser began the log-in. Whatever the answer has, the browser is sent to the console.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{RawQuery, State},
    response::{IntoResponse, Response},
};
use http::{HeaderMap, Method, StatusCode, header};
use sallyport_runtime::clock::now_ms;
use serde::Serialize;
use url::{Url, form_urlencoded};

use super::{
    login::{begin_login, too_many_attempts},
    sign_on_page,
};
use crate::{
    browser_login::{LoginBasis, SIGN_ON_COOKIE, check_same_site},
    origin::named_host,
    peer_address::PeerAddress,
    problem::{Problem, ProblemKind},
    request_body::JsonReply,
    service::Service,
    sign_on::{PendingSignOn, SignOn, SignOnAnswer, SignOnOutcome, SignOnRefusal, SignOnStart},
};

/// Where the identity server sends the browser back to.
pub(super) const CALLBACK_PATH: &str = "/console/callback";

/// Where a browser goes that is logged in.
const CONSOLE_PATH: &str = "/console";

/// Whether there is an identity server.
#[derive(Debug, Serialize)]
pub(super) struct SignOnOffer {
    /// Its host.
    server: Option<String>,
}

/// Where the browser has to go.
#[derive(Debug, Serialize)]
pub(super) struct SignOnPlace {
    url: String,
}

/// Shows whether users can log in at an identity server.
pub(super) async fn offer(State(service): State<Arc<Service>>) -> JsonReply<SignOnOffer> {
    let server = service.sign_on.as_ref().map(|sign_on| sign_on.server_name().to_owned());
    JsonReply(SignOnOffer { server })
}

/// Begins a log-in.
pub(super) async fn begin(
    State(service): State<Arc<Service>>,
    Extension(PeerAddress(address)): Extension<PeerAddress>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    check_same_site(&Method::POST, &headers)?;
    let sign_on = service.sign_on.as_ref().ok_or_else(no_sign_on)?;
    if service.login_attempts.is_blocked(address, now_ms()) {
        return Ok(too_many_attempts());
    }
    let redirect = answer_url(&service, &headers, CALLBACK_PATH)?;
    let is_over_tls = redirect.scheme() == "https";
    let start = SignOnStart { redirect, is_over_tls, address };
    let begun = sign_on.begin(start, now_ms()).await.map_err(problem_of)?;
    let cookie = SIGN_ON_COOKIE.set(&headers, is_over_tls, begun.browser_id.expose());
    let place = JsonReply(SignOnPlace { url: begun.url.into() });
    Ok(([(header::SET_COOKIE, cookie)], place).into_response())
}

/// Finishes a log-in, when the browser returns.
pub(super) async fn finish(
    State(service): State<Arc<Service>>,
    Extension(PeerAddress(address)): Extension<PeerAddress>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let sign_on = service.sign_on.as_ref().ok_or_else(no_sign_on)?;
    if service.login_attempts.is_blocked(address, now_ms()) {
        return Ok(sign_on_page::blocked());
    }
    let entered = match find_pending(sign_on, &headers, query.as_deref().unwrap_or_default()) {
        Ok((pending, answer)) => enter(&service, sign_on, &headers, pending, answer).await,
        Err(refusal) => Err(refusal),
    };
    Ok(entered.unwrap_or_else(|refusal| {
        if refusal.is_failed_attempt() {
            service.login_attempts.note_failure(address, now_ms());
        }
        sign_on_page::refused(&refusal)
    }))
}

fn find_pending(
    sign_on: &SignOn,
    headers: &HeaderMap,
    query: &str,
) -> Result<(PendingSignOn, SignOnAnswer), SignOnRefusal> {
    let answer = read_answer(query).ok_or(SignOnRefusal::NoAnswer)?;
    let pending = sign_on.take_pending(&answer, SIGN_ON_COOKIE.find_ids(headers), now_ms())?;
    Ok((pending, answer))
}

async fn enter(
    service: &Service,
    sign_on: &SignOn,
    headers: &HeaderMap,
    pending: PendingSignOn,
    answer: SignOnAnswer,
) -> Result<Response, SignOnRefusal> {
    let is_over_tls = pending.is_over_tls;
    let signed_on = sign_on.finish(pending, answer, now_ms()).await?;
    let name = signed_on.user.name.clone();
    if !service.tokens.admits(&name) {
        return Err(SignOnRefusal::Blocked { user: name });
    }
    let stored = service.host.store().users.set_login_groups(&name, &signed_on.groups).await;
    stored.map_err(|_| SignOnRefusal::GroupsNotStored)?;
    let basis = LoginBasis::SignOn { user: signed_on.user, ends_ms: signed_on.ends_ms };
    let login = begin_login(service, headers, is_over_tls, &name, basis);
    let mut entered = (StatusCode::SEE_OTHER, [(header::LOCATION, CONSOLE_PATH)]).into_response();
    for cookie in
        [login.map_err(|_| SignOnRefusal::NoRandom)?, SIGN_ON_COOKIE.remove(headers, is_over_tls)]
    {
        entered.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(entered)
}

/// The answer in a query. `None` if it has a part twice, because it is not clear which counts.
pub(crate) fn read_answer(query: &str) -> Option<SignOnAnswer> {
    let value = |name: &str| {
        let mut pairs = form_urlencoded::parse(query.as_bytes()).filter(|(own, _)| own == name);
        match (pairs.next(), pairs.next()) {
            (found, None) => Some(found.map(|(_, value)| value.into_owned())),
            _ => None,
        }
    };
    let (state, issuer) = (value("state")?, value("iss")?);
    let outcome = match (value("code")?, value("error")?, value("error_description")?) {
        (Some(code), None, _) => SignOnOutcome::Code(code),
        (None, Some(error), words) => SignOnOutcome::Refused(error, words),
        _ => SignOnOutcome::Nothing,
    };
    Some(SignOnAnswer { state: state?, issuer, outcome })
}

/// Where another server has to send the browser: a path of this service. Its host has the name that the
/// browser uses, because the browser keeps its cookies for that name.
pub(crate) fn answer_url(
    service: &Service,
    headers: &HeaderMap,
    path: &str,
) -> Result<Url, Problem> {
    let origin = match &service.names.public_origin {
        Some(public) => {
            let named = headers.get(header::ORIGIN);
            if named.is_some_and(|named| !public.is_origin(named)) {
                let title = format!("log in at {public}{CONSOLE_PATH}");
                return Err(Problem::bad_request(title));
            }
            public.to_string()
        }
        None => {
            let scheme = if service.names.is_over_tls(headers) { "https" } else { "http" };
            // The name was checked with all requests.
            let host = named_host(headers).map(|host| host.to_string());
            format!("{scheme}://{}", host.unwrap_or_default())
        }
    };
    Url::parse(&format!("{origin}{path}"))
        .map_err(|_| Problem::bad_request("the name of the host is missing, or is none"))
}

fn no_sign_on() -> Problem {
    Problem::not_found("no identity server is configured; log in with a token")
}

fn problem_of(refusal: SignOnRefusal) -> Problem {
    let kind = match refusal {
        SignOnRefusal::NoRandom => ProblemKind::Internal,
        _ => ProblemKind::SignOnUnavailable,
    };
    Problem::new(kind, refusal.to_string()).with_detail("try again in a minute, or use a token")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_each_part_once() {
        let rows = [
            ("state=s&code=c", Some("s - code c")),
            ("code=c&state=s&iss=https%3A%2F%2Fid.example", Some("s https://id.example code c")),
            ("state=s&error=access_denied", Some("s - refused access_denied -")),
            ("state=s&error=a&error_description=b+c", Some("s - refused a b c")),
            ("state=s", Some("s - nothing")),
            ("state=s&code=c&error=a", Some("s - nothing")),
            ("code=c", None),
            ("state=s&state=t&code=c", None),
            ("state=s&code=c&code=d", None),
            ("state=s&code=c&iss=a&iss=b", None),
            ("", None),
        ];
        for (query, want) in rows {
            let found = read_answer(query).map(|SignOnAnswer { state, issuer, outcome }| {
                let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
                let outcome = match outcome {
                    SignOnOutcome::Code(code) => format!("code {code}"),
                    SignOnOutcome::Refused(word, words) => {
                        format!("refused {word} {}", or_none(words))
                    }
                    SignOnOutcome::Nothing => "nothing".to_owned(),
                };
                format!("{state} {} {outcome}", or_none(issuer))
            });
            assert_eq!(found.as_deref(), want, "{query}");
        }
    }
}
