//! The registry: all plugins of a session, and the gate that every call passes.
//!
//! It is built once and never changes, so a model cannot add a plugin to it. A plugin that cannot
//! be used is listed with the reason. Components are compiled, or mapped from the cache, when they
//! are first needed: by a call or by `doctor`. A component with a setup, and the one that
//! `sallyport call` names, are needed at the start.

mod call_checks;
mod discover;
mod entry;
mod implementation;
mod load;
mod prepare;
mod requests;

use std::{collections::BTreeMap, sync::Arc};

use sallyport_contract::{
    AdmittedCall, BoxFuture, CallFailure, CallReport, Denial, PluginName, RequestedCall,
    ToolDescriptor, ToolId, Toolbox,
};
use sallyport_model::openai;
use sallyport_policy::source::nearest_match;
use sallyport_sandbox::{CacheStatistics, LoadError, Plugin, Sandbox, compile::CompilerIsolation};
use serde_json::Value;

use crate::gate::Gate;

pub use discover::PluginProblem;
pub use entry::{PluginAvailability, RegisteredPlugin};
pub use implementation::PluginKind;
pub use load::{LoadParts, PluginSelection};
pub use requests::manifest_requests;

/// All plugins of a session.
pub struct Registry {
    entries: BTreeMap<PluginName, RegisteredPlugin>,
    /// The names of all plugins found, loaded or not; used for suggestions.
    names: Vec<PluginName>,
    problems: Vec<PluginProblem>,
    tools: Vec<ToolDescriptor>,
    gate: Arc<Gate>,
    sandbox: Arc<Sandbox>,
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
    /// All loaded plugins in order of name, including disabled ones.
    pub fn entries(&self) -> impl Iterator<Item = &RegisteredPlugin> {
        self.entries.values()
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
        let ready = self.entries.values().filter(|entry| entry.is_ready());
        let failed = ready.filter_map(|entry| {
            entry
                .warm_up(&self.sandbox)
                .err()
                .map(|failure| (entry.name().clone(), failure.message))
        });
        failed.collect()
    }

    /// Finds a plugin by name.
    ///
    /// # Errors
    ///
    /// The plugin does not exist, or was rejected.
    pub fn find_plugin(&self, name: &str) -> Result<&RegisteredPlugin, PluginLookupError> {
        let found = name.parse::<PluginName>().ok().and_then(|name| self.entries.get(&name));
        found.ok_or_else(|| self.unknown_plugin_error(name))
    }

    /// Finds a usable plugin by name.
    ///
    /// # Errors
    ///
    /// The plugin does not exist, or cannot be used.
    pub fn find_usable_plugin(&self, name: &str) -> Result<&RegisteredPlugin, PluginLookupError> {
        let entry = self.find_plugin(name)?;
        match entry.availability().problem_and_hint(entry.name()) {
            None => Ok(entry),
            Some((reason, hint)) => {
                let message = format!("the plugin {} {reason}", entry.name());
                Err(PluginLookupError::Unusable { message, hint, rejected: false })
            }
        }
    }

    /// Returns a plugin for runs in a role, and prepares it if necessary.
    ///
    /// # Errors
    ///
    /// The plugin cannot be loaded.
    pub(crate) fn load_plugin(&self, entry: &RegisteredPlugin) -> Result<Arc<Plugin>, CallFailure> {
        entry.get_or_prepare(&self.sandbox)
    }

    /// Decides on a run in a role; see [`SessionRoles`](crate::roles::SessionRoles).
    pub(crate) async fn admit_role_run(
        &self,
        run: RequestedCall,
    ) -> Result<AdmittedCall, Box<CallReport>> {
        call_checks::admit_role_run(self, run)
            .await
            .map_err(|outcome| Box::new(CallReport::from(outcome)))
    }

    /// Why an admitted run in a role may not continue: its capability was revoked, or a rule now
    /// denies it. The user is not asked a second time.
    pub(crate) fn role_run_denial(&self, run: &AdmittedCall) -> Option<Denial> {
        call_checks::role_run_denial(self, run)
    }

    /// Finds a callable tool.
    ///
    /// # Errors
    ///
    /// The plugin or tool does not exist, or the plugin cannot be used.
    pub fn find_tool(
        &self,
        id: &ToolId,
    ) -> Result<(&RegisteredPlugin, &ToolDescriptor), PluginLookupError> {
        let entry = self.find_usable_plugin(id.plugin.as_str())?;
        let found = entry.tools().iter().find(|tool| tool.id == *id);
        found.map(|tool| (entry, tool)).ok_or_else(|| {
            let names: Vec<String> = entry.tools().iter().map(|t| t.id.to_string()).collect();
            PluginLookupError::Unknown {
                message: format!("{} has no tool {:?}", id.plugin, id.tool.as_str()),
                suggestion: nearest_name(&id.to_string(), &names)
                    .or_else(|| names.first().cloned()),
            }
        })
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

impl Toolbox for Registry {
    fn tools(&self) -> &[ToolDescriptor] {
        &self.tools
    }

    fn admit_call(
        &self,
        call: RequestedCall,
    ) -> BoxFuture<'_, Result<AdmittedCall, Box<CallReport>>> {
        Box::pin(async move {
            call_checks::admit_call(self, call)
                .await
                .map_err(|outcome| Box::new(CallReport::from(outcome)))
        })
    }

    fn run_call(&self, call: AdmittedCall) -> BoxFuture<'_, CallReport> {
        Box::pin(call_checks::run_call(self, call))
    }
}
