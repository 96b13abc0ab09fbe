//! What the groups of one user say.

use sallyport_contract::UserBudget;

use super::Policy;
use crate::{group::UserGroup, question::LoginGroups};

impl Policy {
    /// The groups of a user.
    pub fn groups_of<'a>(
        &'a self,
        user: &'a str,
        login_groups: &'a LoginGroups,
    ) -> impl Iterator<Item = &'a UserGroup> {
        self.groups().iter().filter(move |group| group.has_member(user, login_groups))
    }

    /// The budgets of a user. Each of them applies.
    pub fn budgets_of(&self, user: &str, login_groups: &LoginGroups) -> Vec<UserBudget> {
        self.groups_of(user, login_groups).flat_map(UserGroup::budgets).collect()
    }

    /// Most open sessions of a user at a time, if a group of the user limits them.
    pub fn sessions_max_of(&self, user: &str, login_groups: &LoginGroups) -> Option<u32> {
        self.groups_of(user, login_groups).filter_map(|group| group.budget.sessions).min()
    }

    /// Whether a decision depends on the groups of the identity server.
    pub fn names_login_groups(&self) -> bool {
        self.groups().iter().any(UserGroup::names_login_groups)
    }

    /// Whether any group limits what its members use up.
    pub fn has_budgets(&self) -> bool {
        self.groups().iter().any(|group| group.budgets().next().is_some())
    }
}
