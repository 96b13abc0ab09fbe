//! One run as its host calls see it: its caller, its current grant, the time that is left and the
//! effect log.

use std::{
    ops::Deref,
    sync::{Arc, Mutex},
    time::Duration,
};

use sallyport_contract::{
    AdmittedCall, CallReport, DataOwner, Denial, Effect, LogLevel, Outcome, Secret,
};
use sallyport_policy::Grant;

use crate::{
    authorizer::{GrantOutcome, HostCallAuthorizer, OutboundAccess, OutboundAccessKind, RunGrants},
    clock::RunClock,
    effect_log::EffectLog,
    mutex::lock_mutex,
    role_links::RoleLinks,
    undo::recorder::{ChangingPath, StepRecorder},
};

/// Most refused grants of one run. After them the user is not asked for another one, because a guest
/// could go on without end.
const GRANT_REFUSALS_MAX: usize = 3;

/// One run of a guest, shared by everything that serves it.
pub(crate) struct RunContext {
    pub(crate) clock: RunClock,
    pub(crate) effect_log: EffectLog,
    authorizer: Arc<dyn HostCallAuthorizer>,
    /// The grant at the start of the run, which determined what was opened and which limits apply.
    initial_grant: Arc<Grant>,
    /// `None` for a run without a caller: listing tools, setup, teardown.
    call: Option<Arc<AdmittedCall>>,
    /// What the user has granted to this run only.
    run_grants: RunGrants,
    /// The grants that the user has refused to this run. They are not asked for again.
    refused_grants: Mutex<Vec<Denial>>,
    /// The run's links to the session, for as long as it plays a role there.
    pub(crate) role_links: RoleLinks,
    /// Keeps the files that the run changes.
    undo_recorder: StepRecorder,
}

impl RunContext {
    /// A run on behalf of a call. It lasts `time_max` at most, even if the policy allows more.
    pub(crate) fn for_call(
        authorizer: Arc<dyn HostCallAuthorizer>,
        call: Arc<AdmittedCall>,
        role_links: RoleLinks,
        time_max: Duration,
    ) -> Arc<Self> {
        let grant = authorizer.run_grant(&call, &RunGrants::default());
        let time_max = grant.limits().time.min(time_max);
        Self::new(authorizer, grant, Some(call), role_links, time_max)
    }

    /// A run that neither a rule nor the user has allowed. It has no grants.
    pub(crate) fn without_call(
        authorizer: Arc<dyn HostCallAuthorizer>,
        time_max: Option<Duration>,
    ) -> Arc<Self> {
        let grant = Arc::new(authorizer.current_grant().without_permissions());
        let time_max = time_max.unwrap_or(grant.limits().time);
        Self::new(authorizer, grant, None, RoleLinks::default(), time_max)
    }

    fn new(
        authorizer: Arc<dyn HostCallAuthorizer>,
        initial_grant: Arc<Grant>,
        call: Option<Arc<AdmittedCall>>,
        role_links: RoleLinks,
        time_max: Duration,
    ) -> Arc<Self> {
        let limits = initial_grant.limits();
        let clock = RunClock::start(time_max, limits.cpu);
        let effect_log = EffectLog::new(limits.log_bytes);
        let (run_grants, refused_grants) = (RunGrants::default(), Mutex::default());
        let undo_recorder = StepRecorder::for_call(&authorizer.services(), call.as_deref());
        Arc::new(Self {
            clock,
            effect_log,
            authorizer,
            initial_grant,
            call,
            run_grants,
            refused_grants,
            role_links,
            undo_recorder,
        })
    }

    /// Keeps what is at a path, because the run is about to change it.
    pub(crate) fn keep_before_change(&self, path: &ChangingPath<'_>) {
        if let Err(error) = self.undo_recorder.keep(path) {
            let text = format!("/undo files cannot put back what this call changes: {error}");
            self.effect_log.log_line(LogLevel::Warn, &text);
        }
    }

    /// The current grant.
    pub(crate) fn current_grant(&self) -> Arc<Grant> {
        match &self.call {
            Some(call) => self.authorizer.run_grant(call, &self.run_grants),
            None => Arc::clone(&self.initial_grant),
        }
    }

    /// The grant at the start of the run.
    pub(crate) fn initial_grant(&self) -> &Grant {
        &self.initial_grant
    }

    /// The authorizer, which redacts secrets and provides services.
    pub(crate) fn authorizer(&self) -> &dyn HostCallAuthorizer {
        &*self.authorizer
    }

    /// The call on whose behalf the guest runs, if there is one.
    pub(crate) fn call(&self) -> Option<&AdmittedCall> {
        self.call.as_deref()
    }

    /// The owner of the data that the guest stores.
    pub(crate) fn data_owner(&self) -> DataOwner {
        let call_user = self.call().and_then(|call| call.context().user_id.as_deref());
        DataOwner {
            plugin: self.initial_grant.plugin().clone(),
            user: call_user.unwrap_or_else(|| self.authorizer.default_user()).to_owned(),
        }
    }

