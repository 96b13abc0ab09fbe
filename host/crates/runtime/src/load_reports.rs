//! What the host reports while and after it loads plugins.

use sallyport_contract::PluginName;
use sallyport_policy::source::nearest_match;
use sallyport_sandbox::CompileProgress;

use crate::{
    config::HostSettings,
    notice::{HostNotice, NoticeSink},
    registry::{PluginAvailability, PluginLookupError, Registry},
};

/// The notice of a compilation that is under way.
pub(crate) fn compiling_notice(progress: &CompileProgress<'_>) -> HostNotice {
    let CompileProgress { done, total, waiting } = progress;
    let stems = waiting.iter().filter_map(|path| path.file_stem());
    let waiting = stems.map(|stem| stem.to_string_lossy().into_owned()).collect();
    HostNotice::Compiling { done: *done, total: *total, waiting }
}

/// Reports the plugins that are not compiled yet.
pub(crate) fn report_still_compiling(registry: &Registry, notices: &NoticeSink) {
    let compiling =
        registry.entries().filter(|entry| *entry.availability() == PluginAvailability::Compiling);
    let names: Vec<PluginName> = compiling.map(|entry| entry.name().clone()).collect();
    if !names.is_empty() {
        notices(HostNotice::StillCompiling(names));
    }
}

/// Reports settings for plugins that do not exist, because a misspelt name would otherwise be
/// ignored silently. A rejected plugin has its own report.
pub(crate) fn report_unused_settings(
    settings: &HostSettings,
    registry: &Registry,
    notices: &NoticeSink,
) {
    for plugin in settings.plugin_settings.keys() {
        if matches!(registry.find_plugin(plugin.as_str()), Err(PluginLookupError::Unknown { .. })) {
            let names = registry.entries().map(|entry| entry.name().as_str());
            let suggestion = nearest_match(plugin.as_str(), names).map(str::to_owned);
            notices(HostNotice::UnusedSettings { plugin: plugin.clone(), suggestion });
        }
    }
}
