//! The language packages that a plugin may fetch.

use std::{fmt, str::FromStr, sync::Arc};

use sallyport_contract::{Denial, DenialReason, DenialSubject, GrantedScope};

use super::{
    Capability, CapabilityAddition, CapabilityContext, CapabilityKind, EffectiveCapabilities,
    HeldCapability, RequestedCapability,
    denial::{action_subject, denied_by, not_granted, not_requested},
    kind::{
        CapabilityEntry, CapabilityHolder, EntryValue, GrantedEntries, ValueShape,
        find_redundant_parts,
    },
    table::CapabilityTable,
};
use crate::{
    document::TomlItem,
    folder::FsEntry,
    source::{HintedError, SourceError, SourceLocation, quoted},
    tier::PolicyTier,
    toml_text::toml_string,
};

/// Most entries of one plugin: more packages than a program depends on.
const PACKAGES_MAX: usize = 1000;

/// Longest name or version, in bytes: longer than any in an index.
const PART_BYTES_MAX: usize = 128;

/// The packages that one plugin may fetch.
#[derive(Debug, Clone)]
pub struct PackagesGrant {
    context: Arc<dyn CapabilityContext>,
    is_requested: bool,
    entries: Vec<PackagePattern>,
}

/// One version of a package, all versions of it, or every package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PackagePattern {
    Any,
    /// The name and the version in normal form.
    Named {
        name: String,
        version: Option<String>,
    },
}

/// Why a text is not a package.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is not a package", quoted(text))]
pub(crate) struct PackagePatternError {
    text: String,
}

impl HintedError for PackagePatternError {
    fn hint(&self) -> Option<String> {
        let name: String = self.text.chars().take_while(|c| is_package_character(*c)).collect();
        Some(match normalize_name(&name) {
            Some(name) => format!("write \"{name}\", or one version of it: \"{name}==1.2.3\""),
            None => "write \"six\", \"six==1.17.0\", or \"*\" for every package".to_owned(),
        })
    }
}

impl FromStr for PackagePattern {
    type Err = PackagePatternError;

    fn from_str(text: &str) -> Result<Self, PackagePatternError> {
        let refused = || PackagePatternError { text: text.to_owned() };
        if text == "*" {
            return Ok(Self::Any);
        }
        let (name, version) = match text.split_once("==") {
            Some((name, version)) => (name.trim_end(), Some(version.trim_start())),
            None => (text, None),
        };
        let name = normalize_name(name).ok_or_else(refused)?;
        let version =
            version.map(|text| normalize_version(text).ok_or_else(refused)).transpose()?;
        Ok(Self::Named { name, version })
    }
}

fn is_package_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// The normal form of a name, as package indexes compare it: lower case, with one `-` for each run
/// of `-`, `_` and `.`.
fn normalize_name(name: &str) -> Option<String> {
    let ends = [name.chars().next()?, name.chars().next_back()?];
    let is_name = name.len() <= PART_BYTES_MAX
        && name.chars().all(is_package_character)
        && ends.iter().all(char::is_ascii_alphanumeric);
    let parts = name.split(['-', '_', '.']).filter(|part| !part.is_empty());
    is_name.then(|| parts.collect::<Vec<_>>().join("-").to_ascii_lowercase())
}

fn normalize_version(version: &str) -> Option<String> {
    let plain = |c: char| is_package_character(c) || matches!(c, '+' | '!');
    let is_version = version.len() <= PART_BYTES_MAX
        && version.chars().next().is_some_and(|c| c.is_ascii_alphanumeric())
        && version.chars().all(plain);
    is_version.then(|| version.to_ascii_lowercase())
}

/// Whether two versions are equal: `1.2` is `1.2.0`.
fn is_same_version(a: &str, b: &str) -> bool {
    let shortened = |version: &str| {
        let is_release = version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let mut short = version;
        while let Some(front) = short.strip_suffix(".0").filter(|_| is_release) {
            short = front;
        }
        short.to_owned()
    };
    shortened(a) == shortened(b)
}

impl PackagePattern {
    /// Whether this pattern matches every package of `other`.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (Self::Named { .. }, Self::Any) => false,
            (Self::Named { name, version }, Self::Named { name: others, version: theirs }) => {
                let same = |own: &String| theirs.as_ref().is_some_and(|v| is_same_version(own, v));
                name == others && version.as_ref().is_none_or(same)
            }
        }
    }
}

impl fmt::Display for PackagePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Named { name, version: None } => f.write_str(name),
            Self::Named { name, version: Some(version) } => write!(f, "{name}=={version}"),
        }
    }
}

impl EntryValue for PackagePattern {
    fn to_toml(&self) -> String {
        toml_string(&self.to_string())
    }
}

/// The capability.
pub(crate) struct Packages;

