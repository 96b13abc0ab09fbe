//! The policy: the operator's grants, and which calls need no confirmation.
//!
//! A policy consists of several files: the administrator's, the user's, a project's. The first two
//! can grant; a project's file can only tighten. The rules of all files form one list, and the
//! strictest rule that matches wins.
//!
//! Only parsing can fail. Everything after it is a function of its arguments: it cannot fail,
//! block, or look anything up.

mod of_user;

use std::{collections::BTreeMap, path::Path};

use sallyport_contract::{Decision, PluginName, ToolId};
use serde_json::{Map, Value};
use url::Url;

use crate::{
    capability::shared_scratch_quotas,
    condition::ConditionFacts,
    document::{TomlDocument, TomlSection},
    folder::FsEntry,
    grant::{Grant, NetPermit},
    group::{self, UserGroup},
    limits::{GlobalLimits, StatedLimits},
    manifest::Manifest,
    net::pattern::RequestTarget,
    policy_context::PolicyContext,
    proxy::ProxyTable,
    question::{PolicyQuestion, ROLE_PREFIX, is_called_like_tool},
    rule::{PolicyRule, RuleExampleResult},
    rule_totals::RuleTotals,
    secret::{SecretEntry, SecretName, SecretSource, SecretSources, check_sources},
    source::SourceError,
    table::{PluginTable, TieredPluginTables},
    tier::PolicyTier,
    verdict::{DecidedAccess, PolicyVerdict},
};

/// The operator's grants to plugins and decisions about tools.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    plugins: BTreeMap<PluginName, TieredPluginTables>,
    rules: Vec<PolicyRule>,
    /// The groups of all files. Those with the same name apply next to each other.
    groups: Vec<UserGroup>,
    /// The limits that each file states for all plugins.
    limits: Vec<(PolicyTier, StatedLimits)>,
    secrets: SecretSources,
    proxy: Option<ProxyTable>,
}

/// One parsed policy file, not yet combined with the others.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyFile {
    tier: PolicyTier,
    plugins: Vec<PluginTable>,
    rules: Vec<PolicyRule>,
    groups: Vec<UserGroup>,
    limits: StatedLimits,
    secrets: Vec<SecretEntry>,
    proxy: Option<ProxyTable>,
}

impl Policy {
    /// Returns the policy that grants nothing.
    pub fn empty() -> Self {
        Self {
            plugins: BTreeMap::new(),
            rules: Vec::new(),
            groups: Vec::new(),
            limits: Vec::new(),
            secrets: SecretSources::new(),
            proxy: None,
        }
    }

    /// Parses one policy file. `file` names it in errors and reasons; `home` replaces a leading
    /// `~`.
    ///
    /// # Errors
    ///
    /// Anything in the file that is not understood completely, an example whose rule decides
    /// otherwise, and anything in a project's file that grants.
    pub fn parse_file(
        tier: PolicyTier,
        file: &str,
        text: &str,
        home: Option<&Path>,
    ) -> Result<PolicyFile, SourceError> {
        TomlDocument::read_with(file, text, |root| {
            let plugin = |name, table| PluginTable::from_toml(name, table, home, tier);
            let secret = |name, table| SecretEntry::from_toml(name, table, home, tier);
            let limits = root.read_optional("limits", StatedLimits::from_toml)?;
            let mut totals = RuleTotals::none();
            Ok(PolicyFile {
                tier,
                plugins: root.read_named_items("plugin", plugin)?,
                rules: read_rules(root, tier, &mut totals)?,
                groups: read_groups(root, tier, &mut totals)?,
                limits: limits.unwrap_or_else(StatedLimits::empty),
                secrets: root.read_named_items("secret", secret)?,
                proxy: root.read_optional("proxy", |item| ProxyTable::from_toml(item, tier))?,
            })
        })
    }

