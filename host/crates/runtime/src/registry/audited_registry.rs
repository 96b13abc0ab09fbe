//! The audited registry: the host's toolbox, which leaves one record for each decision and each
//! call.
//!
//! A tool is looked up once, when its call is admitted. The admission keeps the plugin that was
//! found, so the plugin that was approved is the one that runs.
//!
//! A call that could change or leak anything starts only when the record of its decision is on
//! disk. For a call that can do neither, the record is written in the background. While the audit
//! cannot be written, every call first retries the write, and is refused with the reason if that
//! fails. A call that is cancelled, even while its approval is pending, or whose process is asked
//! to stop, leaves a record as well, with its effects so far.

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use sallyport_contract::{
    AbandonedEffects, Admission, AdmittedCall, BoxFuture, CallFailure, CallReport, Decision,
    Denial, DenialReason, FailureKind, Outcome, RequestedCall, ToolCallContext, ToolDescriptor,
    ToolId, Toolbox, UserAnswer,
};
use sallyport_store::{AuditError, AuditKind, AuditLog, AuditRecord, audit::HostUser};
use tracing::{Instrument as _, Span, field::Empty, info_span};

use super::{RegisteredPlugin, Registry, call_checks};
use crate::{clock::now_ms, gate::Gate, observer::RunObserver};

/// Longest wait for the disk before a call is refused. It is longer than the wait for another
/// process that locks the database.
const DURABLE_TIME_MAX: Duration = Duration::from_secs(15);

/// Message of a question that was withdrawn before the answer.
const UNANSWERED: &str = "cancelled while waiting for an approval";

/// A registry that records every decision and call.
pub struct AuditedRegistry {
    registry: ArcSwap<Registry>,
    gate: Arc<Gate>,
    log: Arc<AuditLog>,
    user: HostUser,
    observer: Option<Arc<dyn RunObserver>>,
}

impl AuditedRegistry {
    /// Records the calls of a registry in a log, on behalf of `user`, and reports them to
    /// `observer`.
    pub fn new(
        registry: Arc<Registry>,
        log: Arc<AuditLog>,
        user: HostUser,
        observer: Option<Arc<dyn RunObserver>>,
    ) -> Self {
        let gate = Arc::clone(registry.gate());
        Self { registry: ArcSwap::new(registry), gate, log, user, observer }
    }

    /// Starts the record of a call, or of the decision about it.
    fn start_record(
        &self,
        kind: AuditKind,
        digest: Option<&str>,
        context: &ToolCallContext,
        tool: &ToolId,
        arguments: &str,
    ) -> AuditRecord {
        let digest = digest.map(str::to_owned);
        let record = AuditRecord::new(kind, now_ms(), self.user.clone());
        AuditRecord { digest, ..record.with_call(context, tool, arguments) }
    }

    /// The grounds of a decision, with known secrets removed.
    fn redacted_reason(&self, call: &AdmittedCall) -> Option<String> {
        Some(self.gate.redactor().redact_text(call.authorization_reason()).into_owned())
    }

    /// Starts the record of a run that is about to start: of a call, or in a role.
    pub(crate) fn begin_run(&self, plugin: &RegisteredPlugin, call: &AdmittedCall) -> RunRecord {
        let (context, tool, arguments) = (call.context(), call.tool(), call.arguments_text());
        let digest = Some(plugin.digest());
        let record = self.start_record(AuditKind::Call, digest, context, tool, arguments);
        RunRecord {
            log: Arc::clone(&self.log),
            observer: self.observer.clone(),
            tool: tool.clone(),
            record: Some(AuditRecord { grounds: self.redacted_reason(call), ..record }),
            abandoned_effects: call.abandoned_effects().clone(),
            started: Instant::now(),
            may_be_silent: false,
        }
    }

