//! The audited registry: one record for each decision and each call.
//!
//! A call that could change or leak anything starts only when the record of its decision is on
//! disk. For a call that can do neither, the record is written in the background. While the audit
//! cannot be written, every call first retries the write, and is refused with the reason if that
//! fails. A call that is cancelled, even while its approval is pending, or whose process is asked
//! to stop, leaves a record as well, with its effects so far.

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use sallyport_contract::{
    AbandonedEffects, AdmittedCall, BoxFuture, CallFailure, CallReport, Decision, FailureKind,
    Outcome, RequestedCall, ToolCallContext, ToolDescriptor, ToolId, Toolbox,
};
use sallyport_store::{AuditError, AuditKind, AuditLog, AuditRecord, audit::HostUser};

use crate::registry::{RegisteredPlugin, Registry};

/// Longest wait for the disk before a call is refused. It is longer than the wait for another
/// process that locks the database.
const DURABLE_TIME_MAX: Duration = Duration::from_secs(15);

/// Message of a question that was withdrawn before the answer.
const UNANSWERED: &str = "cancelled while waiting for an approval";

/// A registry that records every decision and call.
pub struct AuditedRegistry {
    inner: Arc<Registry>,
    log: Arc<AuditLog>,
    user: HostUser,
}

impl AuditedRegistry {
    /// Records the calls of a registry in a log, on behalf of `who`.
    pub fn new(inner: Arc<Registry>, log: Arc<AuditLog>, user: HostUser) -> Self {
        Self { inner, log, user }
    }

    /// Starts the record of a call, or of the decision about it.
    fn start_record(
        &self,
        kind: AuditKind,
        context: &ToolCallContext,
        tool: &ToolId,
        arguments: &str,
    ) -> AuditRecord {
        let plugin = self.inner.find_plugin(tool.plugin.as_str()).ok();
        let record = AuditRecord::new(kind, now_ms(), self.user.clone());
        AuditRecord {
            digest: plugin.map(|entry| entry.digest().to_owned()),
            ..record.with_call(context, tool, arguments)
        }
    }

    /// The grounds of a decision, with known secrets removed.
    fn redacted_reason(&self, call: &AdmittedCall) -> Option<String> {
        Some(self.inner.gate().redactor().redact_text(call.authorization_reason()).into_owned())
    }

    /// Starts the record of a call that is about to run.
    pub(crate) fn begin_call_record(&self, call: &AdmittedCall) -> CallRecordGuard {
        let record =
            self.start_record(AuditKind::Call, call.context(), call.tool(), call.arguments_text());
        let record = AuditRecord { grounds: self.redacted_reason(call), ..record };
        let (log, abandoned_effects) = (Arc::clone(&self.log), call.abandoned_effects().clone());
        let started = Instant::now();
        CallRecordGuard {
            log,
            record: Some(record),
            abandoned_effects,
            started,
            may_be_silent: false,
        }
    }

    /// The registry that is audited.
    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.inner
    }

    /// Decides on a run in a role and records the decision. The run may start immediately.
    pub(crate) async fn admit_role_run(
        &self,
        run: RequestedCall,
    ) -> Result<AdmittedCall, Box<CallReport>> {
        let record =
            self.start_record(AuditKind::Decision, &run.context, &run.tool, &run.arguments);
        let admitted = self.record_decision(record, self.inner.admit_role_run(run)).await?;
        self.wait_until_recorded(admitted.tool()).await.map_err(Box::new)?;
        Ok(admitted)
    }

    /// Whether the audit cannot be written, so that calls are refused. No earlier decision covers
    /// another run then.
    pub(crate) fn is_failing(&self) -> bool {
        self.log.failure().is_some()
    }

    /// Waits for a decision and records it. A call that cannot be recorded is refused.
    async fn record_decision(
        &self,
        record: AuditRecord,
        decision: impl Future<Output = Result<AdmittedCall, Box<CallReport>>>,
    ) -> Result<AdmittedCall, Box<CallReport>> {
        let mut decision_guard = DecisionRecordGuard { log: &self.log, record: Some(record) };
        let mut result = decision.await;
        let Some(record) = decision_guard.record.take() else { return result };
        let record = match &mut result {
            Ok(admitted) => AuditRecord {
                decision: Some(Decision::Allow),
                grounds: self.redacted_reason(admitted),
                ..record
            },
            Err(report) => {
                self.inner.gate().redactor().redact_report(report);
                let denied = matches!(report.outcome, Outcome::Denied(_));
                let decision = denied.then_some(Decision::Deny);
                AuditRecord { decision, ..record.with_report(report) }
            }
        };
        match self.write_record(record).await {
            Ok(()) => result,
            Err(error) => Err(Box::new(unrecorded_call_report(&error))),
        }
    }

    /// After a failure, retries the write and waits for it.
    async fn write_record(&self, record: AuditRecord) -> Result<(), AuditError> {
        if self.is_failing() {
            with_write_timeout(self.log.commit(record)).await
        } else {
            self.log.append(record)
        }
    }

    /// Waits until the decision on a call is on disk, if the call could change or leak anything.
    ///
    /// # Errors
    ///
    /// The report of a call that is refused.
    async fn wait_until_recorded(&self, tool: &ToolId) -> Result<(), CallReport> {
        let plugin = self.inner.find_plugin(tool.plugin.as_str());
        // A plugin that is gone cannot act.
        if !plugin.is_ok_and(RegisteredPlugin::may_act) {
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

/// A pending decision. If it is dropped, it records a cancelled approval: a decision waits only for
/// the user's answer.
struct DecisionRecordGuard<'a> {
    log: &'a AuditLog,
    record: Option<AuditRecord>,
}

impl Drop for DecisionRecordGuard<'_> {
    fn drop(&mut self) {
        let Some(record) = self.record.take() else { return };
        self.log.append_completed(AuditRecord {
            decision: Some(Decision::Ask),
            message: Some(UNANSWERED.to_owned()),
            ..record.with_report(&CallReport::from(Outcome::Cancelled))
        });
    }
}

