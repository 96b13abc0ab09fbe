//! What is noted of calls while a command runs: shown to the person, or kept to be learned from.

use std::sync::{Arc, Mutex, PoisonError};

use sallyport_contract::{
    Admitted, BoxFuture, CallReport, Denial, Effect, Outcome, PluginName, ToolCall, ToolId,
    ToolSpec, Toolbox,
};
use tokio::sync::mpsc::UnboundedSender;

use super::{output::Output, trace::Tracer};
use crate::{
    gate::{Activity, Tell},
    roles::Witness,
};

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
    /// Something that a person is to do or to know, for which nobody is to blame.
    Told(String),
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
    pub(super) fn tracer(&self, out: &Output) -> Tracer {
        Tracer { tell: self.telling(Aside::Traced, Output::note, out) }
    }

    /// Who is told of runs in a role, if anybody wants to know.
    pub(super) fn witness(&self, out: &Output) -> Option<Arc<dyn Witness>> {
        let tracer = self.verbose.then(|| self.tracer(out));
        let onlooker = Onlooker { tracer, notebook: self.notebook.clone() };
        let wants = onlooker.tracer.is_some() || onlooker.notebook.is_some();
        wants.then(|| Arc::new(onlooker) as Arc<dyn Witness>)
    }

    /// Who shows what the person is to do or to know.
    pub(super) fn teller(&self, out: &Output) -> Tell {
        self.telling(Aside::Told, Output::note, out)
    }

    /// Who shows what is off.
    pub(super) fn warner(&self, out: &Output) -> Tell {
        self.telling(Aside::Warning, Output::warn, out)
    }

    /// Hands words to whoever shows asides; where nobody does, they are printed.
    fn telling(&self, aside: fn(String) -> Aside, print: fn(&Output, &str), out: &Output) -> Tell {
        match self.asides.clone() {
            Some(asides) => Arc::new(move |words| drop(asides.send(aside(words.to_owned())))),
            None => {
                let out = *out;
                Arc::new(move |words| print(&out, words))
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

    fn note_decision(&self, plugin: &PluginName, report: &CallReport) {
        if let Outcome::Denied(denial) = &report.outcome {
            self.note(plugin, denial);
        }
    }

    fn note_run(&self, plugin: &PluginName, report: &CallReport) {
        for effect in &report.effects {
            if let Effect::Refused(denial) = effect {
                self.note(plugin, denial);
            }
        }
    }

    fn note(&self, plugin: &PluginName, denial: &Denial) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < REFUSALS_MAX {
            kept.push((plugin.clone(), denial.clone()));
        }
    }
}

/// Sees runs in a role as the wrappers of a toolbox see calls.
struct Onlooker {
    tracer: Option<Tracer>,
    notebook: Option<Arc<Notebook>>,
}

impl Witness for Onlooker {
    fn decided(&self, run: &ToolCall, result: &Result<Admitted, Box<CallReport>>) {
        if let Some(tracer) = &self.tracer {
            tracer.decided(&run.tool.to_string(), &run.arguments, result);
        }
        if let (Some(notebook), Err(report)) = (&self.notebook, result) {
            notebook.note_decision(&run.tool.plugin, report);
        }
    }

    fn ended(&self, tool: &ToolId, report: &CallReport) {
        if let Some(tracer) = &self.tracer {
            tracer.finished(&tool.to_string(), report);
        }
        if let Some(notebook) = &self.notebook {
            notebook.note_run(&tool.plugin, report);
        }
    }
}

/// A toolbox whose refusals are kept.
pub(super) struct Noted {
    pub(super) inner: Arc<dyn Toolbox>,
    pub(super) notebook: Arc<Notebook>,
}

impl Toolbox for Noted {
    fn tools(&self) -> &[ToolSpec] {
        self.inner.tools()
    }

    fn admit(&self, call: ToolCall) -> BoxFuture<'_, Result<Admitted, Box<CallReport>>> {
        Box::pin(async move {
            let plugin = call.tool.plugin.clone();
            let result = self.inner.admit(call).await;
            if let Err(report) = &result {
                self.notebook.note_decision(&plugin, report);
            }
            result
        })
    }

    fn run(&self, call: Admitted) -> BoxFuture<'_, CallReport> {
        Box::pin(async move {
            let plugin = call.tool().plugin.clone();
            let report = self.inner.run(call).await;
            self.notebook.note_run(&plugin, &report);
            report
        })
    }
}
