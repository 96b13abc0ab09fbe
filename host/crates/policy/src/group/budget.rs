//! What each member of a group may use up in a day or a month.

use sallyport_contract::{BudgetMeasure, BudgetPeriod, UserBudget};

use crate::{document::TomlItem, source::SourceError};

/// Most sessions of a user that a group can allow at a time.
pub const SESSIONS_MAX: u32 = 10_000;

/// Most US dollars of a budget: more than any month of a user costs, and exact as a number.
const USD_MAX: f64 = 1_000_000.0;

/// The keys of budgets that are a count.
const COUNTS: [(&str, BudgetMeasure, BudgetPeriod); 4] = [
    ("calls-per-day", BudgetMeasure::Calls, BudgetPeriod::Day),
    ("calls-per-month", BudgetMeasure::Calls, BudgetPeriod::Month),
    ("tokens-per-day", BudgetMeasure::Tokens, BudgetPeriod::Day),
    ("tokens-per-month", BudgetMeasure::Tokens, BudgetPeriod::Month),
];

/// The keys of budgets that are money.
const AMOUNTS: [(&str, BudgetPeriod); 2] =
    [("usd-per-day", BudgetPeriod::Day), ("usd-per-month", BudgetPeriod::Month)];

/// The budgets of each member of a group. Whatever is not limited is unlimited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetLimits {
    /// Most open sessions at a time.
    pub sessions: Option<u32>,
    /// The limits of what is counted.
    limits: Vec<(BudgetMeasure, BudgetPeriod, u64)>,
}

impl BudgetLimits {
    /// No limits.
    pub(super) fn unlimited() -> Self {
        Self { sessions: None, limits: Vec::new() }
    }

    /// Reads a table `budget`.
    ///
    /// # Errors
    ///
    /// An unknown key, or a value that is not a number from 0 up.
    pub(crate) fn from_toml(item: TomlItem<'_>) -> Result<Self, SourceError> {
        item.read_section(|section| {
            let sessions =
                section.read_optional("sessions", |item| item.read_count(0..=SESSIONS_MAX))?;
            let mut limits = Vec::new();
            for (key, measure, period) in COUNTS {
                let limit = section.read_optional(key, read_count)?;
                limits.extend(limit.map(|limit| (measure, period, limit)));
            }
            for (key, period) in AMOUNTS {
                let limit = section.read_optional(key, read_usd)?;
                limits.extend(limit.map(|limit| (BudgetMeasure::MicroUsd, period, limit)));
            }
            Ok(Self { sessions, limits })
        })
    }

    /// The budgets of what is counted, for members of a group.
    pub(super) fn user_budgets<'a>(
        &'a self,
        group: &'a str,
    ) -> impl Iterator<Item = UserBudget> + 'a {
        self.limits.iter().map(|(measure, period, limit)| UserBudget {
            group: group.to_owned(),
            measure: *measure,
            period: *period,
            limit: *limit,
        })
    }
}

fn read_count(item: TomlItem<'_>) -> Result<u64, SourceError> {
    let (place, label) = (item.place(), item.label().to_owned());
    let count = u64::try_from(item.read_integer()?);
    count.map_err(|_| place.into_error(format!("{label} must not be negative")))
}

/// Reads US dollars, and returns millionths of them.
fn read_usd(item: TomlItem<'_>) -> Result<u64, SourceError> {
    let (place, label) = (item.place(), item.label().to_owned());
    let usd = item.read_json()?.as_f64().filter(|usd| (0.0..=USD_MAX).contains(usd));
    // The cast is exact enough: the number is at most 10^12.
    usd.map(|usd| (usd * 1e6).round() as u64).ok_or_else(|| {
        let error = place.into_error(format!("{label} must be a number from 0 to {USD_MAX}"));
        error.with_hint("write US dollars, such as 2.50")
    })
}
