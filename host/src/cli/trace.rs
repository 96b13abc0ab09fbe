//! `-v`: shows each invocation with its decision, its time and its outcome, and what the plugin
//! logged. A wrapper of any toolbox, so that neither the session nor the registry knows of it.

use std::sync::Arc;

use sallyport_contract::{
    Admitted, BoxFuture, CallReport, Effect, ToolCall, ToolSpec, Toolbox, text,
};

use super::show;
use crate::gate::Tell;

/// Arguments of a call, as far as one line holds them.
const ARGUMENTS_CHARS_MAX: usize = 200;

/// Tells of invocations, a line for each thing that happened.
pub(super) struct Tracer {
    pub(super) tell: Tell,
}

/// A toolbox that tells what goes through it.
pub(super) struct Traced {
    pub(super) inner: Arc<dyn Toolbox>,
    pub(super) tracer: Tracer,
}

impl Tracer {
    /// Tells of a decision.
    pub(super) fn decided(
        &self,
        tool: &str,
        arguments: &str,
        result: &Result<Admitted, Box<CallReport>>,
    ) {
        let arguments = text::excerpt(arguments, ARGUMENTS_CHARS_MAX);
        match result {
            Ok(admitted) => {
                (self.tell)(&format!("→ {tool} {arguments} · {}", admitted.grounds()));
            }
            Err(report) => {
                (self.tell)(&format!("→ {tool} {arguments}"));
                self.finished(tool, report);
            }
        }
    }

    /// Tells of an end, and of what was done until then.
    pub(super) fn finished(&self, tool: &str, report: &CallReport) {
        for effect in &report.effects {
            (self.tell)(&format!("  {}", effect_line(effect)));
        }
        (self.tell)(&format!("← {tool} {}", show::ending(report)));
        for line in show::detail(&report.outcome).into_iter().flat_map(str::lines) {
            (self.tell)(&format!("  | {line}"));
        }
    }
}

impl Toolbox for Traced {
    fn tools(&self) -> &[ToolSpec] {
        self.inner.tools()
    }

    fn admit(&self, call: ToolCall) -> BoxFuture<'_, Result<Admitted, Box<CallReport>>> {
        Box::pin(async move {
            let (tool, arguments) = (call.tool.to_string(), call.arguments.clone());
            let result = self.inner.admit(call).await;
            self.tracer.decided(&tool, &arguments, &result);
            result
        })
    }

    fn run(&self, call: Admitted) -> BoxFuture<'_, CallReport> {
        Box::pin(async move {
            let tool = call.tool().to_string();
            let report = self.inner.run(call).await;
            self.tracer.finished(&tool, &report);
            report
        })
    }
}

fn effect_line(effect: &Effect) -> String {
    match effect {
        Effect::Logged { level, text } => {
            format!("{}: {}", format!("{level:?}").to_lowercase(), text::one_line(text))
        }
        Effect::Requested { what, status: Some(status), .. } => format!("{what} → {status}"),
        Effect::Requested { what, status: None, .. } => format!("{what} → no answer"),
        Effect::Changed { path } => format!("changed {}", text::one_line(path)),
        Effect::SecretUsed { name, to: Some(to) } => format!("sent the secret {name} to {to}"),
        Effect::SecretUsed { name, to: None } => format!("was handed the secret {name}"),
        Effect::Asked { what, answer } => format!("asked: {what}: {}", text::one_line(answer)),
        Effect::Used { capability, what } => format!("{capability}: {}", text::one_line(what)),
        Effect::Refused(denial) => format!("refused: {}: {}", denial.what, denial.why),
    }
}
