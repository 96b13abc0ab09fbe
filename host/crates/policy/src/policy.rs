//! The policy: what the operator grants, and what a tool may do without asking.
//!
//! It is made of several files: the administrator's, the user's, a project's. Grants come from the
//! first two, and the third can only tighten; rules are one list, of which the strictest that
//! matches wins.
//!
//! Parsing is where errors happen. Everything after it is a function of values at hand: it cannot
//! fail, block, or look anything up.

use std::{collections::BTreeMap, path::Path};

use sallyport_contract::{Decision, PluginName, Subject, ToolId};
use serde_json::{Map, Value};
use url::Url;

use crate::{
    condition::{Condition, Facts},
    document::{Document, Section},
    example::ExampleResult,
    fix::Ground,
    folder::FsEntry,
    grant::Grant,
    limits::{SharedLimits, StatedLimits},
    manifest::Manifest,
    net::{NetPermit, grant::request_line, pattern::Target},
    proxy::Proxy,
    question::{Question, ROLE_PREFIX},
    rule::Rule,
    secret::{SecretEntry, SecretName, SecretSource, SecretSources, check_sources},
    source::SourceError,
    table::{PluginTable, Tables},
    tier::Tier,
    unit::ByteSize,
    verdict::{Verdict, page_line},
};

/// Most text that the conditions of one file may hold together, in bytes: dozens of long ones, and
/// few enough that a stranger's file is read in no noticeable time.
const CONDITIONS_BYTES_MAX: usize = 64 << 10;

/// Most patterns that the conditions of one file may hold together: compiled, they are kept.
const PATTERNS_MAX: usize = 64;

/// Most rules of one file: years of answers that were to hold for always, and few enough that each
/// can be looked at for every call, and compared with every other.
const RULES_MAX: usize = 2000;

/// What the operator grants to plugins and decides about tools.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    plugins: BTreeMap<PluginName, Tables>,
    rules: Vec<Rule>,
    /// What each file states for all plugins.
    limits: Vec<(Tier, StatedLimits)>,
    secrets: SecretSources,
    proxy: Option<Proxy>,
}

/// One file of a policy, understood by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyFile {
    tier: Tier,
    plugins: Vec<PluginTable>,
    rules: Vec<Rule>,
    limits: StatedLimits,
    secrets: Vec<SecretEntry>,
    proxy: Option<Proxy>,
}

impl Policy {
    /// Returns the policy that grants nothing.
    pub fn empty() -> Self {
        Self {
            plugins: BTreeMap::new(),
            rules: Vec::new(),
            limits: Vec::new(),
            secrets: SecretSources::new(),
            proxy: None,
        }
    }

    /// Parses one file of a policy. `file` names it in errors and reasons; `home` is what `~`
    /// stands for.
    ///
    /// # Errors
    ///
    /// Anything in the file that is not understood completely, an example of a rule that does not
    /// come out, and whatever grants in a project's file.
    pub fn parse(
        tier: Tier,
        file: &str,
        text: &str,
        home: Option<&Path>,
    ) -> Result<PolicyFile, SourceError> {
        Document::read(file, text, |root| {
            let plugin = |name, table| PluginTable::read(name, table, home, tier);
            let secret = |name, table| SecretEntry::read(name, table, home, tier);
            let limits = root.optional("limits", StatedLimits::read)?;
            Ok(PolicyFile {
                tier,
                plugins: root.named("plugin", plugin)?,
                rules: read_rules(root, tier)?,
                limits: limits.unwrap_or_else(StatedLimits::none),
                secrets: root.named("secret", secret)?,
                proxy: root.optional("proxy", |item| Proxy::read(item, tier))?,
            })
        })
    }

    /// Brings files together: the administrator's first, then the user's, then a project's.
    ///
    /// # Errors
    ///
    /// Entries of different files that cannot stand beside each other, and a secret that is granted
    /// while no file says where it comes from.
    pub fn of(mut files: Vec<PolicyFile>) -> Result<Self, SourceError> {
        files.sort_by_key(|file| file.tier);
        let tables = files.iter().map(|file| (file.tier, file.plugins.clone()));
        let secrets = files.iter().flat_map(|file| file.secrets.clone());
        let limits: Vec<_> = files.iter().map(|file| (file.tier, file.limits.clone())).collect();
        let policy = Self {
            plugins: Tables::of_files(tables, &limits)?,
            rules: files.iter().flat_map(|file| file.rules.clone()).collect(),
            limits,
            secrets: SecretEntry::joined(secrets)?,
            proxy: Proxy::joined(files.iter().filter_map(|file| file.proxy.clone()))?,
        };
        let granted = policy.plugins.values().flat_map(|tables| &tables.joined.secrets);
        check_sources(granted, &policy.secrets)?;
        Ok(policy)
    }

