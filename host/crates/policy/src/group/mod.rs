//! Groups: what the policy takes away from some of its users.
//!
//! A group has members: users by name, or whoever the identity server puts into a group of its own.
//! It can only tighten: it has rules that ask or deny, a list of the tools that its members may use,
//! and budgets. Everything that a user's groups say applies, so the strictest counts.

mod budget;

use sallyport_contract::{Decision, UserBudget};

pub use budget::{BudgetLimits, SESSIONS_MAX};

pub use crate::question::{LoginGroups, NO_LOGIN_GROUPS};

use crate::{
    document::{TomlItem, TomlSection},
    rule::PolicyRule,
    rule_totals::RuleTotals,
    source::{SourceError, SourceLocation},
    tier::PolicyTier,
    tool_pattern::ToolPattern,
};

/// Most groups of one file. Each decision looks at all of them.
const GROUPS_MAX: usize = 64;

/// Most users, groups of the identity server, or tools that a group lists.
const LISTED_MAX: usize = 1000;

/// Longest name of a group, a user, or a group of the identity server.
const NAME_BYTES_MAX: usize = 256;

/// The end of an entry that stands for several users.
const WILDCARD: char = '*';

/// A group of users.
#[derive(Debug, Clone, PartialEq)]
pub struct UserGroup {
    /// Its name in the policy.
    pub name: String,
    /// What each of its members may use up.
    pub budget: BudgetLimits,
    /// The rules about calls of its members. None allows.
    pub(crate) rules: Vec<PolicyRule>,
    /// The place of its table.
    pub place: SourceLocation,
    users: Vec<UserPattern>,
    login_groups: Vec<String>,
}

/// A user, or all users whose names begin alike.
#[derive(Debug, Clone, PartialEq, Eq)]
enum UserPattern {
    Exact(String),
    Prefix(String),
}

impl UserPattern {
    fn from_text(text: &str) -> Self {
        match text.strip_suffix(WILDCARD) {
            Some(prefix) => Self::Prefix(prefix.to_owned()),
            None => Self::Exact(text.to_owned()),
        }
    }

    fn matches(&self, user: &str) -> bool {
        match self {
            Self::Exact(name) => name == user,
            Self::Prefix(prefix) => user.starts_with(prefix.as_str()),
        }
    }
}

impl UserGroup {
    /// Reads `[group.NAME]`.
    ///
    /// # Errors
    ///
    /// An unknown key, a group that no user can belong to, a rule that allows, or too many entries.
    pub(crate) fn from_toml(
        name: TomlItem<'_>,
        table: TomlItem<'_>,
        tier: PolicyTier,
        totals: &mut RuleTotals,
    ) -> Result<Self, SourceError> {
        let name = read_name(name)?;
        let place = table.place();
        let group = table.read_section(|section| {
            Ok(Self {
                users: read_names(section, "users", read_name)?
                    .iter()
                    .map(|text| UserPattern::from_text(text))
                    .collect(),
                login_groups: read_names(section, "login-groups", read_login_group)?,
                rules: read_group_rules(section, &name, tier, totals)?,
                budget: section
                    .read_optional("budget", BudgetLimits::from_toml)?
                    .unwrap_or_else(BudgetLimits::unlimited),
                name,
                place,
            })
        })?;
        group.check_has_members()?;
        Ok(group)
    }

    fn check_has_members(&self) -> Result<(), SourceError> {
        if !self.users.is_empty() || !self.login_groups.is_empty() {
            return Ok(());
        }
        let error = self.place.clone().into_error("no user can belong to this group");
        Err(error.with_hint("write users = [\"ann\"], or login-groups = [\"support\"]"))
    }

    /// Whether a user belongs to it.
    pub fn has_member(&self, user: &str, login_groups: &LoginGroups) -> bool {
        let is_of_login_group = match login_groups {
            LoginGroups::Known(groups) => {
                self.login_groups.iter().any(|own| groups.iter().any(|group| group == own))
            }
            LoginGroups::Unknown => !self.login_groups.is_empty(),
        };
        is_of_login_group || self.users.iter().any(|pattern| pattern.matches(user))
    }

