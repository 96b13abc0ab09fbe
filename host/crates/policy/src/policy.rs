//! The policy: what the operator grants, and what a tool may do without asking.
//!
//! Parsing is where errors happen. Everything after it is a function of values at hand: it cannot
//! fail, block, or look anything up.

use std::{collections::BTreeMap, path::Path};

use sallyport_contract::{Decision, Denial, PluginName, ToolId};
use serde_json::{Map, Value};

use crate::{
    document::Document,
    fix::{self, Ground},
    folder::FsEntry,
    grant::Grant,
    manifest::Manifest,
    rule::{Rule, ToolPattern},
    source::{Place, SourceError},
    table::PluginTable,
};

/// What the operator grants to plugins and decides about tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    plugins: BTreeMap<PluginName, PluginTable>,
    rules: Vec<Rule>,
}

/// What a policy says about calling a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The decision.
    pub decision: Decision,
    /// Why: the rule with its place, or the default and what led to it.
    pub reason: String,
    /// Where the rule stands that decided; `None` when no rule matched.
    pub rule: Option<Place>,
}

impl Policy {
    /// Returns the policy that grants nothing.
    pub fn empty() -> Self {
        Self { plugins: BTreeMap::new(), rules: Vec::new() }
    }

    /// Parses a policy. `file` names it in errors and reasons; `home` is what `~` stands for.
    ///
    /// # Errors
    ///
    /// Anything in the file that is not understood completely.
    pub fn parse(file: &str, text: &str, home: Option<&Path>) -> Result<Self, SourceError> {
        Document::read(file, text, |root| {
            let tables =
                root.named("plugin", |name, table| PluginTable::read(name, table, home))?;
            let rules = root.list("rule", Rule::read)?;
            let named = tables.into_iter().map(|table| (table.plugin.clone(), table));
            Ok(Self { plugins: named.collect(), rules })
        })
    }

    /// The plugins that the policy has a table for, by name.
    pub fn plugins(&self) -> impl Iterator<Item = &PluginName> {
        self.plugins.keys()
    }

    /// Every entry for files, of all plugins.
    pub(crate) fn mounted(&self) -> impl Iterator<Item = &FsEntry> {
        self.plugins.values().flat_map(|table| &table.fs)
    }

    /// Returns what a plugin effectively gets: what its manifest requests and this policy grants.
    ///
    /// `settings` are the plugin's own settings, which its requests may refer to. Requests that
    /// cannot be understood with them, and grants that nothing requests, are named in
    /// [`Grant::notes`].
    pub fn grant(&self, manifest: &Manifest, settings: &Map<String, Value>) -> Grant {
        let plugin = &manifest.name;
        let table = self.plugins.get(plugin).cloned();
        let table = table.unwrap_or_else(|| PluginTable::empty(plugin.clone()));
        let all = ToolPattern::AllOf(plugin.clone());
        let is_ruled = self.rules.iter().any(|rule| rule.tools == all);
        Grant::new(Ground { table, is_ruled }, manifest, settings)
    }

    /// Decides whether a tool of the plugin that holds `grant` may be called.
    ///
    /// Of all rules that match, the strictest wins. Without one, a plugin that can neither change
    /// nor leak anything may be called, and for every other plugin a person is asked.
    pub fn decide(&self, tool: &ToolId, grant: &Grant) -> Verdict {
        let matching = self.rules.iter().filter(|rule| rule.tools.matches(tool));
        // Of equally strict rules, the first one in the file is named.
        let strictest = matching.reduce(|a, b| if b.decision > a.decision { b } else { a });
        match strictest {
            Some(rule) => Verdict {
                decision: rule.decision,
                reason: rule.reason(),
                rule: Some(rule.place.clone()),
            },
            None => default_verdict(tool, grant),
        }
    }
}

fn default_verdict(tool: &ToolId, grant: &Grant) -> Verdict {
    let plugin = &tool.plugin;
    let danger = match (!grant.net().is_empty(), grant.can_write()) {
        (false, false) => {
            let reason =
                format!("no rule for it, and {plugin} can neither change nor leak anything");
            return Verdict { decision: Decision::Allow, reason, rule: None };
        }
        (true, false) => "reach the network",
        (false, true) => "change files",
        (true, true) => "reach the network and change files",
    };
    let reason = format!("no rule for it, and {plugin} can {danger}");
    Verdict { decision: Decision::Ask, reason, rule: None }
}

impl Verdict {
    /// Returns the refusal of a call that was denied, or that nobody was there to agree to.
    ///
    /// The fix is a rule that allows the tool. There is none where a rule of the policy decided:
    /// it would stay the strictest, and has to be changed itself.
    pub fn denial(&self, tool: &ToolId) -> Denial {
        Denial {
            what: format!("{tool} may not be called"),
            why: self.reason.clone(),
            fix: self.rule.is_none().then(|| fix::rule_text(&tool.to_string())),
            nobody_to_ask: self.decision == Decision::Ask,
        }
    }
}
