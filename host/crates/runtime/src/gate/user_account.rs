//! What the groups of the policy say about one user: who belongs to them, and which budgets are used
//! up.
//!
//! The policy and the groups are looked up for each decision, so a change counts from the next call
//! on. What cannot be looked up is decided strictly: the user counts as a member, or the call is
//! refused.

use std::sync::Arc;

use jiff::{Timestamp, civil::Date, tz::TimeZone};
use sallyport_contract::{
    BudgetMeasure, BudgetPeriod, Denial, DenialReason, DenialSubject, SpentBudget, ToolCallContext,
    ToolId, UserBudget, async_trait,
};
use sallyport_policy::LoginGroups;
use sallyport_session::{AccountState, BudgetRefusal, ModelSpending, SpendingAccount};
use sallyport_store::{CallLimit, StoreError, UserUsage};

use super::Gate;
use crate::clock::now_ms;

/// Milliseconds of a day in UTC, which has no leap seconds here.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// A budget of a user, with what is used of it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct BudgetState {
    /// The budget.
    #[serde(flatten)]
    pub budget: UserBudget,
    /// How much is used of it.
    pub used: u64,
    /// When it begins anew, in milliseconds since 1970.
    pub renews_ms: u64,
}

impl BudgetState {
    fn is_spent(&self) -> bool {
        self.used >= self.budget.limit
    }

    fn into_spent(self) -> SpentBudget {
        SpentBudget { budget: self.budget, renews_ms: self.renews_ms }
    }
}

impl Gate {
    /// The groups that the identity server sent for the user of a call.
    pub async fn login_groups(&self, user: &str) -> LoginGroups {
        // Where no group depends on them nothing is read, and no decision differs.
        if !self.policy_store.current().policy.names_login_groups() {
            return LoginGroups::Unknown;
        }
        match &self.users {
            Some(users) => {
                users.login_groups(user).await.map_or(LoginGroups::Unknown, LoginGroups::Known)
            }
            None => LoginGroups::Unknown,
        }
    }

    /// Most open sessions of a user at a time, if a group of the user limits them.
    pub async fn sessions_max(&self, user: &str) -> Option<u32> {
        let policy = self.policy_store.check_files().await.policy;
        policy.sessions_max_of(user, &self.login_groups(user).await)
    }

    /// The budgets of a user, with what is used of them.
    ///
    /// # Errors
    ///
    /// The store cannot be used.
    pub async fn budget_states(&self, user: &str) -> Result<Vec<BudgetState>, StoreError> {
        self.states_of_budgets(user, |_| true).await
    }

    /// The budgets of a user that count some measures. What is used of the others is not read.
    async fn states_of_budgets(
        &self,
        user: &str,
        counts: impl Fn(BudgetMeasure) -> bool,
    ) -> Result<Vec<BudgetState>, StoreError> {
        let policy = self.policy_store.current().policy;
        if !policy.has_budgets() {
            return Ok(Vec::new());
        }
        let budgets = policy.budgets_of(user, &self.login_groups(user).await);
        let (mut states, now_ms) = (Vec::with_capacity(budgets.len()), now_ms());
        for budget in budgets.into_iter().filter(|budget| counts(budget.measure)) {
            let span = PeriodSpan::around(budget.period, now_ms);
            let used = match &self.users {
                Some(users) => users.usage_since(user, span.first_day).await?,
                None => UserUsage::default(),
            };
            let used = amount_of(budget.measure, used);
            states.push(BudgetState { budget, used, renews_ms: span.renews_ms });
        }
        Ok(states)
    }

    /// Checks that a user may make another call, without counting one.
    ///
    /// # Errors
    ///
    /// A budget is used up, or what is used cannot be read.
    pub async fn check_calls(&self, user: &str) -> Result<(), BudgetRefusal> {
        let states = self.states_of_budgets(user, |measure| measure == BudgetMeasure::Calls).await;
        refuse_spent(states.map_err(|_| BudgetRefusal::Unreadable)?)
    }

    /// Counts an exchange of a user with a model, if a budget of the user depends on it.
    ///
    /// # Errors
    ///
    /// The store cannot be used.
    pub async fn count_spending(
        &self,
        user: &str,
        spending: ModelSpending,
    ) -> Result<(), StoreError> {
        let policy = self.policy_store.current().policy;
        let Some(users) = self.users.as_ref().filter(|_| policy.has_budgets()) else {
            return Ok(());
        };
        if policy.budgets_of(user, &self.login_groups(user).await).is_empty() {
            return Ok(());
        }
        let used =
            UserUsage { calls: 0, tokens: spending.tokens, micro_usd: spending.cost.micro_usd };
        users.add_usage(user, now_ms() / DAY_MS, used).await
    }

    /// Counts a call of a tool that was decided, unless a budget of its user is used up.
    ///
    /// # Errors
    ///
    /// The refusal.
    pub(crate) async fn count_call(
        &self,
        context: &ToolCallContext,
        tool: &ToolId,
        login_groups: &LoginGroups,
    ) -> Result<(), Denial> {
        let (user, policy) = (context.user(), self.policy_store.current().policy);
        let budgets = policy.budgets_of(user, login_groups);
        let Some(users) = self.users.as_ref().filter(|_| !budgets.is_empty()) else {
            return Ok(());
        };
        let now_ms = now_ms();
        let of_calls: Vec<UserBudget> =
            budgets.into_iter().filter(|one| one.measure == BudgetMeasure::Calls).collect();
        let limit = |budget: &UserBudget| {
            let first_day = PeriodSpan::around(budget.period, now_ms).first_day;
            CallLimit { first_day, calls_max: budget.limit }
        };
        let limits: Vec<CallLimit> = of_calls.iter().map(limit).collect();
        match users.count_call(user, now_ms / DAY_MS, &limits).await {
            Ok(None) => Ok(()),
            Ok(Some(index)) => Err(budget_denial(tool, spent_at(&of_calls[index], now_ms).into())),
            Err(_) => Err(budget_denial(tool, BudgetRefusal::Unreadable)),
        }
    }
}

