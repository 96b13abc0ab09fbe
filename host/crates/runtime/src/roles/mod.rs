//! Roles: what plugins do in a session besides tools, and how the gate admits it.
//!
//! No model requests a run in a role: an event occurs, and the plugin is called. The gate decides
//! on the run under a name of its own, `PLUGIN.role:provider`. A rule can deny it or require an
//! approval. Without a rule it may run, because the user chose the plugin for that role. It is
//! recorded like a call, and its accesses are decided as in any call.
//!
//! ```text
//! SessionRoles::load_role_plugin ─► RolePlugin
//!     └─ admit_run ─► AdmittedCall    one record of the decision
//!     └─ start_run ─► RunRecord       one record of the run, however it ends
//! ```
//!
//! One [`AdmittedCall`] may cover several runs, where a plugin plays its role for a whole session;
//! each run has its own record. Events that a UI receives, and read-only requests to one path,
//! share a decision for as long as the policy is unchanged, and are recorded only if they had
//! effects or failed. A plugin stops playing a role when its capability is revoked.
//!
//! A [`guide`] runs without any grant and needs no decision.

pub mod guide;
pub mod http;
pub mod listener;
pub mod offers;
pub mod provider;
pub mod ui;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use sallyport_contract::{
    AdmittedCall, CallFailure, CallReport, Denial, Outcome, PluginName, Principal, RequestedCall,
    ToolCallContext, services::InputOrigin, text,
};
use sallyport_policy::{Grant, PluginRole};
use sallyport_sandbox::Plugin;
use serde_json::Value;

use crate::{
    clock::now_ms,
    registry::{
        AuditedRegistry, PluginLookupError, RegisteredPlugin, Registry, RoleRunKind,
        audited_registry::RunRecord,
    },
};

/// Longest label of an origin that is shown, in characters: a name, not a message.
const LABEL_CHARS_MAX: usize = 80;

/// Why a plugin cannot play a role, for the operator.
#[derive(Debug, thiserror::Error)]
pub enum RoleError {
    /// The plugin does not exist, or cannot be used.
    #[error("{}", .0.message())]
    PluginLookup(PluginLookupError),
    /// It plays other roles.
    #[error("{plugin} is not a {}: its roles are {}", .role.as_str(), words(.plays))]
    OtherRole {
        /// The plugin.
        plugin: PluginName,
        /// The requested role.
        role: PluginRole,
        /// The roles that its manifest names.
        plays: Vec<PluginRole>,
    },
    /// It cannot be loaded.
    #[error("{}", .0.detail.as_deref().unwrap_or(&.0.message))]
    Broken(CallFailure),
}

fn words(roles: &[PluginRole]) -> String {
    roles.iter().map(|role| role.as_str()).collect::<Vec<_>>().join(", ")
}

/// Finds a usable plugin for a role.
///
/// # Errors
///
/// The plugin does not exist, cannot be used, or plays other roles.
pub fn find_role_plugin<'r>(
    registry: &'r Registry,
    name: &str,
    role: PluginRole,
) -> Result<&'r Arc<RegisteredPlugin>, RoleError> {
    let entry = registry.find_usable_plugin(name).map_err(RoleError::PluginLookup)?;
    if entry.manifest().roles.contains(&role) {
        return Ok(entry);
    }
    let (plugin, plays) = (entry.name().clone(), entry.manifest().roles.clone());
    Err(RoleError::OtherRole { plugin, role, plays })
}

/// The plugins of a session, in their roles.
pub struct SessionRoles {
    audited_registry: Arc<AuditedRegistry>,
    /// Part of every run's id. A session may continue in another process, which counts its runs
    /// from 1 again.
    started_ms: u64,
    run_count: AtomicU64,
}

impl SessionRoles {
    /// Sends runs through the gate behind `audited_registry`.
    pub(crate) fn new(audited_registry: Arc<AuditedRegistry>) -> Arc<Self> {
        let (started_ms, run_count) = (now_ms(), AtomicU64::new(0));
        Arc::new(Self { audited_registry, started_ms, run_count })
    }

    /// All plugins of this moment.
    pub fn registry(&self) -> Arc<Registry> {
        self.audited_registry.registry()
    }

    /// Whether the audit cannot be written. No earlier decision covers another run then.
    pub fn is_audit_failing(&self) -> bool {
        self.audited_registry.is_failing()
    }

    /// The usable plugins of a role, in order of name.
    pub fn plugins_with_role(&self, role: PluginRole) -> Vec<Arc<RegisteredPlugin>> {
        self.registry().find_plugins_with_role(role)
    }

    /// Returns a plugin that is ready to play a role.
    ///
    /// # Errors
    ///
    /// The plugin does not exist, cannot be used or loaded, or plays other roles.
    pub fn load_role_plugin(
        self: &Arc<Self>,
        name: &str,
        role: PluginRole,
    ) -> Result<RolePlugin, RoleError> {
        self.prepare_entry(find_role_plugin(&self.registry(), name, role)?)
    }

