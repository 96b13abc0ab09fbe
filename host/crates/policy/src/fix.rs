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
    capability::Capabilities,
    net::{NetPattern, entry::entry_for_request},
    request::SecretRequest,
    rule::RuleText,
    secret::{SecretName, source_text},
    table::{PluginTable, Tables},
};

/// The basis of a fix: the current policy for one plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ground {
    /// The plugin's tables.
    pub(crate) tables: Tables,
    /// Whether a rule covers all of its tools already; a second one would change nothing.
    pub(crate) is_ruled: bool,
    /// The secrets that have a source in the policy.
    pub(crate) secrets: BTreeSet<SecretName>,
    /// The quotas of scratches: the lowest that any plugin's table states.
    pub(crate) scratch_quotas: BTreeMap<String, u64>,
}

impl Ground {
    /// The effective table of the plugin, from all files.
    pub(crate) fn table(&self) -> &PluginTable {
        &self.tables.joined
    }

    /// The table of the plugin in the user's own file.
    pub(crate) fn users(&self) -> &PluginTable {
        &self.tables.users
    }
}

/// The table of a fix, with every entry as TOML text that can be extended or replaced.
pub(crate) struct TableText<'g> {
    ground: &'g Ground,
    pub(crate) net: Vec<String>,
    pub(crate) fs: Vec<String>,
    pub(crate) secrets: Vec<String>,
    pub(crate) capabilities: Capabilities,
}

impl<'g> TableText<'g> {
    /// Returns the current table.
    pub(crate) fn new(ground: &'g Ground) -> Self {
        let PluginTable { net, fs, secrets, capabilities, .. } = ground.users();
        let allows = net.allows.iter().map(ToString::to_string);
        let denies = net.denies.iter().map(ToString::to_string);
        Self {
            ground,
            net: allows.chain(denies).collect(),
            fs: fs.iter().map(ToString::to_string).collect(),
            secrets: secrets.iter().map(ToString::to_string).collect(),
            capabilities: capabilities.clone(),
        }
    }

    /// Returns the text without a rule, for tools that need no confirmation.
    pub(crate) fn harmless(&self) -> String {
        let PluginTable { plugin, env, limits, .. } = self.ground.users();
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
        for (key, value) in self.capabilities.lines() {
            let _ = writeln!(text, "{key} = {value}");
        }
        if !limits.is_empty() {
            let _ = writeln!(text, "limits = {limits}");
        }
        text
    }

    /// Returns the text with the rule that allows the tools, unless the policy has one already.
    pub(crate) fn with_rule(&self) -> String {
        let table = self.harmless();
        if self.ground.is_ruled {
            return table;
        }
        let plugin = &self.ground.table().plugin;
        format!("{table}\n{}", RuleText::allowing(format!("{plugin}.*")))
    }
}

/// Returns the text that grants all network requests that are not granted yet, and the secrets that
/// their service needs: those for which the manifest names a header.
pub(crate) fn net_text(
    ground: &Ground,
    requests: &[NetPattern],
    secrets: &[SecretRequest],
) -> String {
    let granted = |request: &&NetPattern| {
        ground.table().net.allows.iter().any(|allow| allow.pattern.covers(request))
    };
    let mut table = TableText::new(ground);
    let missing = requests.iter().filter(|request| !granted(request));
    table.net.extend(missing.map(entry_for_request));
    let sent =
        secrets.iter().filter_map(|request| Some((request, sent_text(ground, requests, request)?)));
    let (sent, entries): (Vec<&SecretRequest>, Vec<String>) = sent.unzip();
    table.secrets.extend(entries);
    let unknown = sent.iter().filter(|request| !ground.secrets.contains(&request.name));
    let sources = unknown.map(|request| format!("\n{}", source_text(&request.name)));
    sources.fold(table.with_rule(), |text, source| text + &source)
}

/// Returns the entry that sends a secret with the requests, unless the policy has one already.
fn sent_text(ground: &Ground, requests: &[NetPattern], secret: &SecretRequest) -> Option<String> {
    let SecretRequest { name, header, .. } = secret;
    let header = header.as_ref()?;
    if ground.table().secrets.iter().any(|grant| grant.name == *name) {
        return None;
    }
    let origin = requests.iter().find_map(NetPattern::origin)?;
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
