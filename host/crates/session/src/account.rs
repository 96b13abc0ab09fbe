//! The account of a user: what they may spend over all their sessions, in front of every request to a
//! model.
//!
//! A session has limits of its own ([`budget`](super::budget)); the account is kept by the host. What
//! could not be charged is charged with the next request, and no request is made while the account
//! cannot be read.

use std::{mem, sync::Arc};

use sallyport_contract::{SpentBudget, async_trait};
use sallyport_model::{ChatModel, TokenCost, TokenUsage};

use super::{
    budget::{BudgetLimit, ModelSpending},
    event::{InputError, TurnEnd},
};

/// Why a user may not use up more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BudgetRefusal {
    /// A budget is used up.
    #[error(transparent)]
    Spent(#[from] SpentBudget),
    /// What the user has used cannot be read or written now.
    #[error("what the user has used cannot be read now")]
    Unreadable,
}

/// What an account decides before a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountState {
    /// Whether money is limited, so that the price of the model must be known.
    pub limits_cost: bool,
}

/// The account of a user.
#[async_trait]
pub trait SpendingAccount: Send + Sync {
    /// Checks that the user may spend more.
    ///
    /// # Errors
    ///
    /// A budget is used up, or the account cannot be read.
    async fn check(&self) -> Result<AccountState, BudgetRefusal>;

    /// Charges what was spent. Returns whether it is on the account now.
    async fn charge(&self, spending: ModelSpending) -> bool;
}

/// A user's account, with what is not charged yet.
#[derive(Default)]
pub(super) struct UserAccount {
    account: Option<Arc<dyn SpendingAccount>>,
    uncharged: ModelSpending,
}

impl UserAccount {
    pub(super) fn new(account: Option<Arc<dyn SpendingAccount>>) -> Self {
        Self { account, uncharged: ModelSpending::default() }
    }

    /// Checks that the user may spend more on this model.
    pub(super) async fn check(&self, model: &dyn ChatModel) -> Result<(), TurnEnd> {
        let Some(account) = &self.account else { return Ok(()) };
        match account.check().await {
            Ok(AccountState { limits_cost: true }) if model.price().is_none() => {
                let model = model.name().to_owned();
                Err(TurnEnd::InputRefused(InputError::PriceUnknown { model }))
            }
            Ok(_) => Ok(()),
            Err(refusal) => Err(TurnEnd::BudgetReached { limit: refusal.into() }),
        }
    }

    /// Charges an exchange with the model.
    pub(super) async fn charge(&mut self, usage: &TokenUsage, cost: Option<TokenCost>) {
        let Some(account) = &self.account else { return };
        self.uncharged.add_usage(usage, cost);
        let spending = mem::take(&mut self.uncharged);
        if !account.charge(spending).await {
            self.uncharged = spending;
        }
    }
}

impl From<BudgetRefusal> for BudgetLimit {
    fn from(refusal: BudgetRefusal) -> Self {
        match refusal {
            BudgetRefusal::Spent(spent) => Self::User { spent },
            BudgetRefusal::Unreadable => Self::UserUnreadable,
        }
    }
}