    /// How many rules it has. A list of tools counts as one.
    pub fn rule_count(&self) -> usize {
        self.rules.len()
    }

    /// The budgets that it gives each of its members.
    pub fn budgets(&self) -> impl Iterator<Item = UserBudget> {
        self.budget.user_budgets(&self.name)
    }

    /// Whether its members depend on the groups of the identity server.
    pub(crate) fn names_login_groups(&self) -> bool {
        !self.login_groups.is_empty()
    }
}

/// Checks that a file has not too many groups.
pub(crate) fn check_count(groups: &[UserGroup]) -> Result<(), SourceError> {
    let extra = groups.get(GROUPS_MAX).map(|group| group.place.clone());
    extra.map_or(Ok(()), |place| {
        Err(place.into_error(format!("the file has more than {GROUPS_MAX} groups")))
    })
}

/// Reads the rules of a group, and its list of tools as one more rule.
fn read_group_rules(
    section: &mut TomlSection<'_>,
    name: &str,
    tier: PolicyTier,
    totals: &mut RuleTotals,
) -> Result<Vec<PolicyRule>, SourceError> {
    let mut rules = section.read_list("rule", |item| {
        let rule = totals.count_rule(PolicyRule::from_toml(item, tier)?)?;
        check_tightens(&rule)?;
        Ok(rule.of_group(name))
    })?;
    let tools = section.read_optional("tools", |item| {
        let place = item.place();
        let tools = item.read_list(TomlItem::read_parsed::<ToolPattern>)?;
        check_listed(&tools, &place, "tools")?;
        match tools.is_empty() {
            false => Ok(PolicyRule::deny_all_but(tools, name, place)),
            true => {
                let error = place.into_error("this list has no tool, so nothing could be called");
                Err(error.with_hint("leave it out to allow all, or write a rule that denies \"*\""))
            }
        }
    })?;
    rules.extend(tools);
    Ok(rules)
}

fn check_tightens(rule: &PolicyRule) -> Result<(), SourceError> {
    if rule.decision > Decision::Allow {
        return Ok(());
    }
    let error = rule.place.clone().into_error("a rule of a group cannot allow");
    Err(error.with_hint("a group can only ask or deny: write a [[rule]] for all users instead"))
}

fn read_names(
    section: &mut TomlSection<'_>,
    key: &'static str,
    read_entry: fn(TomlItem<'_>) -> Result<String, SourceError>,
) -> Result<Vec<String>, SourceError> {
    let read = |item: TomlItem<'_>| {
        let place = item.place();
        let names = item.read_list(read_entry)?;
        check_listed(&names, &place, key)?;
        Ok(names)
    };
    Ok(section.read_optional(key, read)?.unwrap_or_default())
}

fn check_listed<T>(listed: &[T], place: &SourceLocation, key: &str) -> Result<(), SourceError> {
    match listed.len() <= LISTED_MAX {
        true => Ok(()),
        false => {
            Err(place.clone().into_error(format!("\"{key}\" has more than {LISTED_MAX} entries")))
        }
    }
}

/// Reads the name of a group of the identity server. Its names are compared as they are, so a star
/// would be a group that has no member, and would restrict nobody.
fn read_login_group(item: TomlItem<'_>) -> Result<String, SourceError> {
    let place = item.place();
    let name = read_name(item)?;
    match name.contains(WILDCARD) {
        false => Ok(name),
        true => {
            let error = place.into_error("a star has no meaning in the name of a login group");
            Err(error.with_hint("write each group, as the identity server names it"))
        }
    }
}

fn read_name(item: TomlItem<'_>) -> Result<String, SourceError> {
    let place = item.place();
    let name = item.read_nonblank_string()?;
    // A star elsewhere would be taken for a wildcard by its reader.
    let inner = name.strip_suffix(WILDCARD).unwrap_or(&name);
    if inner.contains(WILDCARD) {
        let error = place.into_error("a name may have a star at its end only");
        return Err(error.with_hint("write \"sso:*\" for all names that begin with \"sso:\""));
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(place.into_error(format!("a name has more than {NAME_BYTES_MAX} bytes")));
    }
    Ok(name)
}
