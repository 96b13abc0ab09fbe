//! The grants that would lift a refusal, for a user who is asked about it.
//!
//! A refusal can be lifted only if its reason is that a grant is missing. What a file denies, what
//! the manifest does not request and what reaches a private address is never offered.

use std::path::Path;

use sallyport_contract::{
    Decision, Denial, DenialReason, DenialSubject, FixGrant, GrantedScope, fix::FOLDER_PLACEHOLDER,
};
use url::Url;

use crate::{
    addition::{GrantAddition, NetAddition, NetReachText, SecretAddition, SecretUseText},
    capability::Capability,
    fix::sent_secret,
    folder::FsAccess,
    grant::Grant,
    net::{
        NetPattern,
        pattern::{RequestTarget, exact_pattern},
    },
    policy::Policy,
    question::PolicyQuestion,
    secret::SecretUse,
    toml_text::toml_string,
    verdict::PolicyVerdict,
};

/// The folder of a plugin that did not say for which path it needs one.
const ANY_FOLDER: &str = "/folder";

impl Grant {
    /// Returns the additions that could lift a refusal, the narrowest first: for the refused action
    /// alone, for the request of the manifest that it belongs to, and for all that the manifest
    /// requests. Empty if no grant is missing.
    ///
    /// A choice may turn out to lift nothing, because other files count as well:
    /// [`Policy::has_lifted`] tells.
    pub fn additions_for_denial(&self, denial: &Denial) -> Vec<Vec<GrantAddition>> {
        let fix = denial.fix.as_ref().filter(|_| is_missing_grant(&denial.reason));
        let Some(fix) = fix else { return Vec::new() };
        let mut choices = self.narrow_choices(&denial.subject);
        choices.extend(fix.grants.iter().map(addition_from_fix).collect::<Option<Vec<_>>>());
        choices.extend(self.writable_choice(&denial.subject));
        choices.push(self.requested_grants().additions);
        let mut distinct: Vec<Vec<GrantAddition>> = Vec::new();
        for mut choice in choices {
            choice.retain(|addition| !reaches_private_address(addition));
            if choice.is_empty() {
                continue;
            }
            choice.sort();
            choice.dedup();
            if !distinct.contains(&choice) {
                distinct.push(choice);
            }
        }
        distinct
    }

    /// The refusal of the files that the manifest requests, for a plugin that has none at all.
    /// `path` is the path that it probably looks for. `None` if it has some, or requests none.
    pub fn deny_missing_files(&self, path: Option<&str>) -> Option<Denial> {
        if !self.fs().is_empty() || !self.scratch().is_empty() {
            return None;
        }
        let requests = &self.manifest_requests().fs;
        let named = requests.iter().find_map(|request| Some((request.path.as_ref()?, request)));
        match named {
            Some((path, request)) => Some(self.deny_path(path.to_str()?, request.access)),
            None if !requests.is_empty() => {
                Some(self.deny_path(path.unwrap_or(ANY_FOLDER), FsAccess::Read))
            }
            None => {
                let of = Capability::Scratch;
                let requests_it = self.manifest_requests().requests_capability(of);
                requests_it.then(|| self.deny_capability(of, "use files"))
            }
        }
    }

    /// The same folder with write access, if the refused action only reads.
    fn writable_choice(&self, subject: &DenialSubject) -> Option<Vec<GrantAddition>> {
        let DenialSubject::Path { path, write: false, .. } = subject else { return None };
        let fix = self.deny_path(path, FsAccess::ReadWrite).fix?;
        fix.grants.iter().map(addition_from_fix).collect()
    }

