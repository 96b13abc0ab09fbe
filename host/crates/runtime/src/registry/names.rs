//! The names of plugins and tools, found without loading anything: for completions.

use std::sync::Arc;

use sallyport_contract::{PluginName, ToolDescriptor};
use sallyport_sandbox::{Sandbox, SystemResolver};

use super::discover::{CandidateSource, PluginCandidate, discover_plugins};
use crate::{config::HostSettings, host, internal, notice};

/// A plugin and the tools of it that are known.
#[derive(Debug, Clone, PartialEq)]
pub struct InstalledPlugin {
    /// The plugin.
    pub name: PluginName,
    /// A description of it.
    pub description: String,
    /// Its tools; none if its component has not been asked yet.
    pub tools: Vec<ToolDescriptor>,
}

/// Finds the plugins in the plugin folders and the built-in ones, in a stable order. The tools of a
/// component are taken from the cache, so nothing is compiled and no component is read. A folder
/// that cannot be read, and what cannot be a plugin, is left out.
pub fn find_installed_plugins(settings: &HostSettings) -> Vec<InstalledPlugin> {
    let resolver = Arc::new(SystemResolver::default());
    // Without a cache there is nothing to read, and this does not create it.
    let sandbox = settings
        .paths
        .cache
        .is_dir()
        .then(|| host::create_sandbox(settings, None, resolver, &notice::no_notices()));
    let (mut candidates, _) = discover_plugins(&settings.plugin_dirs, false);
    let internal = internal::enabled_tools(settings.internal).into_iter();
    candidates.extend(internal.map(PluginCandidate::from_internal_tool));
    candidates
        .into_iter()
        .map(|candidate| installed_plugin(candidate, sandbox.as_deref()))
        .collect()
}

fn installed_plugin(candidate: PluginCandidate, sandbox: Option<&Sandbox>) -> InstalledPlugin {
    let PluginCandidate { manifest, source } = candidate;
    let tools = match source {
        CandidateSource::Component(path) => {
            sandbox.and_then(|sandbox| sandbox.cached_tools(&path, &manifest.name))
        }
        CandidateSource::Script(script_plugin) => Some(vec![script_plugin.tool]),
        CandidateSource::Internal(tool) => Some(tool.tools()),
    };
    let tools = tools.unwrap_or_default();
    InstalledPlugin { name: manifest.name, description: manifest.description, tools }
}
