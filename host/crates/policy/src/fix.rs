//! The policy text that would lift a refusal.
//!
//! A fix is complete. It contains the plugin's whole table with all current entries, so that it can
//! replace the table in the file, and the rule that allows the tools when no user can be asked. It
//! adds no more than the manifest requests.
//!
//! A fix is for the user's own file. It repeats the entries of that file, and none of the
//! administrator's or a project's file.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use serde_json::Value;

use crate::{
    capability::CapabilityTable,
    net::{NetPattern, entry::request_entry_toml},
    request::SecretRequest,
    rule::RuleText,
    secret::{SecretName, secret_source_toml},
    table::{PluginTable, TieredPluginTables},
};

/// The basis of a fix: the current policy for one plugin.
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

/// The table of a fix, with every entry as TOML text that can be extended or replaced.
pub(crate) struct PluginTableText<'g> {
    policy_context: &'g PolicyContext,
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
            net: allows.chain(denies).collect(),
            fs: fs.iter().map(ToString::to_string).collect(),
            secrets: secrets.iter().map(ToString::to_string).collect(),
            capabilities: capabilities.clone(),
        }
    }

    /// Returns the text without a rule, for tools that need no confirmation.
    pub(crate) fn text_without_rule(&self) -> String {
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

    /// Returns the text with the rule that allows the tools, unless the policy has one already.
    pub(crate) fn text_with_rule(&self) -> String {
        let table = self.text_without_rule();
        if self.policy_context.has_covering_rule {
            return table;
        }
        let plugin = &self.policy_context.effective_table().plugin;
        format!("{table}\n{}", RuleText::new_allow(format!("{plugin}.*")))
    }
}

/// Returns the text that grants all network requests that are not granted yet, and the secrets that
/// their service needs: those for which the manifest names a header.
pub(crate) fn net_fix_text(
    policy_context: &PolicyContext,
    requests: &[NetPattern],
    secrets: &[SecretRequest],
) -> String {
    let granted = |request: &&NetPattern| {
        policy_context
            .effective_table()
            .net
            .allows
            .iter()
            .any(|allow| allow.pattern.covers(request))
    };
    let mut table = PluginTableText::new(policy_context);
    let missing = requests.iter().filter(|request| !granted(request));
    table.net.extend(missing.map(request_entry_toml));
    let sent = secrets.iter().filter_map(|request| {
        Some((request, sent_secret_entry(policy_context, requests, request)?))
    });
    let (sent, entries): (Vec<&SecretRequest>, Vec<String>) = sent.unzip();
    table.secrets.extend(entries);
    let unknown = sent.iter().filter(|request| !policy_context.secrets.contains(&request.name));
    let sources = unknown.map(|request| format!("\n{}", secret_source_toml(&request.name)));
    sources.fold(table.text_with_rule(), |text, source| text + &source)
}

/// Returns the entry that sends a secret with the requests, unless the policy has one already.
fn sent_secret_entry(
    policy_context: &PolicyContext,
    requests: &[NetPattern],
    secret: &SecretRequest,
) -> Option<String> {
    let SecretRequest { name, header, .. } = secret;
    let header = header.as_ref()?;
    if policy_context.effective_table().secrets.iter().any(|grant| grant.name == *name) {
        return None;
    }
    let origin = requests.iter().find_map(NetPattern::single_origin)?;
    Some(format!("{{ name = \"{name}\", to = \"{origin}\", {header} }}"))
}

/// Returns a TOML string. TOML escapes like JSON, except for U+007F, which JSON leaves unescaped
/// and TOML rejects.
pub(crate) fn toml_string(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// Returns a TOML list on one line.
pub(crate) fn toml_list(entries: impl Iterator<Item = String>) -> String {
    format!("[{}]", entries.collect::<Vec<_>>().join(", "))
}
