//! Scripts as tools: native programs that read JSON and print JSON.
//!
//! `ScriptPlugin` turns a folder with a `definition.json` into one tool. The grant of its plugin
//! becomes the limits of a run, and the result becomes an outcome that a model can read. The crate
//! `process` confines the program.

mod outcome;
mod script_plugin;
pub(crate) mod spec;

use std::{path::Path, sync::Arc};

use sallyport_contract::{
    AdmittedCall, BoxFuture, CallFailure, CallReport, Denial, Effect, FailureKind, Outcome,
};
use sallyport_policy::{Capability, Grant};
use sallyport_process::{ProcessResult, RunError, Script, StageExecutable};
use sallyport_sandbox::{CallSlots, HostCallAuthorizer};

use crate::{
    executor::{PluginExecutor, PluginKind},
    gate::authorizer::PluginAuthorizer,
};
use outcome::FinishedScriptRun;
pub(crate) use script_plugin::{DEFINITION_FILE, ScriptPlugin};

/// Runs a call of a native program as soon as its plugin has a place for it. Without a place, the
/// call fails and `run` is dropped.
pub(crate) async fn run_in_call_slot(
    slots: &CallSlots,
    grant: &Grant,
    run: impl Future<Output = CallReport>,
) -> CallReport {
    match slots.acquire_slot(grant.limits()).await {
        Ok(_slot) => run.await,
        Err(slot_error) => {
            let message = format!("{} {slot_error}", grant.plugin());
            Outcome::Failed(CallFailure::new(FailureKind::LimitReached, message)).into()
        }
    }
}

/// The action of a native program, in the message of a refusal.
pub(crate) const RUN_ACTION: &str = "run as a program of this machine";

/// A script that runs as a native program.
pub(crate) struct NativeScript {
    script: Script,
    stage: StageExecutable,
    call_slots: CallSlots,
}

impl NativeScript {
    /// Wraps a script with a native program. This same executable, started again, runs between the
    /// host and the script.
    pub(crate) fn new(script: Script) -> Self {
        Self { script, stage: StageExecutable::this_program(), call_slots: CallSlots::new() }
    }

    async fn run_in_slot(&self, authorizer: &PluginAuthorizer, call: &AdmittedCall) -> CallReport {
        // Read the grant again, because it may have been revoked while the call waited for a place.
        let grant = authorizer.checked_call_grant(call).await;
        let Some(process) = grant.process() else {
            return denied_report(native_run_denial(&grant));
        };
        let spec = spec::build_spec(&self.script, &grant, process, authorizer);
        let mut run_guard = ProgramRunGuard { program: &spec.program, call, has_ended: false };
        let result =
            sallyport_process::run_program(&self.stage, &spec, call.arguments_text().as_bytes())
                .await;
        run_guard.has_ended = true;
        match result {
            Ok(process_result) => {
                // Redact before the text is cut, because a cut inside a secret would hide it from
                // the redactor.
                let stderr = authorizer.redactor().redact_text(&process_result.stderr).into_owned();
                let process_result = ProcessResult { stderr, ..process_result };
                FinishedScriptRun {
                    script: &self.script,
                    spec: &spec,
                    process_result,
                    grant: &grant,
                }
                .call_report()
            }
            Err(RunError::NoWall { .. }) => denied_report(grant.deny_unsandboxed(RUN_ACTION)),
            Err(error) => outcome::not_run_outcome(grant.plugin(), &error).into(),
        }
    }
}

impl PluginExecutor for NativeScript {
    fn kind(&self) -> PluginKind {
        PluginKind::Script
    }

    fn file(&self) -> Option<&Path> {
        Some(&self.script.program.path)
    }

    fn unconditional_denial(&self, grant: &Grant) -> Option<Denial> {
        (!grant.has_capability(Capability::Process)).then(|| native_run_denial(grant))
    }

    fn run_call<'a>(
        &'a self,
        authorizer: &'a Arc<PluginAuthorizer>,
        call: Arc<AdmittedCall>,
    ) -> BoxFuture<'a, CallReport> {
        Box::pin(async move {
            let run = self.run_in_slot(authorizer, &call);
            run_in_call_slot(&self.call_slots, &authorizer.current_grant(), run).await
        })
    }
}

/// A running program. If the call is cancelled, dropping this records that the program ran.
struct ProgramRunGuard<'a> {
    program: &'a Path,
    call: &'a AdmittedCall,
    has_ended: bool,
}

impl Drop for ProgramRunGuard<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            let what = format!("{}: ended, since the call was", self.program.display());
            let capability = Capability::Process.as_str().to_owned();
            self.call.abandoned_effects().add_effects(vec![Effect::Used { capability, what }]);
        }
    }
}

/// Returns the refusal of a script that may not run as a native program.
pub(crate) fn native_run_denial(grant: &Grant) -> Denial {
    grant.deny_capability(Capability::Process, RUN_ACTION)
}

pub(crate) fn denied_report(denial: Denial) -> CallReport {
    let effects = vec![Effect::Refused(denial.clone())];
    CallReport { effects, ..CallReport::from(Outcome::Denied(denial)) }
}
