//! Remarks on a policy: entries that have no effect, names that do not exist, and rules that allow
//! more than anyone can have reviewed.
//!
//! A remark is not an error, so the policy still applies. But an operator who reads a line of a
//! policy assumes that it has an effect, and exactly that effect.

use std::collections::{BTreeMap, BTreeSet};

use sallyport_contract::{Decision, PluginName, ToolId, ToolName};

use crate::{
    capability::{Capability, CapabilityTable},
    net::entry::{NetAllowEntry, NetTable, never_asks},
    policy::Policy,
    question::{ROLE_PREFIX, ROLE_RUNS},
    rule::PolicyRule,
    secret::SecretGrant,
    source::{SourceLocation, nearest_match},
    table::PluginTable,
    tool_pattern::ToolPattern,
};

/// The installed plugins, with their tools.
pub type Installed = BTreeMap<PluginName, BTreeSet<ToolName>>;

/// Something in a policy that the operator should review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyRemark {
    /// The kind of the remark.
    pub kind: PolicyRemarkKind,
    /// The place of the rule or entry.
    pub place: SourceLocation,
    /// What it is, and why it has no effect or how far it reaches.
    pub message: String,
}

/// Why the operator should review something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyRemarkKind {
    /// It has no effect.
    Useless,
    /// It also allows something of plugins that are not installed yet.
    Wide,
}

impl PolicyRemarkKind {
    /// The word for the kind in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Useless => "useless",
            Self::Wide => "wide",
        }
    }
}

impl PolicyRemark {
    fn new_useless(place: &SourceLocation, message: impl Into<String>) -> Self {
        Self { kind: PolicyRemarkKind::Useless, place: place.clone(), message: message.into() }
    }
}

impl Policy {
    /// Returns the remarks on the policy, in the order of the files and their lines.
    pub fn find_remarks(&self, installed: &Installed) -> Vec<PolicyRemark> {
        let tables = self.plugin_tables().map(|tables| &tables.effective);
        let of_tables = tables.flat_map(|table| {
            let missing = remark_on_missing_plugin(table, installed);
            let capabilities = remarks_on_capabilities(&table.capabilities);
            missing
                .into_iter()
                .chain(remarks_on_net(&table.net))
                .chain(remarks_on_duplicate_names(table))
                .chain(capabilities)
        });
        let rules = self.rules().iter().enumerate();
        let of_rules =
            rules.filter_map(|(index, rule)| self.remark_on_rule(index, rule, installed));
        let mut remarks: Vec<_> = of_tables
            .chain(of_rules)
            .chain(self.group_remarks(installed))
            .chain(self.unused_secret_remarks())
            .chain(self.wide_rule_remarks())
            .collect();
        remarks.sort_by(|a, b| location_sort_key(&a.place).cmp(&location_sort_key(&b.place)));
        remarks
    }

    /// The remarks on the rules of groups. They are compared with the rules about all users only,
    /// because nobody knows here who belongs to two groups.
    fn group_remarks(&self, installed: &Installed) -> impl Iterator<Item = PolicyRemark> {
        let rules = self.groups().iter().flat_map(|group| &group.rules);
        rules.flat_map(move |rule| {
            let tools = if rule.except.is_empty() {
                vec![&rule.tools]
            } else {
                rule.except.iter().collect()
            };
            let missing =
                tools.into_iter().filter_map(|tools| missing_tools_message(tools, installed));
            let mut messages: Vec<String> = missing.collect();
            if messages.is_empty() {
                messages.extend(self.overridden_message(rule, self.rules().len()));
            }
            messages.into_iter().map(|message| PolicyRemark::new_useless(&rule.place, message))
        })
    }

    /// Which rule about all users makes this one ineffective. `index` is its position.
    fn overridden_message(&self, rule: &PolicyRule, index: usize) -> Option<String> {
        let mut others = self.rules().iter().enumerate();
        let (_, other) =
            others.find(|(at, other)| *at != index && other.overrides_rule(*at, rule, index))?;
        let (what, says) = (other.subject_text(), other.decision.as_str());
        Some(format!("never decides: {} says {says} to {what}", other.place))
    }

