//! The routes of plugins and of what the policy grants them.

use std::sync::Arc;

use axum::extract::State;
use sallyport_contract::PluginName;
use sallyport_runtime::{
    permissions::{PluginPermissions, all_permissions},
    registry::{PluginAvailability, RegisteredPlugin},
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{request_body::JsonReply, service::Service};

/// The plugins of this moment.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PluginList {
    plugins: Vec<PluginSummary>,
}

/// A plugin.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PluginSummary {
    name: PluginName,
    version: String,
    /// What it is for, according to its author.
    description: String,
    /// What runs it: component, script, …
    kind: &'static str,
    /// What it does besides offering tools.
    roles: Vec<&'static str>,
    /// The hash of its code, in hexadecimal.
    digest: String,
    state: PluginState,
    tools: Vec<String>,
}

/// Whether a plugin can be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PluginState {
    /// It can.
    Ready,
    /// Not yet.
    Compiling,
    /// Something that it needs is missing.
    Disabled,
    /// It differs from what the operator accepted.
    Changed,
}

/// What the policy allows, for each plugin.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct GrantTable {
    plugins: Vec<PluginPermissions>,
}

pub(crate) async fn list(State(service): State<Arc<Service>>) -> JsonReply<PluginList> {
    let plugins = service.host.registry().entries().map(summary).collect();
    JsonReply(PluginList { plugins })
}

pub(crate) async fn grants(State(service): State<Arc<Service>>) -> JsonReply<GrantTable> {
    JsonReply(GrantTable { plugins: all_permissions(&service.host.registry()) })
}

fn summary(entry: &RegisteredPlugin) -> PluginSummary {
    let manifest = entry.manifest();
    PluginSummary {
        name: entry.name().clone(),
        version: manifest.version.clone(),
        description: manifest.description.clone(),
        kind: entry.kind().as_str(),
        roles: manifest.roles.iter().map(|role| role.as_str()).collect(),
        digest: entry.digest().to_owned(),
        state: PluginState::from(entry.availability()),
        tools: entry.tools().iter().map(|tool| tool.id.tool.to_string()).collect(),
    }
}

impl From<&PluginAvailability> for PluginState {
    fn from(availability: &PluginAvailability) -> Self {
        match availability {
            PluginAvailability::Ready => Self::Ready,
            PluginAvailability::Compiling => Self::Compiling,
            PluginAvailability::Disabled { .. } => Self::Disabled,
            PluginAvailability::Changed { .. } => Self::Changed,
        }
    }
}
