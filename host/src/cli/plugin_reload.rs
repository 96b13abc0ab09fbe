//! Loads plugins anew while a program runs: when their files change, and when they have been compiled.
//!
//! Programs that start before all plugins are compiled would otherwise lack the others for as long as
//! they run. A changed plugin is used only if it is accepted, as one that `sallyport plugin dev` has
//! built is. No question is asked here, because it would come in the middle of what a user types, or
//! on the standard input of a client.

use std::{collections::BTreeSet, convert::Infallible, time::Duration};

use sallyport_contract::{PluginName, text};
use sallyport_mcp::PluginWatch;
use sallyport_runtime::{
    Host,
    config::{ConfigFlags, HostSettings},
    registry::{PluginAvailability, PluginChanges},
};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{exit::CommandFailure, output::CliOutput, setup};

/// How often the files are looked at beside a person, who may be the author of a plugin and wait for
/// it. Looking costs little.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// First wait for plugins that are still being compiled. It doubles while none gets ready.
const COMPILED_WAIT_MIN: Duration = Duration::from_secs(1);

/// Longest wait for plugins that are still being compiled.
const COMPILED_WAIT_MAX: Duration = Duration::from_secs(60);

/// What makes a program load its plugins anew.
pub(super) struct PluginReloader {
    watch: PluginWatch,
    /// The signal that means to load them, for a program that serves.
    hangup: Option<Signal>,
    compiled_wait: Duration,
}

/// Plugins that were loaded anew.
pub(super) struct PluginReload {
    /// What differs from before, or why they stay as they were.
    pub(super) result: Result<PluginChanges, CommandFailure>,
    /// Whether something had changed, rather than only time passed for the compiler.
    pub(super) has_cause: bool,
    /// The plugins that were still being compiled before.
    were_compiling: BTreeSet<PluginName>,
}

impl PluginReloader {
    /// Notes changes from now on, for a program beside a person.
    pub(super) fn beside_person(settings: &HostSettings) -> Self {
        let watch = PluginWatch::new(settings.plugin_dirs.clone(), settings.paths.lock_file());
        let watch = watch.with_interval(LOOK_EVERY);
        Self { watch, hangup: None, compiled_wait: COMPILED_WAIT_MIN }
    }

    /// Notes changes and SIGHUP from now on, for a program that serves.
    pub(super) fn for_server(settings: &HostSettings) -> Result<Self, CommandFailure> {
        let watch = PluginWatch::new(settings.plugin_dirs.clone(), settings.paths.lock_file());
        let hangup = Some(signal(SignalKind::hangup())?);
        Ok(Self { watch, hangup, compiled_wait: COMPILED_WAIT_MIN })
    }

    /// Loads plugins anew for as long as it is polled, and reports each time.
    pub(super) async fn keep_plugins_current(
        mut self,
        host: &Host,
        flags: &ConfigFlags,
        report: impl Fn(&PluginReload),
    ) -> Infallible {
        loop {
            let were_compiling = compiling_plugins(host);
            let compiled_wait = self.compiled_wait;
            let has_cause = tokio::select! {
                () = self.wait_for_cause() => true,
                () = tokio::time::sleep(compiled_wait), if !were_compiling.is_empty() => false,
            };
            let result = self.reload(host, flags).await;
            let reload = PluginReload { result, has_cause, were_compiling };
            self.compiled_wait = match has_cause || reload.is_different() {
                true => COMPILED_WAIT_MIN,
                false => (self.compiled_wait * 2).min(COMPILED_WAIT_MAX),
            };
            report(&reload);
        }
    }

    /// A server's host says itself what it makes of a changed plugin; beside a person, nothing is
    /// asked.
    async fn reload(
        &self,
        host: &Host,
        flags: &ConfigFlags,
    ) -> Result<PluginChanges, CommandFailure> {
        let settings = setup::read_settings(flags)?;
        Ok(match self.hangup.is_some() {
            true => host.reload(&settings).await?,
            false => host.reload_silently(&settings).await?,
        })
    }

    async fn wait_for_cause(&mut self) {
        let Some(hangup) = &mut self.hangup else { return self.watch.wait_for_change().await };
        tokio::select! {
            () = self.watch.wait_for_change() => return,
            _ = hangup.recv() => {}
        }
        self.watch.note_reload();
    }
}

impl PluginReload {
    /// Whether any plugin is different now.
    pub(super) fn is_different(&self) -> bool {
        self.result.as_ref().is_ok_and(|changes| !changes.is_empty())
    }

    /// A sentence for each change. A reload that only waits for the compiler and fails says nothing,
    /// because it is repeated.
    pub(super) fn sentences(&self, host: &Host) -> Vec<String> {
        match &self.result {
            Ok(changes) => self.describe_changes(host, changes),
            Err(failure) if self.has_cause => {
                vec![format!("The plugins stay as they were: {failure}")]
            }
            Err(_) => Vec::new(),
        }
    }

    /// Prints the sentences.
    pub(super) fn print(&self, host: &Host, out: &CliOutput) {
        for sentence in self.sentences(host) {
            out.print_note(&text::escape_line(&sentence));
        }
    }

    fn describe_changes(&self, host: &Host, changes: &PluginChanges) -> Vec<String> {
        let registry = host.registry();
        let describe = |what: &str, name: &PluginName| {
            let entry = registry.find_plugin(name.as_str()).ok();
            let availability = entry.map(|entry| entry.availability().clone());
            match availability {
                Some(PluginAvailability::Changed { .. }) => {
                    format!("{name} has changed and is disabled: sallyport plugin accept {name}")
                }
                Some(PluginAvailability::Ready) if self.were_compiling.contains(name) => {
                    format!("{name} is ready.")
                }
                _ => format!("{name} {what}."),
            }
        };
        let added = changes.added.iter().map(|name| describe("is new", name));
        let changed = changes.changed.iter().map(|name| describe("is loaded anew", name));
        let removed = changes.removed.iter().map(|name| format!("{name} is gone."));
        added.chain(changed).chain(removed).collect()
    }
}

fn compiling_plugins(host: &Host) -> BTreeSet<PluginName> {
    let registry = host.registry();
    let compiling =
        registry.entries().filter(|entry| *entry.availability() == PluginAvailability::Compiling);
    compiling.map(|entry| entry.name().clone()).collect()
}