    /// The plugins of this moment.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.registry.load_full()
    }

    /// Replaces the plugins for all calls that are not admitted yet.
    pub(crate) fn replace_registry(&self, registry: Arc<Registry>) {
        self.registry.store(registry);
    }

    /// Decides on a run in a role and records the decision. The run may start immediately.
    pub(crate) async fn admit_role_run(
        &self,
        plugin: &RegisteredPlugin,
        run: RequestedCall,
    ) -> Result<AdmittedCall, Box<CallReport>> {
        let present = self.registry.load().find_plugin(plugin.name().as_str()).map(drop);
        let decide = async |run| {
            present.map_err(call_checks::lookup_failure)?;
            let decided = call_checks::admit_call(&self.gate, plugin, None, run).await?;
            Ok((decided.call, ()))
        };
        let (admitted, ()) = self.decide_and_record(Some(plugin.digest()), run, decide).await?;
        self.wait_until_recorded(plugin, admitted.context()).await.map_err(|unrecorded| {
            if let Some(observer) = &self.observer {
                observer.on_run_ended(admitted.tool(), &unrecorded);
            }
            Box::new(unrecorded)
        })?;
        Ok(admitted)
    }

    /// Why an admitted run in a role may not continue: its capability was revoked, or a rule now
    /// denies it. The user is not asked a second time.
    pub(crate) async fn role_run_denial(
        &self,
        plugin: &RegisteredPlugin,
        run: &AdmittedCall,
    ) -> Option<Denial> {
        call_checks::role_run_denial(&self.gate, plugin, run).await
    }

    /// Whether the audit cannot be written, so that calls are refused. No earlier decision covers
    /// another run then.
    pub(crate) fn is_failing(&self) -> bool {
        self.log.failure().is_some()
    }

    /// Decides on a call and records the decision. A call that cannot be recorded is refused.
    #[tracing::instrument(
        name = "decide",
        skip_all,
        fields(
            tool = %call.tool,
            call = call.context.call_id,
            outcome = Empty,
            denied = Empty,
            error = Empty,
        )
    )]
    async fn decide_and_record<T, F>(
        &self,
        digest: Option<&str>,
        call: RequestedCall,
        decide: impl FnOnce(RequestedCall) -> F,
    ) -> Result<(AdmittedCall, T), Box<CallReport>>
    where
        F: Future<Output = Result<(AdmittedCall, T), Outcome>>,
    {
        let observed = self.observer.as_ref().map(|observer| (observer, call.clone()));
        let (context, tool, arguments) = (&call.context, &call.tool, &call.arguments);
        let record = self.start_record(AuditKind::Decision, digest, context, tool, arguments);
        let mut guard = DecisionRecordGuard { log: &self.log, record: Some(record) };
        let decision = decide(call).await;
        let mut decision = decision.map_err(|outcome| Box::new(CallReport::from(outcome)));
        if let Some(record) = guard.record.take() {
            let record = match &mut decision {
                Ok((admitted, _)) => AuditRecord {
                    decision: Some(Decision::Allow),
                    answer: admitted.user_answer(),
                    grounds: self.redacted_reason(admitted),
                    ..record
                },
                Err(report) => {
                    self.gate.redactor().redact_report(report);
                    let denied = matches!(report.outcome, Outcome::Denied(_));
                    let decision = denied.then_some(Decision::Deny);
                    let answer = refusal_of_user(&report.outcome);
                    AuditRecord { decision, answer, ..record.with_report(report) }
                }
            };
            guard.record = Some(record);
            if let Err(error) = self.write_record(&mut guard.record).await {
                guard.record = None;
                decision = Err(Box::new(unrecorded_call_report(&error)));
            }
        }
        if let Err(report) = &decision {
            record_outcome(&report.outcome);
        }
        if let Some((observer, call)) = observed {
            let result =
                decision.as_ref().map(|(admitted, _)| admitted).map_err(|report| &**report);
            observer.on_decision(&call, result);
        }
        decision
    }

    /// After a failure, the write is tried again and waited for, and so is a busy disk that is
    /// thousands of records behind.
    async fn write_record(&self, record: &mut Option<AuditRecord>) -> Result<(), AuditError> {
        with_write_timeout(self.log.append_when_possible(record)).await
    }

    /// Waits until the decision on a call is on disk, if the call could change or leak anything.
    ///
    /// # Errors
    ///
    /// The report of a call that is refused.
    #[tracing::instrument(name = "write_decision", skip_all)]
    async fn wait_until_recorded(
        &self,
        plugin: &RegisteredPlugin,
        context: &ToolCallContext,
    ) -> Result<(), CallReport> {
        if !plugin.may_act(context) {
            return Ok(());
        }
        with_write_timeout(self.log.wait_until_durable())
            .await
            .map_err(|error| unrecorded_call_report(&error))
    }
}

async fn with_write_timeout(
    written: impl Future<Output = Result<(), AuditError>>,
) -> Result<(), AuditError> {
    let written = tokio::time::timeout(DURABLE_TIME_MAX, written).await;
    written.unwrap_or(Err(AuditError::TimedOut { records: 1, waited: DURABLE_TIME_MAX }))
}

/// A pending decision. If it is dropped, it records that the call was cancelled: while the user was
/// asked, or while the record of the decision waited to be taken.
struct DecisionRecordGuard<'a> {
    log: &'a AuditLog,
    record: Option<AuditRecord>,
}

impl Drop for DecisionRecordGuard<'_> {
    fn drop(&mut self) {
        let Some(record) = self.record.take() else { return };
        let decision = record.decision;
        let cancelled = record.with_report(&CallReport::from(Outcome::Cancelled));
        self.log.append_completed(match decision {
            Some(_) => cancelled,
            None => AuditRecord {
                decision: Some(Decision::Ask),
                message: Some(UNANSWERED.to_owned()),
                ..cancelled
            },
        });
    }
}

