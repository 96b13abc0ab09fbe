//! What a capability asks of the policy around it.

use std::fmt;

use sallyport_contract::{PluginName, PolicyFix};

use super::{CapabilityAddition, CapabilityTable};

/// The policy for one plugin, as its capabilities see it. `PolicyContext` implements it in `fix`,
/// because its tables have capabilities in them and so stand above this module.
pub(crate) trait CapabilityContext: fmt::Debug + Send + Sync {
    /// The plugin.
    fn plugin(&self) -> &PluginName;

    /// The capabilities in the plugin's effective table, from all files.
    fn capabilities(&self) -> &CapabilityTable;

    /// The quota of a scratch, if any plugin's table states one: the lowest.
    fn scratch_quota(&self, name: &str) -> Option<u64>;

    /// Returns the fix that makes the additions. `change` makes them in the user's table, and there
    /// is no fix if it causes a conflict in the combined table.
    fn changed_table_fix(
        &self,
        is_harmless: bool,
        additions: Vec<CapabilityAddition>,
        change: &dyn Fn(&mut CapabilityTable),
    ) -> Option<PolicyFix>;
}
