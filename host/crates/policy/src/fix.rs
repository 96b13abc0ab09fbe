//! The policy text that would lift a refusal.
//!
//! A fix is complete: the plugin's whole table with everything it holds already, so that it takes
//! the place of the table in the file, and the rule that lets the tools run where nobody can be
//! asked. It asks for no more than the manifest requests.

use std::fmt::Write;

use serde_json::Value;

use crate::{limits::Limits, net::NetPattern, net::entry::entry_for_request, table::PluginTable};

/// What a fix builds on: how a plugin stands in the policy at present.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ground {
    /// Its table.
    pub(crate) table: PluginTable,
    /// Whether a rule speaks about all of its tools; a second one would change nothing.
    pub(crate) is_ruled: bool,
}

/// The table of a fix: every entry as TOML text, to be added to or replaced.
pub(crate) struct TableText<'g> {
    ground: &'g Ground,
    pub(crate) net: Vec<String>,
    pub(crate) fs: Vec<String>,
}

impl<'g> TableText<'g> {
    /// The table as it stands.
    pub(crate) fn new(ground: &'g Ground) -> Self {
        let net = &ground.table.net;
        let allows = net.allows.iter().map(ToString::to_string);
        let denies = net.denies.iter().map(ToString::to_string);
        let fs = ground.table.fs.iter().map(ToString::to_string);
        Self { ground, net: allows.chain(denies).collect(), fs: fs.collect() }
    }

    /// Returns the text, without a rule: for what a tool may do unasked.
    pub(crate) fn harmless(&self) -> String {
        let PluginTable { plugin, env, limits, .. } = &self.ground.table;
        let env: Vec<String> = env.iter().map(|name| toml_string(name)).collect();
        let mut text = format!("[plugin.{plugin}]\n");
        for (key, entries) in [("net", &self.net), ("fs", &self.fs), ("env", &env)] {
            if !entries.is_empty() {
                // Writing to a String cannot fail.
                let _ = writeln!(text, "{key} = {}", toml_list(entries.iter().cloned()));
            }
        }
        if *limits != Limits::standard() {
            let _ = writeln!(text, "limits = {limits}");
        }
        text
    }

    /// Returns the text with the rule that lets the tools run, unless the policy has one.
    pub(crate) fn with_rule(&self) -> String {
        let table = self.harmless();
        if self.ground.is_ruled {
            return table;
        }
        let plugin = &self.ground.table.plugin;
        format!("{table}\n{}", rule_text(&format!("{plugin}.*")))
    }
}

/// Returns the rule that allows a tool, or all tools of a plugin.
pub(crate) fn rule_text(tools: &str) -> String {
    format!("[[rule]]\ntool = {}\ndecision = \"allow\"\n", toml_string(tools))
}

/// Returns the text that grants every request for the network that is not granted yet.
pub(crate) fn net_text(ground: &Ground, requests: &[NetPattern]) -> String {
    let granted = |request: &&NetPattern| {
        ground.table.net.allows.iter().any(|allow| allow.pattern.covers(request))
    };
    let mut table = TableText::new(ground);
    let missing = requests.iter().filter(|request| !granted(request));
    table.net.extend(missing.map(entry_for_request));
    table.with_rule()
}

/// Returns a string of TOML. It escapes as JSON does; the one character that JSON leaves alone and
/// TOML refuses, delete, is in no text that is written here.
pub(crate) fn toml_string(text: &str) -> String {
    Value::from(text).to_string()
}

/// Returns a list of TOML on one line.
pub(crate) fn toml_list(entries: impl Iterator<Item = String>) -> String {
    format!("[{}]", entries.collect::<Vec<_>>().join(", "))
}