    /// The remark on a rule that never decides anything, if it does not.
    fn remark_on_rule(
        &self,
        index: usize,
        rule: &PolicyRule,
        installed: &Installed,
    ) -> Option<PolicyRemark> {
        let place = &rule.place;
        if let Some(message) = missing_tools_message(&rule.tools, installed) {
            return Some(PolicyRemark::new_useless(place, message));
        }
        if let Some(message) = self.overridden_message(rule, index) {
            return Some(PolicyRemark::new_useless(place, message));
        }
        let what = self.unreachable_subject(rule)?;
        let whose =
            rule.tools.single_plugin().map_or("any plugin".to_owned(), |one| one.to_string());
        Some(PolicyRemark::new_useless(
            place,
            format!("has no effect: no entry of {whose} allows {what}"),
        ))
    }

    /// The rules that allow calls of any plugin, including plugins that are added later.
    pub fn wide_rule_remarks(&self) -> impl Iterator<Item = PolicyRemark> {
        let is_wide = |rule: &&PolicyRule| {
            let is_bound = rule.tools.single_plugin().is_some() || rule.digest.is_some();
            rule.decision == Decision::Allow && !is_bound
        };
        self.rules().iter().filter(is_wide).map(|rule| {
            let what = rule.subject_text();
            let message =
                format!("allows {what} without asking, also for plugins that you add later");
            PolicyRemark {
                kind: PolicyRemarkKind::Wide,
                ..PolicyRemark::new_useless(&rule.place, message)
            }
        })
    }

    /// The rules that name a plugin, alone or with others whose names are similar, and what each
    /// says. They stay when the plugin's grants are revoked.
    pub fn rules_naming(&self, plugin: &PluginName) -> impl Iterator<Item = String> {
        let naming = self.all_rules().filter(move |rule| rule.tools.names_plugin(plugin));
        naming.map(|rule| {
            let (what, says) = (rule.subject_text(), rule.decision.as_str());
            format!("{} says {says} to {what}", rule.place)
        })
    }

    /// The tools of the rules that name a plugin, of those that are about calls and about all users.
    pub fn call_rule_tools(&self, plugin: &PluginName) -> BTreeSet<String> {
        let is_about_calls = |rule: &&PolicyRule| rule.net.is_none() && rule.page.is_none();
        let rules = self.rules().iter().filter(is_about_calls);
        let naming = rules.filter(|rule| rule.tools.names_plugin(plugin));
        naming.map(|rule| rule.tools.to_string()).collect()
    }

    /// The subject of a rule, if no entry of its plugin ever permits that subject.
    fn unreachable_subject(&self, rule: &PolicyRule) -> Option<String> {
        let tables = self.plugin_tables().map(|tables| &tables.effective);
        let mut tables = tables.filter(|table| rule.tools.can_match_plugin(&table.plugin));
        if let Some(net) = &rule.net {
            let mut allows = tables.flat_map(|table| &table.net.allows);
            let is_reached = allows.any(|allow| allow.pattern.intersect_with(net).is_some());
            return (!is_reached).then(|| net.to_string());
        }
        let pages = rule.page.as_ref()?;
        let is_reached = tables.any(|table| pages.can_overlap_grants(&table.capabilities));
        (!is_reached).then(|| format!("opening {pages}"))
    }

    fn unused_secret_remarks(&self) -> impl Iterator<Item = PolicyRemark> {
        let granted = self.plugin_tables().flat_map(|tables| &tables.effective.secrets);
        let used: BTreeSet<_> = granted.map(|grant| &grant.name).collect();
        let unused =
            self.secret_entries().values().filter(move |entry| !used.contains(&entry.name));
        unused.map(|entry| {
            PolicyRemark::new_useless(
                &entry.place,
                format!("no plugin has a grant for the secret {}", entry.name),
            )
        })
    }
}

fn location_sort_key(place: &SourceLocation) -> (&str, usize, usize) {
    (&place.file, place.line, place.column)
}

