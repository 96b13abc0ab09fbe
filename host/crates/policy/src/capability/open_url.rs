//! The pages that a plugin may open in the user's browser.
//!
//! URLs are compared like those of requests, but without a method: a browser always sends `GET`.

use std::{fmt, str::FromStr, sync::Arc};

use sallyport_contract::{
    Decision, Denial, DenialReason, DenialSubject, GrantedScope, PluginName, PolicyFix,
};
use url::Url;

use super::{
    Capability, CapabilityAddition, CapabilityContext, CapabilityKind, HeldCapability,
    RequestedCapability,
    denial::action_subject,
    kind::{
        CapabilityEntry, CapabilityHolder, EntryValue, GrantedEntries, ValueShape, entry_values,
        find_redundant_parts,
    },
    table::CapabilityTable,
};
use crate::{
    document::TomlItem,
    folder::FsEntry,
    net::{
        NetPattern, NetPatternError,
        entry::DECISIONS,
        pattern::{RequestTarget, RequestUrlError, exact_pattern},
        request_text::url_without_secrets,
    },
    source::{HintedError, SourceError, SourceLocation},
    tier::PolicyTier,
    toml_text::{toml_list, toml_string},
};

/// The key of rules about pages.
pub(crate) const PAGE_RULE_KEY: &str = "open-url";

/// The capability that opens pages.
pub(crate) const PAGE_CAPABILITY: Capability = Capability::OpenUrl;

/// The verb for opening a page in records.
pub(crate) const OPEN_PAGE_VERB: &str = "open";

/// The key that decides whether the user is asked about a page.
const DECISION_KEY: &str = "decision";

/// The method of a browser.
const METHOD: &str = "GET";

/// Most URL patterns of one entry.
const PATTERNS_MAX: usize = 1000;

/// The pages that one plugin may open.
#[derive(Debug, Clone)]
pub struct OpenUrlGrant {
    context: Arc<dyn CapabilityContext>,
    entries: Vec<PageEntry>,
}

/// One file's entry about opening pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageEntry {
    /// The pages; if empty, every HTTP and HTTPS page.
    pub(crate) allow: Vec<UrlPattern>,
    /// Whether a page is opened immediately, or the user is asked first.
    pub(crate) decision: Decision,
    pub(crate) place: SourceLocation,
}

/// A pattern of page URLs: `https://*.example.com/**`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UrlPattern(NetPattern);

/// Why a text is not a page pattern.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct UrlPatternError(NetPatternError);

impl HintedError for UrlPatternError {
    fn hint(&self) -> Option<String> {
        self.0.hint()
    }
}

impl FromStr for UrlPattern {
    type Err = UrlPatternError;

    fn from_str(text: &str) -> Result<Self, UrlPatternError> {
        format!("{METHOD} {text}").parse().map(Self).map_err(UrlPatternError)
    }
}

impl fmt::Display for UrlPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        f.write_str(text.strip_prefix(METHOD).unwrap_or(&text).trim_start())
    }
}

impl UrlPattern {
    /// The pattern that matches one page only.
    pub(crate) fn from_exact_url(url: &Url) -> Option<Self> {
        exact_pattern(METHOD, url).map(Self)
    }

    pub(crate) fn matches(&self, url: &Url) -> bool {
        RequestTarget::new(METHOD, url).is_ok_and(|target| self.0.matches(&target))
    }

    /// Whether the pattern stops a page, even if only a lenient server would read the path that
    /// way.
    pub(crate) fn matches_leniently(&self, url: &Url) -> bool {
        RequestTarget::new(METHOD, url).is_ok_and(|target| self.0.matches_leniently(&target))
    }

    /// Whether the pattern matches every page of `other`.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.0.covers(&other.0)
    }

    /// Whether some page that a table grants can match the pattern, so that a rule about it can
    /// apply.
    pub(crate) fn can_overlap_grants(&self, table: &CapabilityTable) -> bool {
        let overlaps = |own: &Self| own.0.intersect_with(&self.0).is_some();
        entry_values(table.grants(Capability::OpenUrl))
            .any(|entry: &PageEntry| entry.is_any() || entry.allow.iter().any(overlaps))
    }
}

impl PageEntry {
    /// The entry that allows every page, with a question for each.
    pub(crate) fn ask_for_any_page(place: SourceLocation) -> Self {
        Self { allow: Vec::new(), decision: Decision::Ask, place }
    }

    fn from_toml(item: TomlItem<'_>) -> Result<Self, SourceError> {
        let place = item.place();
        if item.is_boolean() {
            return Ok(Self::ask_for_any_page(place));
        }
        if !item.is_table() {
            return item.type_mismatch("true, false or a table");
        }
        item.read_section(|section| {
            let allow = section.read_optional("allow", read_url_patterns)?.unwrap_or_default();
            let decision =
                section.read_optional(DECISION_KEY, |item| item.read_choice(&DECISIONS))?;
            Ok(Self { allow, decision: decision.unwrap_or(Decision::Ask), place })
        })
    }

