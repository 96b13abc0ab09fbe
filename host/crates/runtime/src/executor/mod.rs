//! What runs the tools of a plugin, whatever kind of plugin it is.

mod component;

use std::{path::Path, sync::Arc};

use sallyport_connections::{AccountService, Definition};
use sallyport_contract::{AdmittedCall, BoxFuture, CallReport, Denial, ToolName};
use sallyport_policy::{ActionRules, Grant};

pub(crate) use component::LazyComponent;

use crate::gate::authorizer::PluginAuthorizer;

/// The kind of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PluginKind {
    /// A component that exports tools.
    Component,
    /// A component that is a program: each call runs it once.
    Command,
    /// A native program of this machine.
    Script,
    /// A server of the Model Context Protocol.
    McpServer,
    /// A definition: one JSON file, whose actions say their requests or belong to a component.
    Definition,
    /// A plugin that is compiled into the host.
    Internal,
}

impl PluginKind {
    /// The name of the kind.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Component => "component",
            Self::Command => "command",
            Self::Script => "script",
            Self::McpServer => "mcp",
            Self::Definition => "definition",
            Self::Internal => "internal",
        }
    }
}

/// Runs the tools of one plugin.
pub(crate) trait PluginExecutor: Send + Sync {
    /// The kind of the plugin.
    fn kind(&self) -> PluginKind;

    /// The file that runs; `None` for a plugin that is compiled into the host, or is a server at an
    /// address.
    fn file(&self) -> Option<&Path>;

    /// Runs a call that has passed the gate. Dropping the future cancels the call. The caller
    /// measures the time and removes secrets from the report, because both are alike for all kinds.
    fn run_call<'a>(
        &'a self,
        authorizer: &'a Arc<PluginAuthorizer>,
        call: Arc<AdmittedCall>,
    ) -> BoxFuture<'a, CallReport>;

    /// Why none of its calls can run under this grant, whatever it is asked for.
    fn unconditional_denial(&self, _grant: &Grant) -> Option<Denial> {
        None
    }

    /// Ends what the plugin keeps running.
    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// The rules that the plugin's author states for a tool.
    fn action_rules(&self, _tool: &ToolName) -> Option<&ActionRules> {
        None
    }

    /// The definition that it runs, if it is one.
    fn definition(&self) -> Option<&Arc<Definition>> {
        None
    }

    /// The service at which its users have accounts, if there is one.
    fn account_service(&self) -> Option<&Arc<AccountService>> {
        self.definition()?.account.as_ref()
    }

    /// The component that runs, if it is one.
    fn component(&self) -> Option<&LazyComponent> {
        None
    }
}
