//! The registry with a memory: one record for each decision and each call.
//!
//! A call that cannot be written down is not made: when the audit has failed, every call is refused
//! with the reason until it can be written again. A call that is cancelled, or whose process is asked
//! to stop, leaves its record too, with what it had done by then.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use sallyport_contract::{
    Admitted, BoxFuture, CallContext, CallReport, Decision, Failure, FailureKind, Outcome,
    ToolCall, ToolId, ToolSpec, Toolbox, Trail,
};
use sallyport_store::{AuditKind, AuditLog, AuditRecord, audit::Who};

use crate::registry::Registry;

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
        Some(self.inner.gate().vault.redactor().text(call.grounds()).into_owned())
    }

    /// Begins the record of a call that is going to run.
    pub(crate) fn begun(&self, call: &Admitted) -> Unfinished {
        let record = self.record(AuditKind::Call, call.context(), call.tool(), call.text());
        let record = AuditRecord { grounds: self.grounds(call), ..record };
        let (log, trail) = (Arc::clone(&self.log), call.trail().clone());
        Unfinished { log, record: Some(record), trail, may_be_silent: false }
    }

    /// The registry whose calls are written down.
    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.inner
    }

    /// Decides about a run in a role, and writes the decision down.
    pub(crate) async fn admit_role(&self, run: ToolCall) -> Result<Admitted, Box<CallReport>> {
        let record = self.record(AuditKind::Decision, &run.context, &run.tool, &run.arguments);
        self.decided(record, self.inner.admit_role(run).await)
    }

    /// Writes down what was decided. What cannot be written down is not done.
    fn decided(
        &self,
        record: AuditRecord,
        mut result: Result<Admitted, Box<CallReport>>,
    ) -> Result<Admitted, Box<CallReport>> {
        let record = match &mut result {
            Ok(admitted) => AuditRecord {
                decision: Some(Decision::Allow),
                grounds: self.grounds(admitted),
                ..record
            },
            Err(report) => {
                self.inner.gate().vault.redactor().report(report);
                let denied = matches!(report.outcome, Outcome::Denied(_));
                let decision = denied.then_some(Decision::Deny);
                AuditRecord { decision, ..record.with_report(report) }
            }
        };
        match self.log.append(record) {
            Ok(()) => result,
            Err(error) => Err(Box::new(unwritable(&error.to_string()).into())),
        }
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
            self.decided(record, self.inner.admit(call).await)
        })
    }

    fn run(&self, call: Admitted) -> BoxFuture<'_, CallReport> {
        let unfinished = self.begun(&call);
        Box::pin(async move {
            let report = self.inner.run(call).await;
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

    /// The call was made already; that its end could not be written is noticed by the next one.
    fn write(&self, record: AuditRecord) {
        let _ = self.log.append(record);
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let Some(record) = self.record.take() else { return };
        let effects = self.trail.take();
        if !(self.may_be_silent && effects.is_empty()) {
            let report = CallReport { effects, ..CallReport::from(Outcome::Cancelled) };
            self.write(AuditRecord { at_ms: now_ms(), ..record.with_report(&report) });
        }
    }
}

/// The model learns that no call can be made; the person also why.
fn unwritable(why: &str) -> Outcome {
    let message = "no call is made, since the audit cannot be written";
    Outcome::Failed(Failure::new(FailureKind::Unavailable, message).with_detail(why))
}

/// Milliseconds since 1970; a clock before that counts as 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