/// Refuses what a budget that is used up stops. Of several, the one that lasts longest is named.
fn refuse_spent(states: Vec<BudgetState>) -> Result<(), BudgetRefusal> {
    let spent = states.into_iter().filter(BudgetState::is_spent);
    match spent.max_by_key(|state| state.renews_ms) {
        Some(state) => Err(state.into_spent().into()),
        None => Ok(()),
    }
}

fn spent_at(budget: &UserBudget, now_ms: u64) -> SpentBudget {
    let renews_ms = PeriodSpan::around(budget.period, now_ms).renews_ms;
    SpentBudget { budget: budget.clone(), renews_ms }
}

/// The refusal of a call that a budget stops.
pub(crate) fn budget_denial(tool: &ToolId, refusal: BudgetRefusal) -> Denial {
    let reason = match refusal {
        BudgetRefusal::Spent(spent) => DenialReason::BudgetSpent(spent),
        BudgetRefusal::Unreadable => DenialReason::BudgetUnreadable,
    };
    Denial::new(DenialSubject::Call { tool: tool.clone() }, reason)
}

fn amount_of(measure: BudgetMeasure, used: UserUsage) -> u64 {
    match measure {
        BudgetMeasure::Calls => used.calls,
        BudgetMeasure::Tokens => used.tokens,
        BudgetMeasure::MicroUsd => used.micro_usd,
    }
}

/// A period of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PeriodSpan {
    /// Its first day, in days since 1970.
    first_day: u64,
    /// Its end, in milliseconds since 1970.
    renews_ms: u64,
}

impl PeriodSpan {
    /// The period that contains a time, in milliseconds since 1970.
    fn around(period: BudgetPeriod, now_ms: u64) -> Self {
        let today = now_ms / DAY_MS;
        let (first_day, next_day) = match period {
            BudgetPeriod::Day => (today, today.saturating_add(1)),
            // A time beyond the calendar has no month, and counts from the first day on.
            BudgetPeriod::Month => month_days(now_ms).unwrap_or((0, today.saturating_add(1))),
        };
        Self { first_day, renews_ms: next_day.saturating_mul(DAY_MS) }
    }
}

/// The first day of the month of a time, and of the month after it.
fn month_days(now_ms: u64) -> Option<(u64, u64)> {
    let now = Timestamp::from_millisecond(i64::try_from(now_ms).ok()?).ok()?;
    let first = now.to_zoned(TimeZone::UTC).date().first_of_month();
    let next = first.last_of_month().tomorrow().ok()?;
    Some((day_number(first)?, day_number(next)?))
}

/// A date in days since 1970.
fn day_number(date: Date) -> Option<u64> {
    let midnight = date.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond();
    Some(u64::try_from(midnight).ok()? / DAY_MS)
}

/// The account of one user.
pub(crate) struct GateAccount {
    pub(crate) gate: Arc<Gate>,
    pub(crate) user: String,
}

#[async_trait]
impl SpendingAccount for GateAccount {
    async fn check(&self) -> Result<AccountState, BudgetRefusal> {
        self.gate.policy_store.check_files().await;
        let is_spending = |measure| measure != BudgetMeasure::Calls;
        let states = self.gate.states_of_budgets(&self.user, is_spending).await;
        let states = states.map_err(|_| BudgetRefusal::Unreadable)?;
        let limits_cost =
            states.iter().any(|state| state.budget.measure == BudgetMeasure::MicroUsd);
        refuse_spent(states)?;
        Ok(AccountState { limits_cost })
    }

    async fn charge(&self, spending: ModelSpending) -> bool {
        self.gate.count_spending(&self.user, spending).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_those_of_the_calendar_in_utc() {
        let rows = [
            ("2026-11-27T08:00:00Z", BudgetPeriod::Day, "2026-11-27", "2026-11-28"),
            ("2026-11-27T00:00:00Z", BudgetPeriod::Day, "2026-11-27", "2026-11-28"),
            ("2026-11-27T23:59:59.999Z", BudgetPeriod::Month, "2026-11-01", "2026-12-01"),
            ("2026-12-31T23:59:59Z", BudgetPeriod::Month, "2026-12-01", "2027-01-01"),
            ("2028-02-29T12:00:00Z", BudgetPeriod::Month, "2028-02-01", "2028-03-01"),
            ("1970-01-01T00:00:00Z", BudgetPeriod::Month, "1970-01-01", "1970-02-01"),
        ];
        for (now, period, first, next) in rows {
            let now: Timestamp = now.parse().unwrap();
            let day = |text: &str| day_number(text.parse().unwrap()).unwrap();
            let span = PeriodSpan::around(period, u64::try_from(now.as_millisecond()).unwrap());
            let want = PeriodSpan { first_day: day(first), renews_ms: day(next) * DAY_MS };
            assert_eq!(span, want, "{now} {period}");
        }
        // The end of time is no panic.
        PeriodSpan::around(BudgetPeriod::Month, u64::MAX);
        PeriodSpan::around(BudgetPeriod::Day, u64::MAX);
    }
}
