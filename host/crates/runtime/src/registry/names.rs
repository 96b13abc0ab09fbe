//! The names of plugins and tools, found without loading anything: for completions.

use std::sync::Arc;

use sallyport_contract::{PluginName, ToolDescriptor};
use sallyport_sandbox::{Sandbox, Simulation, SystemResolver};

use super::{
    create_sandbox,
    discover::{CandidateSource, PluginCandidate, discover_plugins},
};
use crate::{config::HostSettings, internal, mcp::McpServerPlugin, notice};

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
    let sandbox = settings.paths.cache.is_dir().then(|| create_idle_sandbox(settings, resolver));
    let (mut candidates, _) = discover_plugins(&settings.plugin_dirs, false, None, &settings.env);
    let servers = settings.mcp_servers.iter().filter_map(|(name, server)| {
        let server = McpServerPlugin::new(name, server, &settings.env, &settings.paths);
        server.and_then(PluginCandidate::from_mcp_server).ok()
    });
    candidates.extend(servers);
    let internal = internal::enabled_tools(settings.internal).into_iter();
    candidates.extend(internal.map(PluginCandidate::from_internal_tool));
    candidates
        .into_iter()
        .map(|candidate| installed_plugin(candidate, sandbox.as_deref()))
        .collect()
}

/// A sandbox that runs nothing.
fn create_idle_sandbox(settings: &HostSettings, resolver: Arc<SystemResolver>) -> Arc<Sandbox> {
    let simulation = Simulation::default();
    create_sandbox(settings, None, resolver, simulation, &notice::no_notices())
}

fn installed_plugin(candidate: PluginCandidate, sandbox: Option<&Sandbox>) -> InstalledPlugin {
    let PluginCandidate { manifest, source } = candidate;
    let tools = match source {
        CandidateSource::Component(path) => {
            sandbox.and_then(|sandbox| sandbox.cached_tools(&path, &manifest.name))
        }
        CandidateSource::Script(script_plugin) => Some(vec![script_plugin.tool]),
        CandidateSource::Definition(plugin) => Some(plugin.tools),
        CandidateSource::McpServer(server) => server.remembered_tools(),
        CandidateSource::Internal(tool) => Some(tool.tools()),
    };
    let tools = tools.unwrap_or_default();
    InstalledPlugin { name: manifest.name, description: manifest.description, tools }
}
