//! What is noted of calls while a command runs: shown to the person, or kept to be learned from.

use std::sync::{Arc, Mutex, PoisonError};

use sallyport_contract::{
    Admitted, BoxFuture, CallReport, Denial, Effect, Outcome, PluginName, ToolCall, ToolSpec,
    Toolbox,
};
use tokio::sync::mpsc::UnboundedSender;

use super::output::Output;
use crate::gate::{Activity, Tell};

/// Most refusals that are kept of one run; a plugin can ask forever.
const REFUSALS_MAX: usize = 1000;

/// What is noted of a command's calls.
#[derive(Debug, Clone, Default)]
pub(super) struct Watch {
    /// Whether each call is shown.
    pub(super) verbose: bool,
    /// Where refusals are kept, if anybody wants them.
    pub(super) notebook: Option<Arc<Notebook>>,
    /// Who shows what happens beside the answer, in place of standard error.
    pub(super) asides: Option<UnboundedSender<Aside>>,
}

/// Something that happens beside the answer.
#[derive(Debug)]
pub(super) enum Aside {
    /// Something is off but stops nothing.
    Warning(String),
    /// A line about a call, for whoever wants all of them.
    Traced(String),
    /// A running call turns to somebody outside.
    Turned {
        /// The call.
        call_id: String,
        /// The host.
        host: String,
    },
}

impl Watch {
    /// Who shows lines about calls.
    pub(super) fn tracer(&self, out: &Output) -> Tell {
        match self.asides.clone() {
            Some(asides) => Arc::new(move |line| drop(asides.send(Aside::Traced(line.to_owned())))),
            None => {
                let out = *out;
                Arc::new(move |line| out.note(line))
            }
        }
    }

    /// Who shows what is off.
    pub(super) fn warner(&self, out: &Output) -> Tell {
        match self.asides.clone() {
            Some(asides) => {
                Arc::new(move |what| drop(asides.send(Aside::Warning(what.to_owned()))))
            }
            None => {
                let out = *out;
                Arc::new(move |what| out.warn(what))
            }
        }
    }

    /// Who shows whom running calls turn to.
    pub(super) fn activity(&self) -> Activity {
        match self.asides.clone() {
            Some(asides) => Arc::new(move |call, host| {
                let (call_id, host) = (call.call_id.clone(), host.to_owned());
                drop(asides.send(Aside::Turned { call_id, host }));
            }),
            None => Arc::new(|_, _| {}),
        }
    }
}

/// What plugins were refused by the host. What they themselves call a refusal is not in it.
#[derive(Debug, Default)]
pub(super) struct Notebook(Mutex<Vec<(PluginName, Denial)>>);

impl Notebook {
    /// What one plugin was refused.
    pub(super) fn refused(&self, plugin: &PluginName) -> Vec<Denial> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_plugin = kept.iter().filter(|(who, _)| who == plugin);
        of_plugin.map(|(_, denial)| denial.clone()).collect()
    }

    fn note(&self, plugin: &PluginName, denial: &Denial) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < REFUSALS_MAX {
            kept.push((plugin.clone(), denial.clone()));
        }
    }
}

/// A toolbox whose refusals are kept.
pub(super) struct Noted<T> {
    pub(super) inner: T,
    pub(super) notebook: Arc<Notebook>,
}

impl<T: Toolbox> Toolbox for Noted<T> {
    fn tools(&self) -> &[ToolSpec] {
        self.inner.tools()
    }

    fn admit(&self, call: ToolCall) -> BoxFuture<'_, Result<Admitted, Box<CallReport>>> {
        Box::pin(async move {
            let plugin = call.tool.plugin.clone();
            let result = self.inner.admit(call).await;
            if let Err(report) = &result
                && let Outcome::Denied(denial) = &report.outcome
            {
                self.notebook.note(&plugin, denial);
            }
            result
        })
    }

    fn run(&self, call: Admitted) -> BoxFuture<'_, CallReport> {
        Box::pin(async move {
            let plugin = call.tool().plugin.clone();
            let report = self.inner.run(call).await;
            for effect in &report.effects {
                if let Effect::Refused(denial) = effect {
                    self.notebook.note(&plugin, denial);
                }
            }
            report
        })
    }
}