    /// Parses a policy that is a user's file alone.
    ///
    /// # Errors
    ///
    /// As for [`parse`](Self::parse) and [`of`](Self::of).
    pub fn of_user(file: &str, text: &str, home: Option<&Path>) -> Result<Self, SourceError> {
        Self::of(vec![Self::parse(Tier::User, file, text, home)?])
    }

    /// The plugins that the policy has a table for, by name.
    pub fn plugins(&self) -> impl Iterator<Item = &PluginName> {
        self.plugins.keys()
    }

    /// Where the value of a secret comes from.
    pub fn secret_source(&self, name: &SecretName) -> Option<&SecretSource> {
        self.secrets.get(name).map(|entry| &entry.source)
    }

    /// Every secret that is named, with where its value lies, by name.
    pub fn secret_sources(&self) -> impl Iterator<Item = (&SecretName, &SecretSource)> {
        self.secrets.iter().map(|(name, entry)| (name, &entry.source))
    }

    /// The proxy that requests go through, when one is configured.
    pub fn proxy(&self) -> Option<&Proxy> {
        self.proxy.as_ref()
    }

    /// What the calls of all plugins together may use.
    pub fn shared_limits(&self) -> SharedLimits {
        StatedLimits::shared(self.limits.iter().map(|(_, limits)| limits))
    }

    /// How the examples of all rules come out, in the order of the files. All of them come out as
    /// they should, or the file would not have been parsed.
    pub fn examples(&self) -> impl Iterator<Item = ExampleResult> {
        self.rules.iter().flat_map(Rule::examples)
    }

    /// Every entry for files, of all plugins.
    pub(crate) fn mounted(&self) -> impl Iterator<Item = &FsEntry> {
        self.plugins.values().flat_map(|tables| &tables.joined.fs)
    }

    pub(crate) fn tables(&self) -> impl Iterator<Item = &Tables> {
        self.plugins.values()
    }

    pub(crate) fn tables_of(&self, plugin: &PluginName) -> Option<&Tables> {
        self.plugins.get(plugin)
    }

    pub(crate) fn rules(&self) -> &[Rule] {
        &self.rules
    }

    pub(crate) fn secrets(&self) -> &SecretSources {
        &self.secrets
    }

    /// Returns what a plugin effectively gets: what its manifest requests and this policy grants.
    ///
    /// `settings` are the plugin's own settings, which its requests may refer to. Requests that
    /// cannot be understood with them, and grants that nothing requests, are named in
    /// [`Grant::notes`].
    pub fn grant(&self, manifest: &Manifest, settings: &Map<String, Value>) -> Grant {
        let plugin = &manifest.name;
        let tables = self.tables_of(plugin).cloned();
        let unmentioned = || Tables::unmentioned(plugin.clone(), &self.limits);
        let ground = Ground {
            tables: tables.unwrap_or_else(unmentioned),
            is_ruled: self.rules.iter().any(|rule| rule.is_about_every_call_of(plugin)),
            secrets: self.secrets.keys().cloned().collect(),
            scratch_quotas: self.scratch_quotas(),
        };
        Grant::new(ground, manifest, settings)
    }

    /// The quotas of scratches: one that several plugins share has the least that any of them states.
    fn scratch_quotas(&self) -> BTreeMap<String, u64> {
        let entries = self.plugins.values().flat_map(|tables| &tables.joined.capabilities.scratch);
        let mut quotas = BTreeMap::new();
        for (name, bytes) in entries.filter_map(|entry| Some((&entry.name, entry.quota_bytes?))) {
            let least = quotas.entry(name.clone()).or_insert(bytes);
            *least = bytes.min(*least);
        }
        quotas
    }

    /// Decides whether a call may be made, by the plugin that holds `grant`.
    ///
    /// Of all rules that match, the strictest wins. Without one, a plugin that can neither change
    /// nor leak anything may be called, and for every other plugin a person is asked.
    pub fn decide(&self, question: &Question<'_>, grant: &Grant) -> Verdict {
        let about = |rule: &Rule| rule.is_about_call(question.tool, question.digest);
        let default = || default_of_call(question.tool, grant);
        self.judge(question, grant, Subject::Call, about, default)
    }

    /// Decides about a run that no model asked for: a timer that fires, a listener that handles, a
    /// provider that generates. The question's tool stands for the role, as `PLUGIN.role:timer`.
    ///
    /// Of all rules that match, the strictest wins. Without one it may run: whoever chose the plugin
    /// for that role, by its name, has agreed to it.
    pub fn decide_role(&self, question: &Question<'_>, grant: &Grant) -> Verdict {
        let about = |rule: &Rule| rule.is_about_call(question.tool, question.digest);
        let reason = || format!("no rule for it, and {}", chosen(question.tool));
        self.judge(question, grant, Subject::Call, about, || (Decision::Allow, reason()))
    }