    /// The environment that a grant gives: the variables that it names and that are set.
    pub(crate) fn environment_variables(&self, grant: &Grant) -> Vec<(String, String)> {
        let set = |name: &String| Some((name.clone(), self.authorizer.environment_variable(name)?));
        grant.env().iter().filter_map(set).collect()
    }

    /// Looks up a secret on a blocking thread, as a keyring may be slow.
    ///
    /// # Errors
    ///
    /// The secret is not available. The message contains no part of it.
    pub(crate) async fn look_up_secret(&self, name: &str) -> Result<Secret, String> {
        let (authorizer, name) = (Arc::clone(&self.authorizer), name.to_owned());
        let found = tokio::task::spawn_blocking(move || authorizer.look_up_secret(&name)).await;
        found.unwrap_or_else(|_| Err("looking it up failed".to_owned()))
    }

    /// Whether an access would lead to a question to the user.
    pub(crate) async fn would_ask_user(&self, what: &str, kind: OutboundAccessKind<'_>) -> bool {
        let Some(call) = &self.call else { return false };
        let access = OutboundAccess { call, what, kind, run_grants: &self.run_grants };
        self.authorizer.would_ask_user(access).await
    }

    /// Authorises an access, which may ask the user. The guest's clock is paused in the meantime.
    /// The answer or the refusal is recorded.
    pub(crate) async fn authorize_access(
        &self,
        what: &str,
        kind: OutboundAccessKind<'_>,
    ) -> Result<(), Denial> {
        let call = self.require_call(what)?;
        let _pause = self.clock.pause();
        let access = OutboundAccess { call, what, kind, run_grants: &self.run_grants };
        let question = self.effect_log.begin_question(what);
        let answer = self.authorizer.authorize_access(access).await;
        question.mark_answered();
        match answer {
            Ok(None) => Ok(()),
            Ok(Some(answer)) => {
                self.effect_log.record_effect(Effect::Asked { what: what.to_owned(), answer });
                Ok(())
            }
            Err(denial) => {
                self.effect_log.record_refusal(denial.clone());
                Err(denial)
            }
        }
    }

    /// Asks the user for the grant that a refusal names. If the user gives it, the host call has to
    /// be checked again. The guest's clock is paused in the meantime, and the answer is recorded.
    ///
    /// # Errors
    ///
    /// The refusal, which is not recorded yet.
    pub(crate) async fn request_grant(&self, denial: Denial) -> Result<(), Denial> {
        let Some(call) = self.call.as_ref().filter(|_| denial.fix.is_some()) else {
            return Err(denial);
        };
        let is_same = |refused: &&Denial| refused.subject == denial.subject;
        let (refused, refusals) = {
            let refused = lock_mutex(&self.refused_grants);
            (refused.iter().find(is_same).cloned(), refused.len())
        };
        if refused.is_some() || refusals >= GRANT_REFUSALS_MAX {
            return Err(refused.unwrap_or(denial));
        }
        let _pause = self.clock.pause();
        let what = denial.subject.to_string();
        let reason = denial.reason.clone();
        let question = self.effect_log.begin_question(&what);
        let answer = self.authorizer.request_grant(call, &self.run_grants, denial).await;
        question.mark_answered();
        let GrantOutcome { effect, result } = answer;
        effect.into_iter().for_each(|effect| self.effect_log.record_effect(effect));
        result.inspect_err(|denial| {
            // Nobody could answer if the reason is still the same.
            if denial.reason != reason {
                lock_mutex(&self.refused_grants).push(denial.clone());
            }
        })
    }

    /// The call on whose behalf the guest runs. If there is none, the refusal is recorded.
    pub(crate) fn require_call(&self, what: &str) -> Result<&AdmittedCall, Denial> {
        self.call().ok_or_else(|| {
            let denial = self.build_denial(what, "no call is being made");
            self.effect_log.record_refusal(denial.clone());
            denial
        })
    }

    /// A refusal that no policy can lift. `what` is the action, such as `draw`.
    pub(crate) fn build_denial(&self, what: &str, why: &str) -> Denial {
        Denial::new(format!("{} may not {what}", self.initial_grant.plugin()), why)
    }
}

/// A run that has not been reported yet. If its call is given up, it gets no report, so the effects
/// up to that point are left with the call.
pub(crate) struct RunGuard(Arc<RunContext>);

impl RunGuard {
    pub(crate) fn new(run_context: Arc<RunContext>) -> Self {
        Self(run_context)
    }
}

impl Deref for RunGuard {
    type Target = Arc<RunContext>;

    fn deref(&self) -> &Arc<RunContext> {
        &self.0
    }
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        // A few files are hashed here. The next call of the session must find them noted.
        self.undo_recorder.finish();
        let effects = self.effect_log.close();
        if let (Some(call), false) = (self.call(), effects.is_empty()) {
            let mut report = CallReport { effects, ..CallReport::from(Outcome::Cancelled) };
            self.authorizer.redactor().redact_report(&mut report);
            call.abandoned_effects().add_effects(report.effects);
        }
    }
}
