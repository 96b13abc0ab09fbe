//! What programs that serve others have in common: their plugins are loaded anew when they change and
//! when they have been compiled, and the same signals end them.

use std::convert::Infallible;

use sallyport_runtime::{Host, config::ConfigFlags};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{
    exit::CommandFailure,
    output::CliOutput,
    plugin_reload::{PluginReload, PluginReloader},
    setup,
    start_pages::release_start_pages,
};

/// Loads the plugins anew on SIGHUP, when their files change, and when they have been compiled, for as
/// long as it is polled, and gives back the memory of the start. `tool_count` counts the tools that
/// clients get.
pub(super) async fn keep_served_plugins(
    reloader: PluginReloader,
    host: &Host,
    flags: &ConfigFlags,
    tool_count: impl Fn() -> usize,
    out: &CliOutput,
) -> Infallible {
    let report = |reload: &PluginReload| print_reload(reload, host, tool_count(), out);
    let reloading = reloader.keep_plugins_current(host, flags, report);
    let (never, ()) = tokio::join!(reloading, release_start_pages());
    never
}

/// Prints what a reload has changed. If nothing is known to have changed, problems that were printed
/// before are not printed again, because clients keep the log.
fn print_reload(reload: &PluginReload, host: &Host, tool_count: usize, out: &CliOutput) {
    match &reload.result {
        Ok(_) => {
            if reload.is_different() || reload.has_cause {
                // A plugin that is rejected is new to nobody but the operator.
                setup::print_load_problems(&host.registry(), out);
            }
            if reload.is_different() {
                out.print_note(&format!("Plugins reloaded: {tool_count} tools."));
            }
        }
        Err(failure) => out.print_warning(&format!("the plugins stay as they were: {failure}")),
    }
}

/// The signals that end the program. SIGHUP is not among them: it means to load the plugins anew,
/// and a client that is gone has closed standard input.
pub(super) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    /// Handles the signals from now on.
    pub(super) fn new() -> Result<Self, CommandFailure> {
        let [interrupt, terminate] = [SignalKind::interrupt(), SignalKind::terminate()].map(signal);
        Ok(Self { interrupt: interrupt?, terminate: terminate? })
    }

    pub(super) async fn wait_for_stop(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
