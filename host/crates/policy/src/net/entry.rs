//! The entries of a policy's `net` list.

use std::fmt;

use ipnet::IpNet;
use sallyport_contract::Decision;

use super::pattern::{DenyPattern, NetPattern};
use crate::{
    document::{Item, Section},
    fix::{toml_list, toml_string},
    source::{Mistake, Place, SourceError, quoted},
    tier::Tier,
};

/// The decisions of an entry that allows. An entry that denies has its own key.
pub(crate) const DECISIONS: [(&str, Decision); 2] =
    [("allow", Decision::Allow), ("ask", Decision::Ask)];

/// An entry that allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Allow {
    pub(crate) pattern: NetPattern,
    pub(crate) reach: Reach,
    /// Whether a request is sent immediately, or the user is asked first.
    pub(crate) decision: Decision,
    pub(crate) place: Place,
}

/// An entry that denies; it overrides every entry that allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Deny {
    pub(crate) pattern: NetPattern,
    pub(crate) place: Place,
}

/// The addresses that an entry lets a connection reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Public addresses.
    Public,
    /// Public addresses, and those in these ranges.
    Private(Vec<IpNet>),
}

/// The `net` list of one plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NetTable {
    pub(crate) allows: Vec<Allow>,
    pub(crate) denies: Vec<Deny>,
}

enum Entry {
    Allow(Allow),
    Deny(Deny),
}

#[derive(Debug, thiserror::Error)]
enum RangeError {
    #[error("{} is not a range of addresses", quoted(text))]
    Form { text: String },
    #[error("{} names an address inside the range {range}", quoted(text))]
    HostBits { text: String, range: IpNet },
}

impl Mistake for RangeError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Form { .. } => Some("write it as 10.0.0.0/8 or fd00::/8".to_owned()),
            Self::HostBits { range, .. } => Some(format!("write {range}")),
        }
    }
}

impl NetTable {
    /// A list without entries: no network access.
    pub(crate) fn none() -> Self {
        Self { allows: Vec::new(), denies: Vec::new() }
    }

    pub(crate) fn read(item: Item<'_>, tier: Tier) -> Result<Self, SourceError> {
        let mut table = Self::none();
        for entry in item.list(|item| Entry::read(item, tier))? {
            match entry {
                Entry::Allow(allow) => table.allows.push(allow),
                Entry::Deny(deny) => table.denies.push(deny),
            }
        }
        Ok(table)
    }

    /// Adds the entries of another file: a grant in one file is enough, and so is a denial.
    pub(crate) fn extend(&mut self, other: Self) {
        self.allows.extend(other.allows);
        self.denies.extend(other.denies);
    }
}

impl Entry {
    fn read(item: Item<'_>, tier: Tier) -> Result<Self, SourceError> {
        let place = item.place();
        if item.is_string() {
            let pattern = tier.granting(item)?.parsed()?;
            return Ok(Self::Allow(Allow::plain(pattern, place)));
        }
        item.section(|section| {
            let allow = section.optional("allow", |item| tier.granting(item)?.parsed())?;
            let deny = section.optional("deny", Item::parsed)?;
            match (allow, deny) {
                (Some(pattern), None) => Allow::read(pattern, section, place).map(Self::Allow),
                (None, Some(DenyPattern(pattern))) => Ok(Self::Deny(Deny { pattern, place })),
                (Some(_), Some(_)) => {
                    let error = place.error("an entry cannot allow and deny at once");
                    Err(error.with_hint("write two entries; the one that denies wins"))
                }
                (None, None) => {
                    let message = "an entry has to say \"allow\" or \"deny\"";
                    Err(section.lacks(&["allow", "deny"], message))
                }
            }
        })
    }
}

impl Allow {
    /// An entry that consists of a pattern only.
    fn plain(pattern: NetPattern, place: Place) -> Self {
        Self { pattern, reach: Reach::Public, decision: Decision::Allow, place }
    }

