//! One run as its host calls see it: who runs, on whose behalf, what is granted at this moment, how
//! much time is left, and where everything is written down.

use std::{ops::Deref, sync::Arc, time::Duration};

use sallyport_contract::{Admitted, CallReport, Denial, Effect, Outcome, Owner, Secret};
use sallyport_policy::Grant;

use crate::{
    clock::Clock,
    ledger::Ledger,
    roles::RoleLinks,
    warden::{Access, AccessKind, Warden},
};

/// One run of a guest. Shared by everything that serves it.
pub(crate) struct Case {
    pub(crate) clock: Clock,
    pub(crate) ledger: Ledger,
    warden: Arc<dyn Warden>,
    /// What was granted when the run began: what it was opened with, and its limits.
    granted: Arc<Grant>,
    /// `None` for a run that nobody asked for: listing tools, setting up, tearing down.
    call: Option<Arc<Admitted>>,
    /// What the run is joined to in the session, for as long as it plays a role there.
    pub(crate) role: RoleLinks,
}

impl Case {
    /// A run on behalf of a call, for no longer than `time_max`, whatever the policy allows.
    pub(crate) fn of_call(
        warden: Arc<dyn Warden>,
        call: Arc<Admitted>,
        role: RoleLinks,
        time_max: Duration,
    ) -> Arc<Self> {
        let grant = warden.grant();
        let limits = grant.limits();
        let clock = Clock::start(limits.time.min(time_max), limits.cpu);
        let ledger = Ledger::new(limits.log_bytes);
        Arc::new(Self { clock, ledger, warden, granted: grant, call: Some(call), role })
    }

    /// A run that no rule and no person has agreed to: it holds no grant.
    pub(crate) fn of_nobody(warden: Arc<dyn Warden>, time_max: Option<Duration>) -> Arc<Self> {
        let granted = Arc::new(warden.grant().powerless());
        let limits = granted.limits();
        let clock = Clock::start(time_max.unwrap_or(limits.time), limits.cpu);
        let ledger = Ledger::new(limits.log_bytes);
        Arc::new(Self { clock, ledger, warden, granted, call: None, role: RoleLinks::default() })
    }

    /// What the guest may do at this moment.
    pub(crate) fn grant(&self) -> Arc<Grant> {
        match self.call {
            Some(_) => self.warden.grant(),
            None => Arc::clone(&self.granted),
        }
    }

    /// What the guest was allowed to do when the run began.
    pub(crate) fn granted(&self) -> &Grant {
        &self.granted
    }

    /// The warden, for what hides secrets and for the way out.
    pub(crate) fn warden(&self) -> &dyn Warden {
        &*self.warden
    }

    /// The call on whose behalf the guest runs, if anybody asked for it.
    pub(crate) fn call(&self) -> Option<&Admitted> {
        self.call.as_deref()
    }

    /// Whose things the guest keeps.
    pub(crate) fn owner(&self) -> Owner {
        let of_call = self.call().and_then(|call| call.context().user_id.as_deref());
        Owner {
            plugin: self.granted.plugin().clone(),
            user: of_call.unwrap_or_else(|| self.warden.user()).to_owned(),
        }
    }

    /// The environment that a grant gives: the variables that it names and that are set.
    pub(crate) fn environment(&self, grant: &Grant) -> Vec<(String, String)> {
        let set = |name: &String| Some((name.clone(), self.warden.variable(name)?));
        grant.env().iter().filter_map(set).collect()
    }

    /// Looks up a secret. A keyring may take its time, so it is waited for apart from the guests.
    ///
    /// # Errors
    ///
    /// Why it cannot be had, in words that hold nothing of it.
    pub(crate) async fn secret(&self, name: &str) -> Result<Secret, String> {
        let (warden, name) = (Arc::clone(&self.warden), name.to_owned());
        let found = tokio::task::spawn_blocking(move || warden.secret(&name)).await;
        found.unwrap_or_else(|_| Err("looking it up failed".to_owned()))
    }

    /// Whether somebody would be asked about an access.
    pub(crate) fn asks(&self, what: &str, kind: &AccessKind<'_>) -> bool {
        let Some(call) = &self.call else { return false };
        self.warden.asks(&Access { call, what, kind: *kind })
    }

    /// Agrees to an access, perhaps after asking the person. The guest's clock stands still
    /// meanwhile. What came of a question, and a refusal, are written down.
    pub(crate) async fn agree(&self, what: &str, kind: AccessKind<'_>) -> Result<(), Denial> {
        let Some(call) = &self.call else { return Err(self.nobody(what)) };
        let _hold = self.clock.hold();
        let access = Access { call, what, kind };
        let asking = self.ledger.asking(what);
        let answer = self.warden.agree(access).await;
        asking.answered();
        match answer {
            Ok(None) => Ok(()),
            Ok(Some(answer)) => {
                self.ledger.note(Effect::Asked { what: what.to_owned(), answer });
                Ok(())
            }
            Err(denial) => {
                self.ledger.refused(denial.clone());
                Err(denial)
            }
        }
    }

    /// Writes down that a guest wants what only a run in a certain role has.
    pub(crate) fn not_in_role(&self, what: &str) {
        self.ledger.refused(Denial {
            what: format!("{} may not {what}", self.grant().plugin()),
            why: "it has no such role in this run".to_owned(),
            fix: None,
            nobody_to_ask: false,
        });
    }

    fn nobody(&self, what: &str) -> Denial {
        let denial = Denial {
            what: format!("{} may not {what}", self.grant().plugin()),
            why: "no call is being made".to_owned(),
            fix: None,
            nobody_to_ask: false,
        };
        self.ledger.refused(denial.clone());
        denial
    }
}

/// The case of a run that nobody has made a report of yet. Whoever gives a call up gets none, and what
/// was done until then is left on the call's trail.
pub(crate) struct Unreported(Arc<Case>);

impl Unreported {
    pub(crate) fn of(case: Arc<Case>) -> Self {
        Self(case)
    }
}

impl Deref for Unreported {
    type Target = Arc<Case>;

    fn deref(&self) -> &Arc<Case> {
        &self.0
    }
}

impl Drop for Unreported {
    fn drop(&mut self) {
        let effects = self.ledger.close();
        if let (Some(call), false) = (self.call(), effects.is_empty()) {
            let mut report = CallReport { effects, ..CallReport::from(Outcome::Cancelled) };
            self.warden.redactor().report(&mut report);
            call.trail().leave(report.effects);
        }
    }
}
