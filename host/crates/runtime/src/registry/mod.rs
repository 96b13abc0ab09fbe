//! The registry: all plugins of a session, and the gate that every call passes.
//!
//! It is built once and does not change; nothing that a model can reach adds a plugin to it. A plugin
//! that cannot be used stands beside the others with its reason. Components are compiled, or mapped
//! from the cache, when they are first needed: by a call or by `doctor`. A component with a set-up, and
//! the one that `sallyport call` names, are needed at the start.

mod body;
mod discover;
mod entry;
mod gate;
mod load;
mod prepare;
mod requests;

use std::{collections::BTreeMap, sync::Arc};

use sallyport_contract::{
    Admitted, BoxFuture, CallReport, Denial, Failure, PluginName, ToolCall, ToolId, ToolSpec,
    Toolbox,
};
use sallyport_model::openai;
use sallyport_policy::source::nearest;
use sallyport_sandbox::{CacheUse, LoadError, Plugin, Sandbox, compile::Walls};
use serde_json::Value;

use crate::gate::Gate;

pub use body::Kind;
pub use discover::Problem;
pub use entry::{Entry, State};
pub use load::{LoadParts, Selection};
pub use requests::requests;

/// All plugins of a session.
pub struct Registry {
    entries: BTreeMap<PluginName, Entry>,
    /// Every plugin that was found, loaded or not; for suggestions.
    names: Vec<PluginName>,
    problems: Vec<Problem>,
    tools: Vec<ToolSpec>,
    gate: Arc<Gate>,
    sandbox: Arc<Sandbox>,
}

/// Why a name leads to no tool that can be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// There is no such plugin or tool.
    Unknown {
        /// What was asked for, and why it is not there.
        message: String,
        /// A name that may have been meant.
        near: Option<String>,
    },
    /// The plugin is there and cannot be used.
    Unusable {
        /// What was asked for, and why it cannot be used.
        message: String,
        /// What can be done about it.
        hint: Option<String>,
        /// True when the plugin was rejected; false when it is only disabled for now.
        rejected: bool,
    },
}

impl Missing {
    /// What was asked for, and why it leads nowhere.
    pub fn message(&self) -> &str {
        match self {
            Self::Unknown { message, .. } | Self::Unusable { message, .. } => message,
        }
    }
}

impl Registry {
    /// All plugins that were loaded, disabled ones included, by name.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// The gate that its calls pass.
    pub fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// Everything in the plugin folders that could not be used.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// How often compiled components came from the cache.
    pub fn cache_use(&self) -> CacheUse {
        self.sandbox.cache_use()
    }

    /// Returns the walls around the compiler of plugins.
    ///
    /// # Errors
    ///
    /// There is no compiler that works.
    pub fn walls(&self) -> Result<Walls, LoadError> {
        self.sandbox.walls()
    }

    /// Makes every plugin ready to be called, as the first call to it would.
    ///
    /// Returns the names of those that cannot be made ready, with the reason.
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
    /// There is none, or it was rejected.
    pub fn plugin(&self, name: &str) -> Result<&Entry, Missing> {
        let found = name.parse::<PluginName>().ok().and_then(|name| self.entries.get(&name));
        found.ok_or_else(|| self.no_plugin(name))
    }

    /// Finds a plugin that can be used.
    ///
    /// # Errors
    ///
    /// There is none, or it cannot be used.
    pub fn usable(&self, name: &str) -> Result<&Entry, Missing> {
        let entry = self.plugin(name)?;
        match entry.state().trouble(entry.name()) {
            None => Ok(entry),
            Some((reason, hint)) => {
                let message = format!("the plugin {} {reason}", entry.name());
                Err(Missing::Unusable { message, hint, rejected: false })
            }
        }
    }

    /// Returns a plugin for runs in a role, made ready if it is not yet.
    ///
    /// # Errors
    ///
    /// It cannot be loaded.
    pub(crate) fn load_plugin(&self, entry: &Entry) -> Result<Arc<Plugin>, Failure> {
        entry.plugin(&self.sandbox)
    }

    /// Decides about a run in a role; see [`Roles`](crate::roles::Roles).
    pub(crate) async fn admit_role(&self, run: ToolCall) -> Result<Admitted, Box<CallReport>> {
        gate::admit_role(self, run).await.map_err(|outcome| Box::new(CallReport::from(outcome)))
    }

    /// Why a run in a role that was let through may not go on: what it needs is not granted any more, or
    /// a rule denies it now. Nobody is asked a second time.
    pub(crate) fn refusal(&self, run: &Admitted) -> Option<Denial> {
        gate::refusal(self, run)
    }

    /// Finds a tool that can be called.
    ///
    /// # Errors
    ///
    /// There is no such plugin or tool, or the plugin cannot be used.
    pub fn find(&self, id: &ToolId) -> Result<(&Entry, &ToolSpec), Missing> {
        let entry = self.usable(id.plugin.as_str())?;
        let found = entry.tools().iter().find(|tool| tool.id == *id);
        found.map(|tool| (entry, tool)).ok_or_else(|| {
            let names: Vec<String> = entry.tools().iter().map(|t| t.id.to_string()).collect();
            Missing::Unknown {
                message: format!("{} has no tool {:?}", id.plugin, id.tool.as_str()),
                near: near(&id.to_string(), &names).or_else(|| names.first().cloned()),
            }
        })
    }

    fn no_plugin(&self, name: &str) -> Missing {
        if let Some(problem) = self.problems.iter().find(|problem| is_about(problem, name)) {
            return Missing::Unusable {
                message: format!("{}: {}", problem.place.display(), problem.message),
                hint: problem.hint.clone(),
                rejected: true,
            };
        }
        let names: Vec<String> = self.names.iter().map(ToString::to_string).collect();
        let name = sallyport_contract::text::excerpt(name, 64);
        Missing::Unknown {
            message: format!("there is no plugin {name:?}"),
            near: near(&name, &names),
        }
    }

    /// The tools as function definitions, the form in which a model is told of them.
    pub fn definitions(&self) -> Value {
        self.tools.iter().map(definition).collect()
    }

    /// Ends what plugins keep for a session while it lives: warm instances, and scratches.
    pub async fn end_session(&self, session_id: &str) {
        self.sandbox.end_session(session_id).await;
    }

    /// Tells managed plugins that were used that the host shuts down.
    pub async fn shutdown(&self) {
        for entry in self.entries.values() {
            entry.teardown().await;
        }
    }
}

/// One tool as an OpenAI function definition.
pub fn definition(tool: &ToolSpec) -> Value {
    openai::definition(&tool.into())
}

/// A plugin whose manifest cannot be read is known by its file or folder only.
fn is_about(problem: &Problem, name: &str) -> bool {
    if let Some(plugin) = &problem.plugin {
        return plugin.as_str() == name;
    }
    let stem = problem.place.file_stem();
    let folder = problem.place.parent().and_then(|parent| parent.file_name());
    [stem, folder].into_iter().flatten().any(|part| part == name)
}

fn near(name: &str, names: &[String]) -> Option<String> {
    nearest(name, names.iter().map(String::as_str)).map(str::to_owned)
}

impl Toolbox for Registry {
    fn tools(&self) -> &[ToolSpec] {
        &self.tools
    }

    fn admit(&self, call: ToolCall) -> BoxFuture<'_, Result<Admitted, Box<CallReport>>> {
        Box::pin(async move {
            gate::admit(self, call).await.map_err(|outcome| Box::new(CallReport::from(outcome)))
        })
    }

    fn run(&self, call: Admitted) -> BoxFuture<'_, CallReport> {
        Box::pin(gate::run(self, call))
    }
}
