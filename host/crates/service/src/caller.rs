//! The user of a request, and what shows who that is.

use sallyport_runtime::clock::now_ms;

use crate::{
    browser_login::{ConsoleLogins, LoginBasis},
    role::ServiceUser,
    tokens::TokenBook,
};

/// The user of a request, with what was shown for it, which a stream checks again. There is none
/// without a check, because nothing else can make one.
#[derive(Debug, Clone)]
pub(crate) struct RequestCaller {
    pub(crate) user: ServiceUser,
    credential: Credential,
}

/// What a request shows, as its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Credential {
    Token([u8; 32]),
    /// The cookie of a log-in to the console.
    Login([u8; 32]),
}

impl Credential {
    /// The user that it belongs to, if it is valid at this moment.
    fn find_user(&self, tokens: &TokenBook, logins: &ConsoleLogins) -> Option<ServiceUser> {
        match self {
            Self::Token(hash) => tokens.find_user_of_hash(hash),
            Self::Login(hash) => match logins.basis(hash, now_ms())? {
                LoginBasis::Token(hash) => tokens.find_user_of_hash(&hash),
                LoginBasis::SignOn { user, .. } => tokens.admits(&user.name).then_some(user),
            },
        }
    }
}

impl RequestCaller {
    /// The caller who shows a token, if it is valid at this moment.
    pub(crate) fn from_token(
        token_hash: [u8; 32],
        tokens: &TokenBook,
        logins: &ConsoleLogins,
    ) -> Option<Self> {
        Self::check(Credential::Token(token_hash), tokens, logins)
    }

    /// The caller who shows the cookie of a log-in, if it is valid at this moment.
    pub(crate) fn from_login(
        login_hash: [u8; 32],
        tokens: &TokenBook,
        logins: &ConsoleLogins,
    ) -> Option<Self> {
        Self::check(Credential::Login(login_hash), tokens, logins)
    }

    fn check(credential: Credential, tokens: &TokenBook, logins: &ConsoleLogins) -> Option<Self> {
        let user = credential.find_user(tokens, logins)?;
        Some(Self { user, credential })
    }

    /// Whether the token, or the log-in with what it stands for, still shows this user.
    pub(crate) fn is_still_shown(&self, tokens: &TokenBook, logins: &ConsoleLogins) -> bool {
        self.credential.find_user(tokens, logins).as_ref() == Some(&self.user)
    }

    /// Whether the cookie of the console was shown, and not the token itself.
    pub(crate) fn is_browser(&self) -> bool {
        matches!(self.credential, Credential::Login(_))
    }

    /// Whether both are one user who showed the same.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.user.name == other.user.name && self.credential == other.credential
    }
}
