//! The user's answer to a question, as a record keeps it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The user's answer to the question whether a call may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UserAnswer {
    /// Yes, this time.
    Once,
    /// Yes, until the session ends.
    Session,
    /// Yes, and the policy has a rule for it now.
    Always,
    /// No.
    Refused,
}