impl CapabilityKind for Packages {
    fn word(&self) -> &'static str {
        "packages"
    }

    fn shape(&self) -> ValueShape {
        ValueShape::List(PACKAGES_MAX)
    }

    fn danger(&self) -> Option<&'static str> {
        Some("have packages fetched")
    }

    fn action_phrase(&self, _detail: Option<&str>) -> String {
        "fetch packages".to_owned()
    }

    fn read_entry(
        &self,
        item: TomlItem<'_>,
        _tier: PolicyTier,
    ) -> Result<CapabilityEntry, SourceError> {
        let place = item.place();
        Ok(CapabilityEntry::new(item.read_parsed::<PackagePattern>()?, place))
    }

    fn hold(&self, granted: &GrantedEntries<'_>) -> Option<HeldCapability> {
        let grant = PackagesGrant {
            context: Arc::clone(granted.context),
            is_requested: !granted.requests.is_empty(),
            entries: granted.values(),
        };
        let lines = grant.permission_line().into_iter().collect();
        Some(HeldCapability::new(grant, lines, self.danger()))
    }

    /// Only the refusal of a package knows which one to grant.
    fn missing_entries(
        &self,
        _table: &CapabilityTable,
        _folders: &[FsEntry],
        _requests: &[&RequestedCapability],
    ) -> Vec<CapabilityEntry> {
        Vec::new()
    }

    fn redundant_parts(&self, entries: &[&CapabilityEntry]) -> Vec<(SourceLocation, String)> {
        let parts = entries.iter().filter_map(|entry| Some((entry.value()?, &entry.place)));
        find_redundant_parts(&parts.collect::<Vec<_>>(), PackagePattern::covers)
    }

    /// The package's name, with its version if the refusal was about one.
    fn missing_item(
        &self,
        holder: &CapabilityHolder<'_, '_>,
        item: &str,
    ) -> Result<Option<String>, Denial> {
        match check_item(holder, item) {
            Ok(()) => Ok(None),
            Err(denial) if denial.fix.is_none() => Err(denial),
            Err(_) => Ok(Some(item.to_owned())),
        }
    }

    fn covers_item(&self, holder: &CapabilityHolder<'_, '_>, item: &str) -> bool {
        check_item(holder, item).is_ok()
    }

    fn item_noun(&self) -> &'static str {
        "package"
    }

    fn canonical_item(&self, item: &str) -> String {
        item.parse::<PackagePattern>().map_or_else(|_| item.to_owned(), |one| one.to_string())
    }

    fn grant_flags(&self, _detail: Option<&str>) -> String {
        "--package NAME".to_owned()
    }
}

impl PackagesGrant {
    /// The packages among what a plugin holds.
    pub(crate) fn of(capabilities: &EffectiveCapabilities) -> &Self {
        capabilities
            .value(Capability::Packages)
            .expect("every grant has this part, which may be empty")
    }

    /// Whether no package may be fetched.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Checks whether a version of a package may be fetched.
    ///
    /// # Errors
    ///
    /// The version is not granted. The refusal states why, and how to lift it.
    pub fn check_version(&self, name: &str, version: &str) -> Result<(), Denial> {
        let wanted = exact_package_pattern(name, version);
        let covers =
            |wanted: &PackagePattern| self.entries.iter().any(|entry| entry.covers(wanted));
        match wanted.as_ref().is_some_and(covers) {
            true => Ok(()),
            false => Err(self.deny_package(&format!("{name}=={version}"), wanted)),
        }
    }

    /// Checks whether any version of a package may be fetched.
    ///
    /// # Errors
    ///
    /// No version is granted. The refusal states why, and how to lift it.
    pub fn check_name(&self, name: &str) -> Result<(), Denial> {
        let wanted = normalize_name(name);
        let is_named = |entry: &PackagePattern| match entry {
            PackagePattern::Any => wanted.is_some(),
            PackagePattern::Named { name, .. } => Some(name) == wanted.as_ref(),
        };
        if self.entries.iter().any(is_named) {
            return Ok(());
        }
        let wanted = wanted.map(|name| PackagePattern::Named { name, version: None });
        Err(self.deny_package(name, wanted))
    }

    /// The refusal of a package, which is `wanted` if it is one.
    fn deny_package(&self, package: &str, wanted: Option<PackagePattern>) -> Denial {
        let (of, context) = (Capability::Packages, &*self.context);
        let table = context.capabilities();
        let (reason, fix) = match (wanted, table.denied_at(of)) {
            (None, _) => ("it is not the name and version of a package".into(), None),
            (Some(_), _) if !self.is_requested => (not_requested(of), None),
            (Some(_), Some(place)) => (denied_by(of, place), None),
            (Some(pattern), None) => {
                let reason = match table.grants(of).next() {
                    None => not_granted(of),
                    Some(_) => DenialReason::GrantedLess(GrantedScope::NotThis),
                };
                let addition = CapabilityAddition::item(of, &pattern.to_string());
                let fix = context.changed_table_fix(false, vec![addition], &|table| {
                    table.entries_mut(of).push(CapabilityEntry::proposed(pattern.clone()));
                });
                (reason, fix)
            }
        };
        let mut subject = action_subject(context.plugin(), of, "fetch the package");
        if let DenialSubject::Capability { item, .. } = &mut subject {
            *item = Some(package.to_owned());
        }
        Denial::new(subject, reason).with_fix(fix)
    }

    /// The granted packages, as the policy writes them: names, pinned versions, or `*`.
    pub fn pattern_texts(&self) -> impl Iterator<Item = String> {
        self.entries.iter().map(ToString::to_string)
    }

    /// The power that the grant gives a plugin, for the user who decides.
    fn permission_line(&self) -> Option<String> {
        let is_any = |entry: &PackagePattern| *entry == PackagePattern::Any;
        let names: Vec<_> = self.pattern_texts().collect();
        match () {
            () if names.is_empty() => None,
            () if self.entries.iter().any(is_any) => Some("fetch any package".to_owned()),
            () => Some(format!("fetch the packages {}", names.join(", "))),
        }
    }
}

/// The pattern that matches one version of a package only.
fn exact_package_pattern(name: &str, version: &str) -> Option<PackagePattern> {
    let (name, version) = (normalize_name(name)?, Some(normalize_version(version)?));
    Some(PackagePattern::Named { name, version })
}

/// Checks a package by its name, and by its version if the item has one.
fn check_item(holder: &CapabilityHolder<'_, '_>, item: &str) -> Result<(), Denial> {
    let packages = PackagesGrant::of(holder.capabilities);
    match item.split_once("==") {
        Some((name, version)) => packages.check_version(name, version),
        None => packages.check_name(item),
    }
}