impl Toolbox for AuditedRegistry {
    fn tools(&self) -> &[ToolDescriptor] {
        self.inner.tools()
    }

    fn admit_call(
        &self,
        call: RequestedCall,
    ) -> BoxFuture<'_, Result<AdmittedCall, Box<CallReport>>> {
        Box::pin(async move {
            let (context, tool) = (&call.context, &call.tool);
            let record = self.start_record(AuditKind::Decision, context, tool, &call.arguments);
            self.record_decision(record, self.inner.admit_call(call)).await
        })
    }

    fn run_call(&self, call: AdmittedCall) -> BoxFuture<'_, CallReport> {
        let call_guard = self.begin_call_record(&call);
        Box::pin(async move {
            let report = match self.wait_until_recorded(call.tool()).await {
                Ok(()) => self.inner.run_call(call).await,
                Err(unrecorded) => unrecorded,
            };
            call_guard.finish_record(&report);
            report
        })
    }
}

/// A running call. Its record is written however the call ends.
pub(crate) struct CallRecordGuard {
    log: Arc<AuditLog>,
    record: Option<AuditRecord>,
    /// The effects of the call, for when it is dropped before its end.
    abandoned_effects: AbandonedEffects,
    /// The start, for the duration of a call that is dropped.
    started: Instant,
    /// A dropped run without effects is not recorded.
    may_be_silent: bool,
}

impl CallRecordGuard {
    /// The same, but a dropped run is recorded only if it had effects.
    pub(crate) fn only_with_effects(mut self) -> Self {
        self.may_be_silent = true;
        self
    }

    /// Discards the record.
    pub(crate) fn discard_record(mut self) {
        self.record = None;
    }

    pub(crate) fn finish_record(mut self, report: &CallReport) {
        if let Some(record) = self.record.take() {
            self.write_record(AuditRecord { at_ms: now_ms(), ..record.with_report(report) });
        }
    }

    /// The call has already run, so a failure to write its end is reported by the next call.
    fn write_record(&self, record: AuditRecord) {
        self.log.append_completed(record);
    }
}

impl Drop for CallRecordGuard {
    fn drop(&mut self) {
        let Some(record) = self.record.take() else { return };
        let effects = self.abandoned_effects.take_effects();
        if !(self.may_be_silent && effects.is_empty()) {
            let elapsed = self.started.elapsed();
            let report = CallReport { effects, elapsed, ..CallReport::from(Outcome::Cancelled) };
            self.write_record(AuditRecord { at_ms: now_ms(), ..record.with_report(&report) });
        }
    }
}

/// The report of a call that is not recorded. The model reads that it was not made; the user also
/// reads why.
fn unrecorded_call_report(error: &AuditError) -> CallReport {
    let message = "the call was not made, because the audit cannot be written";
    let failure = CallFailure::new(FailureKind::Unavailable, message);
    Outcome::Failed(failure.with_detail(error.to_string())).into()
}

/// Milliseconds since 1970; 0 if the clock is before that.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
