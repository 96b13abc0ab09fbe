//! Who a request is from, and what they may do.

use sallyport_contract::Principal;

pub use sallyport_contract::UserRole;

/// The user that a token belongs to, or whom an identity server named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceUser {
    /// The name, which owns sessions, approvals and records.
    pub name: String,
    /// What they may do.
    pub role: UserRole,
}

impl ServiceUser {
    /// The one on whose behalf calls are made.
    pub fn principal(&self) -> Principal {
        Principal { user: self.name.clone(), conversation: None }
    }
}
