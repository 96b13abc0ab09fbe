//! The sign-ins that have begun, each for one return of whoever began it.
//!
//! A sign-in is found by its state. It belongs to the browser that has its cookie, or to the program
//! that has the token it was begun with. Whoever only knows a state, or makes somebody else open its
//! address, can neither finish nor end it.

use std::io;

use http::StatusCode;
use sallyport_contract::Secret;
use sallyport_runtime::connections::login::PendingServerLogin;

use crate::{
    caller::RequestCaller,
    pending_return::{BrowserIds, PendingReturns, ReturnRefusal},
    problem::{Problem, ProblemKind},
    token_file::{hash_token, random_token},
};

/// Most sign-ins of one user that have begun.
const OF_USER_MAX: usize = 16;

/// The sign-ins that have begun, by the names of their users.
pub(crate) struct PendingSignIns(PendingReturns<String, BegunByParty>);

/// A sign-in that has begun.
pub(crate) struct PendingSignIn {
    pub(crate) caller: RequestCaller,
    pub(crate) login: PendingServerLogin,
    /// Whether the browser speaks TLS.
    pub(crate) is_over_tls: bool,
    /// When it began, in milliseconds since 1970.
    pub(crate) begun_ms: u64,
}

struct BegunByParty {
    /// `None` if a program began it.
    browser_hash: Option<[u8; 32]>,
    sign_in: PendingSignIn,
}

/// Who comes back.
pub(crate) enum ReturningParty<'a> {
    Browser(BrowserIds<'a>),
    Program(&'a RequestCaller),
}

/// Why an account is not connected. No text has a code or a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SignInRefusal {
    #[error("This sign-in is over, or was never begun here.")]
    UnknownState,
    #[error("Another browser or program began this sign-in.")]
    OtherParty,
    #[error("The sign-in took longer than 10 minutes.")]
    TooLate,
    #[error("The answer of the service is not understood.")]
    NoAnswer,
    #[error("The log-in that began the sign-in has ended.")]
    LoginEnded,
    /// The service, or the user there, refused, or it has no usable tokens.
    #[error("{0}.")]
    ByService(String),
    #[error("The account cannot be stored now.")]
    NotKept,
}

impl SignInRefusal {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::UnknownState | Self::TooLate | Self::NoAnswer | Self::ByService(_) => {
                StatusCode::BAD_REQUEST
            }
            Self::OtherParty | Self::LoginEnded => StatusCode::FORBIDDEN,
            Self::NotKept => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::UnknownState | Self::TooLate | Self::NoAnswer | Self::ByService(_) => {
                "Connect it again."
            }
            Self::OtherParty => {
                "Connect it again in one tab. If a program began it, give the program the address \
                 of this page: it requests the address with its token."
            }
            Self::LoginEnded => "Log in, and connect it again.",
            Self::NotKept => "Try again in a minute. If it fails again, tell the operator.",
        }
    }
}

impl From<SignInRefusal> for Problem {
    fn from(refusal: SignInRefusal) -> Self {
        let kind = match refusal.status() {
            StatusCode::FORBIDDEN => ProblemKind::SignInRefused,
            StatusCode::SERVICE_UNAVAILABLE => ProblemKind::StoreUnavailable,
            _ => ProblemKind::BadRequest,
        };
        let text = refusal.to_string();
        Self::new(kind, text.trim_end_matches('.').to_owned()).with_detail(refusal.hint())
    }
}

impl From<ReturnRefusal> for SignInRefusal {
    fn from(refusal: ReturnRefusal) -> Self {
        match refusal {
            ReturnRefusal::UnknownState => Self::UnknownState,
            ReturnRefusal::OtherParty => Self::OtherParty,
            ReturnRefusal::TooLate => Self::TooLate,
        }
    }
}

impl Default for PendingSignIns {
    fn default() -> Self {
        Self(PendingReturns::new(OF_USER_MAX))
    }
}

impl PendingSignIns {
    /// Adds a sign-in. For a browser, it returns what shows that this browser began it.
    ///
    /// # Errors
    ///
    /// The system has no random bytes.
    pub(crate) fn add(
        &self,
        sign_in: PendingSignIn,
        is_browser: bool,
    ) -> io::Result<Option<Secret>> {
        let browser_id = if is_browser { Some(random_token()?) } else { None };
        let browser_hash = browser_id.as_ref().map(|id| hash_token(id.expose()));
        let (state, user) = (sign_in.login.state().clone(), sign_in.caller.user.name.clone());
        let begun_ms = sign_in.begun_ms;
        self.0.add(state.expose(), user, begun_ms, BegunByParty { browser_hash, sign_in });
        Ok(browser_id)
    }

    /// Takes the sign-in of a state for a plugin, once. It stays if somebody else asks.
    pub(crate) fn take(
        &self,
        state: &str,
        plugin: &str,
        party: ReturningParty<'_>,
        now_ms: u64,
    ) -> Result<PendingSignIn, SignInRefusal> {
        let begun = self.0.take(state, now_ms, |begun| {
            if begun.sign_in.login.plugin().as_str() != plugin {
                return Err(ReturnRefusal::UnknownState);
            }
            begun.belongs_to(&party).then_some(()).ok_or(ReturnRefusal::OtherParty)
        });
        Ok(begun?.sign_in)
    }
}

impl BegunByParty {
    fn belongs_to(&self, party: &ReturningParty<'_>) -> bool {
        match (party, &self.browser_hash) {
            (ReturningParty::Browser(ids), Some(hash)) => {
                ids.have_hash(hash, self.sign_in.is_over_tls)
            }
            (ReturningParty::Program(caller), None) => caller.is_same(&self.sign_in.caller),
            _ => false,
        }
    }
}
