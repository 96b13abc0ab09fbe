//! Loads a definition with the component beside it.

use sallyport_policy::Manifest;

use super::{
    super::prepare::PreparedComponent, LoadParts, LoadedPlugin, given_settings,
    load_component_plugin,
};
use crate::{
    actions::{ActionExecutor, ActionPlugin},
    executor::LazyComponent,
};

/// Loads a definition. Its tools are its actions; those of the component only run them.
pub(super) fn load_definition(
    parts: &LoadParts<'_>,
    manifest: Manifest,
    plugin: &ActionPlugin,
    component: Option<PreparedComponent>,
) -> LoadedPlugin {
    let digest = plugin.digest(component.as_ref().map(|component| component.file.digest()));
    let beside = component.map(|component| {
        let settings = manifest.settings.with_defaults(&given_settings(parts, &manifest));
        let executor = LazyComponent::new(&parts.sandbox, &component.file, settings, None);
        (executor, load_component_plugin(parts, manifest.clone(), component))
    });
    let known = beside.as_ref().map(|(_, loaded)| loaded).filter(|loaded| !loaded.is_compiling);
    let idle = plugin.idle_actions(known.map(|loaded| &*loaded.tools));
    let disabled_reason = plugin.disabled_reason(&idle);
    let tools = plugin.tools_except(&idle);
    let (executor, remarks, is_compiling, setup_file, facts) = match beside {
        None => (ActionExecutor::new(plugin, &parts.sandbox, None), Vec::new(), false, None, None),
        Some((component, loaded)) => {
            let executor = ActionExecutor::new(plugin, &parts.sandbox, Some(component));
            (executor, loaded.remarks, loaded.is_compiling, loaded.setup_file, loaded.component)
        }
    };
    LoadedPlugin {
        manifest,
        executor: Box::new(executor),
        digest,
        tools,
        remarks,
        disabled_reason,
        is_compiling,
        setup_file,
        component: facts,
    }
}
