//! The user of a request, and what shows who that is.

use crate::role::ServiceUser;

/// The user of a request, with what was shown for it. A stream checks it again.
#[derive(Debug, Clone)]
pub(crate) struct RequestCaller {
    pub(crate) user: ServiceUser,
    pub(crate) credential: Credential,
}

/// What a request shows, as its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Credential {
    Token([u8; 32]),
    /// The cookie of a log-in to the console.
    Login([u8; 32]),
}

impl RequestCaller {
    /// Whether the cookie of the console was shown, and not the token itself.
    pub(crate) fn is_browser(&self) -> bool {
        matches!(self.credential, Credential::Login(_))
    }

    /// Whether both are one user who showed the same.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.user.name == other.user.name && self.credential == other.credential
    }
}
