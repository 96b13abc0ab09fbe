//! A plugin's definition: the file `NAME.json`.
//!
//! It is read in three steps. `file` knows its fields and refuses others; `variables` replaces
//! `${VAR}`; then each action is compiled: its rules by the policy's own engine, its request by
//! `request`. Each mistake has its line and column (`place`).

mod account_service;
mod action;
mod answer;
mod auth;
mod failure;
mod file;
mod names;
mod place;
mod request;
mod template;
#[cfg(test)]
mod tests;
mod variables;

use std::sync::Arc;

use sallyport_contract::{PluginName, ToolName};
use sallyport_policy::{ActionRules, ArgumentNames, SourceError, is_plugin_version};
use serde_json::Value;

pub use account_service::AccountService;
pub use answer::{AnswerFailure, AnswerTemplate, PageState, ServiceAnswer};
pub use auth::{AuthConfig, AuthType, is_safe_for_tokens};
pub use failure::{FailureFacts, OutputGuidance, common_error_words};
pub use request::{RequestError, RequestTemplate, ServiceRequest};

use file::{DefinitionFile, PluginSection};
use place::DefinitionSource;
use variables::VariableReader;

/// Longest definition in bytes: some hundred actions.
pub const DEFINITION_BYTES_MAX: u64 = 1024 * 1024;

/// A plugin that is one JSON file.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// Its name.
    pub name: PluginName,
    /// Its version.
    pub version: String,
    /// Its purpose. Untrusted text.
    pub description: String,
    /// When a model should use it.
    pub context: Option<String>,
    /// The name that people see, if it has one of its own.
    pub display_name: Option<String>,
    /// What kind of plugin it is, such as `communication`.
    pub category: Option<String>,
    /// A picture, as its author names it.
    pub icon: Option<String>,
    /// A short text for lists.
    pub label: Option<String>,
    /// Whether its author calls it popular.
    pub is_popular: bool,
    /// Whether it needs no account of the user.
    pub is_system: bool,
    /// The service that the user signs in to; `None` for one that needs no account.
    pub account: Option<Arc<AccountService>>,
    /// Its actions, in the order of the file.
    pub actions: Vec<Action>,
    /// The variables that it names, in their order.
    pub variables: Vec<String>,
    /// Those that are not set. The plugin cannot be used without them.
    pub missing_variables: Vec<String>,
}

/// One action: a tool for the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// Its name.
    pub name: ToolName,
    /// What it does.
    pub description: String,
    /// When a model should use it.
    pub usage_context: Option<String>,
    /// The JSON Schema of its parameters.
    pub parameters: Value,
    /// The names that its parameters define.
    pub names: ArgumentNames,
    /// Its author's limits and confirmations.
    pub rules: ActionRules,
    /// What is declared about its results and failures.
    pub guidance: OutputGuidance,
    /// The request that it sends; `None` if a component runs it.
    pub request: Option<RequestTemplate>,
}

impl Definition {
    /// Reads a definition. `file` names it in errors, and `variable` looks up the environment.
    ///
    /// # Errors
    ///
    /// Anything in the file that is not understood completely.
    pub fn parse(
        file: &str,
        text: &str,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, SourceError> {
        let source = DefinitionSource { file, text };
        let DefinitionFile { plugin, actions } = source.read()?;
        let mut variables = VariableReader::new(&source, variable);
        let name = read_name(&source, &plugin)?;
        let PluginSection { auth_config, version, .. } = plugin;
        let auth = auth_config.map(|section| AuthConfig::read(section, &source, &mut variables));
        let account = auth.transpose()?.map(|auth| AccountService {
            plugin: name.clone(),
            shown_name: plugin.display_name.clone().unwrap_or_else(|| name.to_string()),
            auth,
            is_system: plugin.is_system,
        });
        let actions = actions
            .0
            .into_iter()
            .map(|(action, section)| Action::read(&source, &action, section, &mut variables));
        let actions = actions.collect::<Result<Vec<_>, _>>()?;
        if actions.is_empty() {
            return Err(source.error(&["actions"], "a plugin without actions does nothing"));
        }
        let (variables, missing_variables) = variables.finish();
        Ok(Self {
            name,
            version,
            description: plugin.description,
            context: plugin.context,
            display_name: plugin.display_name,
            category: plugin.category,
            icon: plugin.icon,
            label: plugin.label,
            is_popular: plugin.is_popular,
            is_system: plugin.is_system,
            account: account.map(Arc::new),
            actions,
            variables,
            missing_variables,
        })
    }

    /// The requests that its actions send, as patterns of a policy.
    pub fn addresses(&self) -> Vec<String> {
        let requests = self.actions.iter().filter_map(|action| action.request.as_ref());
        let mut addresses: Vec<String> = requests.map(RequestTemplate::address_pattern).collect();
        addresses.sort();
        addresses.dedup();
        addresses
    }

    /// The action of a tool.
    pub fn action(&self, tool: &ToolName) -> Option<&Action> {
        self.actions.iter().find(|action| action.name == *tool)
    }

    /// Whether a user has to connect an account before its actions can run.
    pub fn needs_connection(&self) -> bool {
        self.account.as_ref().is_some_and(|account| account.needs_connection())
    }

    /// The name that people see.
    pub fn shown_name(&self) -> &str {
        self.display_name.as_deref().unwrap_or(self.name.as_str())
    }
}

fn read_name(
    source: &DefinitionSource<'_>,
    plugin: &PluginSection,
) -> Result<PluginName, SourceError> {
    if !is_plugin_version(&plugin.version) {
        let error = source.error(&["plugin", "version"], "this is not a version");
        return Err(error.with_hint("write three numbers: 1.0.0"));
    }
    if plugin.description.trim().is_empty() {
        return Err(source.error(&["plugin", "description"], "the description is empty"));
    }
    plugin.name.parse().map_err(|error| source.hinted(&["plugin", "name"], &error))
}
