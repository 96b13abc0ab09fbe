//! Errors as `application/problem+json` (RFC 9457).

use std::borrow::Cow;

use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, StatusCode, header};
use sallyport_runtime::{clock::now_ms, session::SessionError};
use sallyport_session::BudgetRefusal;
use sallyport_store::StoreError;
use schemars::JsonSchema;
use serde::Serialize;

/// The media type.
pub(crate) const PROBLEM_TYPE: &str = "application/problem+json";

/// Seconds after which a client that is sent away may try again.
const RETRY_AFTER_SECONDS: u64 = 1;

/// Most characters of a detail that is made of foreign text.
const DETAIL_CHARS_MAX: usize = 400;

/// What went wrong, in one word for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ProblemKind {
    /// The request does not make sense.
    BadRequest,
    /// No valid token was shown.
    Unauthorized,
    /// The user's role is not enough.
    RoleMissing,
    /// A page of another origin made the request.
    ForeignOrigin,
    /// Somebody else began the sign-in, or the log-in that began it has ended.
    SignInRefused,
    /// The account that the tool needs is not connected, or has expired.
    ConnectionRequired,
    /// The arguments do not fit the tool.
    InvalidArguments,
    /// It does not exist, or belongs to another user.
    NotFound,
    /// The path does not take this method.
    MethodNotAllowed,
    /// The body did not arrive in time.
    RequestTimeout,
    /// The session is not open.
    SessionNotOpen,
    /// Another service or program has the session open.
    SessionElsewhere,
    /// The event ID has not been given out yet.
    EventFromTheFuture,
    /// The events after this one are not kept any more.
    EventsForgotten,
    /// The question was answered before, or is another one.
    AlreadyAnswered,
    /// The question has expired.
    QuestionExpired,
    /// What the key stands for was done, and its reply is not kept.
    ReplyForgotten,
    /// Another process works on what the key stands for.
    RequestRunning,
    /// What the key stands for was begun and cut off. It is not done again.
    OutcomeUnknown,
    /// The body is too large.
    BodyTooLarge,
    /// The body is not JSON by its type.
    MediaType,
    /// The request is for another host.
    WrongHost,
    /// The path takes WebSockets only.
    UpgradeRequired,
    /// The key was used for another request.
    KeyReused,
    /// A limit is reached.
    TooMany,
    /// A budget of the user is used up.
    BudgetSpent,
    /// The tool's plugin cannot be used at the moment.
    ToolUnavailable,
    /// No model is configured, or it cannot be used.
    ModelUnavailable,
    /// A fault of the service.
    Internal,
    /// The identity server cannot be used at the moment.
    SignOnUnavailable,
    /// The store cannot be used at the moment.
    StoreUnavailable,
    /// The service stops.
    Stopping,
}

impl ProblemKind {
    fn status(self) -> StatusCode {
        match self {
            Self::BadRequest | Self::EventFromTheFuture | Self::InvalidArguments => {
                StatusCode::BAD_REQUEST
            }
            Self::Unauthorized | Self::ConnectionRequired => StatusCode::UNAUTHORIZED,
            Self::RoleMissing | Self::ForeignOrigin | Self::SignInRefused => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::SessionNotOpen
            | Self::SessionElsewhere
            | Self::AlreadyAnswered
            | Self::ReplyForgotten
            | Self::RequestRunning
            | Self::OutcomeUnknown => StatusCode::CONFLICT,
            Self::EventsForgotten | Self::QuestionExpired => StatusCode::GONE,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::MediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::WrongHost => StatusCode::MISDIRECTED_REQUEST,
            Self::UpgradeRequired => StatusCode::UPGRADE_REQUIRED,
            Self::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
            Self::TooMany | Self::BudgetSpent => StatusCode::TOO_MANY_REQUESTS,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::ToolUnavailable
            | Self::ModelUnavailable
            | Self::SignOnUnavailable
            | Self::StoreUnavailable
            | Self::Stopping => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The kind of an answer that the library gave.
    fn of_status(status: StatusCode) -> Self {
        match status {
            StatusCode::NOT_FOUND => Self::NotFound,
            StatusCode::METHOD_NOT_ALLOWED => Self::MethodNotAllowed,
            StatusCode::PAYLOAD_TOO_LARGE => Self::BodyTooLarge,
            StatusCode::UNSUPPORTED_MEDIA_TYPE => Self::MediaType,
            status if status.is_client_error() => Self::BadRequest,
            _ => Self::Internal,
        }
    }
}

/// An error. Its status is that of its kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Problem {
    /// What went wrong, in one word for programs.
    #[serde(rename = "type")]
    pub(crate) kind: ProblemKind,
    /// The status, as in the head.
    status: u16,
    /// What went wrong, for people.
    title: Cow<'static, str>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// Everything that is wrong with the arguments of a call, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    errors: Vec<String>,
    /// When to try again, in seconds; a moment if it says nothing.
    #[serde(skip)]
    retry_after_s: Option<u64>,
}

impl Problem {
    pub(crate) fn new(kind: ProblemKind, title: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            status: kind.status().as_u16(),
            title: title.into(),
            detail: None,
            errors: Vec::new(),
            retry_after_s: None,
        }
    }