    pub(crate) fn is_any(&self) -> bool {
        self.allow.is_empty()
    }

    fn matches(&self, url: &Url) -> bool {
        self.is_any() || self.allow.iter().any(|pattern| pattern.matches(url))
    }

    fn permission_lines(&self) -> Vec<String> {
        let asks = if self.decision == Decision::Ask { " (asks)" } else { "" };
        let pages: Vec<_> = match self.is_any() {
            true => vec!["any page".to_owned()],
            false => self.allow.iter().map(ToString::to_string).collect(),
        };
        pages.iter().map(|page| format!("open {page} in the browser{asks}")).collect()
    }
}

impl EntryValue for PageEntry {
    fn to_toml(&self) -> String {
        let allow = self.allow.iter().map(|pattern| toml_string(&pattern.to_string()));
        let allow = (!self.is_any()).then(|| format!("allow = {}", toml_list(allow)));
        let decision = match self.decision {
            Decision::Ask => None,
            Decision::Allow | Decision::Deny => {
                Some(format!("decision = \"{}\"", self.decision.as_str()))
            }
        };
        let stated: Vec<_> = allow.into_iter().chain(decision).collect();
        match stated.is_empty() {
            true => "true".to_owned(),
            false => format!("{{ {} }}", stated.join(", ")),
        }
    }
}

fn read_url_patterns(item: TomlItem<'_>) -> Result<Vec<UrlPattern>, SourceError> {
    let place = item.place();
    let patterns: Vec<_> = item.read_list(TomlItem::read_parsed)?;
    match patterns.len() {
        0 => {
            let error = place.into_error("\"allow\" holds no address");
            Err(error.with_hint("leave it out to allow every page, or write false for none"))
        }
        1..=PATTERNS_MAX => Ok(patterns),
        _ => Err(place.into_error(format!("\"allow\" holds more than {PATTERNS_MAX} addresses"))),
    }
}

/// The capability.
pub(crate) struct OpenUrl;

impl CapabilityKind for OpenUrl {
    fn word(&self) -> &'static str {
        "open-url"
    }

    fn shape(&self) -> ValueShape {
        ValueShape::Table("allow")
    }

    fn setting_keys(&self) -> Vec<&'static str> {
        vec![DECISION_KEY]
    }

    fn action_phrase(&self, _detail: Option<&str>) -> String {
        "open pages in the browser".to_owned()
    }

    fn read_entry(
        &self,
        item: TomlItem<'_>,
        _tier: PolicyTier,
    ) -> Result<CapabilityEntry, SourceError> {
        let place = item.place();
        PageEntry::from_toml(item).map(|entry| CapabilityEntry::new(entry, place))
    }

    fn is_within_limits(&self, entries: &[CapabilityEntry]) -> bool {
        entry_values(entries).all(|entry: &PageEntry| entry.allow.len() <= PATTERNS_MAX)
    }

    /// Pages that open without a question are a danger; the others are shown first.
    fn hold(&self, granted: &GrantedEntries<'_>) -> Option<HeldCapability> {
        let entries: Vec<PageEntry> = granted.values();
        let mut lines: Vec<_> = entries.iter().flat_map(PageEntry::permission_lines).collect();
        lines.dedup();
        let is_unasked = entries.iter().any(|entry| entry.decision == Decision::Allow);
        let danger = is_unasked.then_some("open pages unasked");
        let context = Arc::clone(granted.context);
        let is_held = !entries.is_empty();
        is_held.then(|| HeldCapability::new(OpenUrlGrant { context, entries }, lines, danger))
    }

    fn missing_entries(
        &self,
        _table: &CapabilityTable,
        _folders: &[FsEntry],
        _requests: &[&RequestedCapability],
    ) -> Vec<CapabilityEntry> {
        let place = SourceLocation::unwritten();
        vec![CapabilityEntry::proposed(PageEntry::ask_for_any_page(place))]
    }

    fn redundant_parts(&self, entries: &[&CapabilityEntry]) -> Vec<(SourceLocation, String)> {
        let pages = entries.iter().filter_map(|entry| entry.value::<PageEntry>());
        let parts = pages.flat_map(|entry| entry.allow.iter().map(|page| (page, &entry.place)));
        find_redundant_parts(&parts.collect::<Vec<_>>(), UrlPattern::covers)
    }

    /// The pattern that matches this page only.
    fn missing_item(
        &self,
        holder: &CapabilityHolder<'_, '_>,
        item: &str,
    ) -> Result<Option<String>, Denial> {
        let Ok(url) = Url::parse(item) else { return Ok(None) };
        let refused = |reason: String| Denial::new(page_subject(holder.plugin, &url), reason);
        match find_page_entry(holder, &url) {
            Ok(entry) if entry.decision == Decision::Allow => return Ok(None),
            Ok(entry) => {
                return Err(refused(format!("the entry at {} asks a person", entry.place)));
            }
            Err(denial) if denial.fix.is_none() => return Err(denial),
            Err(_) => {}
        }
        let pattern = UrlPattern::from_exact_url(&url);
        let pattern =
            pattern.ok_or_else(|| refused("no pattern can name it and nothing else".to_owned()))?;
        Ok(Some(pattern.to_string()))
    }

    fn covers_item(&self, holder: &CapabilityHolder<'_, '_>, item: &str) -> bool {
        Url::parse(item).is_ok_and(|url| find_page_entry(holder, &url).is_ok())
    }

    fn page_of_item(&self, item: &str) -> Option<Url> {
        Url::parse(item).ok()
    }

    fn item_noun(&self) -> &'static str {
        "page"
    }

    fn item_phrase(&self, item: &str) -> String {
        format!("the opening of {item}")
    }

    fn canonical_item(&self, item: &str) -> String {
        item.parse::<UrlPattern>().map_or_else(|_| item.to_owned(), |one| one.to_string())
    }
}