    /// Whether this entry alone permits every request of `other`, to the same addresses.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let reaches = |range| self.reach.includes(range);
        self.pattern.covers(&other.pattern) && other.reach.ranges().iter().all(reaches)
    }

    fn read(
        pattern: NetPattern,
        section: &mut Section<'_>,
        place: Place,
    ) -> Result<Self, SourceError> {
        let to_private = section.optional("to-private", Item::boolean)?.unwrap_or(false);
        let ranges = section.optional("range", read_ranges)?;
        let reach = match (to_private, ranges) {
            (false, None) => Reach::Public,
            (false, Some(_)) => {
                let error = place.error("\"range\" has no effect without \"to-private\"");
                return Err(error.with_hint("add to-private = true"));
            }
            (true, Some(ranges)) => Reach::Private(ranges),
            (true, None) => Reach::Private(own_ranges(&pattern, &place)?),
        };
        let decision = section.optional("decision", |item| item.choice(&DECISIONS))?;
        Ok(Self { pattern, reach, decision: decision.unwrap_or(Decision::Allow), place })
    }
}

fn own_ranges(pattern: &NetPattern, place: &Place) -> Result<Vec<IpNet>, SourceError> {
    pattern.host().own_ranges().ok_or_else(|| {
        let message = format!("\"to-private\" for {} needs a range of addresses", pattern.host());
        let hint = "add the range that the name is meant to resolve to: range = \"10.0.0.0/8\"";
        place.clone().error(message).with_hint(hint)
    })
}

fn read_ranges(item: Item<'_>) -> Result<Vec<IpNet>, SourceError> {
    if !item.is_list() {
        return read_range(item).map(|range| vec![range]);
    }
    let place = item.place();
    let ranges = item.list(read_range)?;
    if ranges.is_empty() {
        return Err(place.error("\"range\" holds no range of addresses"));
    }
    Ok(ranges)
}

fn read_range(item: Item<'_>) -> Result<IpNet, SourceError> {
    let place = item.place();
    let text = item.string()?;
    parse_range(text).map_err(|mistake| place.mistake(&mistake))
}

fn parse_range(text: String) -> Result<IpNet, RangeError> {
    let single = || text.parse().ok().map(super::address::only);
    let Some(range) = text.parse::<IpNet>().ok().or_else(single) else {
        return Err(RangeError::Form { text });
    };
    match range.trunc() {
        whole if whole == range => Ok(range),
        range => Err(RangeError::HostBits { text, range }),
    }
}

impl Reach {
    pub(crate) fn ranges(&self) -> &[IpNet] {
        match self {
            Self::Public => &[],
            Self::Private(ranges) => ranges,
        }
    }

    /// Whether one of the entry's ranges contains the whole range.
    pub(crate) fn includes(&self, range: &IpNet) -> bool {
        self.ranges().iter().any(|own| own.contains(range))
    }
}

/// Returns the entry that grants a manifest's request, as TOML.
pub(crate) fn entry_for_request(pattern: &NetPattern) -> String {
    let own = pattern.host().own_ranges().filter(|_| pattern.host().is_private());
    entry_text(pattern, &own.unwrap_or_default(), Decision::Allow)
}

/// Returns an entry that allows, as TOML. Without ranges it reaches only public addresses.
pub(crate) fn entry_text(pattern: &NetPattern, ranges: &[IpNet], decision: Decision) -> String {
    let allow = toml_string(&pattern.to_string());
    let reach = reach_text(pattern, ranges);
    let decision = match decision {
        Decision::Allow => "",
        Decision::Ask | Decision::Deny => &format!(", decision = \"{}\"", decision.as_str()),
    };
    match reach.is_empty() && decision.is_empty() {
        true => allow,
        false => format!("{{ allow = {allow}{reach}{decision} }}"),
    }
}

/// The keys of an entry for the private addresses that it reaches.
fn reach_text(pattern: &NetPattern, ranges: &[IpNet]) -> String {
    let own = || pattern.host().own_ranges().is_some_and(|own| own == ranges);
    match ranges {
        [] => String::new(),
        _ if own() => ", to-private = true".to_owned(),
        [range] => format!(", to-private = true, range = \"{range}\""),
        _ => {
            let ranges = toml_list(ranges.iter().map(|range| format!("\"{range}\"")));
            format!(", to-private = true, range = {ranges}")
        }
    }
}

impl fmt::Display for Allow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&entry_text(&self.pattern, self.reach.ranges(), self.decision))
    }
}

impl fmt::Display for Deny {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{ deny = {} }}", toml_string(&self.pattern.to_string()))
    }
}
