//! `-v`: shows each invocation with its decision, its time and its outcome, and what the plugin
//! logged. A wrapper of any toolbox, so that neither the session nor the registry knows of it.

use sallyport_contract::{
    Admitted, BoxFuture, CallReport, Effect, ToolCall, ToolSpec, Toolbox, text,
};

use super::show;
use crate::gate::Tell;

/// Arguments of a call, as far as one line holds them.
const ARGUMENTS_CHARS_MAX: usize = 200;

/// A toolbox that tells what goes through it.
pub(super) struct Traced<T> {
    inner: T,
    tell: Tell,
}

impl<T> Traced<T> {
    pub(super) fn new(inner: T, tell: Tell) -> Self {
        Self { inner, tell }
    }

    fn finished(&self, tool: &str, report: &CallReport) {
        for effect in &report.effects {
            (self.tell)(&format!("  {}", effect_line(effect)));
        }
        (self.tell)(&format!("← {tool} {}", show::ending(report)));
        for line in show::detail(&report.outcome).into_iter().flat_map(str::lines) {
            (self.tell)(&format!("  | {line}"));
        }
    }
}

impl<T: Toolbox> Toolbox for Traced<T> {
    fn tools(&self) -> &[ToolSpec] {
        self.inner.tools()
    }

    fn admit(&self, call: ToolCall) -> BoxFuture<'_, Result<Admitted, Box<CallReport>>> {
        Box::pin(async move {
            let tool = call.tool.to_string();
            let arguments = text::excerpt(&call.arguments, ARGUMENTS_CHARS_MAX);
            let result = self.inner.admit(call).await;
            match &result {
                Ok(admitted) => {
                    (self.tell)(&format!("→ {tool} {arguments} · {}", admitted.grounds()));
                }
                Err(report) => {
                    (self.tell)(&format!("→ {tool} {arguments}"));
                    self.finished(&tool, report);
                }
            }
            result
        })
    }

    fn run(&self, call: Admitted) -> BoxFuture<'_, CallReport> {
        Box::pin(async move {
            let tool = call.tool().to_string();
            let report = self.inner.run(call).await;
            self.finished(&tool, &report);
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
        Effect::Refused(denial) => format!("refused: {}: {}", denial.what, denial.why),
    }
}
