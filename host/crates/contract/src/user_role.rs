//! What a user of a service may do.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a user may do. Each role includes those before it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum UserRole {
    /// Has sessions, calls tools, and reads what is their own. May refuse their own questions, and
    /// allow none, because the user can be a program.
    User,
    /// Also reads and answers the questions of every user, once or for a session.
    Approver,
    /// Also answers "always", which changes the policy for every user, and reads the grants, the
    /// metrics, and the audit and the usage of every user.
    Operator,
}

impl UserRole {
    /// All roles, the least first.
    pub const ALL: [Self; 3] = [Self::User, Self::Approver, Self::Operator];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Approver => "approver",
            Self::Operator => "operator",
        }
    }
}

impl fmt::Display for UserRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The word is not the name of a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the roles are user, approver and operator")]
pub struct UnknownRoleError;

impl FromStr for UserRole {
    type Err = UnknownRoleError;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|role| role.as_str() == word).ok_or(UnknownRoleError)
    }
}
