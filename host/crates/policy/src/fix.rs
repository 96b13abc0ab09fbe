//! The change to the policy that would lift a refusal.
//!
//! A fix is complete. It contains the plugin's whole table with all current entries, so that it can
//! replace the table in the file, and the rule that allows the tools when no user can be asked. It
//! adds no more than the manifest requests.
//!
//! A fix is for the user's own file. It repeats the entries of that file, and none of the
//! administrator's or a project's file.

use std::fmt::Write;

use sallyport_contract::{FixRule, PluginName, PolicyFix};

use crate::{
    addition::{GrantAddition, NetAddition, NetReachText, SecretAddition, SecretUseText},
    capability::{CapabilityAddition, CapabilityContext, CapabilityTable},
    net::{NetPattern, entry::request_entry_toml},
    policy_context::PolicyContext,
    request::SecretRequest,
    rule_text::RuleText,
    secret::secret_source_toml,
    table::PluginTable,
    toml_text::{toml_list, toml_string},
};

/// The table of a fix, with every entry as TOML text that can be extended or replaced, and what the
/// fix adds to it.
pub(crate) struct PluginTableText<'g> {
    policy_context: &'g PolicyContext,
    pub(crate) additions: Vec<GrantAddition>,
    pub(crate) net: Vec<String>,
    pub(crate) fs: Vec<String>,
    pub(crate) secrets: Vec<String>,
    pub(crate) capabilities: CapabilityTable,
}

impl<'g> PluginTableText<'g> {
    /// Returns the current table.
    pub(crate) fn new(policy_context: &'g PolicyContext) -> Self {
        let PluginTable { net, fs, secrets, capabilities, .. } = policy_context.user_table();
        let allows = net.allows.iter().map(ToString::to_string);
        let denies = net.denies.iter().map(ToString::to_string);
        Self {
            policy_context,
            additions: Vec::new(),
            net: allows.chain(denies).collect(),
            fs: fs.iter().map(ToString::to_string).collect(),
            secrets: secrets.iter().map(ToString::to_string).collect(),
            capabilities: capabilities.clone(),
        }
    }

    /// Returns the fix. `with_rule` adds the rule that allows the tools, unless the policy has one
    /// already; without it, they need no confirmation.
    pub(crate) fn into_fix(self, with_rule: bool) -> PolicyFix {
        let plugin = self.policy_context.effective_table().plugin.clone();
        let has_rule = with_rule && !self.policy_context.has_covering_rule;
        let table = self.table_text();
        let toml = match has_rule {
            true => format!("{table}\n{}", RuleText::new_allow(format!("{plugin}.*"))),
            false => table,
        };
        let rule = has_rule.then(|| FixRule { tool: "*".to_owned(), net: None, page: None });
        let grants = self.additions.iter().map(GrantAddition::to_fix_grant).collect();
        PolicyFix { plugin, grants, rule, is_all_requested: false, toml }
    }

    fn table_text(&self) -> String {
        let PluginTable { plugin, env, limits, .. } = self.policy_context.user_table();
        let env: Vec<String> = env.iter().map(|entry| toml_string(&entry.name)).collect();
        let lists =
            [("net", &self.net), ("fs", &self.fs), ("env", &env), ("secrets", &self.secrets)];
        let mut text = format!("[plugin.{plugin}]\n");
        for (key, entries) in lists {
            if !entries.is_empty() {
                // Writing to a String cannot fail.
                let _ = writeln!(text, "{key} = {}", toml_list(entries.iter().cloned()));
            }
        }
        for (key, value) in self.capabilities.toml_pairs() {
            let _ = writeln!(text, "{key} = {value}");
        }
        if !limits.is_empty() {
            let _ = writeln!(text, "limits = {limits}");
        }
        text
    }
}

impl CapabilityContext for PolicyContext {
    fn plugin(&self) -> &PluginName {
        &self.effective_table().plugin
    }

    fn capabilities(&self) -> &CapabilityTable {
        &self.effective_table().capabilities
    }

    fn scratch_quota(&self, name: &str) -> Option<u64> {
        self.scratch_quotas.get(name).copied()
    }

    fn changed_table_fix(
        &self,
        is_harmless: bool,
        additions: Vec<CapabilityAddition>,
        change: &dyn Fn(&mut CapabilityTable),
    ) -> Option<PolicyFix> {
        let mut joined = self.effective_table().capabilities.clone();
        change(&mut joined);
        joined.check_conflicts(&self.effective_table().fs).ok()?;
        let mut table = PluginTableText::new(self);
        change(&mut table.capabilities);
        if !table.capabilities.is_within_limits() {
            return None;
        }
        table.additions = additions.into_iter().map(GrantAddition::Capability).collect();
        Some(table.into_fix(!is_harmless))
    }
}

/// Returns the fix that grants all network requests that are not granted yet, and the secrets that
/// their service needs: those for which the manifest names a header.
pub(crate) fn net_fix(
    policy_context: &PolicyContext,
    requests: &[NetPattern],
    secrets: &[SecretRequest],
) -> PolicyFix {
    let granted = |request: &&NetPattern| {
        policy_context
            .effective_table()
            .net
            .allows
            .iter()
            .any(|allow| allow.pattern.covers(request))
    };
    let mut table = PluginTableText::new(policy_context);
    for request in requests.iter().filter(|request| !granted(request)) {
        table.net.push(request_entry_toml(request));
        table.additions.push(GrantAddition::Net(NetAddition::for_request(request)));
    }
    let mut unknown = Vec::new();
    for request in secrets {
        let Some(addition) = sent_secret(policy_context, requests, request) else { continue };
        table.secrets.push(addition.entry_toml());
        table.additions.push(addition);
        unknown.extend(Some(&request.name).filter(|name| !policy_context.secrets.contains(*name)));
    }
    let mut fix = table.into_fix(true);
    for name in unknown {
        fix.toml.push_str(&format!("\n{}", secret_source_toml(name)));
    }
    fix
}

impl NetAddition {
    /// The entry that allows a request of a manifest. One for a private host would be useless
    /// without the host's own addresses.
    pub(crate) fn for_request(pattern: &NetPattern) -> Self {
        let reach = match pattern.host().is_private() {
            true => NetReachText::HostAddresses,
            false => NetReachText::Public,
        };
        Self { pattern: pattern.to_string(), decision: None, reach }
    }
}

/// Returns the entry that sends a secret with the requests, unless the policy has one already.
pub(crate) fn sent_secret(
    policy_context: &PolicyContext,
    requests: &[NetPattern],
    secret: &SecretRequest,
) -> Option<GrantAddition> {
    let SecretRequest { name, header, .. } = secret;
    let header = header.as_ref()?;
    if policy_context.effective_table().secrets.iter().any(|grant| grant.name == *name) {
        return None;
    }
    let origin = requests.iter().find_map(NetPattern::single_origin)?;
    let (header, format) = (header.name().to_owned(), Some(header.format_text()));
    let usage = SecretUseText::Inject { to: origin.to_string(), header, format };
    Some(GrantAddition::Secret(SecretAddition { name: name.to_string(), usage }))
}