    /// Decides about a request that a running call sends, and that the plugin's grant permits.
    ///
    /// Of all rules about such a request, the strictest wins. Without one, the entry that permits
    /// it says whether a person is asked.
    pub fn decide_access(
        &self,
        question: &Question<'_>,
        grant: &Grant,
        method: &str,
        url: &Url,
        permit: &NetPermit<'_>,
    ) -> Verdict {
        // What is no target is permitted by nothing either.
        let target = Target::new(method, url).ok();
        let about = |rule: &Rule| {
            let is_about = |to| rule.is_about_access(question.tool, question.digest, to);
            target.as_ref().is_some_and(is_about)
        };
        let subject = Subject::Access { what: request_line(method, url) };
        let default =
            || (permit.decision(), format!("no rule for it; entry at {}", permit.place()));
        self.judge(question, grant, subject, about, default)
    }

    /// Decides about a page that a running call opens in the user's browser.
    ///
    /// Of all rules about such a page, the strictest wins. Without one, the entry that grants it
    /// says whether a person is asked. A page that is not granted is denied, whatever rules say.
    pub fn decide_open_url(&self, question: &Question<'_>, grant: &Grant, url: &Url) -> Verdict {
        let subject = Subject::Access { what: page_line(url) };
        let entry = match grant.page(url) {
            Ok(entry) => entry,
            Err(denial) => return Verdict::ungranted(subject, denial),
        };
        let about = |rule: &Rule| rule.is_about_page(question.tool, question.digest, url);
        let default = || (entry.decision, format!("no rule for it; entry at {}", entry.place));
        self.judge(question, grant, subject, about, default)
    }

    /// What the rules about something say, or the default where none does.
    fn judge(
        &self,
        question: &Question<'_>,
        grant: &Grant,
        subject: Subject,
        about: impl Fn(&Rule) -> bool,
        default: impl FnOnce() -> (Decision, String),
    ) -> Verdict {
        let tool = question.tool.to_string();
        let facts = Facts::new(question.situation(&tool), grant);
        let rules = self.rules.iter().filter(|rule| about(rule));
        let spoken = rules.filter_map(|rule| rule.judge(&facts)).collect();
        Verdict::of(subject, spoken, facts.situation(), default)
    }

    /// Says what is to be expected for calls of a tool, whatever their arguments. A rule with a
    /// condition may match or not; where that would change the decision, the reason says so.
    pub fn outlook(&self, tool: &ToolId, digest: &str, grant: &Grant) -> Verdict {
        let about = self.rules.iter().filter(|rule| rule.is_about_call(tool, digest));
        let (open, sure): (Vec<_>, Vec<_>) = about.partition(|rule| rule.when.is_some());
        Verdict::expected(&sure, &open, || default_of_call(tool, grant))
    }
}

fn read_rules(root: &mut Section<'_>, tier: Tier) -> Result<Vec<Rule>, SourceError> {
    let mut totals = Totals { rules: 0, conditions_bytes: 0, patterns: 0 };
    root.list("rule", |item| {
        let place = item.place();
        let rule = Rule::read(item, tier)?;
        match totals.exceeded_with(&rule) {
            None => Ok(rule),
            Some(what) => Err(place.error(format!("the file has {what}"))),
        }
    })
}

/// What the rules of a file hold together, of all that is bounded.
struct Totals {
    rules: usize,
    conditions_bytes: usize,
    patterns: usize,
}

impl Totals {
    /// Adds a rule, and returns what there is too much of then.
    fn exceeded_with(&mut self, rule: &Rule) -> Option<String> {
        self.rules += 1;
        self.conditions_bytes += rule.when.as_ref().map_or(0, Condition::bytes);
        self.patterns += rule.when.as_ref().map_or(0, Condition::patterns);
        if self.rules > RULES_MAX {
            Some(format!("more than {RULES_MAX} rules"))
        } else if self.conditions_bytes > CONDITIONS_BYTES_MAX {
            let most = ByteSize(CONDITIONS_BYTES_MAX as u64);
            Some(format!("conditions of more than {most} together"))
        } else if self.patterns > PATTERNS_MAX {
            Some(format!("more than {PATTERNS_MAX} patterns in its conditions"))
        } else {
            None
        }
    }
}

/// Why a role needs nobody's word a second time.
fn chosen(tool: &ToolId) -> String {
    match tool.tool.as_str().strip_prefix(ROLE_PREFIX) {
        Some("timer") => "the timer is its own".to_owned(),
        Some("http") => "you chose it to answer requests".to_owned(),
        Some(role) => format!("you chose it as {role}"),
        None => "you chose it by name".to_owned(),
    }
}

/// A project's policy that takes a power away does not take the question away with it: nobody is asked
/// less because of what a stranger wrote.
fn default_of_call(tool: &ToolId, grant: &Grant) -> (Decision, String) {
    let plugin = &tool.plugin;
    match (grant.dangers().as_slice(), grant.withheld_dangers().as_slice()) {
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
