//! The pages that a plugin may open in the user's browser.
//!
//! URLs are compared like those of requests, but without a method: a browser always sends `GET`.

use std::{fmt, str::FromStr, sync::Arc};

use sallyport_contract::{Decision, Denial};
use url::Url;

use super::denial;
use crate::{
    document::TomlItem,
    fix::{PolicyContext, toml_list, toml_string},
    net::{
        NetPattern, NetPatternError,
        entry::DECISIONS,
        grant::request_line,
        pattern::{RequestTarget, RequestUrlError},
    },
    source::{HintedError, SourceError, SourceLocation},
};

/// The method of a browser.
const METHOD: &str = "GET";

/// Most URL patterns of one entry.
pub(super) const PATTERNS_MAX: usize = 1000;

/// The pages that one plugin may open.
#[derive(Debug, Clone)]
pub struct OpenUrlGrant {
    policy_context: Arc<PolicyContext>,
    pub(super) entries: Vec<OpenUrlEntry>,
}

/// One file's entry about opening pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenUrlEntry {
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
        crate::verdict::exact_pattern(&request_line(METHOD, url))?.parse().ok().map(Self)
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

    /// Whether some page can match both patterns.
    pub(crate) fn can_overlap(&self, other: &Self) -> bool {
        self.0.intersect_with(&other.0).is_some()
    }
}

impl OpenUrlEntry {
    /// The entry that allows every page, with a question for each.
    pub(crate) fn ask_for_any_page(place: SourceLocation) -> Self {
        Self { allow: Vec::new(), decision: Decision::Ask, place }
    }

    pub(super) fn from_toml(item: TomlItem<'_>) -> Result<Self, SourceError> {
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
                section.read_optional("decision", |item| item.read_choice(&DECISIONS))?;
            Ok(Self { allow, decision: decision.unwrap_or(Decision::Ask), place })
        })
    }

    pub(crate) fn is_any(&self) -> bool {
        self.allow.is_empty()
    }

    fn matches(&self, url: &Url) -> bool {
        self.is_any() || self.allow.iter().any(|pattern| pattern.matches(url))
    }

    /// Whether a rule about a page pattern can ever apply.
    pub(crate) fn can_overlap(&self, pattern: &UrlPattern) -> bool {
        self.is_any() || self.allow.iter().any(|own| own.can_overlap(pattern))
    }

    /// The value of the key, as TOML.
    pub(crate) fn to_toml(&self) -> String {
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

    fn permission_lines(&self) -> Vec<String> {
        let asks = if self.decision == Decision::Ask { " (asks)" } else { "" };
        let pages: Vec<_> = match self.is_any() {
            true => vec!["any page".to_owned()],
            false => self.allow.iter().map(ToString::to_string).collect(),
        };
        pages.iter().map(|page| format!("open {page} in the browser{asks}")).collect()
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

impl OpenUrlGrant {
    pub(super) fn new(policy_context: Arc<PolicyContext>, entries: Vec<OpenUrlEntry>) -> Self {
        Self { policy_context, entries }
    }

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
    pub(crate) fn find_permitting_entry(&self, url: &Url) -> Result<&OpenUrlEntry, Denial> {
        if let Err(error) = check_url_form(url) {
            return Err(denial::page_denial(&self.policy_context, url, Some(error)));
        }
        let matching = self.entries.iter().filter(|entry| entry.matches(url));
        let found = matching.min_by_key(|entry| entry.decision);
        found.ok_or_else(|| denial::page_denial(&self.policy_context, url, None))
    }

    /// Whether some page is opened without a question.
    pub(crate) fn can_open_unasked(&self) -> bool {
        self.entries.iter().any(|entry| entry.decision == Decision::Allow)
    }

    pub(super) fn permission_lines(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.entries.iter().flat_map(OpenUrlEntry::permission_lines).collect();
        lines.dedup();
        lines
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
