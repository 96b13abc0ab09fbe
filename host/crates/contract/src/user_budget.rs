//! The end of a budget that a group of the policy gives each of its users.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a budget counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BudgetMeasure {
    /// Calls of tools.
    Calls,
    /// Tokens that models read and wrote.
    Tokens,
    /// The cost of the tokens, in millionths of a US dollar.
    MicroUsd,
}

/// How long a budget lasts. Periods are those of the calendar in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BudgetPeriod {
    /// A day.
    Day,
    /// A month.
    Month,
}

/// A budget of a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UserBudget {
    /// The group of the policy that sets it.
    pub group: String,
    /// What it counts.
    pub measure: BudgetMeasure,
    /// How long it lasts.
    pub period: BudgetPeriod,
    /// How much there is in each period.
    pub limit: u64,
}

/// A budget that a user has used up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{budget} is used up; it begins anew {}", renewal_text(.budget.period))]
pub struct SpentBudget {
    /// The budget.
    #[serde(flatten)]
    pub budget: UserBudget,
    /// When it begins anew, in milliseconds since 1970.
    pub renews_ms: u64,
}

impl fmt::Display for UserBudget {
    /// `the budget of the group support (200 calls per day)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (group, limit) = (crate::text::escape_line(&self.group), self.limit);
        write!(f, "the budget of the group {group} (")?;
        match self.measure {
            BudgetMeasure::Calls => write!(f, "{limit} calls"),
            BudgetMeasure::Tokens => write!(f, "{limit} tokens"),
            BudgetMeasure::MicroUsd => {
                write!(f, "${}.{:02}", limit / 1_000_000, limit % 1_000_000 / 10_000)
            }
        }?;
        write!(f, " per {})", self.period)
    }
}

impl fmt::Display for BudgetPeriod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Day => "day",
            Self::Month => "month",
        })
    }
}

/// When a budget begins anew, in words: a model needs no exact time.
fn renewal_text(period: BudgetPeriod) -> &'static str {
    match period {
        BudgetPeriod::Day => "at midnight UTC",
        BudgetPeriod::Month => "on the first day of the next month, UTC",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spent_budget_names_its_group_its_limit_and_its_renewal() {
        let rows = [
            (BudgetMeasure::Calls, BudgetPeriod::Day, 200, "200 calls per day", "at midnight UTC"),
            (BudgetMeasure::Tokens, BudgetPeriod::Day, 1, "1 tokens per day", "at midnight UTC"),
            (
                BudgetMeasure::MicroUsd,
                BudgetPeriod::Month,
                5_250_000,
                "$5.25 per month",
                "on the first day of the next month, UTC",
            ),
        ];
        for (measure, period, limit, amount, renewal) in rows {
            let budget = UserBudget { group: "support".to_owned(), measure, period, limit };
            let spent = SpentBudget { budget, renews_ms: 0 };
            let want = format!(
                "the budget of the group support ({amount}) is used up; it begins anew {renewal}"
            );
            assert_eq!(spent.to_string(), want);
            let json = serde_json::to_string(&spent).unwrap();
            assert_eq!(serde_json::from_str::<SpentBudget>(&json).unwrap(), spent);
        }
    }
}
