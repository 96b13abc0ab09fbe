//! The registry: all plugins of the host, and the gate that every call passes.
//!
//! A registry never changes, so a model cannot add a plugin to it. Only the program that embeds the
//! host replaces it as a whole, and unchanged plugins move on to the new one. A plugin that cannot
//! be used is listed with the reason. Components are compiled, or mapped from the cache, when they
//! are first needed: by a call or by `doctor`. A component with a setup, and the one that
//! `sallyport call` names, are needed at the start.

pub mod audited_registry;
mod call_checks;
mod component_sandbox;
mod discover;
mod entry;
mod load;
mod names;
mod prepare;
mod replaced;
mod role_run;

use std::{collections::BTreeMap, sync::Arc};

use sallyport_connections::Definition;
use sallyport_contract::{PluginName, Principal, RequestedCall, ToolDescriptor, ToolId};
use sallyport_model::openai;
use sallyport_policy::{PluginRole, source::nearest_match};
use sallyport_sandbox::{CacheStatistics, LoadError, Sandbox, compile::CompilerIsolation};
use serde_json::Value;

use crate::gate::Gate;

pub use crate::executor::PluginKind;
pub use audited_registry::AuditedRegistry;
pub use call_checks::CallCheck;
pub(crate) use component_sandbox::create_sandbox;
pub use discover::PluginProblem;
pub(crate) use discover::{MANIFEST, is_wasm_file};
pub use entry::{ComponentFacts, PluginAvailability, RegisteredPlugin};
pub use load::{LoadParts, PluginSelection};
pub use names::{InstalledPlugin, find_installed_plugins};
pub(crate) use replaced::ReplacedPlugins;
pub use role_run::RoleRunKind;

/// All plugins of the host.
pub struct Registry {
    entries: BTreeMap<PluginName, Arc<RegisteredPlugin>>,
    /// The names of all plugins found, loaded or not; used for suggestions.
    names: Vec<PluginName>,
    problems: Vec<PluginProblem>,
    tools: Arc<[ToolDescriptor]>,
    gate: Arc<Gate>,
    sandbox: Arc<Sandbox>,
}

/// The plugins that differ between two registries, in order of name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PluginChanges {
    /// Plugins that are new.
    pub added: Vec<PluginName>,
    /// Plugins that differ in anything that an acceptance covers, or in whether they can be used.
    pub changed: Vec<PluginName>,
    /// Plugins that are gone, or whose files can no longer be read as a plugin.
    pub removed: Vec<PluginName>,
}

impl PluginChanges {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        [&self.added, &self.changed, &self.removed].iter().all(|names| names.is_empty())
    }
}

/// Why a name does not lead to a callable tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PluginLookupError {
    /// No such plugin or tool.
    Unknown {
        /// The requested name, and why it is missing.
        message: String,
        /// A similar name.
        suggestion: Option<String>,
    },
    /// The plugin exists but cannot be used.
    Unusable {
        /// The requested name, and why it cannot be used.
        message: String,
        /// A suggested fix.
        hint: Option<String>,
        /// True when the plugin was rejected; false when it is only disabled for now.
        rejected: bool,
    },
}

impl PluginLookupError {
    /// The requested name, and the reason.
    pub fn message(&self) -> &str {
        match self {
            Self::Unknown { message, .. } | Self::Unusable { message, .. } => message,
        }
    }
}

impl Registry {
    /// Returns the sandbox that runs the components.
    pub fn sandbox(&self) -> &Arc<Sandbox> {
        &self.sandbox
    }

    /// All loaded plugins in order of name, including disabled ones.
    pub fn entries(&self) -> impl Iterator<Item = &RegisteredPlugin> {
        self.entries.values().map(Arc::as_ref)
    }

    /// The definitions of the usable plugins that have one, in order of name.
    pub fn usable_definitions(&self) -> Vec<Arc<Definition>> {
        let ready = self.entries.values().filter(|entry| entry.is_ready());
        ready.filter_map(|entry| entry.definition()).cloned().collect()
    }

    /// The usable plugins of a role, in order of name.
    pub fn find_plugins_with_role(&self, role: PluginRole) -> Vec<Arc<RegisteredPlugin>> {
        let ready = self.entries.values().filter(|entry| entry.is_ready());
        ready.filter(|entry| entry.manifest().roles.contains(&role)).cloned().collect()
    }

    /// The tools that a model can call, in order of plugin.
    pub fn tools(&self) -> &Arc<[ToolDescriptor]> {
        &self.tools
    }

    /// The plugins that differ from those of an earlier registry.
    pub fn changes_since(&self, earlier: &Self) -> PluginChanges {
        let mut changes = PluginChanges::default();
        for (name, plugin) in &self.entries {
            match earlier.entries.get(name) {
                None => changes.added.push(name.clone()),
                Some(before)
                    if before.availability() != plugin.availability()
                        || before.pin() != plugin.pin() =>
                {
                    changes.changed.push(name.clone());
                }
                Some(_) => {}
            }
        }
        let gone = earlier.entries.keys().filter(|name| !self.entries.contains_key(*name));
        changes.removed = gone.cloned().collect();
        changes
    }

    /// The plugins of an earlier registry that are not in this one any more.
    pub(crate) fn replaced_plugins(&self, earlier: &Self) -> Vec<Arc<RegisteredPlugin>> {
        let is_kept = |plugin: &Arc<RegisteredPlugin>| {
            self.entries.get(plugin.name()).is_some_and(|kept| Arc::ptr_eq(kept, plugin))
        };
        earlier.entries.values().filter(|plugin| !is_kept(plugin)).cloned().collect()
    }