impl PolicyRule {
    /// Whether this rule makes another one ineffective. `own` and `its` are their positions in the
    /// list.
    ///
    /// This rule must match whenever the other does, and be stricter, or equally strict and
    /// earlier.
    fn overrides_rule(&self, own: usize, other: &Self, its: usize) -> bool {
        let wins = self.decision > other.decision || (self.decision == other.decision && own < its);
        let covers_digest = self
            .digest
            .as_ref()
            .is_none_or(|digest| other.digest.as_ref().is_some_and(|others| digest.covers(others)));
        wins && self.covers_subject(other)
            && covers_digest
            && self.when.is_none()
            && self.tools.covers(&other.tools)
    }

    /// Whether this rule covers everything that another one is about, regardless of the tools.
    fn covers_subject(&self, other: &Self) -> bool {
        match ((&self.net, &self.page), (&other.net, &other.page)) {
            ((None, None), (None, None)) => true,
            // A denied call sends no requests and opens no pages.
            ((None, None), _) => self.decision == Decision::Deny,
            ((Some(net), _), (Some(others), _)) => net.covers(others),
            ((_, Some(pages)), (_, Some(others))) => pages.covers(others),
            ((Some(_), _) | (_, Some(_)), _) => false,
        }
    }

    fn subject_text(&self) -> String {
        match (&self.net, &self.page) {
            (None, None) => format!("every call of {}", self.tools),
            (Some(net), _) => format!("{net} of {}", self.tools),
            (None, Some(pages)) => format!("the opening of {pages} by {}", self.tools),
        }
    }
}

fn remark_on_missing_plugin(table: &PluginTable, installed: &Installed) -> Option<PolicyRemark> {
    let plugin = &table.plugin;
    if installed.contains_key(plugin) {
        return None;
    }
    let net = table.net.allows.iter().map(|allow| &allow.place);
    let denies = table.net.denies.iter().map(|deny| &deny.place);
    let fs = table.fs.iter().map(|entry| &entry.place);
    let env = table.env.iter().map(|entry| &entry.place);
    let secrets = table.secrets.iter().map(|entry| &entry.place);
    let capabilities = table.capabilities.entry_places();
    let places = net.chain(denies).chain(fs).chain(env).chain(secrets).chain(capabilities);
    let first = places.min_by_key(|place| location_sort_key(place))?;
    Some(PolicyRemark::new_useless(first, missing_plugin_message(plugin, installed)))
}

fn missing_plugin_message(plugin: &PluginName, installed: &Installed) -> String {
    let near = nearest_match(plugin.as_str(), installed.keys().map(PluginName::as_str));
    with_suggestion(format!("no plugin {plugin} is installed"), near)
}

fn missing_tools_message(tools: &ToolPattern, installed: &Installed) -> Option<String> {
    let plugin = tools.single_plugin();
    if let Some(plugin) = plugin.as_ref().filter(|plugin| !installed.contains_key(plugin)) {
        return Some(missing_plugin_message(plugin, installed));
    }
    if let Some(run) = tools.single_tool().filter(|id| id.tool.as_str().starts_with(ROLE_PREFIX)) {
        return missing_role_message(&run);
    }
    let known = installed.iter().flat_map(|(plugin, known)| {
        let runs = ROLE_RUNS.iter().filter_map(|run| format!("{ROLE_PREFIX}{run}").parse().ok());
        known.iter().cloned().chain(runs).map(|tool| ToolId::new(plugin.clone(), tool))
    });
    if known.into_iter().any(|tool| tools.matches(&tool)) {
        return None;
    }
    Some(match tools.single_tool() {
        Some(ToolId { plugin, tool }) => {
            let known = installed.get(&plugin).into_iter().flatten();
            let near = nearest_match(tool.as_str(), known.map(ToolName::as_str));
            with_suggestion(format!("{plugin} has no tool {tool}"), near)
        }
        None => format!("no tool that is installed matches {tools}"),
    })
}

/// The message for a rule about a role that does not exist.
fn missing_role_message(id: &ToolId) -> Option<String> {
    let role = id.tool.as_str().strip_prefix(ROLE_PREFIX)?;
    let near = nearest_match(role, ROLE_RUNS);
    let message = || with_suggestion(format!("there is no role {role}"), near);
    (!ROLE_RUNS.contains(&role)).then(message)
}

