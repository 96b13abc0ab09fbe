//! Observation of calls during a command: shown to the user, or kept for learning.

use std::sync::{Arc, Mutex, PoisonError};

use sallyport_contract::{
    AdmittedCall, CallReport, Consent, Denial, Effect, Outcome, PluginName, RequestedCall, ToolId,
};
use sallyport_runtime::{
    HostNotice, HostOptions, NoticeSink, RunObserver,
    gate::{Activity, MessageSink},
    registry::PluginSelection,
};
use tokio::sync::mpsc::UnboundedSender;

use super::{
    call_trace::CallTracer, consent, notices::NoticePrinter, output::CliOutput, telemetry,
};

/// Most refusals kept per run. A plugin can repeat requests forever.
const REFUSALS_MAX: usize = 1000;

/// Settings for the observation of a command's calls.
#[derive(Debug, Clone, Default)]
pub(super) struct CallObservers {
    /// Whether each call is shown.
    pub(super) verbose: bool,
    /// Collects refusals, for `policy learn`.
    pub(super) refusal_log: Option<Arc<RefusalLog>>,
    /// Receives messages other than the answer. `None` sends them to standard error.
    pub(super) side_messages: Option<UnboundedSender<SideMessage>>,
}

/// A message that is not part of the answer.
#[derive(Debug)]
pub(super) enum SideMessage {
    /// A warning.
    Warning(String),
    /// A line about a call, in verbose mode.
    Trace(String),
    /// Information for the user that is not a warning.
    Info(String),
    /// A running call sends a request to a host.
    HostContacted {
        /// The call.
        call_id: String,
        /// The host.
        host: String,
    },
}

impl CallObservers {
    /// Returns the options to open a host with.
    pub(super) fn host_options(
        &self,
        consent: Arc<dyn Consent>,
        selection: PluginSelection,
        out: &CliOutput,
    ) -> HostOptions {
        let prompt_output = *out;
        HostOptions {
            consent,
            activity: self.activity_reporter(),
            observer: self.run_observer(out),
            accepts_change: Box::new(move |plugin, differences| {
                consent::confirm_plugin_change(plugin, differences, &prompt_output)
            }),
            is_watched: out.stderr_is_terminal,
            ..HostOptions::unattended(selection, self.notice_sink(out))
        }
    }

    /// Returns the sink for notices of the host.
    pub(super) fn notice_sink(&self, out: &CliOutput) -> NoticeSink {
        let (printer, side_messages) = (NoticePrinter::new(out), self.side_messages.clone());
        Arc::new(move |notice| {
            telemetry::log_notice(&notice);
            match (&side_messages, notice) {
                (Some(side_messages), HostNotice::Warning(words)) => {
                    drop(side_messages.send(SideMessage::Warning(words)))
                }
                (Some(side_messages), HostNotice::Info(words)) => {
                    drop(side_messages.send(SideMessage::Info(words)))
                }
                (_, notice) => printer.show_notice(&notice),
            }
        })
    }

    /// Returns the observer of calls, if one is needed.
    fn run_observer(&self, out: &CliOutput) -> Option<Arc<dyn RunObserver>> {
        let tracer = self.verbose.then(|| CallTracer { print_line: self.trace_printer(out) });
        let run_observer = CliRunObserver { tracer, refusal_log: self.refusal_log.clone() };
        let is_needed = run_observer.tracer.is_some() || run_observer.refusal_log.is_some();
        is_needed.then(|| Arc::new(run_observer) as Arc<dyn RunObserver>)
    }

    /// Returns the function that prints lines about calls.
    fn trace_printer(&self, out: &CliOutput) -> MessageSink {
        let (side_messages, out) = (self.side_messages.clone(), *out);
        Arc::new(move |line| match &side_messages {
            Some(side_messages) => drop(side_messages.send(SideMessage::Trace(line.to_owned()))),
            None => out.print_note(line),
        })
    }

    /// Returns the function that reports the hosts contacted by running calls.
    fn activity_reporter(&self) -> Activity {
        match self.side_messages.clone() {
            Some(side_messages) => Arc::new(move |call, host| {
                let (call_id, host) = (call.call_id.clone(), host.to_owned());
                drop(side_messages.send(SideMessage::HostContacted { call_id, host }));
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
pub(super) struct RefusalLog(Mutex<Vec<(PluginName, Denial)>>);

impl RefusalLog {
    /// Returns the refusals of one plugin.
    pub(super) fn refusals_of(&self, plugin: &PluginName) -> Vec<Denial> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_plugin = entries.iter().filter(|(owner, _)| owner == plugin);
        of_plugin.map(|(_, denial)| denial.clone()).collect()
    }

    fn note_decision(&self, plugin: &PluginName, report: &CallReport) {
        if let Outcome::Denied(denial) = &report.outcome {
            self.add_refusal(plugin, denial);
        }
    }

    fn note_run(&self, plugin: &PluginName, report: &CallReport) {
        let mut refused = report.effects.iter().filter_map(|effect| match effect {
            Effect::Refused(denial) => Some(denial),
            _ => None,
        });
        match (refused.next(), &report.outcome) {
            (Some(first), _) => {
                std::iter::once(first).chain(refused).for_each(|one| self.add_refusal(plugin, one));
            }
            // A fix always comes from the host, even if the plugin denied the call.
            (None, Outcome::Denied(denial)) if denial.fix.is_some() => {
                self.add_refusal(plugin, denial)
            }
            (None, _) => {}
        }
    }

    fn add_refusal(&self, plugin: &PluginName, denial: &Denial) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() < REFUSALS_MAX {
            entries.push((plugin.clone(), denial.clone()));
        }
    }
}

/// Shows calls and collects refusals.
struct CliRunObserver {
    tracer: Option<CallTracer>,
    refusal_log: Option<Arc<RefusalLog>>,
}

impl RunObserver for CliRunObserver {
    fn on_decision(&self, run: &RequestedCall, result: Result<&AdmittedCall, &CallReport>) {
        if let Some(tracer) = &self.tracer {
            tracer.trace_decision(&run.tool.to_string(), &run.arguments, result);
        }
        if let (Some(refusal_log), Err(report)) = (&self.refusal_log, result) {
            refusal_log.note_decision(&run.tool.plugin, report);
        }
    }

    fn on_run_ended(&self, tool: &ToolId, report: &CallReport) {
        if let Some(tracer) = &self.tracer {
            tracer.trace_call_end(&tool.to_string(), report);
        }
        if let Some(refusal_log) = &self.refusal_log {
            refusal_log.note_run(&tool.plugin, report);
        }
    }
}
