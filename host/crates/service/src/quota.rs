//! How much of something each user, and all users together, may have at the same time.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::problem::Problem;

/// Counts the uses of something.
#[derive(Debug)]
pub(crate) struct UserQuota {
    what: &'static str,
    of_user_max: usize,
    total_max: usize,
    uses: Mutex<HashMap<String, usize>>,
}

/// One use. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct QuotaUse {
    quota: Arc<UserQuota>,
    user: String,
}

impl UserQuota {
    pub(crate) fn new(what: &'static str, of_user_max: usize, total_max: usize) -> Arc<Self> {
        Arc::new(Self { what, of_user_max, total_max, uses: Mutex::default() })
    }

    /// Begins a use.
    ///
    /// # Errors
    ///
    /// A limit is reached.
    pub(crate) fn begin_use(self: &Arc<Self>, user: &str) -> Result<QuotaUse, Problem> {
        self.begin_use_within(user, None)
    }

    /// Begins a use of a user for whom a lower limit may be set.
    ///
    /// # Errors
    ///
    /// A limit is reached.
    pub(crate) fn begin_use_within(
        self: &Arc<Self>,
        user: &str,
        own_max: Option<usize>,
    ) -> Result<QuotaUse, Problem> {
        let mut uses = self.uses();
        let own = uses.get(user).copied().unwrap_or_default();
        let (what, total_max) = (self.what, self.total_max);
        let of_user_max = own_max.map_or(self.of_user_max, |max| max.min(self.of_user_max));
        if own >= of_user_max {
            return Err(Problem::too_many(format!("you have {own} {what}, the most of a user")));
        }
        if uses.values().sum::<usize>() >= total_max {
            return Err(Problem::too_many(format!(
                "there are {total_max} {what}, the most of all"
            )));
        }
        uses.insert(user.to_owned(), own + 1);
        Ok(QuotaUse { quota: Arc::clone(self), user: user.to_owned() })
    }

    /// The uses of all users.
    pub(crate) fn total(&self) -> usize {
        self.uses().values().sum()
    }

    fn uses(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for QuotaUse {
    fn drop(&mut self) {
        let mut uses = self.quota.uses();
        let left = uses.get(&self.user).copied().unwrap_or_default().saturating_sub(1);
        match left {
            // Users that are gone take no memory.
            0 => drop(uses.remove(&self.user)),
            left => drop(uses.insert(self.user.clone(), left)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_cannot_take_the_place_of_all() {
        let quota = UserQuota::new("calls", 2, 3);
        let first = quota.begin_use("ann").unwrap();
        let _second = quota.begin_use("ann").unwrap();
        assert!(quota.begin_use("ann").is_err(), "two are hers");
        let _third = quota.begin_use("ben").unwrap();
        assert!(quota.begin_use("eve").is_err(), "three are all");
        drop(first);
        let _again = quota.begin_use("ann").unwrap();
        assert_eq!(quota.total(), 3);
        for (own_max, is_free) in [(Some(0), false), (Some(1), true), (Some(9), true)] {
            let other = UserQuota::new("calls", 2, 3);
            assert_eq!(other.begin_use_within("ann", own_max).is_ok(), is_free, "{own_max:?}");
            let _two = [other.begin_use_within("ann", own_max), other.begin_use("ann")];
            assert!(other.begin_use_within("ann", own_max).is_err(), "a group only tightens");
        }
        drop((_second, _third, _again));
        assert!(quota.uses().is_empty(), "nothing is left of users without a use");
    }
}