fn with_suggestion(message: String, near: Option<&str>) -> String {
    match near {
        Some(near) => format!("{message}; did you mean {near}?"),
        None => message,
    }
}

fn remarks_on_net(net: &NetTable) -> impl Iterator<Item = PolicyRemark> {
    let allows = net.allows.iter().enumerate();
    let allows = allows.filter_map(|(index, entry)| remark_on_allow_entry(net, index, entry));
    let mut seen = BTreeMap::new();
    let denies = net.denies.iter().filter_map(move |deny| {
        let first = *seen.entry(deny.pattern.to_string()).or_insert(&deny.place);
        let message = format!("denies what the entry at {first} denies");
        (*first != deny.place).then(|| PolicyRemark::new_useless(&deny.place, message))
    });
    allows.chain(denies)
}

/// The remark on an entry that allows but changes nothing.
fn remark_on_allow_entry(
    net: &NetTable,
    index: usize,
    entry: &NetAllowEntry,
) -> Option<PolicyRemark> {
    let denying = net.denies.iter().find(|deny| deny.pattern.covers(&entry.pattern));
    if let Some(deny) = denying {
        let message = format!("allows nothing: the entry at {} denies all of it", deny.place);
        return Some(PolicyRemark::new_useless(&entry.place, message));
    }
    if never_asks(entry, &net.allows) {
        let lifts = |other: &&NetAllowEntry| other.decision < entry.decision && other.covers(entry);
        let other = net.allows.iter().find(lifts)?;
        let message = format!("never asks: the entry at {} allows all of it", other.place);
        return Some(PolicyRemark::new_useless(&entry.place, message));
    }
    let repeats = |(at, other): &(usize, &NetAllowEntry)| {
        let both_ways = entry.covers(other);
        *at != index
            && other.decision == entry.decision
            && other.covers(entry)
            && (!both_ways || *at < index)
    };
    let (_, other) = net.allows.iter().enumerate().find(repeats)?;
    let message = format!("adds nothing to the entry at {}, which covers it", other.place);
    Some(PolicyRemark::new_useless(&entry.place, message))
}

/// The remarks on variables and secrets that are granted twice.
fn remarks_on_duplicate_names(table: &PluginTable) -> Vec<PolicyRemark> {
    let mut remarks = Vec::new();
    let mut seen = BTreeMap::new();
    for entry in &table.env {
        let first = *seen.entry(&entry.name).or_insert(&entry.place);
        if *first != entry.place {
            let message = format!("grants {} like the entry at {first}", entry.name);
            remarks.push(PolicyRemark::new_useless(&entry.place, message));
        }
    }
    for (index, entry) in table.secrets.iter().enumerate() {
        let same =
            |other: &&SecretGrant| (&other.name, &other.usage) == (&entry.name, &entry.usage);
        if let Some(first) = table.secrets[..index].iter().find(same) {
            let message = format!("grants {} like the entry at {}", entry.name, first.place);
            remarks.push(PolicyRemark::new_useless(&entry.place, message));
        }
    }
    remarks
}

/// The remarks on capabilities that are granted and taken away, and on packages and pages that are
/// granted twice.
fn remarks_on_capabilities(table: &CapabilityTable) -> Vec<PolicyRemark> {
    let taken = Capability::ALL.into_iter().filter_map(|of| Some((of, table.denied_at(of)?)));
    let taken = taken.flat_map(|(of, at)| {
        let entries = table.entries_with_text(of).into_iter();
        let message = format!("grants nothing: {at} takes \"{of}\" away");
        entries.map(move |(place, _)| PolicyRemark::new_useless(place, message.clone()))
    });
    let redundant = Capability::ALL.into_iter().flat_map(|of| {
        let parts = of.kind().redundant_parts(&table.grants(of).collect::<Vec<_>>());
        parts.into_iter().map(|(place, note)| PolicyRemark::new_useless(&place, note))
    });
    taken.chain(redundant).collect()
}
