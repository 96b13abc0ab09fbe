//! The grants that users gave to plugins in a session, and whose turn it is to ask for one.
//!
//! They are in memory only. Each belongs to one session, one user and one component, and is gone
//! with the session.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use sallyport_contract::{FixGrant, RequestedCall, ToolCallContext};
use sallyport_policy::edit::GrantAddition;
use tokio::sync::Mutex as AsyncMutex;

/// Who holds grants of a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct GrantHolder {
    session_id: String,
    user: String,
    plugin: String,
    /// Digest of the component. Another component has to ask anew.
    digest: String,
}

/// Keeps the grants of all sessions.
#[derive(Debug, Default)]
pub struct GrantDesk {
    holders: Mutex<HashMap<GrantHolder, SessionGrants>>,
}

#[derive(Debug, Default)]
struct SessionGrants {
    additions: Vec<GrantAddition>,
    turn: Arc<QuestionTurn>,
}

/// The turn to ask for the grants of one holder. Calls that miss the same grant wait for one
/// answer.
#[derive(Debug, Default)]
pub(crate) struct QuestionTurn {
    /// Held while a question is open.
    pub(crate) asking: AsyncMutex<()>,
    refusals: Mutex<Refusals>,
}

/// The answers "no" to the calls of one holder.
#[derive(Debug, Default)]
struct Refusals {
    /// How many there were so far.
    count: u64,
    /// The narrowest choice of the last one, and the user's reason.
    last: Option<(Vec<FixGrant>, Option<String>)>,
}

impl GrantHolder {
    pub(crate) fn new(context: &ToolCallContext, plugin: &str, digest: &str) -> Self {
        Self {
            session_id: context.session_id.clone(),
            user: context.user().to_owned(),
            plugin: plugin.to_owned(),
            digest: digest.to_owned(),
        }
    }

    pub(crate) fn of_call(call: &RequestedCall, digest: &str) -> Self {
        Self::new(&call.context, call.tool.plugin.as_str(), digest)
    }
}

impl GrantDesk {
    /// The grants of a holder.
    pub(crate) fn session_additions(&self, holder: &GrantHolder) -> Vec<GrantAddition> {
        let holders = self.lock();
        holders.get(holder).map(|grants| grants.additions.clone()).unwrap_or_default()
    }

    /// Whether no session has any grant, so that nobody has to look for its own.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().values().all(|grants| grants.additions.is_empty())
    }

    pub(crate) fn add_session_grants(&self, holder: GrantHolder, additions: &[GrantAddition]) {
        let mut holders = self.lock();
        let held = &mut holders.entry(holder).or_default().additions;
        let new = additions.iter().filter(|addition| !held.contains(addition)).cloned();
        let new: Vec<_> = new.collect();
        held.extend(new);
    }

    /// The turn to ask for grants of a holder.
    pub(crate) fn question_turn(&self, holder: &GrantHolder) -> Arc<QuestionTurn> {
        Arc::clone(&self.lock().entry(holder.clone()).or_default().turn)
    }

    /// Forgets all grants of a session.
    pub(crate) fn end_session(&self, session_id: &str) {
        self.lock().retain(|holder, _| holder.session_id != session_id);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<GrantHolder, SessionGrants>> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QuestionTurn {
    /// The number of refusals so far.
    pub(crate) fn refusal_count(&self) -> u64 {
        self.lock_refusals().count
    }

    pub(crate) fn record_refusal(&self, narrowest: Vec<FixGrant>, reason: Option<String>) {
        let mut refusals = self.lock_refusals();
        refusals.count += 1;
        refusals.last = Some((narrowest, reason));
    }

    /// The user's reason, if a question for the same grant was refused since there were `count`
    /// refusals: while the caller waited for its turn.
    pub(crate) fn refused_since(
        &self,
        count: u64,
        narrowest: &[FixGrant],
    ) -> Option<Option<String>> {
        let refusals = self.lock_refusals();
        let (refused, reason) = refusals.last.as_ref().filter(|_| refusals.count > count)?;
        (refused == narrowest).then(|| reason.clone())
    }

    fn lock_refusals(&self) -> MutexGuard<'_, Refusals> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(session: &str, user: &str, digest: &str) -> GrantHolder {
        let context = ToolCallContext {
            session_id: session.to_owned(),
            user_id: Some(user.to_owned()),
            ..ToolCallContext::default()
        };
        GrantHolder::new(&context, "notes", digest)
    }

    #[test]
    fn a_grant_of_a_session_is_seen_by_no_other_and_ends_with_it() {
        let desk = GrantDesk::default();
        let addition = [GrantAddition::Env("TZ".to_owned())];
        desk.add_session_grants(holder("a", "ann", "d"), &addition);
        desk.add_session_grants(holder("a", "ann", "d"), &addition);
        assert_eq!(desk.session_additions(&holder("a", "ann", "d")), addition);
        for other in [holder("b", "ann", "d"), holder("a", "ben", "d"), holder("a", "ann", "e")] {
            assert_eq!(desk.session_additions(&other), [], "{other:?}");
        }
        desk.end_session("b");
        assert!(!desk.is_empty());
        desk.end_session("a");
        assert!(desk.is_empty());
    }

    #[test]
    fn a_no_counts_for_those_who_waited_for_it_and_for_no_other_grant() {
        let turn = QuestionTurn::default();
        let grant = |entry: &str| {
            vec![FixGrant { key: "env".into(), entry: entry.into(), flags: Vec::new() }]
        };
        let before = turn.refusal_count();
        turn.record_refusal(grant("TZ"), Some("not now".to_owned()));
        assert_eq!(turn.refused_since(before, &grant("TZ")), Some(Some("not now".to_owned())));
        assert_eq!(turn.refused_since(before, &grant("LANG")), None);
        assert_eq!(turn.refused_since(turn.refusal_count(), &grant("TZ")), None);
    }
}