    /// The choices that are narrower than the fix.
    fn narrow_choices(&self, subject: &DenialSubject) -> Vec<Vec<GrantAddition>> {
        match subject {
            DenialSubject::Request { method, url, .. } => match Url::parse(url) {
                Ok(url) => self.request_choices(method, &url),
                Err(_) => Vec::new(),
            },
            DenialSubject::Capability { capability, item: Some(item), .. } => {
                let capability = Capability::from_name(capability);
                let addition = capability.map(|of| self.item_addition(of, item));
                let addition = addition.and_then(|found| found.ok().flatten());
                addition.map(|addition| vec![addition]).into_iter().collect()
            }
            DenialSubject::Capability { .. }
            | DenialSubject::Path { .. }
            | DenialSubject::Variable { .. }
            | DenialSubject::Secret { .. }
            | DenialSubject::Call { .. }
            | DenialSubject::Text(_) => Vec::new(),
        }
    }

    /// This request alone, and the request of the manifest that it belongs to. Both come with the
    /// secrets that the service needs.
    fn request_choices(&self, method: &str, url: &Url) -> Vec<Vec<GrantAddition>> {
        let Ok(target) = RequestTarget::new(method, url) else { return Vec::new() };
        let exact = exact_pattern(method, url);
        let requested = self.net().requests().iter().find(|request| request.matches(&target));
        let secrets = self.secrets_for_origin(url);
        let choice = |pattern: &NetPattern| {
            let (pattern, decision, reach) = (pattern.to_string(), None, NetReachText::Public);
            let addition = GrantAddition::Net(NetAddition { pattern, decision, reach });
            [addition].into_iter().chain(secrets.iter().cloned()).collect()
        };
        exact.iter().chain(requested).map(choice).collect()
    }

    /// The secrets that the manifest wants to have sent to an origin, and that are not granted.
    fn secrets_for_origin(&self, url: &Url) -> Vec<GrantAddition> {
        let origin = url.origin().ascii_serialization();
        let goes_there = |addition: &GrantAddition| match addition {
            GrantAddition::Secret(SecretAddition {
                usage: SecretUseText::Inject { to, .. },
                ..
            }) => *to == origin,
            GrantAddition::Secret(_)
            | GrantAddition::Net(_)
            | GrantAddition::Fs(_)
            | GrantAddition::Env(_)
            | GrantAddition::Capability(_)
            | GrantAddition::Limit { .. } => false,
        };
        let (requests, secrets) = (self.net().requests(), &self.manifest_requests().secrets);
        let wanted = secrets
            .iter()
            .filter_map(|secret| sent_secret(self.policy_context(), requests, secret));
        wanted.filter(goes_there).collect()
    }

    /// Whether a path of the guest is in a granted folder, with this access.
    fn covers_path(&self, path: &str, wanted: FsAccess) -> bool {
        let path = Path::new("/").join(path.trim_start_matches('/'));
        self.fs().iter().any(|mount| {
            let below = path.strip_prefix(&mount.guest);
            mount.access >= wanted
                && below.is_ok_and(|below| mount.deny.find_denying_pattern(below).is_none())
        })
    }

    fn reveals_secret(&self, name: &str) -> bool {
        let mut secrets = self.secrets().iter();
        secrets.any(|held| held.name.as_str() == name && held.usage == SecretUse::Reveal)
    }

    /// Whether the grant covers a refused action.
    fn covers_denied(&self, subject: &DenialSubject) -> bool {
        match subject {
            DenialSubject::Request { method, url, .. } => {
                Url::parse(url).is_ok_and(|url| self.check_request(method, &url).is_ok())
            }
            DenialSubject::Path { path, write, .. } => {
                let wanted = if *write { FsAccess::ReadWrite } else { FsAccess::Read };
                self.covers_path(path, wanted)
            }
            DenialSubject::Secret { name, .. } => self.reveals_secret(name),
            DenialSubject::Capability { capability, item, .. } => Capability::from_name(capability)
                .is_some_and(|of| {
                    let covers = |item: &String| self.covers_item(of, item);
                    self.has_capability(of) && item.as_ref().is_none_or(covers)
                }),
            DenialSubject::Variable { .. }
            | DenialSubject::Call { .. }
            | DenialSubject::Text(_) => false,
        }
    }
}

