//! The route of usage: what sessions have used.

use std::sync::Arc;

use axum::{Extension, extract::State};
use sallyport_runtime::gate::user_account::BudgetState;
use sallyport_store::{SessionFilter, StoredUsage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    caller::RequestCaller,
    problem::Problem,
    request_body::{JsonReply, QueryParameters},
    role::UserRole,
    service::Service,
};

/// Selects sessions.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct UsageQuery {
    /// The user. Operators may name others than themselves.
    user: Option<String>,
}

/// What the stored sessions of a user have used.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct UsageReport {
    /// The user.
    user: String,
    /// The number of sessions.
    sessions: usize,
    #[serde(flatten)]
    used: StoredUsage,
    /// The budgets of the user, from the groups of the policy.
    budgets: Vec<BudgetState>,
}

pub(crate) async fn report(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<RequestCaller>,
    QueryParameters(query): QueryParameters<UsageQuery>,
) -> Result<JsonReply<UsageReport>, Problem> {
    let user = query.user.unwrap_or_else(|| caller.user.name.clone());
    if user != caller.user.name && caller.user.role < UserRole::Operator {
        return Err(Problem::not_found("there is no such user"));
    }
    let listed = service.host.store().sessions.list(SessionFilter::of_user(&user)).await?;
    let used = listed.iter().fold(StoredUsage::default(), |sum, session| {
        let used = session.used;
        let cost = sum.cost_micro_usd.into_iter().chain(used.cost_micro_usd);
        StoredUsage {
            turns: sum.turns.saturating_add(used.turns),
            tokens: sum.tokens.saturating_add(used.tokens),
            cost_micro_usd: cost.reduce(u64::saturating_add),
        }
    });
    let budgets = service.host.registry().gate().budget_states(&user).await?;
    Ok(JsonReply(UsageReport { user, sessions: listed.len(), used, budgets }))
}
