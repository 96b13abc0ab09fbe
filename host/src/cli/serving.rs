//! What programs that serve others have in common: their plugins are loaded anew when they change and
//! when they have been compiled, and the same signals end them.

use std::convert::Infallible;

use sallyport_runtime::{Host, config::ConfigFlags};
use tokio::signal::unix::SignalKind;

use super::{
    exit::ExitStatus,
    interrupt::SignalListener,
    output::{CliOutput, format_count},
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
                out.print_note(&format!("Plugins reloaded: {}.", format_count(tool_count, "tool")));
            }
        }
        Err(failure) => out.print_warning(&format!("the plugins stay as they were: {failure}")),
    }
}

/// The signals that end the program. SIGHUP is not among them: it means to load the plugins anew,
/// and a client that is gone has closed standard input.
pub(super) struct StopSignals {
    ctrl_c: SignalListener,
    terminate: SignalListener,
    exit: ExitStatus,
}

impl StopSignals {
    /// Handles the signals from now on.
    pub(super) fn new() -> Self {
        Self {
            ctrl_c: SignalListener::new(SignalKind::interrupt()),
            terminate: SignalListener::new(SignalKind::terminate()),
            exit: ExitStatus::Interrupted,
        }
    }

    pub(super) async fn wait_for_stop(&mut self) {
        self.exit = tokio::select! {
            () = self.ctrl_c.recv() => ExitStatus::Interrupted,
            () = self.terminate.recv() => ExitStatus::Done,
        };
    }

    /// The exit code of the program that the signal has stopped. Managers of services send SIGTERM,
    /// and take any code but 0 for a failure.
    pub(super) fn exit_status(&self) -> ExitStatus {
        self.exit
    }
}
