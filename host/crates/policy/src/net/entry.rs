//! The entries of a policy's `net` list.

use std::fmt;

use ipnet::IpNet;
use sallyport_contract::Decision;

use super::pattern::{NetDenyPattern, NetPattern};
use crate::{
    document::{TomlItem, TomlSection},
    source::{HintedError, SourceError, SourceLocation, quoted},
    tier::PolicyTier,
    toml_text::{toml_list, toml_string},
};

/// The decisions of an entry that allows. An entry that denies has its own key.
pub(crate) const DECISIONS: [(&str, Decision); 2] =
    [("allow", Decision::Allow), ("ask", Decision::Ask)];

/// An entry that allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NetAllowEntry {
    pub(crate) pattern: NetPattern,
    pub(crate) reach: NetReach,
    /// Whether a request is sent immediately, or the user is asked first.
    pub(crate) decision: Decision,
    pub(crate) place: SourceLocation,
}

/// An entry that denies; it overrides every entry that allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NetDenyEntry {
    pub(crate) pattern: NetPattern,
    pub(crate) place: SourceLocation,
}

/// The addresses that an entry lets a connection reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NetReach {
    /// Public addresses.
    Public,
    /// Public addresses, and those in these ranges.
    Private(Vec<IpNet>),
}

/// The `net` list of one plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NetTable {
    pub(crate) allows: Vec<NetAllowEntry>,
    pub(crate) denies: Vec<NetDenyEntry>,
}

enum NetGrantEntry {
    Allow(NetAllowEntry),
    Deny(NetDenyEntry),
}

#[derive(Debug, thiserror::Error)]
enum AddressRangeError {
    #[error("{} is not a range of addresses", quoted(text))]
    Form { text: String },
    #[error("{} names an address inside the range {range}", quoted(text))]
    HostBits { text: String, range: IpNet },
}

impl HintedError for AddressRangeError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Form { .. } => Some("write it as 10.0.0.0/8 or fd00::/8".to_owned()),
            Self::HostBits { range, .. } => Some(format!("write {range}")),
        }
    }
}

impl NetTable {
    /// A list without entries: no network access.
    pub(crate) fn empty() -> Self {
        Self { allows: Vec::new(), denies: Vec::new() }
    }

