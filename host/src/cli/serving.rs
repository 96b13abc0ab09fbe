//! What programs that serve others have in common: their plugins are loaded anew when they change and
//! when they have been compiled, and the same signals end them.

use std::time::Duration;

use sallyport_mcp::PluginWatch;
use sallyport_runtime::{
    Host,
    config::{ConfigFlags, HostSettings},
    registry::PluginAvailability,
};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{exit::CommandFailure, output::CliOutput, setup};

/// First wait for plugins that are still being compiled. It doubles while none gets ready.
const COMPILED_WAIT_MIN: Duration = Duration::from_secs(5);

/// Longest wait for plugins that are still being compiled.
const COMPILED_WAIT_MAX: Duration = Duration::from_secs(60);

/// Loads the plugins anew on SIGHUP, when their files change, and when they have been compiled.
/// It never ends. `tool_count` counts the tools that clients get.
pub(super) async fn keep_served_plugins(
    host: &Host,
    flags: &ConfigFlags,
    mut causes: ReloadCauses,
    tool_count: impl Fn() -> usize,
    out: &CliOutput,
) {
    let mut compiled_wait = COMPILED_WAIT_MIN;
    loop {
        let has_changed = tokio::select! {
            () = causes.wait_for_change() => true,
            () = tokio::time::sleep(compiled_wait), if is_compiling(host) => false,
        };
        compiled_wait =
            match reload(host, flags, has_changed, &tool_count, out).await || has_changed {
                true => COMPILED_WAIT_MIN,
                false => (compiled_wait * 2).min(COMPILED_WAIT_MAX),
            };
    }
}

/// Loads the plugins anew, and returns whether any is different then. If nothing is known to have
/// changed, problems that were printed before are not printed again, because clients keep the log.
async fn reload(
    host: &Host,
    flags: &ConfigFlags,
    has_changed: bool,
    tool_count: &impl Fn() -> usize,
    out: &CliOutput,
) -> bool {
    let reloaded = match setup::read_settings(flags) {
        Ok(settings) => host.reload(&settings).await.map_err(CommandFailure::from),
        Err(failure) => Err(failure),
    };
    match reloaded {
        Ok(changes) => {
            let is_different = !changes.is_empty();
            if is_different || has_changed {
                // A plugin that is rejected is new to nobody but the operator.
                setup::print_load_problems(&host.registry(), out);
            }
            if is_different {
                out.print_note(&format!("Plugins reloaded: {} tools.", tool_count()));
            }
            is_different
        }
        Err(failure) => {
            out.print_warning(&format!("the plugins stay as they were: {failure}"));
            false
        }
    }
}

fn is_compiling(host: &Host) -> bool {
    let registry = host.registry();
    registry.entries().any(|entry| *entry.availability() == PluginAvailability::Compiling)
}

/// What makes the server load its plugins anew: changed files, and SIGHUP.
pub(super) struct ReloadCauses {
    watch: PluginWatch,
    hangup: Signal,
}

impl ReloadCauses {
    /// Notes both from now on.
    pub(super) fn new(settings: &HostSettings) -> Result<Self, CommandFailure> {
        let watch = PluginWatch::new(settings.plugin_dirs.clone(), settings.paths.lock_file());
        Ok(Self { watch, hangup: signal(SignalKind::hangup())? })
    }

    async fn wait_for_change(&mut self) {
        tokio::select! {
            () = self.watch.wait_for_change() => return,
            _ = self.hangup.recv() => {}
        }
        self.watch.note_reload();
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