    /// Combines policy files, in the order administrator, user, project.
    ///
    /// # Errors
    ///
    /// Entries of different files that conflict, and a granted secret for which no file names a
    /// source.
    pub fn from_files(mut files: Vec<PolicyFile>) -> Result<Self, SourceError> {
        files.sort_by_key(|file| file.tier);
        let tables = files.iter().map(|file| (file.tier, file.plugins.clone()));
        let secrets = files.iter().flat_map(|file| file.secrets.clone());
        let limits: Vec<_> = files.iter().map(|file| (file.tier, file.limits.clone())).collect();
        let policy = Self {
            plugins: TieredPluginTables::from_files(tables, &limits)?,
            rules: files.iter().flat_map(|file| file.rules.clone()).collect(),
            groups: files.iter().flat_map(|file| file.groups.clone()).collect(),
            limits,
            secrets: SecretEntry::merge_entries(secrets)?,
            proxy: ProxyTable::merge_tables(files.iter().filter_map(|file| file.proxy.clone()))?,
        };
        let granted = policy.plugins.values().flat_map(|tables| &tables.effective.secrets);
        check_sources(granted, &policy.secrets)?;
        Ok(policy)
    }

    /// Parses a policy that consists of the user's file alone.
    ///
    /// # Errors
    ///
    /// As for [`parse_file`](Self::parse_file) and [`from_files`](Self::from_files).
    pub fn from_user_file(
        file: &str,
        text: &str,
        home: Option<&Path>,
    ) -> Result<Self, SourceError> {
        Self::from_files(vec![Self::parse_file(PolicyTier::User, file, text, home)?])
    }

    /// The plugins that have a table in the policy, by name.
    pub fn plugin_names(&self) -> impl Iterator<Item = &PluginName> {
        self.plugins.keys()
    }

    /// The source of a secret's value.
    pub fn secret_source(&self, name: &SecretName) -> Option<&SecretSource> {
        self.secrets.get(name).map(|entry| &entry.source)
    }

    /// Every secret that has a source, with that source, by name.
    pub fn secret_sources(&self) -> impl Iterator<Item = (&SecretName, &SecretSource)> {
        self.secrets.iter().map(|(name, entry)| (name, &entry.source))
    }

    /// The proxy for requests, if one is configured.
    pub fn proxy(&self) -> Option<&ProxyTable> {
        self.proxy.as_ref()
    }

    /// The limits on the calls of all plugins together.
    pub fn shared_limits(&self) -> GlobalLimits {
        StatedLimits::merge_global_limits(self.limits.iter().map(|(_, limits)| limits))
    }

    /// The results of all examples, in the order of the files. Each one matches its expectation:
    /// parsing refuses a file in which one does not.
    pub fn example_results(&self) -> impl Iterator<Item = RuleExampleResult> {
        self.all_rules().flat_map(PolicyRule::example_results)
    }

    /// Every `fs` entry of all plugins.
    pub(crate) fn fs_entries(&self) -> impl Iterator<Item = &FsEntry> {
        self.plugins.values().flat_map(|tables| &tables.effective.fs)
    }

    pub(crate) fn plugin_tables(&self) -> impl Iterator<Item = &TieredPluginTables> {
        self.plugins.values()
    }

    pub(crate) fn tables_for_plugin(&self, plugin: &PluginName) -> Option<&TieredPluginTables> {
        self.plugins.get(plugin)
    }

    /// The rules about all users.
    pub(crate) fn rules(&self) -> &[PolicyRule] {
        &self.rules
    }

    /// The rules about all users, and those of all groups.
    pub(crate) fn all_rules(&self) -> impl Iterator<Item = &PolicyRule> {
        self.rules.iter().chain(self.groups.iter().flat_map(|group| &group.rules))
    }

    /// The groups, in the order of the files.
    pub fn groups(&self) -> &[UserGroup] {
        &self.groups
    }

    pub(crate) fn secret_entries(&self) -> &SecretSources {
        &self.secrets
    }

