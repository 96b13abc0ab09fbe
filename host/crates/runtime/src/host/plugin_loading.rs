//! How a host loads its plugins.

use std::{collections::BTreeMap, sync::Arc};

use sallyport_contract::PluginName;
use sallyport_sandbox::{CompileProgress, Sandbox};

use super::{CompileWait, HostError};
use crate::{
    config::{HostSettings, McpServerSettings},
    gate::Gate,
    load_reports::{compiling_notice, report_unused_settings},
    lock::LockFile,
    notice::{HostNotice, NoticeSink},
    registry::{LoadParts, PluginSelection, Registry},
};

/// How to load plugins.
pub(super) struct LoadOptions<'a> {
    pub(super) sandbox: Arc<Sandbox>,
    pub(super) selection: PluginSelection,
    pub(super) pins_new_plugins: bool,
    pub(super) accepts_change: &'a (dyn Fn(&PluginName, &[String]) -> bool + Send + Sync),
    /// The registry that is replaced, if any.
    pub(super) previous: Option<&'a Registry>,
    /// MCP servers that are not in the configuration.
    pub(super) added_servers: BTreeMap<PluginName, McpServerSettings>,
    /// How long to wait for compilation.
    pub(super) compile_wait: CompileWait,
}

/// Loads plugins, and reports what the user should know of them.
pub(super) async fn load_registry(
    settings: &HostSettings,
    gate: Arc<Gate>,
    load_options: LoadOptions<'_>,
    notices: &NoticeSink,
) -> Result<Arc<Registry>, HostError> {
    let LoadOptions { sandbox, selection, pins_new_plugins, accepts_change, .. } = load_options;
    let LoadOptions { previous, added_servers, compile_wait, .. } = load_options;
    let compile_wait = compile_wait.time_max(settings, &selection);
    let lock = &LockFile::read(&settings.paths.lock_file(), &settings.paths.state)?;
    if lock.is_lost() {
        notices(HostNotice::LockLost { path: lock.path().to_owned() });
    }
    let progress = &|progress: CompileProgress<'_>| notices(compiling_notice(&progress));
    let sees_all = matches!(selection, PluginSelection::All);
    let parts = LoadParts {
        sandbox,
        settings,
        gate,
        selection,
        lock,
        pins_new_plugins,
        previous,
        compile_wait,
        added_servers: &added_servers,
        progress,
        accepts_change: &|plugin, differences| accepts_change(plugin, differences),
    };
    let registry = Registry::load(parts).await;
    notices(HostNotice::CompilingEnded);
    let registry = Arc::new(registry?);
    if sees_all {
        report_unused_settings(settings, &registry, notices);
    }
    Ok(registry)
}