impl Policy {
    /// Whether a refused action of a running call would now pass: the grant covers it, and no rule
    /// denies it.
    pub fn has_lifted(
        &self,
        denial: &Denial,
        question: &PolicyQuestion<'_>,
        grant: &Grant,
    ) -> bool {
        let is_denied_by_rule = || {
            let verdict = self.verdict_on_denied(&denial.subject, question, grant);
            verdict.is_some_and(|verdict| verdict.decision == Decision::Deny)
        };
        grant.covers_denied(&denial.subject) && !is_denied_by_rule()
    }

    /// The verdict of the rules on a refused request or page that the grant covers by now.
    fn verdict_on_denied(
        &self,
        subject: &DenialSubject,
        question: &PolicyQuestion<'_>,
        grant: &Grant,
    ) -> Option<PolicyVerdict> {
        match subject {
            DenialSubject::Request { method, url, .. } => {
                let url = Url::parse(url).ok()?;
                let permit = grant.check_request(method, &url).ok()?;
                Some(self.decide_access(question, grant, method, &url, &permit))
            }
            DenialSubject::Capability { capability, item: Some(item), .. } => {
                let of = Capability::from_name(capability)?;
                let url = of.kind().page_of_item(item)?;
                Some(self.decide_page(question, grant, &url))
            }
            DenialSubject::Capability { .. }
            | DenialSubject::Path { .. }
            | DenialSubject::Variable { .. }
            | DenialSubject::Secret { .. }
            | DenialSubject::Call { .. }
            | DenialSubject::Text(_) => None,
        }
    }
}

/// Whether a refusal has no other reason than a grant that is missing.
fn is_missing_grant(reason: &DenialReason) -> bool {
    match reason {
        DenialReason::NotGranted { .. } => true,
        DenialReason::GrantedLess(scope) => match scope {
            GrantedScope::NoNetwork
            | GrantedScope::NoFolder
            | GrantedScope::NotThis
            | GrantedScope::RootPath(_)
            | GrantedScope::Reading(_)
            | GrantedScope::SendingSecret => true,
            GrantedScope::Watching | GrantedScope::Sandboxed | GrantedScope::Everything => false,
        },
        DenialReason::NotRequested { .. }
        | DenialReason::RequestedLess(_)
        | DenialReason::DeniedByEntry { .. }
        | DenialReason::CapabilityDenied { .. }
        | DenialReason::PrivateAddress { .. }
        | DenialReason::Rule { .. }
        | DenialReason::NoRule { .. }
        | DenialReason::BudgetSpent(_)
        | DenialReason::BudgetUnreadable
        | DenialReason::NotApproved { .. }
        | DenialReason::RefusedByUser { .. }
        | DenialReason::CarriesSecret { .. }
        | DenialReason::Text(_) => false,
    }
}

/// Whether an addition lets requests reach private addresses, which a question never offers.
fn reaches_private_address(addition: &GrantAddition) -> bool {
    matches!(addition, GrantAddition::Net(net) if net.reach != NetReachText::Public)
}

/// The addition that a fix states.
fn addition_from_fix(grant: &FixGrant) -> Option<GrantAddition> {
    // The word for a folder that only the user can name is no path, so another one stands in.
    let (open, stand_in) = (toml_string(FOLDER_PLACEHOLDER), format!("/{FOLDER_PLACEHOLDER}"));
    let is_open = grant.key == "fs" && grant.entry.contains(&open);
    let entry = match is_open {
        true => grant.entry.replace(&open, &toml_string(&stand_in)),
        false => grant.entry.clone(),
    };
    let mut addition = format!("{}={entry}", grant.key).parse().ok()?;
    if let GrantAddition::Fs(folder) = &mut addition
        && is_open
    {
        folder.path = FOLDER_PLACEHOLDER.to_owned();
    }
    Some(addition)
}
