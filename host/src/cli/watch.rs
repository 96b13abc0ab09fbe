//! Observation of calls during a command: shown to the user, or kept for learning.

use std::sync::{Arc, Mutex, PoisonError};

use sallyport_contract::{
    AdmittedCall, CallReport, Consent, Denial, Effect, Outcome, PluginName, RequestedCall, ToolId,
};
use sallyport_runtime::{
    HostNotice, HostOptions, NoticeSink, RunObserver,
    gate::{Activity, Tell},
    registry::PluginSelection,
};
use tokio::sync::mpsc::UnboundedSender;

use super::{consent, notices::NoticePrinter, output::Output, trace::Tracer};

/// Most refusals kept per run. A plugin can repeat requests forever.
const REFUSALS_MAX: usize = 1000;

/// Settings for the observation of a command's calls.
#[derive(Debug, Clone, Default)]
pub(super) struct Watch {
    /// Whether each call is shown.
    pub(super) verbose: bool,
    /// Collects refusals, for `policy learn`.
    pub(super) notebook: Option<Arc<Notebook>>,
    /// Receives messages other than the answer. `None` sends them to standard error.
    pub(super) asides: Option<UnboundedSender<Aside>>,
}

/// A message that is not part of the answer.
#[derive(Debug)]
pub(super) enum Aside {
    /// A warning.
    Warning(String),
    /// A line about a call, in verbose mode.
    Traced(String),
    /// Information for the user that is not a warning.
    Told(String),
    /// A running call sends a request to a host.
    Turned {
        /// The call.
        call_id: String,
        /// The host.
        host: String,
    },
}

impl Watch {
    /// Returns the options to open a host with.
    pub(super) fn options(
        &self,
        consent: Arc<dyn Consent>,
        selection: PluginSelection,
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

    /// Returns the sink for notices of the host.
    pub(super) fn notices(&self, out: &Output) -> NoticeSink {
        let (printer, asides) = (NoticePrinter::new(out), self.asides.clone());
        Arc::new(move |notice| match (&asides, notice) {
            (Some(asides), HostNotice::Warning(words)) => drop(asides.send(Aside::Warning(words))),
            (Some(asides), HostNotice::Info(words)) => drop(asides.send(Aside::Told(words))),
            (_, notice) => printer.show(&notice),
        })
    }

    /// Returns the observer of calls, if one is needed.
    fn observer(&self, out: &Output) -> Option<Arc<dyn RunObserver>> {
        let tracer = self.verbose.then(|| Tracer { tell: self.traces(out) });
        let onlooker = Onlooker { tracer, notebook: self.notebook.clone() };
        let wants = onlooker.tracer.is_some() || onlooker.notebook.is_some();
        wants.then(|| Arc::new(onlooker) as Arc<dyn RunObserver>)
    }

    /// Returns the function that prints lines about calls.
    fn traces(&self, out: &Output) -> Tell {
        let (asides, out) = (self.asides.clone(), *out);
        Arc::new(move |line| match &asides {
            Some(asides) => drop(asides.send(Aside::Traced(line.to_owned()))),
            None => out.note(line),
        })
    }

    /// Returns the function that reports the hosts contacted by running calls.
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

/// Refusals by the host.
///
/// A denial that the plugin itself returned counts if the host has a fix for it: a path outside
/// every granted folder never reaches the host, so only the plugin can report it.
#[derive(Debug, Default)]
pub(super) struct Notebook(Mutex<Vec<(PluginName, Denial)>>);

impl Notebook {
    /// Returns the refusals of one plugin.
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
            // A fix always comes from the host, even if the plugin denied the call.
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

/// Shows calls and collects refusals.
struct Onlooker {
    tracer: Option<Tracer>,
    notebook: Option<Arc<Notebook>>,
}

impl RunObserver for Onlooker {
    fn on_decision(&self, run: &RequestedCall, result: &Result<AdmittedCall, Box<CallReport>>) {
        if let Some(tracer) = &self.tracer {
            tracer.decided(&run.tool.to_string(), &run.arguments, result);
        }
        if let (Some(notebook), Err(report)) = (&self.notebook, result) {
            notebook.note_decision(&run.tool.plugin, report);
        }
    }

    fn on_run_ended(&self, tool: &ToolId, report: &CallReport) {
        if let Some(tracer) = &self.tracer {
            tracer.finished(&tool.to_string(), report);
        }
        if let Some(notebook) = &self.notebook {
            notebook.note_run(&tool.plugin, report);
        }
    }
}
