//! What the policy says about one plugin.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    secret::SecretName,
    table::{PluginTable, TieredPluginTables},
};

/// The current policy for one plugin: the basis of its grant, and of the fixes that widen it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PolicyContext {
    /// The plugin's tables.
    pub(crate) tables: TieredPluginTables,
    /// Whether a rule covers all of its tools already; a second one would change nothing.
    pub(crate) has_covering_rule: bool,
    /// The secrets that have a source in the policy.
    pub(crate) secrets: BTreeSet<SecretName>,
    /// The quotas of scratches: the lowest that any plugin's table states.
    pub(crate) scratch_quotas: BTreeMap<String, u64>,
}

impl PolicyContext {
    /// The effective table of the plugin, from all files.
    pub(crate) fn effective_table(&self) -> &PluginTable {
        &self.tables.effective
    }

    /// The table of the plugin in the user's own file.
    pub(crate) fn user_table(&self) -> &PluginTable {
        &self.tables.user
    }
}