    /// Returns the effective grant of a plugin: what its manifest requests and this policy grants.
    ///
    /// `settings` are the plugin's own settings, which its requests may refer to. [`Grant::notes`]
    /// lists the requests that are not valid with these settings and the grants that nothing
    /// requests.
    pub fn effective_grant(&self, manifest: &Manifest, settings: &Map<String, Value>) -> Grant {
        let plugin = &manifest.name;
        let tables = self.tables_for_plugin(plugin).cloned();
        let unmentioned =
            || TieredPluginTables::for_unmentioned_plugin(plugin.clone(), &self.limits);
        let policy_context = PolicyContext {
            tables: tables.unwrap_or_else(unmentioned),
            has_covering_rule: self.rules.iter().any(|rule| rule.is_about_every_call_of(plugin)),
            secrets: self.secrets.keys().cloned().collect(),
            scratch_quotas: shared_scratch_quotas(
                self.plugin_tables().map(|tables| &tables.effective.capabilities),
            ),
        };
        Grant::new(policy_context, manifest, settings)
    }

    /// Decides whether a call may be made by the plugin that holds `grant`.
    ///
    /// Of all rules that match, the strictest wins. If no rule matches, the call is allowed for a
    /// plugin that can neither change nor leak anything, and the user is asked for any other
    /// plugin.
    pub fn decide_call(&self, question: &PolicyQuestion<'_>, grant: &Grant) -> PolicyVerdict {
        let about = |rule: &PolicyRule| rule.is_about_call(question.tool, question.digest);
        let default = || default_call_decision(question.tool, grant);
        self.evaluate_rules(question, grant, None, about, default)
    }

    /// Decides about a run that no model asked for: a timer that fires, a listener that handles a
    /// signal, a provider that generates. The question's tool is the role, as `PLUGIN.role:timer`.
    ///
    /// Of all rules that match, the strictest wins. If no rule matches, the run is allowed, because
    /// the operator accepted the plugin by choosing it for the role by name. Resources and prompts
    /// are decided like calls, because a client reads them without such a choice.
    pub fn decide_role(&self, question: &PolicyQuestion<'_>, grant: &Grant) -> PolicyVerdict {
        if is_called_like_tool(question.tool) {
            return self.decide_call(question, grant);
        }
        let about = |rule: &PolicyRule| rule.is_about_call(question.tool, question.digest);
        let reason = || format!("no rule for it, and {}", role_choice_reason(question.tool));
        self.evaluate_rules(question, grant, None, about, || (Decision::Allow, reason()))
    }

    /// Decides about a request of a running call that the plugin's grant permits.
    ///
    /// Of all rules about such a request, the strictest wins. If there is none, the entry that
    /// permits the request decides whether the user is asked.
    pub fn decide_access(
        &self,
        question: &PolicyQuestion<'_>,
        grant: &Grant,
        method: &str,
        url: &Url,
        permit: &NetPermit<'_>,
    ) -> PolicyVerdict {
        // A request that cannot be parsed into a target is not permitted by any rule either.
        let target = RequestTarget::new(method, url).ok();
        let about = |rule: &PolicyRule| {
            let is_about = |to| rule.is_about_access(question.tool, question.digest, to);
            target.as_ref().is_some_and(is_about)
        };
        let access = Some(DecidedAccess::Request(method.to_owned(), url.clone()));
        let default =
            || (permit.decision(), format!("no rule for it; entry at {}", permit.place()));
        self.evaluate_rules(question, grant, access, about, default)
    }

    /// Decides about a page that a running call opens in the user's browser.
    ///
    /// A page that is not granted is denied, regardless of the rules. For a granted page the
    /// strictest rule about it wins. If there is none, the entry that grants the page decides
    /// whether the user is asked.
    pub fn decide_page(
        &self,
        question: &PolicyQuestion<'_>,
        grant: &Grant,
        url: &Url,
    ) -> PolicyVerdict {
        let access = DecidedAccess::Page(url.clone());
        let entry = match grant.find_page_entry(url) {
            Ok(entry) => entry,
            Err(denial) => return PolicyVerdict::for_ungranted(access, denial),
        };
        let about = |rule: &PolicyRule| rule.is_about_page(question.tool, question.digest, url);
        let default = || (entry.decision, format!("no rule for it; entry at {}", entry.place));
        self.evaluate_rules(question, grant, Some(access), about, default)
    }

