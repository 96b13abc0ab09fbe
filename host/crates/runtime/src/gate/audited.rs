//! The registry with a memory: one record for each decision and each call.
//!
//! A call that could change or leak anything begins only when the record of its decision is on the
//! disk; the record of one that can do neither is written behind. A call that cannot be written down
//! is not made: while the audit cannot be written, every call is refused with the reason, after
//! another attempt to write. A call that is cancelled, also while it is asked about, or whose process
//! is asked to stop, leaves its record too, with what it had done by then.

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use sallyport_contract::{
    Admitted, BoxFuture, CallContext, CallReport, Decision, Failure, FailureKind, Outcome,
    ToolCall, ToolId, ToolSpec, Toolbox, Trail,
};
use sallyport_store::{AuditError, AuditKind, AuditLog, AuditRecord, audit::Who};

use crate::registry::{Entry, Registry};

/// Longest wait for the disk before a call is refused. Longer than the wait for another process that
/// holds the database.
const DURABLE_TIME_MAX: Duration = Duration::from_secs(15);

/// What is said of a question that was withdrawn before there was an answer.
const UNANSWERED: &str = "cancelled while waiting for an approval";

/// A registry whose every decision and call is written down.
pub struct Audited {
    inner: Arc<Registry>,
    log: Arc<AuditLog>,
    who: Who,
}

impl Audited {
    /// Writes what goes through a registry into a log, in the name of a person.
    pub fn new(inner: Arc<Registry>, log: Arc<AuditLog>, who: Who) -> Self {
        Self { inner, log, who }
    }

    /// Begins the record of a call, or of the decision about it.
    fn record(
        &self,
        kind: AuditKind,
        context: &CallContext,
        tool: &ToolId,
        arguments: &str,
    ) -> AuditRecord {
        let plugin = self.inner.plugin(tool.plugin.as_str()).ok();
        let record = AuditRecord::new(kind, now_ms(), self.who.clone());
        AuditRecord {
            digest: plugin.map(|entry| entry.digest().to_owned()),
            ..record.with_call(context, tool, arguments)
        }
    }

    /// The words of a decision, without any known secret.
    fn grounds(&self, call: &Admitted) -> Option<String> {
        Some(self.inner.gate().redactor().text(call.grounds()).into_owned())
    }

    /// Begins the record of a call that is going to run.
    pub(crate) fn begun(&self, call: &Admitted) -> Unfinished {
        let record = self.record(AuditKind::Call, call.context(), call.tool(), call.text());
        let record = AuditRecord { grounds: self.grounds(call), ..record };
        let (log, trail) = (Arc::clone(&self.log), call.trail().clone());
        let started = Instant::now();
        Unfinished { log, record: Some(record), trail, started, may_be_silent: false }
    }

    /// The registry whose calls are written down.
    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.inner
    }

    /// Decides about a run in a role, and writes the decision down. It may begin at once.
    pub(crate) async fn admit_role(&self, run: ToolCall) -> Result<Admitted, Box<CallReport>> {
        let record = self.record(AuditKind::Decision, &run.context, &run.tool, &run.arguments);
        let admitted = self.decided(record, self.inner.admit_role(run)).await?;
        self.settled(admitted.tool()).await.map_err(Box::new)?;
        Ok(admitted)
    }

    /// Whether calls are refused because the audit cannot be written: then no decision of earlier
    /// holds for another run.
    pub(crate) fn is_failing(&self) -> bool {
        self.log.failure().is_some()
    }

    /// Waits for a decision and writes it down. What cannot be written down is not done.
    async fn decided(
        &self,
        record: AuditRecord,
        decision: impl Future<Output = Result<Admitted, Box<CallReport>>>,
    ) -> Result<Admitted, Box<CallReport>> {
        let mut undecided = Undecided { log: &self.log, record: Some(record) };
        let mut result = decision.await;
        let Some(record) = undecided.record.take() else { return result };
        let record = match &mut result {
            Ok(admitted) => AuditRecord {
                decision: Some(Decision::Allow),
                grounds: self.grounds(admitted),
                ..record
            },
            Err(report) => {
                self.inner.gate().redactor().report(report);
                let denied = matches!(report.outcome, Outcome::Denied(_));
                let decision = denied.then_some(Decision::Deny);
                AuditRecord { decision, ..record.with_report(report) }
            }
        };
        match self.write(record).await {
            Ok(()) => result,
            Err(error) => Err(Box::new(unwritable(&error))),
        }
    }

    /// After a failure it is tried again, and waited for.
    async fn write(&self, record: AuditRecord) -> Result<(), AuditError> {
        if self.is_failing() {
            in_time(self.log.commit(record)).await
        } else {
            self.log.append(record)
        }
    }

    /// Waits until the decision about a call is on the disk, if the call could change or leak anything.
    ///
    /// # Errors
    ///
    /// The report of a call that is not made.
    async fn settled(&self, tool: &ToolId) -> Result<(), CallReport> {
        let plugin = self.inner.plugin(tool.plugin.as_str());
        // One that is gone does nothing.
        if !plugin.is_ok_and(Entry::may_act) {
            return Ok(());
        }
        in_time(self.log.settled()).await.map_err(|error| unwritable(&error))
    }
}

