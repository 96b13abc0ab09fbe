//! Runs that no model requests, and the names under which the gate decides on them.

use sallyport_contract::{PluginName, ToolId, ToolName};
use sallyport_policy::question::ROLE_PREFIX;

/// The reason for a run that no model requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoleRunKind {
    /// One of its timers fires.
    Timer,
    /// It listens for a session.
    Listener,
    /// It answers as a model.
    Provider,
    /// It shows a session.
    Ui,
    /// It answers a request that came to the host.
    Http,
    /// It is asked for its resources.
    Resources,
    /// It is asked for its prompts.
    Prompts,
}

impl RoleRunKind {
    /// The role's name in rules and records, after `role:`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Timer => "timer",
            Self::Listener => "listener",
            Self::Provider => "provider",
            Self::Ui => "ui",
            Self::Http => "http",
            Self::Resources => "resources",
            Self::Prompts => "prompts",
        }
    }

    /// The tool id under which the gate decides on the run.
    pub(crate) fn tool_id(self, plugin: &PluginName) -> ToolId {
        let tool: Result<ToolName, _> = format!("{ROLE_PREFIX}{}", self.as_str()).parse();
        ToolId::new(plugin.clone(), tool.expect("a role is named like a tool"))
    }
}

#[cfg(test)]
mod tests {
    use sallyport_policy::question::ROLE_RUNS;

    use super::*;

    #[test]
    fn rules_know_every_run_by_its_word() {
        let all = [
            RoleRunKind::Timer,
            RoleRunKind::Listener,
            RoleRunKind::Provider,
            RoleRunKind::Ui,
            RoleRunKind::Http,
            RoleRunKind::Resources,
            RoleRunKind::Prompts,
        ];
        assert_eq!(all.map(RoleRunKind::as_str), ROLE_RUNS);
        let plugin: PluginName = "webhook".parse().unwrap();
        assert_eq!(RoleRunKind::Http.tool_id(&plugin).to_string(), "webhook.role:http");
    }
}
