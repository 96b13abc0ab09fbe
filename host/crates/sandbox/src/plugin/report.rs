//! Converts what a run returned, and how it ended, to the report of a call.

use std::time::Duration;

use sallyport_contract::{CallFailure, CallReport, Denial, FailureKind, Outcome};
use sallyport_policy::PluginLimits;

use super::Plugin;
use crate::{
    abi::ToolReturnValue,
    clock::TimeLimit,
    effect_log::EffectLog,
    run::{RunResult, RunStopReason},
    run_context::RunGuard,
};

/// The result of a run on behalf of a call.
pub(crate) struct CompletedRun<R> {
    pub(crate) run_context: RunGuard,
    pub(crate) run: RunResult<R>,
    /// False if the call got no place, or a granted folder could not be opened.
    pub(crate) has_begun: bool,
    /// The elapsed time, including the wait for a place.
    pub(crate) elapsed: Duration,
}

impl Plugin {
    /// Creates the report of a run. Known secrets are removed: the model, the user and the log all
    /// read it.
    pub(crate) fn build_report<R>(
        &self,
        completed: CompletedRun<R>,
        outcome: impl FnOnce(R, &EffectLog) -> Outcome,
    ) -> CallReport {
        let (limits, effect_log) =
            (completed.run_context.initial_grant().limits(), &completed.run_context.effect_log);
        let outcome = match completed.run.result {
            Ok(value) => outcome(value, effect_log),
            Err(RunStopReason::Expired(TimeLimit::Wall)) => {
                Outcome::TimedOut { limit: completed.run_context.clock.wall_time_limit() }
            }
            Err(RunStopReason::Expired(TimeLimit::Cpu)) => {
                Outcome::Failed(cpu_limit_failure(limits))
            }
            Err(RunStopReason::Failed(failure)) => Outcome::Failed(failure),
        };
        let mut report = CallReport {
            outcome,
            effects: effect_log.close(),
            elapsed: completed.elapsed,
            memory_bytes_peak: completed.run.memory_bytes_peak,
        };
        self.authorizer.redactor().redact_report(&mut report);
        report
    }

    /// Creates the report of a run whose result is that of a tool.
    pub(crate) fn build_return_report(&self, run: CompletedRun<ToolReturnValue>) -> CallReport {
        self.build_report(run, |value, effect_log| self.outcome_from_return(value, effect_log))
    }

    /// Converts a plugin's result to an outcome, which also depends on refusals and limits.
    pub(crate) fn outcome_from_return(
        &self,
        value: ToolReturnValue,
        effect_log: &EffectLog,
    ) -> Outcome {
        match value {
            ToolReturnValue::Output(output) => Outcome::Completed(output),
            ToolReturnValue::Denied(text) => Outcome::Denied(self.build_denial(text, effect_log)),
            ToolReturnValue::Error(failure) => self.failure_outcome(failure, effect_log),
        }
    }

    /// A tool that fails after the gate refused it something is reported as denied.
    fn failure_outcome(&self, failure: CallFailure, effect_log: &EffectLog) -> Outcome {
        if let Some(denial) = effect_log.last_denial() {
            return Outcome::Denied(denial);
        }
        match (failure.kind, effect_log.reached_limit()) {
            (FailureKind::InvalidArguments, _) => Outcome::InvalidArguments(failure),
            (_, Some(limit)) => {
                let message = format!("{} (the limit of {limit} is reached)", failure.message);
                Outcome::Failed(CallFailure::new(FailureKind::LimitReached, message))
            }
            (_, None) => Outcome::Failed(failure),
        }
    }

    /// The gate's own denial if there is one, otherwise the plugin's.
    fn build_denial(&self, text: String, effect_log: &EffectLog) -> Denial {
        effect_log.last_denial().unwrap_or_else(|| {
            Denial::new(format!("{} lacks something that it needs", self.name), text)
        })
    }
}

pub(super) fn cpu_limit_failure(limits: &PluginLimits) -> CallFailure {
    let limit = limits.cpu.unwrap_or(limits.time);
    let message = format!(
        "the plugin was stopped: its limit of {limit:?} of processor time (limits.cpu) is reached"
    );
    CallFailure::new(FailureKind::LimitReached, message)
}
