//! Capabilities of the host: the entries that grant the refused ones.

use sallyport_contract::{Decision, Denial};
use url::Url;

use super::{Taken, refusal};
use crate::{
    Capability, Grant, ListenGrant, Manifest,
    capability::{ScratchEntry, UrlPattern},
    edit::{Addition, CapabilityAddition, ListenAddition, ScratchAddition},
    unit::ByteSize,
    verdict::page_line,
};

/// The additions that grant a capability, unless the plugin holds it.
pub(super) fn of_capability(
    of: Capability,
    manifest: &Manifest,
    grant: &Grant,
) -> Result<Vec<Addition>, Denial> {
    let requests = manifest.request.capabilities.iter();
    let act = requests.map(|request| &request.wish).find(|wish| wish.capability() == of);
    let act = act.map_or_else(|| format!("use \"{of}\""), ToString::to_string);
    let denial = grant.deny(of, &act);
    if denial.fix.is_none() {
        return if grant.holds(of) { Ok(Vec::new()) } else { Err(denial) };
    }
    let setting = grant.ui().filter(|_| of == Capability::Ui);
    let setting = setting.map(|_| ("confirm".to_owned(), "true".to_owned()));
    let switch = || Addition::Capability(CapabilityAddition { capability: of, setting });
    let (scratches, listens) = grant.lacking();
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
        Capability::Scratch => scratches.into_iter().map(of_scratch).collect(),
        Capability::Listen => listens.iter().map(of_listen).collect(),
    })
}

fn of_scratch(entry: ScratchEntry) -> Addition {
    let ScratchEntry { name, mount, quota_bytes, .. } = entry;
    let quota = quota_bytes.map(|bytes| ByteSize(bytes).to_string());
    Addition::Scratch(ScratchAddition { name, mount: Some(mount), quota })
}

fn of_listen(entry: &ListenGrant) -> Addition {
    let public = entry.at.as_ref().is_some_and(|at| at.public);
    Addition::Listen(ListenAddition { at: entry.to_string(), public })
}

/// The addition for a page: a pattern that matches this page only.
pub(super) fn page(url: &Url, grant: &Grant) -> Taken<Addition> {
    let refused = |why: &str| refusal(grant.plugin(), &page_line(url), why);
    match grant.page(url) {
        Ok(entry) if entry.decision == Decision::Allow => return Ok(None),
        Ok(entry) => return Err(refused(&format!("the entry at {} asks a person", entry.place))),
        Err(denial) if denial.fix.is_none() => return Err(denial),
        Err(_) => {}
    }
    let pattern = UrlPattern::exact(url);
    let pattern = pattern.ok_or_else(|| refused("no pattern can name it and nothing else"))?;
    Ok(Some(Addition::Page(pattern.to_string())))
}

/// The addition for a package: its name and version.
pub(super) fn package(name: &str, version: &str, grant: &Grant) -> Taken<Addition> {
    match grant.packages().check(name, version) {
        Ok(()) => Ok(None),
        Err(denial) if denial.fix.is_none() => Err(denial),
        Err(_) => Ok(Some(Addition::Package(format!("{name}=={version}")))),
    }
}
