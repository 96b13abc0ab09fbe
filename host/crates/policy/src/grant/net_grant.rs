//! The effective network access of one plugin.

use std::{net::IpAddr, sync::Arc};

use ipnet::IpNet;
use sallyport_contract::{Decision, Denial, DenialReason, GrantedScope, RequestedScope};
use url::Url;

use crate::{
    fix,
    net::{
        address::is_public_address,
        entry::{NetAllowEntry, never_asks},
        pattern::{NetPattern, RequestTarget},
        request_text::request_subject,
    },
    policy_context::PolicyContext,
    request::SecretRequest,
    source::SourceLocation,
};

/// The requests that a plugin may send: those that its policy allows, that its manifest requests,
/// and that no entry of the policy denies.
#[derive(Debug, Clone)]
pub struct NetGrant {
    policy_context: Arc<PolicyContext>,
    requests: Vec<NetPattern>,
    /// The manifest's requests for secrets, for the text that would lift a refusal.
    secrets: Vec<SecretRequest>,
    permission_lines: Vec<String>,
}

/// A permitted request, with the addresses that it may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetPermit<'g> {
    /// Ranges that it may reach in addition to public addresses.
    ranges: Vec<&'g IpNet>,
    /// The entry that decides whether the user is asked.
    deciding: &'g NetAllowEntry,
}

/// The addresses that a permitted request may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReachableAddresses {
    /// Ranges that it may reach in addition to public addresses.
    ranges: Vec<IpNet>,
}

impl ReachableAddresses {
    /// Whether a request may go to this address: a public one, or one in a range that an entry of
    /// the policy allows explicitly.
    pub fn allows_address(&self, addr: IpAddr) -> bool {
        is_reachable(self.ranges.iter(), addr)
    }
}

fn is_reachable<'r>(mut ranges: impl Iterator<Item = &'r IpNet>, addr: IpAddr) -> bool {
    let addr = addr.to_canonical();
    is_public_address(addr) || ranges.any(|range| range.contains(&addr))
}

impl NetGrant {
    pub(crate) fn new(
        policy_context: Arc<PolicyContext>,
        requests: Vec<NetPattern>,
        secrets: Vec<SecretRequest>,
    ) -> Self {
        let mut permission_lines = Vec::new();
        let allows = &policy_context.effective_table().net.allows;
        for allow in allows.iter().filter(|allow| !never_asks(allow, allows)) {
            for both in requests.iter().filter_map(|request| allow.pattern.intersect_with(request))
            {
                let line = net_permission_line(&both, allow);
                if !permission_lines.contains(&line) {
                    permission_lines.push(line);
                }
            }
        }
        Self { policy_context, requests, secrets, permission_lines }
    }

    /// Whether no request is permitted.
    pub fn is_empty(&self) -> bool {
        self.permission_lines.is_empty()
    }

