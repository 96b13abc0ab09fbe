//! What a manifest requests and a policy lacks, as additions to the policy.
//!
//! An addition is never wider than its request. What only the operator can choose is left to them:
//! a folder, the service that receives a secret, an address, a package.

use std::path::Path;

use super::{UngrantedRequest, UngrantedRequestKind};
use crate::{
    addition::{FsAddition, GrantAddition, NetAddition, SecretAddition, SecretUseText},
    capability::RequestedCapability,
    fix::sent_secret,
    folder::FsAccess,
    grant::Grant,
    net::NetPattern,
    request::requests_for,
};

/// What a plugin requests and the policy does not grant it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedGrants {
    /// The additions that grant it.
    pub additions: Vec<GrantAddition>,
    /// The requests that are left to the operator, who has to choose something or has denied them.
    pub left_open: Vec<UngrantedRequest>,
}

impl Grant {
    /// Returns the additions to the policy that grant all that the manifest requests.
    pub fn requested_grants(&self) -> RequestedGrants {
        let additions = self
            .uncovered_net_requests()
            .map(|pattern| GrantAddition::Net(NetAddition::for_request(pattern)));
        let additions = additions.collect();
        let mut requested = RequestedGrants { additions, left_open: Vec::new() };
        for request in self.ungranted_requests() {
            let additions = match request.denied_at {
                None => self.additions_for_request(&request.kind),
                Some(_) => Vec::new(),
            };
            if additions.is_empty() {
                requested.left_open.push(request);
            }
            let known = &mut requested.additions;
            additions.into_iter().for_each(|addition| {
                if !known.contains(&addition) {
                    known.push(addition);
                }
            });
        }
        requested
    }

    /// The network requests that no entry of the policy grants whole, and none denies.
    fn uncovered_net_requests(&self) -> impl Iterator<Item = &NetPattern> {
        let net = &self.table().net;
        self.net().requests().iter().filter(|request| {
            !net.allows.iter().any(|allow| allow.pattern.covers(request))
                && !net.denies.iter().any(|deny| deny.pattern.covers(request))
        })
    }

    /// The author's reasons for the requests that an addition answers.
    pub fn request_reasons(&self, addition: &GrantAddition) -> Vec<&str> {
        let request = self.manifest_requests();
        let reasons: Vec<&String> = match addition {
            GrantAddition::Net(net) => {
                let wanted = net.pattern.parse().ok();
                let filled = self.net().requests().iter().zip(self.net_reasons());
                let answers = filled.filter(|(pattern, _)| {
                    wanted.as_ref().is_some_and(|wanted| pattern.intersect_with(wanted).is_some())
                });
                answers.map(|(_, why)| why).collect()
            }
            GrantAddition::Fs(folder) => {
                let path = Path::new(&folder.path);
                let has_own = request.fs.iter().any(|fs| fs.path.as_deref() == Some(path));
                let own = has_own.then_some(path);
                request.fs.iter().filter(|fs| fs.path.as_deref() == own).map(|fs| &fs.why).collect()
            }
            GrantAddition::Env(name) => {
                request.env.iter().filter(|env| env.name == *name).map(|env| &env.why).collect()
            }
            GrantAddition::Secret(secret) => {
                let named = request.secrets.iter().filter(|one| one.name.as_str() == secret.name);
                named.map(|one| &one.why).collect()
            }
            GrantAddition::Capability(wanted) => {
                let same = request.capabilities.iter();
                let same = same.filter(|one| one.requested.capability() == wanted.capability);
                same.map(|one| &one.why).collect()
            }
            GrantAddition::Limit { .. } => Vec::new(),
        };
        reasons.into_iter().map(String::as_str).collect()
    }

    fn additions_for_request(&self, kind: &UngrantedRequestKind) -> Vec<GrantAddition> {
        let addition = match kind {
            UngrantedRequestKind::Net(pattern) => {
                Some(GrantAddition::Net(NetAddition::for_request(pattern)))
            }
            UngrantedRequestKind::Fs { path, access } => {
                path.as_ref().and_then(|path| folder_at_its_own_path(path.to_str()?, *access))
            }
            UngrantedRequestKind::Env(name) => Some(GrantAddition::Env(name.clone())),
            UngrantedRequestKind::Secret { name, reveal: true } => {
                let (name, usage) = (name.to_string(), SecretUseText::Reveal);
                Some(GrantAddition::Secret(SecretAddition { name, usage }))
            }
            UngrantedRequestKind::Secret { name, reveal: false } => {
                let secrets = &self.manifest_requests().secrets;
                let request = secrets.iter().find(|request| request.name == *name);
                request.and_then(|request| {
                    sent_secret(self.policy_context(), self.net().requests(), request)
                })
            }
            UngrantedRequestKind::Capability(requested) => {
                return self.capability_additions(requested);
            }
        };
        addition.into_iter().collect()
    }

    /// The additions for a requested capability, with all that the manifest requests of it.
    fn capability_additions(&self, requested: &RequestedCapability) -> Vec<GrantAddition> {
        let of = requested.capability();
        let requests = requests_for(&self.manifest_requests().capabilities, of);
        let kind = of.kind();
        if let Some(setting) = kind.requested_setting(&requests) {
            return vec![GrantAddition::capability_setting(of, setting, "true")];
        }
        let table = self.table();
        match kind.missing_entries(&table.capabilities, &table.fs, &requests) {
            missing if missing.is_empty() || kind.is_operators_choice() => Vec::new(),
            missing => {
                of.additions_for(&missing).into_iter().map(GrantAddition::Capability).collect()
            }
        }
    }
}

fn folder_at_its_own_path(path: &str, access: FsAccess) -> Option<GrantAddition> {
    let (path, mount) = (path.to_owned(), Some(path.to_owned()));
    let (deny, quota, sensitive) = (Vec::new(), None, false);
    Some(GrantAddition::Fs(FsAddition { path, mount, access, deny, quota, sensitive }))
}

impl UngrantedRequest {
    /// Whether the operator has to choose the folder or file that is granted.
    pub fn needs_path(&self) -> bool {
        matches!(self.kind, UngrantedRequestKind::Fs { path: None, .. }) && self.denied_at.is_none()
    }

    /// The addition that grants a path that the operator has chosen. `None` if the request does not
    /// leave that to them.
    pub fn addition_for_path(&self, path: &str) -> Option<GrantAddition> {
        let UngrantedRequestKind::Fs { access, .. } = self.kind else { return None };
        let (path, mount, deny, quota) = (path.to_owned(), None, Vec::new(), None);
        let entry = FsAddition { path, mount, access, deny, quota, sensitive: false };
        self.needs_path().then_some(GrantAddition::Fs(entry))
    }
}