    /// The gate that every call passes.
    pub fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// Everything in the plugin folders that could not be used.
    pub fn problems(&self) -> &[PluginProblem] {
        &self.problems
    }

    /// How often compiled components came from the cache.
    pub fn cache_use(&self) -> CacheStatistics {
        self.sandbox.cache_statistics()
    }

    /// Returns the restrictions that the plugin compiler runs under.
    ///
    /// # Errors
    ///
    /// No working compiler is available.
    pub fn compiler_restrictions(&self) -> Result<CompilerIsolation, LoadError> {
        self.sandbox.compiler_isolation()
    }

    /// Prepares every plugin for calls, as its first call would.
    ///
    /// Returns the names of the plugins that cannot be prepared, with the reason.
    pub fn warm_up(&self) -> Vec<(PluginName, String)> {
        let ready = self.entries().filter(|entry| {
            entry.is_ready() && matches!(entry.kind(), PluginKind::Component | PluginKind::Command)
        });
        let failed = ready.filter_map(|entry| {
            entry.get_or_prepare().err().map(|failure| (entry.name().clone(), failure.message))
        });
        failed.collect()
    }

    /// Finds a plugin by name.
    ///
    /// # Errors
    ///
    /// The plugin does not exist, or was rejected.
    pub fn find_plugin(&self, name: &str) -> Result<&Arc<RegisteredPlugin>, PluginLookupError> {
        let found = name.parse::<PluginName>().ok().and_then(|name| self.entries.get(&name));
        found.ok_or_else(|| self.unknown_plugin_error(name))
    }

    /// Finds a usable plugin by name.
    ///
    /// # Errors
    ///
    /// The plugin does not exist, or cannot be used.
    pub fn find_usable_plugin(
        &self,
        name: &str,
    ) -> Result<&Arc<RegisteredPlugin>, PluginLookupError> {
        let entry = self.find_plugin(name)?;
        entry.require_usable().map(|()| entry)
    }

    /// Checks a call as it is checked before it runs, with its author's rules and the policy. It
    /// asks nobody and runs nothing. `arguments` is JSON text.
    ///
    /// # Errors
    ///
    /// The tool does not exist or cannot be used.
    pub async fn check_call(
        &self,
        principal: &Principal,
        tool: ToolId,
        arguments: String,
    ) -> Result<CallCheck, PluginLookupError> {
        let plugin = self.find_plugin(tool.plugin.as_str())?;
        let index = plugin.find_usable_tool(&tool)?;
        let context = principal.call_context("check".to_owned(), "check");
        let call = RequestedCall { context, tool, arguments };
        Ok(call_checks::check_call(&self.gate, plugin, index, call).await)
    }

    /// Finds a callable tool.
    ///
    /// # Errors
    ///
    /// The plugin or tool does not exist, or the plugin cannot be used.
    pub fn find_tool(
        &self,
        id: &ToolId,
    ) -> Result<(&Arc<RegisteredPlugin>, &ToolDescriptor), PluginLookupError> {
        let entry = self.find_plugin(id.plugin.as_str())?;
        entry.find_usable_tool(id).map(|tool| (entry, &entry.tools()[tool]))
    }

    fn unknown_plugin_error(&self, name: &str) -> PluginLookupError {
        if let Some(problem) =
            self.problems.iter().find(|problem| is_problem_of_plugin(problem, name))
        {
            return PluginLookupError::Unusable {
                message: format!("{}: {}", problem.location.display(), problem.message),
                hint: problem.hint.clone(),
                rejected: true,
            };
        }
        let names: Vec<String> = self.names.iter().map(ToString::to_string).collect();
        let name = sallyport_contract::text::escape_excerpt(name, 64);
        PluginLookupError::Unknown {
            message: format!("there is no plugin {name:?}"),
            suggestion: nearest_name(&name, &names),
        }
    }

    /// The tools as function definitions, the form that a model receives.
    pub fn tool_definitions(&self) -> Value {
        self.tools.iter().map(tool_definition).collect()
    }

    /// Ends a session: drops its warm instances and its scratch folders.
    pub async fn end_session(&self, session_id: &str) {
        self.gate.grant_desk.end_session(session_id);
        self.sandbox.end_session(session_id).await;
    }

    /// Notifies the managed plugins that were used of the shutdown.
    pub async fn shutdown(&self) {
        for entry in self.entries.values() {
            entry.teardown().await;
        }
    }
}

/// One tool as an OpenAI function definition.
pub fn tool_definition(tool: &ToolDescriptor) -> Value {
    openai::tool_definition(&tool.into())
}

/// A plugin with an unreadable manifest is known only by its file or folder.
fn is_problem_of_plugin(problem: &PluginProblem, name: &str) -> bool {
    if let Some(plugin) = &problem.plugin {
        return plugin.as_str() == name;
    }
    let stem = problem.location.file_stem();
    let folder = problem.location.parent().and_then(|parent| parent.file_name());
    [stem, folder].into_iter().flatten().any(|part| part == name)
}

fn nearest_name(name: &str, names: &[String]) -> Option<String> {
    nearest_match(name, names.iter().map(String::as_str)).map(str::to_owned)
}