    /// Checks a request before anything is resolved or dialled.
    ///
    /// # Errors
    ///
    /// The request is not permitted. The refusal states why, and how to lift it.
    pub fn check_request(&self, method: &str, url: &Url) -> Result<NetPermit<'_>, Denial> {
        self.find_permit(method, url).map_err(|reason| {
            let table = self.policy_context.effective_table();
            // Only a grant that is missing can be added.
            let fix = matches!(reason, DenialReason::GrantedLess(_))
                .then(|| fix::net_fix(&self.policy_context, &self.requests, &self.secrets));
            Denial::new(request_subject(&table.plugin, method, url), reason).with_fix(fix)
        })
    }

    fn find_permit(&self, method: &str, url: &Url) -> Result<NetPermit<'_>, DenialReason> {
        let target = RequestTarget::new(method, url).map_err(|error| error.to_string())?;
        let net = &self.policy_context.effective_table().net;
        if let Some(deny) = net.denies.iter().find(|deny| deny.pattern.matches_leniently(&target)) {
            return Err(DenialReason::DeniedByEntry { pattern: None, place: (&deny.place).into() });
        }
        if !self.requests.iter().any(|request| request.matches(&target)) {
            let near = self.requests.iter().find(|request| request.is_missing_path_for(&target));
            return Err(near.map_or(DenialReason::NotRequested { capability: None }, |request| {
                DenialReason::RequestedLess(RequestedScope::RootPath(request.to_string()))
            }));
        }
        let matches = |allow: &&NetAllowEntry| !self.is_empty() && allow.pattern.matches(&target);
        let matching = net.allows.iter().filter(matches).collect();
        NetPermit::from_entries(matching).ok_or_else(|| {
            let near =
                || net.allows.iter().find(|allow| allow.pattern.is_missing_path_for(&target));
            DenialReason::GrantedLess(match near() {
                _ if net.allows.is_empty() => GrantedScope::NoNetwork,
                Some(near) => GrantedScope::RootPath((&near.place).into()),
                None => GrantedScope::NotThis,
            })
        })
    }

    /// The manifest's requests, with the settings filled in.
    pub(crate) fn requests(&self) -> &[NetPattern] {
        &self.requests
    }

    /// Whether some request of the manifest can use an entry of the policy.
    pub(crate) fn can_use_entry(&self, allow: &NetAllowEntry) -> bool {
        self.requests.iter().any(|request| allow.pattern.intersect_with(request).is_some())
    }

    /// The permitted requests as patterns: the intersections of the policy's entries and the
    /// manifest's requests.
    pub(crate) fn permitted_patterns(&self) -> impl Iterator<Item = NetPattern> {
        let allows = self.policy_context.effective_table().net.allows.iter();
        allows
            .flat_map(|allow| self.requests.iter().filter_map(|r| allow.pattern.intersect_with(r)))
    }

    /// The reachable URLs, one line each, followed by those that the policy denies.
    pub fn permission_lines(&self) -> impl Iterator<Item = String> {
        let denied =
            self.policy_context.effective_table().net.denies.iter().filter(|_| !self.is_empty());
        let denied = denied.map(|deny| format!("never {}", deny.pattern));
        self.permission_lines.iter().cloned().chain(denied)
    }

    /// The entries of the policy that no request of the manifest can use.
    pub(crate) fn unrequested_entries(
        &self,
    ) -> impl Iterator<Item = (&NetPattern, &SourceLocation)> {
        let useless = |allow: &&NetAllowEntry| !self.can_use_entry(allow);
        let allows = self.policy_context.effective_table().net.allows.iter();
        allows.filter(useless).map(|allow| (&allow.pattern, &allow.place))
    }
}

impl<'g> NetPermit<'g> {
    /// The combined permission of the entries that match a request.
    fn from_entries(matching: Vec<&'g NetAllowEntry>) -> Option<Self> {
        let deciding = find_deciding_entry(&matching)?;
        let ranges = matching.into_iter().flat_map(|allow| allow.reach.private_ranges()).collect();
        Some(Self { ranges, deciding })
    }

    /// The decision of the entries about the request: allow it, or ask the user.
    ///
    /// The least strict of several entries counts, because each is a grant. If some of them reach
    /// further than others, this applies among those that reach equally far: an entry that reaches
    /// only public addresses does not override one that asks before a private address is reached.
    pub fn decision(&self) -> Decision {
        self.deciding.decision
    }

    /// The place of the entry that decides.
    pub fn place(&self) -> &'g SourceLocation {
        &self.deciding.place
    }

    /// Whether the request may go to this address: a public one, or one in a range that an entry of
    /// the policy allows explicitly.
    pub fn allows_address(&self, addr: IpAddr) -> bool {
        is_reachable(self.ranges.iter().copied(), addr)
    }

    /// The addresses that it may reach, for a connection that outlives the grant.
    pub fn reachable_addresses(&self) -> ReachableAddresses {
        ReachableAddresses { ranges: self.ranges.iter().map(|range| **range).collect() }
    }
}

/// The entry that decides whether the user is asked: the least strict of each group that reaches
/// the same addresses, and the strictest of these.
fn find_deciding_entry<'g>(matching: &[&'g NetAllowEntry]) -> Option<&'g NetAllowEntry> {
    let least_strict = |reaches: &dyn Fn(&NetAllowEntry) -> bool| {
        let reaching = matching.iter().copied().filter(|allow| reaches(allow));
        reaching.min_by_key(|allow| allow.decision)
    };
    let everywhere = least_strict(&|_| true)?;
    let ranges = matching.iter().flat_map(|allow| allow.reach.private_ranges());
    let private =
        ranges.filter_map(|range| least_strict(&|allow| allow.reach.contains_range(range)));
    Some(private.fold(everywhere, |a, b| if b.decision > a.decision { b } else { a }))
}

fn net_permission_line(pattern: &NetPattern, allow: &NetAllowEntry) -> String {
    let ranges: Vec<_> = allow.reach.private_ranges().iter().map(ToString::to_string).collect();
    let asks = if allow.decision == Decision::Ask { " (asks)" } else { "" };
    match ranges.as_slice() {
        [] => format!("{pattern}{asks}"),
        _ => format!("{pattern}{asks} (also at private addresses: {})", ranges.join(", ")),
    }
}