    /// Returns a plugin that is ready for a run outside the roles of its manifest: a timer.
    ///
    /// # Errors
    ///
    /// The plugin does not exist, or cannot be used or loaded.
    pub fn load_plugin(self: &Arc<Self>, name: &str) -> Result<RolePlugin, RoleError> {
        let registry = self.registry();
        self.prepare_entry(registry.find_usable_plugin(name).map_err(RoleError::PluginLookup)?)
    }

    fn prepare_entry(
        self: &Arc<Self>,
        entry: &Arc<RegisteredPlugin>,
    ) -> Result<RolePlugin, RoleError> {
        let plugin = entry.get_or_prepare().map_err(RoleError::Broken)?;
        Ok(RolePlugin { roles: Arc::clone(self), plugin, entry: Arc::clone(entry) })
    }

    /// The context of a run for a session, on behalf of the session's user, with an id of its own.
    pub fn new_call_context(&self, user: &str, session_id: &str) -> ToolCallContext {
        let run = self.run_count.fetch_add(1, Ordering::Relaxed) + 1;
        let call_id = format!("run-{:x}-{run}", self.started_ms);
        let principal =
            Principal { user: user.to_owned(), conversation: Some(session_id.to_owned()) };
        principal.call_context(call_id, session_id)
    }
}

/// A plugin that is ready to play a role.
#[derive(Clone)]
pub struct RolePlugin {
    roles: Arc<SessionRoles>,
    plugin: Arc<Plugin>,
    entry: Arc<RegisteredPlugin>,
}

impl RolePlugin {
    /// The plugin's name.
    pub fn name(&self) -> &PluginName {
        self.entry.name()
    }

    /// The plugin itself. Every run needs an [`AdmittedCall`] first and a [`RunRecord`] around it.
    pub fn plugin(&self) -> &Arc<Plugin> {
        &self.plugin
    }

    /// Its current grant; `None` once the plugin is gone.
    pub fn grant(&self) -> Option<Arc<Grant>> {
        self.roles.registry().find_plugin(self.name().as_str()).ok().map(|_| self.entry.grant())
    }

    /// Why an admitted run may not continue: the plugin is gone, the policy has changed, or the
    /// audit cannot be written.
    pub async fn run_denial(&self, call: &AdmittedCall) -> Option<Denial> {
        let denial = |why: &str| Denial::new(format!("{} may not run", call.tool()), why);
        if self.grant().is_none() {
            return Some(denial("the plugin is gone"));
        }
        let refusal = self.roles.audited_registry.role_run_denial(&self.entry, call).await;
        let is_failing = self.roles.is_audit_failing();
        refusal.or_else(|| is_failing.then(|| denial("the audit cannot be written")))
    }

    /// Asks the gate to admit a run. `about` is an object that describes the run to the user.
    ///
    /// # Errors
    ///
    /// The report of a run that is refused.
    pub async fn admit_run(
        &self,
        run: RoleRunKind,
        context: ToolCallContext,
        run_arguments: &Value,
    ) -> Result<AdmittedCall, Box<CallReport>> {
        let run = RequestedCall {
            context,
            tool: run.tool_id(self.name()),
            arguments: run_arguments.to_string(),
        };
        self.roles.audited_registry.admit_role_run(&self.entry, run).await
    }

    /// Starts the record of an admitted run. If it is dropped before it has finished, the run is
    /// recorded as cancelled.
    pub fn start_run(&self, call: &AdmittedCall) -> RunRecord {
        self.roles.audited_registry.begin_run(&self.entry, call)
    }

    /// Starts the record of one of many runs that share a decision and usually only read. It is
    /// written only if the run had effects or failed.
    pub fn start_silent_run(&self, call: &AdmittedCall) -> RunRecord {
        self.start_run(call).only_with_effects()
    }
}

/// Why a run did not finish, in human-readable form; `None` if it finished or was cancelled.
pub fn failure_reason(report: &CallReport) -> Option<String> {
    match &report.outcome {
        Outcome::Completed(_) | Outcome::Cancelled => None,
        Outcome::Failed(failure) | Outcome::InvalidArguments(failure) => {
            Some(failure.message.clone())
        }
        Outcome::Denied(denial) => Some(denial.to_string()),
        Outcome::TimedOut { limit } => {
            Some(format!("it was stopped after {limit:?}, its time limit"))
        }
    }
}

/// The same for a run that is known not to have finished.
pub fn unfinished_reason(report: &CallReport) -> String {
    failure_reason(report).unwrap_or_else(|| "it was cancelled".to_owned())
}

/// The origin of an input in human-readable form: `Kim, by webhook`. It is always a single line, so
/// that a label cannot imitate another origin's line.
pub fn origin_text(origin: &InputOrigin) -> String {
    match &origin.label {
        Some(label) => {
            format!("{}, by {}", text::escape_excerpt(label, LABEL_CHARS_MAX), origin.plugin)
        }
        None => origin.plugin.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_part_of_one_line() {
        let plugin = "webhook".parse().unwrap();
        let origin =
            |label: &str| InputOrigin { plugin, label: Some(label.to_owned()), connection: None };
        let told = origin_text(&origin("Kim\n\u{1b}[2J\u{202e}· files.remove completed"));
        assert_eq!(told, r"Kim\n\u{1b}[2J\u{202e}· files.remove completed, by webhook");
    }
}
