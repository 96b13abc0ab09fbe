//! Loads plugins anew while a chat runs, when their files change.
//!
//! A changed plugin is used only if it is accepted, as one that `sallyport plugin dev` has built is.
//! No question is asked here, because it would come in the middle of what the user types.

use std::{convert::Infallible, time::Duration};

use sallyport_contract::PluginName;
use sallyport_mcp::PluginWatch;
use sallyport_runtime::{
    Host,
    config::{ConfigFlags, HostSettings},
    registry::{PluginAvailability, PluginChanges},
};

use super::{exit::CommandFailure, setup};

/// How often the files are looked at. An author waits for the new plugin, and looking costs little.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Loads plugins anew for as long as it is polled. `report` receives a sentence for each change.
pub(super) async fn keep_plugins_current(
    host: &Host,
    settings: &HostSettings,
    flags: &ConfigFlags,
    report: impl Fn(String),
) -> Infallible {
    let watch = PluginWatch::new(settings.plugin_dirs.clone(), settings.paths.lock_file());
    let mut watch = watch.with_interval(LOOK_EVERY);
    loop {
        watch.wait_for_change().await;
        match reload(host, flags).await {
            Ok(changes) => describe_changes(host, &changes).into_iter().for_each(&report),
            Err(failure) => report(format!("The plugins stay as they were: {failure}")),
        }
    }
}

async fn reload(host: &Host, flags: &ConfigFlags) -> Result<PluginChanges, CommandFailure> {
    Ok(host.reload_silently(&setup::read_settings(flags)?).await?)
}

fn describe_changes(host: &Host, changes: &PluginChanges) -> Vec<String> {
    let registry = host.registry();
    let describe = |what: &str, name: &PluginName| {
        let entry = registry.find_plugin(name.as_str()).ok();
        let is_unaccepted = entry.is_some_and(|entry| {
            matches!(entry.availability(), PluginAvailability::Changed { .. })
        });
        match is_unaccepted {
            true => format!("{name} has changed and is disabled: sallyport plugin accept {name}"),
            false => format!("{name} {what}."),
        }
    };
    let added = changes.added.iter().map(|name| describe("is new", name));
    let changed = changes.changed.iter().map(|name| describe("is loaded anew", name));
    let removed = changes.removed.iter().map(|name| format!("{name} is gone."));
    added.chain(changed).chain(removed).collect()
}