/// The entry that allows a page to be opened.
///
/// # Errors
///
/// The page is not granted. The refusal states why, and how to lift it.
pub(crate) fn find_page_entry<'g>(
    holder: &CapabilityHolder<'g, '_>,
    url: &Url,
) -> Result<&'g PageEntry, Denial> {
    let held: Option<&OpenUrlGrant> = holder.capabilities.value(PAGE_CAPABILITY);
    match held {
        Some(pages) => pages.find_permitting_entry(url),
        None => {
            let denial = (holder.deny)(PAGE_CAPABILITY, OPEN_PAGE_VERB);
            let subject = Box::new(page_subject(holder.plugin, url));
            Err(Denial { subject, ..denial })
        }
    }
}

/// The subject of a refused page.
pub(crate) fn page_subject(plugin: &PluginName, url: &Url) -> DenialSubject {
    let mut subject = action_subject(plugin, Capability::OpenUrl, OPEN_PAGE_VERB);
    if let DenialSubject::Capability { item, .. } = &mut subject {
        *item = Some(url_without_secrets(url).into());
    }
    subject
}

impl OpenUrlGrant {
    /// Checks whether a page may be opened, and whether the user is asked about it.
    ///
    /// If several files grant the page, the least strict entry counts.
    ///
    /// # Errors
    ///
    /// The page is not granted. The refusal states why, and how to lift it.
    pub fn check_url(&self, url: &Url) -> Result<Decision, Denial> {
        self.find_permitting_entry(url).map(|entry| entry.decision)
    }

    /// The entry that allows a page to be opened.
    pub(crate) fn find_permitting_entry(&self, url: &Url) -> Result<&PageEntry, Denial> {
        let deny =
            |reason: DenialReason| Denial::new(page_subject(self.context.plugin(), url), reason);
        if let Err(error) = check_url_form(url) {
            return Err(deny(error.to_string().into()));
        }
        let matching = self.entries.iter().filter(|entry| entry.matches(url));
        matching.min_by_key(|entry| entry.decision).ok_or_else(|| {
            deny(DenialReason::GrantedLess(GrantedScope::NotThis)).with_fix(self.page_fix(url))
        })
    }

    /// Returns the fix that allows one more page. No rule is needed: the plugin could open pages
    /// before, and the questions stay the same.
    fn page_fix(&self, url: &Url) -> Option<PolicyFix> {
        let (of, pattern) = (Capability::OpenUrl, UrlPattern::from_exact_url(url)?);
        let add = |table: &mut CapabilityTable| {
            let place = SourceLocation::unwritten();
            let known = entry_values(table.grants(of)).next().cloned();
            let mut entry = known.unwrap_or_else(|| PageEntry::ask_for_any_page(place));
            entry.allow.push(pattern.clone());
            let entries = table.entries_mut(of);
            entries.splice(..entries.len().min(1), [CapabilityEntry::proposed(entry)]);
        };
        let additions = vec![CapabilityAddition::item(of, &pattern.to_string())];
        self.context.changed_table_fix(true, additions, &add)
    }
}

/// Why a URL is never opened, regardless of grants. A hidden path is not an error here: patterns
/// never match it.
fn check_url_form(url: &Url) -> Result<(), RequestUrlError> {
    match RequestTarget::new(METHOD, url) {
        Ok(_) | Err(RequestUrlError::HiddenPath) => Ok(()),
        Err(error) => Err(error),
    }
}