    pub(crate) fn from_toml(item: TomlItem<'_>, tier: PolicyTier) -> Result<Self, SourceError> {
        let mut table = Self::empty();
        for entry in item.read_list(|item| NetGrantEntry::from_toml(item, tier))? {
            match entry {
                NetGrantEntry::Allow(allow) => table.allows.push(allow),
                NetGrantEntry::Deny(deny) => table.denies.push(deny),
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

impl NetGrantEntry {
    fn from_toml(item: TomlItem<'_>, tier: PolicyTier) -> Result<Self, SourceError> {
        let place = item.place();
        if item.is_string() {
            let pattern = tier.check_may_grant(item)?.read_parsed()?;
            return Ok(Self::Allow(NetAllowEntry::from_pattern(pattern, place)));
        }
        item.read_section(|section| {
            let allow =
                section.read_optional("allow", |item| tier.check_may_grant(item)?.read_parsed())?;
            let deny = section.read_optional("deny", TomlItem::read_parsed)?;
            match (allow, deny) {
                (Some(pattern), None) => {
                    NetAllowEntry::from_toml(pattern, section, place).map(Self::Allow)
                }
                (None, Some(NetDenyPattern(pattern))) => {
                    Ok(Self::Deny(NetDenyEntry { pattern, place }))
                }
                (Some(_), Some(_)) => {
                    let error = place.into_error("an entry cannot allow and deny at once");
                    Err(error.with_hint("write two entries; the one that denies wins"))
                }
                (None, None) => {
                    let message = "an entry has to say \"allow\" or \"deny\"";
                    Err(section.missing_keys_error(&["allow", "deny"], message))
                }
            }
        })
    }
}

impl NetAllowEntry {
    /// An entry that consists of a pattern only.
    fn from_pattern(pattern: NetPattern, place: SourceLocation) -> Self {
        Self { pattern, reach: NetReach::Public, decision: Decision::Allow, place }
    }

    /// Whether this entry alone permits every request of `other`, to the same addresses.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let reaches = |range| self.reach.contains_range(range);
        self.pattern.covers(&other.pattern) && other.reach.private_ranges().iter().all(reaches)
    }

    fn from_toml(
        pattern: NetPattern,
        section: &mut TomlSection<'_>,
        place: SourceLocation,
    ) -> Result<Self, SourceError> {
        let to_private = section.read_optional("to-private", TomlItem::read_bool)?.unwrap_or(false);
        let ranges = section.read_optional("range", read_ranges)?;
        let reach = match (to_private, ranges) {
            (false, None) => NetReach::Public,
            (false, Some(_)) => {
                let error = place.into_error("\"range\" has no effect without \"to-private\"");
                return Err(error.with_hint("add to-private = true"));
            }
            (true, Some(ranges)) => NetReach::Private(ranges),
            (true, None) => NetReach::Private(determined_ranges(&pattern, &place)?),
        };
        let decision = section.read_optional("decision", |item| item.read_choice(&DECISIONS))?;
        Ok(Self { pattern, reach, decision: decision.unwrap_or(Decision::Allow), place })
    }
}

fn determined_ranges(
    pattern: &NetPattern,
    place: &SourceLocation,
) -> Result<Vec<IpNet>, SourceError> {
    pattern.host().determined_ranges().ok_or_else(|| {
        let message = format!("\"to-private\" for {} needs a range of addresses", pattern.host());
        let hint = "add the range that the name is meant to resolve to: range = \"10.0.0.0/8\"";
        place.clone().into_error(message).with_hint(hint)
    })
}

fn read_ranges(item: TomlItem<'_>) -> Result<Vec<IpNet>, SourceError> {
    if !item.is_list() {
        return read_range(item).map(|range| vec![range]);
    }
    let place = item.place();
    let ranges = item.read_list(read_range)?;
    if ranges.is_empty() {
        return Err(place.into_error("\"range\" holds no range of addresses"));
    }
    Ok(ranges)
}

fn read_range(item: TomlItem<'_>) -> Result<IpNet, SourceError> {
    let place = item.place();
    let text = item.read_string()?;
    parse_range(text).map_err(|parse_error| place.into_hinted_error(&parse_error))
}

fn parse_range(text: String) -> Result<IpNet, AddressRangeError> {
    let single = || text.parse().ok().map(super::address::single_address_range);
    let Some(range) = text.parse::<IpNet>().ok().or_else(single) else {
        return Err(AddressRangeError::Form { text });
    };
    match range.trunc() {
        whole if whole == range => Ok(range),
        range => Err(AddressRangeError::HostBits { text, range }),
    }
}

impl NetReach {
    pub(crate) fn private_ranges(&self) -> &[IpNet] {
        match self {
            Self::Public => &[],
            Self::Private(ranges) => ranges,
        }
    }

    /// Whether one of the entry's ranges contains the whole range.
    pub(crate) fn contains_range(&self, range: &IpNet) -> bool {
        self.private_ranges().iter().any(|own| own.contains(range))
    }
}

/// Returns the entry that grants a manifest's request, as TOML.
pub(crate) fn request_entry_toml(pattern: &NetPattern) -> String {
    let own = pattern.host().determined_ranges().filter(|_| pattern.host().is_private());
    net_entry_toml(pattern, &own.unwrap_or_default(), Decision::Allow)
}

/// Returns an entry that allows, as TOML. Without ranges it reaches only public addresses.
pub(crate) fn net_entry_toml(pattern: &NetPattern, ranges: &[IpNet], decision: Decision) -> String {
    let allow = toml_string(&pattern.to_string());
    let reach = reach_toml_keys(pattern, ranges);
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
fn reach_toml_keys(pattern: &NetPattern, ranges: &[IpNet]) -> String {
    let own = || pattern.host().determined_ranges().is_some_and(|own| own == ranges);
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

impl fmt::Display for NetAllowEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&net_entry_toml(&self.pattern, self.reach.private_ranges(), self.decision))
    }
}

impl fmt::Display for NetDenyEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{ deny = {} }}", toml_string(&self.pattern.to_string()))
    }
}

/// Whether an entry never asks: another one allows all of it.
pub(crate) fn never_asks(entry: &NetAllowEntry, entries: &[NetAllowEntry]) -> bool {
    let lifts = |other: &NetAllowEntry| other.decision < entry.decision && other.covers(entry);
    entries.iter().any(lifts)
}
