//! Resources and prompts: what plugins offer to a client besides tools.
//!
//! The gate decides on each question as on a call, under the name `PLUGIN.role:resources` or
//! `PLUGIN.role:prompts`, because a client asks without the user having chosen the plugin for it.

use std::sync::Arc;

use sallyport_contract::{CallReport, PluginName, PromptQuery, ResourceQuery, ToolCallContext};
use sallyport_policy::PluginRole;
use serde::Serialize;

use super::{RoleError, RolePlugin, SessionRoles};
use crate::registry::RoleRunKind;

/// A question to a plugin that offers something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum OfferQuery {
    /// About its resources.
    Resources(ResourceQuery),
    /// About its prompts.
    Prompts(PromptQuery),
}

impl OfferQuery {
    /// The role that answers it.
    pub fn role(&self) -> PluginRole {
        match self {
            Self::Resources(_) => PluginRole::Resources,
            Self::Prompts(_) => PluginRole::Prompts,
        }
    }

    fn run_kind(&self) -> RoleRunKind {
        match self {
            Self::Resources(_) => RoleRunKind::Resources,
            Self::Prompts(_) => RoleRunKind::Prompts,
        }
    }
}

impl SessionRoles {
    /// Asks a plugin for what it offers. The report has a failure as that of a call does.
    ///
    /// # Errors
    ///
    /// The plugin does not exist, cannot be used or loaded, or does not offer it.
    pub async fn ask_for_offer(
        self: &Arc<Self>,
        plugin: &PluginName,
        context: ToolCallContext,
        query: OfferQuery,
    ) -> Result<CallReport, RoleError> {
        let role_plugin = self.load_role_plugin(plugin.as_str(), query.role())?;
        Ok(run_query(&role_plugin, context, query).await)
    }
}

async fn run_query(
    role_plugin: &RolePlugin,
    context: ToolCallContext,
    query: OfferQuery,
) -> CallReport {
    let arguments = serde_json::to_value(&query).unwrap_or_default();
    let admitted = role_plugin.admit_run(query.run_kind(), context, &arguments).await;
    let admitted = match admitted {
        Ok(admitted) => admitted,
        Err(report) => return *report,
    };
    let record = role_plugin.start_run(&admitted);
    let plugin = role_plugin.plugin();
    let report = match query {
        OfferQuery::Resources(query) => plugin.answer_resource_query(admitted, query).await,
        OfferQuery::Prompts(query) => plugin.answer_prompt_query(admitted, query).await,
    };
    record.finish(&report);
    report
}