impl Toolbox for AuditedRegistry {
    fn tools(&self) -> Arc<[ToolDescriptor]> {
        Arc::clone(self.registry.load().tools())
    }

    fn admit_call(
        self: Arc<Self>,
        call: RequestedCall,
    ) -> BoxFuture<'static, Result<Admission, Box<CallReport>>> {
        Box::pin(async move {
            let found = self.registry.load().find_plugin(call.tool.plugin.as_str()).cloned();
            let digest = found.as_ref().ok().map(|plugin| plugin.digest().to_owned());
            let tool = found.and_then(|plugin| Ok((plugin.find_usable_tool(&call.tool)?, plugin)));
            let decide = async |call| {
                let (tool, plugin) = tool.map_err(call_checks::lookup_failure)?;
                let decided =
                    call_checks::admit_call(&self.gate, &plugin, Some(tool), call).await?;
                Ok((decided.call, (tool, plugin, decided.policy_revision)))
            };
            let decision = self.decide_and_record(digest.as_deref(), call, decide).await;
            let (call, (tool, plugin, revision)) = decision?;
            let audited = Arc::clone(&self);
            Ok(Admission::new(call, |call| {
                let span = call_span(&call);
                let run = async move {
                    let run_record = audited.begin_run(&plugin, &call);
                    let report = match audited.wait_until_recorded(&plugin, call.context()).await {
                        Ok(()) => {
                            let call = (call, revision);
                            call_checks::run_call(&audited.gate, &plugin, tool, call).await
                        }
                        Err(unrecorded) => unrecorded,
                    };
                    run_record.finish(&report);
                    record_outcome(&report.outcome);
                    report
                };
                run.instrument(span)
            }))
        })
    }
}

fn call_span(call: &AdmittedCall) -> Span {
    let call_id = &call.context().call_id;
    info_span!(
        "call",
        tool = %call.tool(),
        call = call_id,
        outcome = Empty,
        denied = Empty,
        error = Empty
    )
}

/// Records in the current span how a call ended.
fn record_outcome(outcome: &Outcome) {
    let (span, word) = (Span::current(), outcome.as_str());
    span.record("outcome", word);
    span.record("denied", matches!(outcome, Outcome::Denied(_)));
    if !matches!(outcome, Outcome::Completed(_)) {
        span.record("error", word);
    }
}

/// The record of a run, which is written however the run ends.
pub struct RunRecord {
    log: Arc<AuditLog>,
    observer: Option<Arc<dyn RunObserver>>,
    tool: ToolId,
    record: Option<AuditRecord>,
    /// The effects of the run, for when it is dropped before its end.
    abandoned_effects: AbandonedEffects,
    /// The start, for the duration of a run that is dropped.
    started: Instant,
    /// A run that had no effects and did not fail is not recorded.
    may_be_silent: bool,
}

impl RunRecord {
    /// The same, but a run is recorded only if it had effects or failed.
    pub(crate) fn only_with_effects(mut self) -> Self {
        self.may_be_silent = true;
        self
    }

    /// Records how the run ended.
    pub fn finish(mut self, report: &CallReport) {
        let Some(record) = self.record.take() else { return };
        let has_failed = !matches!(report.outcome, Outcome::Completed(_) | Outcome::Cancelled);
        if self.may_be_silent && !has_failed && report.effects.is_empty() {
            return;
        }
        // The call has already run, so a failure to write its end is reported by the next call.
        self.log.append_completed(AuditRecord { at_ms: now_ms(), ..record.with_report(report) });
        if let Some(observer) = &self.observer {
            observer.on_run_ended(&self.tool, report);
        }
    }
}

impl Drop for RunRecord {
    fn drop(&mut self) {
        let Some(record) = self.record.take() else { return };
        let effects = self.abandoned_effects.take_effects();
        if !(self.may_be_silent && effects.is_empty()) {
            let elapsed = self.started.elapsed();
            let report = CallReport { effects, elapsed, ..CallReport::from(Outcome::Cancelled) };
            self.log
                .append_completed(AuditRecord { at_ms: now_ms(), ..record.with_report(&report) });
        }
    }
}

/// The answer of a user who refused a call.
fn refusal_of_user(outcome: &Outcome) -> Option<UserAnswer> {
    let Outcome::Denied(denial) = outcome else { return None };
    let is_refusal = matches!(denial.reason, DenialReason::RefusedByUser { .. });
    is_refusal.then_some(UserAnswer::Refused)
}

/// The report of a call that is not recorded. The model reads that it was not made; the user also
/// reads why.
fn unrecorded_call_report(error: &AuditError) -> CallReport {
    let message = "the call was not made, because the audit cannot be written";
    let failure = CallFailure::new(FailureKind::Unavailable, message);
    Outcome::Failed(failure.with_detail(error.to_string())).into()
}
