//! What is noted of calls while a command runs: shown to the person, or kept to be learned from.

use std::sync::{Arc, Mutex, PoisonError};

use sallyport_contract::{
    Admitted, CallReport, Consent, Denial, Effect, Outcome, PluginName, ToolCall, ToolId,
};
use sallyport_runtime::{
    HostNotice, HostOptions, NoticeSink, RunObserver,
    gate::{Activity, Tell},
    registry::Selection,
};
use tokio::sync::mpsc::UnboundedSender;

use super::{consent, notices::NoticePrinter, output::Output, trace::Tracer};

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
    /// What a host is opened with.
    pub(super) fn options(
        &self,
        consent: Arc<dyn Consent>,
        selection: Selection,
        out: &Output,
    ) -> HostOptions {
        let asking = *out;
        HostOptions {
            consent,
            activity: self.activity(),
            observer: self.observer(out),
            accepts_change: Box::new(move |plugin, differences| {
                consent::agrees_to_change(plugin, differences, &asking)
            }),
            is_watched: out.stderr_is_terminal,
            ..HostOptions::unattended(selection, self.notices(out))
        }
    }

    /// Who shows what a host reports about itself.
    pub(super) fn notices(&self, out: &Output) -> NoticeSink {
        let (printer, asides) = (NoticePrinter::new(out), self.asides.clone());
        Arc::new(move |notice| match (&asides, notice) {
            (Some(asides), HostNotice::Warning(words)) => drop(asides.send(Aside::Warning(words))),
            (Some(asides), HostNotice::Info(words)) => drop(asides.send(Aside::Told(words))),
            (_, notice) => printer.show(&notice),
        })
    }

    /// Who sees every call, if anybody wants to.
    fn observer(&self, out: &Output) -> Option<Arc<dyn RunObserver>> {
        let tracer = self.verbose.then(|| Tracer { tell: self.traces(out) });
        let onlooker = Onlooker { tracer, notebook: self.notebook.clone() };
        let wants = onlooker.tracer.is_some() || onlooker.notebook.is_some();
        wants.then(|| Arc::new(onlooker) as Arc<dyn RunObserver>)
    }

    /// Who shows lines about calls.
    fn traces(&self, out: &Output) -> Tell {
        let (asides, out) = (self.asides.clone(), *out);
        Arc::new(move |line| match &asides {
            Some(asides) => drop(asides.send(Aside::Traced(line.to_owned()))),
            None => out.note(line),
        })
    }

    /// Who shows which servers running calls turn to.
    fn activity(&self) -> Activity {
        match self.asides.clone() {
            Some(asides) => Arc::new(move |call, host| {
                let (call_id, host) = (call.call_id.clone(), host.to_owned());
                drop(asides.send(Aside::Turned { call_id, host }));
            }),
            None => Arc::new(|_, _| {}),
        }
    }
}

/// What plugins were refused by the host. What they themselves call a refusal is in it where the host
/// knows what would lift it: a path that lies in no granted folder never reaches the host, so only the
/// plugin can say that it was refused.
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
        let mut refused = report.effects.iter().filter_map(|effect| match effect {
            Effect::Refused(denial) => Some(denial),
            _ => None,
        });
        match (refused.next(), &report.outcome) {
            (Some(first), _) => {
                std::iter::once(first).chain(refused).for_each(|one| self.note(plugin, one));
            }
            // The text that lifts a refusal is the host's, whoever said no.
            (None, Outcome::Denied(denial)) if denial.fix.is_some() => self.note(plugin, denial),
            (None, _) => {}
        }
    }

    fn note(&self, plugin: &PluginName, denial: &Denial) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < REFUSALS_MAX {
            kept.push((plugin.clone(), denial.clone()));
        }
    }
}

/// Shows calls and keeps refusals.
struct Onlooker {
    tracer: Option<Tracer>,
    notebook: Option<Arc<Notebook>>,
}

impl RunObserver for Onlooker {
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
