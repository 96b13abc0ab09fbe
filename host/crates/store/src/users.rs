//! What is known of users beyond their sessions: the groups that the identity server put them into,
//! and what they have used.
//!
//! Usage is counted by day, for the budgets of the policy. It does not go with a session that is
//! removed, so nobody gets a new budget by removing sessions.

use sallyport_contract::async_trait;

use crate::error::{StoreError, check_length};

/// How many days of usage are kept: more than the longest period of a budget.
pub const USAGE_DAYS_MAX: u64 = 400;

/// Longest name of a user, in bytes.
const USER_BYTES_MAX: usize = 1024;

/// Longest list of groups, in bytes as JSON: thousands of groups.
const GROUPS_BYTES_MAX: usize = 256 * 1024;

/// What a user has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UserUsage {
    /// Calls of tools.
    pub calls: u64,
    /// Tokens that models read and wrote.
    pub tokens: u64,
    /// Their cost, as far as prices were known, in millionths of a US dollar.
    pub micro_usd: u64,
}

/// Most calls of a user from a day on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimit {
    /// The first day that counts, in days since 1970.
    pub first_day: u64,
    /// The most calls from that day on.
    pub calls_max: u64,
}

/// The groups and the usage of users. Days are counted from 1970, in UTC. Every method fails if the
/// database cannot be used.
#[async_trait]
pub trait UserStore: Send + Sync {
    /// Stores the groups that the identity server sent for a user, in place of earlier ones.
    ///
    /// # Errors
    ///
    /// The name or the list is too long.
    async fn set_login_groups(&self, user: &str, groups: &[String]) -> Result<(), StoreError>;

    /// Returns the groups of a user; none for a user who never logged in.
    async fn login_groups(&self, user: &str) -> Result<Vec<String>, StoreError>;

    /// Counts a call of a user on a day, unless a limit is reached. Returns the position of the first
    /// limit that is. Of several processes that count at the same time, none passes a limit.
    ///
    /// # Errors
    ///
    /// The name is too long.
    async fn count_call(
        &self,
        user: &str,
        day: u64,
        limits: &[CallLimit],
    ) -> Result<Option<usize>, StoreError>;

    /// Adds to what a user has used on a day. Also forgets days that are older than
    /// [`USAGE_DAYS_MAX`].
    ///
    /// # Errors
    ///
    /// The name is too long.
    async fn add_usage(&self, user: &str, day: u64, used: UserUsage) -> Result<(), StoreError>;

    /// Returns what a user has used from a day on.
    async fn usage_since(&self, user: &str, first_day: u64) -> Result<UserUsage, StoreError>;
}

impl UserUsage {
    /// The sum of two. It is made here, because sums of SQL fail on overflow.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            tokens: self.tokens.saturating_add(other.tokens),
            micro_usd: self.micro_usd.saturating_add(other.micro_usd),
        }
    }

    /// One call.
    pub(crate) fn one_call() -> Self {
        Self { calls: 1, ..Self::default() }
    }
}

pub(crate) fn check_user(user: &str) -> Result<(), StoreError> {
    check_length("the name of a user", user, USER_BYTES_MAX)
}

/// Returns a list of groups as JSON.
pub(crate) fn groups_text(groups: &[String]) -> Result<String, StoreError> {
    let text = serde_json::Value::from(groups).to_string();
    check_length("the list of a user's groups", &text, GROUPS_BYTES_MAX)?;
    Ok(text)
}