    /// The verdict of the rules that `about` selects, or the default if none applies.
    fn evaluate_rules(
        &self,
        question: &PolicyQuestion<'_>,
        grant: &Grant,
        access: Option<DecidedAccess>,
        about: impl Fn(&PolicyRule) -> bool,
        default: impl FnOnce() -> (Decision, String),
    ) -> PolicyVerdict {
        let tool = question.tool.to_string();
        let facts = ConditionFacts::new(question.call_facts(&tool), grant);
        let groups = self.groups_of(question.context.user(), question.login_groups);
        let rules = self.rules.iter().chain(groups.flat_map(|group| &group.rules));
        let rules = rules.filter(|rule| about(rule));
        let matched_rules = rules.filter_map(|rule| rule.match_call(&facts)).collect();
        PolicyVerdict::from_rules(access, matched_rules, facts.call_facts(), default)
    }

    /// Returns the expected verdict for calls of a tool, before its arguments are known.
    ///
    /// A rule with a condition may or may not match. If it could change the decision, the reason
    /// mentions it.
    pub fn expected_verdict(&self, tool: &ToolId, digest: &str, grant: &Grant) -> PolicyVerdict {
        let about = self.rules.iter().filter(|rule| rule.is_about_call(tool, digest));
        let (open, certain_rules): (Vec<_>, Vec<_>) = about.partition(|rule| rule.when.is_some());
        PolicyVerdict::from_possible_rules(&certain_rules, &open, || {
            default_call_decision(tool, grant)
        })
    }
}

fn read_rules(
    root: &mut TomlSection<'_>,
    tier: PolicyTier,
    totals: &mut RuleTotals,
) -> Result<Vec<PolicyRule>, SourceError> {
    root.read_list("rule", |item| totals.count_rule(PolicyRule::from_toml(item, tier)?))
}

fn read_groups(
    root: &mut TomlSection<'_>,
    tier: PolicyTier,
    totals: &mut RuleTotals,
) -> Result<Vec<UserGroup>, SourceError> {
    let group = |name, table| UserGroup::from_toml(name, table, tier, totals);
    let groups = root.read_named_items("group", group)?;
    group::check_count(&groups)?;
    Ok(groups)
}

/// Why a role needs no second confirmation.
fn role_choice_reason(tool: &ToolId) -> String {
    match tool.tool.as_str().strip_prefix(ROLE_PREFIX) {
        Some("timer") => "the timer is its own".to_owned(),
        Some("http") => "you chose it to answer requests".to_owned(),
        Some(role) => format!("you chose it as {role}"),
        None => "you chose it by name".to_owned(),
    }
}

/// The default decision about a call, and its reason.
///
/// If a project's policy takes a power away, the user is still asked: an untrusted file must never
/// reduce the number of questions.
fn default_call_decision(tool: &ToolId, grant: &Grant) -> (Decision, String) {
    let plugin = &tool.plugin;
    match (grant.danger_phrases().as_slice(), grant.withheld_danger_phrases().as_slice()) {
        ([], []) => {
            let reason =
                format!("no rule for it, and {plugin} can neither change nor leak anything");
            (Decision::Allow, reason)
        }
        ([], withheld) => {
            let words = withheld.join(" and ");
            let reason =
                format!("no rule for it, and {plugin} could {words} without the project's policy");
            (Decision::Ask, reason)
        }
        (dangers, _) => {
            let words = dangers.join(" and ");
            (Decision::Ask, format!("no rule for it, and {plugin} can {words}"))
        }
    }
}