    #[must_use]
    pub(crate) fn with_detail(self, detail: impl Into<String>) -> Self {
        let detail: String = detail.into();
        Self { detail: Some(detail.chars().take(DETAIL_CHARS_MAX).collect()), ..self }
    }

    /// Arguments that do not fit a tool.
    pub(crate) fn invalid_arguments(errors: Vec<String>) -> Self {
        let title = "the arguments do not fit the tool";
        let problem = Self::new(ProblemKind::InvalidArguments, title);
        Self { errors: errors.clone(), ..problem.with_detail(errors.join("; ")) }
    }

    /// Something that does not exist for this user.
    pub(crate) fn not_found(what: &'static str) -> Self {
        Self::new(ProblemKind::NotFound, what)
    }

    /// A request that does not make sense.
    pub(crate) fn bad_request(title: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ProblemKind::BadRequest, title)
    }

    /// A limit that is reached.
    pub(crate) fn too_many(title: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ProblemKind::TooMany, title)
    }

    /// The service stops.
    pub(crate) fn stopping() -> Self {
        Self::new(ProblemKind::Stopping, "the service stops; ask again when it has started")
    }

    /// The session exists, and is not open.
    pub(crate) fn session_not_open() -> Self {
        let problem = Self::new(ProblemKind::SessionNotOpen, "the session is not open");
        problem.with_detail("open it with POST /v1/sessions and {\"resume\": ID}")
    }

    /// Another process runs the session, so that its events are there.
    pub(crate) fn session_elsewhere() -> Self {
        let title = "another service or program has the session open";
        let problem = Self::new(ProblemKind::SessionElsewhere, title);
        problem.with_detail("ask there; if it has ended, open the session again in a few seconds")
    }

    /// The store cannot be used. The text names no files of the host, which are for its operator alone.
    pub(crate) fn store_unavailable() -> Self {
        Self::new(ProblemKind::StoreUnavailable, "the store cannot be used")
    }

    /// The work on the request panicked.
    pub(crate) fn broken() -> Self {
        Self::new(ProblemKind::Internal, "the request broke; this is a bug of the service")
    }

    /// Replaces an answer of the library by one in our form. `text` is what it said.
    pub(crate) fn from_library(status: StatusCode, text: &str) -> Self {
        let kind = ProblemKind::of_status(status);
        let title = status.canonical_reason().unwrap_or("the request failed");
        let problem = Self { status: status.as_u16(), ..Self::new(kind, title) };
        if text.is_empty() { problem } else { problem.with_detail(text) }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (status, [(header::CONTENT_TYPE, PROBLEM_TYPE)], body).into_response();
        let headers = response.headers_mut();
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.kind == ProblemKind::UpgradeRequired {
            let version = HeaderName::from_static("sec-websocket-version");
            headers.insert(version, HeaderValue::from_static("13"));
            headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        }
        if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            let seconds = self.retry_after_s.unwrap_or(RETRY_AFTER_SECONDS);
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl From<BudgetRefusal> for Problem {
    fn from(refusal: BudgetRefusal) -> Self {
        let BudgetRefusal::Spent(spent) = refusal else {
            return Self::new(ProblemKind::StoreUnavailable, refusal.to_string());
        };
        let wait_ms = spent.renews_ms.saturating_sub(now_ms());
        let problem = Self::new(ProblemKind::BudgetSpent, spent.to_string());
        Self { retry_after_s: Some(wait_ms.div_ceil(1000).max(RETRY_AFTER_SECONDS)), ..problem }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::TooManyKeys { .. } => {
                Self::too_many("too many requests with a key are running")
            }
            StoreError::SessionNotFound { .. } => Self::not_found("there is no such session"),
            _ => Self::store_unavailable(),
        }
    }
}

impl From<SessionError> for Problem {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Store(error) => error.into(),
            SessionError::OpenElsewhere { .. } => Self::session_elsewhere(),
            SessionError::KeyMissing { .. }
            | SessionError::KeyUnreadable { .. }
            | SessionError::Model(_) => {
                Self::new(ProblemKind::ModelUnavailable, "the model cannot be used")
                    .with_detail("the operator configures it with `sallyport setup`")
            }
            error => Self::new(ProblemKind::Internal, "the session cannot be opened")
                .with_detail(error.to_string()),
        }
    }
}
