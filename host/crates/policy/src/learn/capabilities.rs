//! Capabilities of the host: the entries that grant the refused ones.

use sallyport_contract::{Decision, Denial};
use url::Url;

use super::{AdditionResult, proposal_denial};
use crate::{
    Capability, Grant, ListenGrant, Manifest,
    capability::{ScratchEntry, UrlPattern},
    edit::{CapabilityAddition, GrantAddition, ListenAddition, ScratchAddition},
    unit::ByteSize,
    verdict::page_line,
};

/// The additions that grant a capability, unless the plugin holds it.
pub(super) fn capability_additions(
    of: Capability,
    manifest: &Manifest,
    grant: &Grant,
) -> Result<Vec<GrantAddition>, Denial> {
    let requests = manifest.request.capabilities.iter();
    let action = requests.map(|request| &request.requested).find(|wish| wish.capability() == of);
    let action = action.map_or_else(|| format!("use \"{of}\""), ToString::to_string);
    let denial = grant.deny_capability(of, &action);
    if denial.fix.is_none() {
        return if grant.has_capability(of) { Ok(Vec::new()) } else { Err(denial) };
    }
    let setting = grant.ui().filter(|_| of == Capability::Ui);
    let setting = setting.map(|_| ("confirm".to_owned(), "true".to_owned()));
    let switch = || GrantAddition::Capability(CapabilityAddition { capability: of, setting });
    let (scratches, listens) = grant.missing_scratch_and_listen();
    Ok(match of {
        Capability::State
        | Capability::Schedule
        | Capability::Notify
        | Capability::Progress
        | Capability::OpenUrl
        | Capability::Ui
        | Capability::Process => vec![switch()],
        // Packages are granted one by one, through the refusal of each package.
        Capability::Packages => Vec::new(),
        Capability::Scratch => scratches.into_iter().map(scratch_addition).collect(),
        Capability::Listen => listens.iter().map(listen_addition).collect(),
    })
}

fn scratch_addition(entry: ScratchEntry) -> GrantAddition {
    let ScratchEntry { name, mount, quota_bytes, .. } = entry;
    let quota = quota_bytes.map(|bytes| ByteSize(bytes).to_string());
    GrantAddition::Scratch(ScratchAddition { name, mount: Some(mount), quota })
}

fn listen_addition(entry: &ListenGrant) -> GrantAddition {
    let public = entry.address.as_ref().is_some_and(|at| at.public);
    GrantAddition::Listen(ListenAddition { address: entry.to_string(), public })
}

/// The addition for a page: a pattern that matches this page only.
pub(super) fn page_addition(url: &Url, grant: &Grant) -> AdditionResult<GrantAddition> {
    let refused = |why: &str| proposal_denial(grant.plugin(), &page_line(url), why);
    match grant.find_page_entry(url) {
        Ok(entry) if entry.decision == Decision::Allow => return Ok(None),
        Ok(entry) => return Err(refused(&format!("the entry at {} asks a person", entry.place))),
        Err(denial) if denial.fix.is_none() => return Err(denial),
        Err(_) => {}
    }
    let pattern = UrlPattern::from_exact_url(url);
    let pattern = pattern.ok_or_else(|| refused("no pattern can name it and nothing else"))?;
    Ok(Some(GrantAddition::OpenUrl(pattern.to_string())))
}

/// The addition for a package: its name and version.
pub(super) fn package_addition(
    name: &str,
    version: &str,
    grant: &Grant,
) -> AdditionResult<GrantAddition> {
    match grant.packages().check_version(name, version) {
        Ok(()) => Ok(None),
        Err(denial) if denial.fix.is_none() => Err(denial),
        Err(_) => Ok(Some(GrantAddition::Package(format!("{name}=={version}")))),
    }
}