async fn in_time(written: impl Future<Output = Result<(), AuditError>>) -> Result<(), AuditError> {
    let written = tokio::time::timeout(DURABLE_TIME_MAX, written).await;
    written.unwrap_or(Err(AuditError::TimedOut { records: 1, waited: DURABLE_TIME_MAX }))
}

/// A call that is being decided about. Given up meanwhile, it leaves a record that says so: nobody
/// waits for a decision but those who wait for a person.
struct Undecided<'a> {
    log: &'a AuditLog,
    record: Option<AuditRecord>,
}

impl Drop for Undecided<'_> {
    fn drop(&mut self) {
        let Some(record) = self.record.take() else { return };
        self.log.append_done(AuditRecord {
            decision: Some(Decision::Ask),
            message: Some(UNANSWERED.to_owned()),
            ..record.with_report(&CallReport::from(Outcome::Cancelled))
        });
    }
}

impl Toolbox for Audited {
    fn tools(&self) -> &[ToolSpec] {
        self.inner.tools()
    }

    fn admit(&self, call: ToolCall) -> BoxFuture<'_, Result<Admitted, Box<CallReport>>> {
        Box::pin(async move {
            let (context, tool) = (&call.context, &call.tool);
            let record = self.record(AuditKind::Decision, context, tool, &call.arguments);
            self.decided(record, self.inner.admit(call)).await
        })
    }

    fn run(&self, call: Admitted) -> BoxFuture<'_, CallReport> {
        let unfinished = self.begun(&call);
        Box::pin(async move {
            let report = match self.settled(call.tool()).await {
                Ok(()) => self.inner.run(call).await,
                Err(unrecorded) => unrecorded,
            };
            unfinished.finish(&report);
            report
        })
    }
}

/// A call that runs. However it ends, its record is written.
pub(crate) struct Unfinished {
    log: Arc<AuditLog>,
    record: Option<AuditRecord>,
    /// What the call did, should nobody wait for its end.
    trail: Trail,
    /// For the time of one that nobody waits for.
    started: Instant,
    /// Nothing is written when nothing came of it.
    may_be_silent: bool,
}

impl Unfinished {
    /// The same, but given up, it is written only when it did something.
    pub(crate) fn unless_silent(mut self) -> Self {
        self.may_be_silent = true;
        self
    }

    /// Writes nothing after all.
    pub(crate) fn leave_out(mut self) {
        self.record = None;
    }

    pub(crate) fn finish(mut self, report: &CallReport) {
        if let Some(record) = self.record.take() {
            self.write(AuditRecord { at_ms: now_ms(), ..record.with_report(report) });
        }
    }

    /// The call was made already; that its end cannot be written is noticed by the next one.
    fn write(&self, record: AuditRecord) {
        self.log.append_done(record);
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let Some(record) = self.record.take() else { return };
        let effects = self.trail.take();
        if !(self.may_be_silent && effects.is_empty()) {
            let elapsed = self.started.elapsed();
            let report = CallReport { effects, elapsed, ..CallReport::from(Outcome::Cancelled) };
            self.write(AuditRecord { at_ms: now_ms(), ..record.with_report(&report) });
        }
    }
}

/// The model learns that no call can be made; the person also why.
fn unwritable(error: &AuditError) -> CallReport {
    let message = "the call was not made, because the audit cannot be written";
    let failure = Failure::new(FailureKind::Unavailable, message);
    Outcome::Failed(failure.with_detail(error.to_string())).into()
}

/// Milliseconds since 1970; a clock before that counts as 1970.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
