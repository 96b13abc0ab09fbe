//! The requests of the page: opening the link, reading the questions, answering one.

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use axum::{
    Extension, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Path, Request, State},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use maud::Markup;
use sallyport_runtime::{
    clock::now_ms,
    gate::{
        question_answer::{GivenAnswer, QuestionAnswerError, answer_question},
        sealed_question::AnswerWord,
    },
};
use sallyport_store::{QuestionStore, StoredQuestion};

use crate::{
    access::{LinkState, PageAccess},
    html,
};

/// Longest body of a request, in bytes: a form with a folder and a reason.
const BODY_BYTES_MAX: usize = 16 << 10;

/// The name of the page among those who answer.
const CARRIER: &str = "the approval page";

/// The address of the one who asks, in the extensions of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BrowserAddress(pub(crate) SocketAddr);

/// Called with the address of the browser that opened the link.
pub(crate) type LinkOpened = Box<dyn Fn(IpAddr) + Send + Sync>;

/// What all requests share.
pub(crate) struct ApprovalPageState {
    pub(crate) access: PageAccess,
    pub(crate) questions: Arc<dyn QuestionStore>,
    /// The user whose questions are shown.
    pub(crate) user: String,
    /// The name of the page in requests: its address and port.
    pub(crate) authority: String,
    pub(crate) link_opened: LinkOpened,
}

/// A page loads nothing, runs nothing, and is shown in no other page.
const SECURITY_HEADERS: [(HeaderName, &str); 5] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; \
         frame-ancestors 'none'",
    ),
    (header::CACHE_CONTROL, "no-store"),
    // With `no-referrer`, a browser would not say that a form is the page's own.
    (header::REFERRER_POLICY, "same-origin"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
];

pub(crate) fn page_router(state: ApprovalPageState) -> Router {
    let state = Arc::new(state);
    let own = Router::new()
        .route("/", get(show_questions))
        .route("/answer", post(take_answer))
        .route_layer(from_fn_with_state(Arc::clone(&state), check_browser));
    Router::new()
        .route("/link/{key}", get(show_link).post(open_link))
        .merge(own)
        .fallback(|| async { page(StatusCode::NOT_FOUND, html::message("There is no such page.")) })
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(from_fn_with_state(Arc::clone(&state), check_origin))
        .with_state(state)
}

fn page(status: StatusCode, content: Markup) -> Response {
    let text = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
    (status, text, content.into_string()).into_response()
}

/// Refuses requests that a page of another server has sent, or that were meant for another name.
async fn check_origin(
    State(state): State<Arc<ApprovalPageState>>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = match is_for_page(&state.authority, &request) {
        true => next.run(request).await,
        false => page(StatusCode::FORBIDDEN, html::message("The request is for another page.")),
    };
    for (name, value) in SECURITY_HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

fn is_for_page(authority: &str, request: &Request) -> bool {
    let is = |name: HeaderName, want: &str| {
        request.headers().get(name).is_some_and(|value| value.as_bytes() == want.as_bytes())
    };
    let origin = format!("https://{authority}");
    is(header::HOST, authority) && (*request.method() == Method::GET || is(header::ORIGIN, &origin))
}

/// Refuses every browser but the one that opened the link.
async fn check_browser(
    State(state): State<Arc<ApprovalPageState>>,
    request: Request,
    next: Next,
) -> Response {
    match state.access.is_allowed(request.headers()) {
        true => next.run(request).await,
        false => {
            let text = "Open the link that the terminal shows. It works once, in one browser.";
            page(StatusCode::FORBIDDEN, html::message(text))
        }
    }
}

/// Shows a button instead of opening the link, because programs that preview links open them too.
async fn show_link(
    State(state): State<Arc<ApprovalPageState>>,
    Path(key): Path<String>,
) -> Response {
    match state.access.link_state(&key) {
        LinkState::Unused => page(StatusCode::OK, html::link_page(&key)),
        LinkState::Used => link_used(),
        LinkState::Unknown => page(StatusCode::NOT_FOUND, html::message("There is no such page.")),
    }
}

async fn open_link(
    State(state): State<Arc<ApprovalPageState>>,
    Extension(BrowserAddress(peer)): Extension<BrowserAddress>,
    Path(key): Path<String>,
) -> Response {
    let Some(cookie) = state.access.open_link(&key) else { return link_used() };
    (state.link_opened)(peer.ip());
    let headers = [(header::SET_COOKIE, cookie), (header::LOCATION, "/".to_owned())];
    (StatusCode::SEE_OTHER, headers).into_response()
}

fn link_used() -> Response {
    let text = "This link was used before. Start the chat anew for another one.";
    page(StatusCode::GONE, html::message(text))
}

async fn show_questions(State(state): State<Arc<ApprovalPageState>>) -> Response {
    match state.questions.open_questions(&state.user, now_ms()).await {
        Ok(open) => page(StatusCode::OK, html::question_list(&open, now_ms())),
        Err(error) => page(
            StatusCode::INTERNAL_SERVER_ERROR,
            html::message(&format!("The questions cannot be read: {error}")),
        ),
    }
}

async fn take_answer(
    State(state): State<Arc<ApprovalPageState>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let is_form = headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(b"application/x-www-form-urlencoded"));
    let form: HashMap<String, String> = url::form_urlencoded::parse(&body).into_owned().collect();
    let value = |name: &str| form.get(name).filter(|text| !text.is_empty()).cloned();
    let word = value("answer").and_then(|word| AnswerWord::from_word(&word));
    let (true, Some(id), Some(word)) = (is_form, value("id"), word) else {
        return page(StatusCode::BAD_REQUEST, html::message("This is not an answer."));
    };
    let given = GivenAnswer {
        word,
        hash: value("hash"),
        folder: value("folder"),
        reason: value("reason"),
        values: None,
    };
    match enter_answer(&state, &id, &given).await {
        Ok(()) => page(StatusCode::OK, html::answered(html::answer_words(word))),
        Err(error) => page(StatusCode::CONFLICT, html::answered(&error.to_string())),
    }
}

async fn enter_answer(
    state: &ApprovalPageState,
    id: &str,
    given: &GivenAnswer,
) -> Result<(), QuestionAnswerError> {
    let open = state.questions.open_questions(&state.user, now_ms()).await?;
    let stored: Option<StoredQuestion> = open.into_iter().find(|question| question.id == id);
    let stored = stored.ok_or(QuestionAnswerError::NotAsked)?;
    answer_question(&*state.questions, &stored, given, CARRIER).await.map(drop)
}
