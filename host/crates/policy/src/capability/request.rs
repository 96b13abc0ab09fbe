//! The capability requests of a manifest.

use std::fmt;

use super::{Capability, table::read_bounded_list};
use crate::{
    document::{TomlItem, TomlSection},
    request::read_reason,
    source::SourceError,
};

/// Most requests for one capability: a plugin may need a few scratches, but most capabilities only
/// once.
const REQUESTS_MAX: usize = 16;

/// A request for a capability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapabilityRequest {
    /// The requested action.
    pub requested: RequestedCapability,
    /// The author's reason.
    pub why: String,
}

/// The action that a plugin requests from a capability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedCapability {
    /// The capability.
    pub capability: Capability,
    /// What the request says besides its reason: the name of a scratch, a kind of signals.
    pub detail: Option<String>,
}

impl RequestedCapability {
    /// The capability that it requires.
    pub fn capability(&self) -> Capability {
        self.capability
    }
}

impl fmt::Display for RequestedCapability {
    /// The requested action, in the same words as a power in the output for the user who decides.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.capability.kind().action_phrase(self.detail.as_deref()))
    }
}

/// The requests for one capability.
pub(crate) fn requests_for(
    requests: &[CapabilityRequest],
    of: Capability,
) -> Vec<&RequestedCapability> {
    let requested = requests.iter().map(|request| &request.requested);
    requested.filter(|requested| requested.capability == of).collect()
}

/// Takes all capability requests out of the table of requests.
pub(crate) fn read_capability_requests(
    section: &mut TomlSection<'_>,
) -> Result<Vec<CapabilityRequest>, SourceError> {
    let mut requests = Vec::new();
    for capability in Capability::ALL {
        let list = |item: TomlItem<'_>| {
            read_bounded_list(item, REQUESTS_MAX, |item| read_capability_request(capability, item))
        };
        requests.extend(section.read_optional(capability.as_str(), list)?.unwrap_or_else(Vec::new));
    }
    Ok(requests)
}

fn read_capability_request(
    capability: Capability,
    item: TomlItem<'_>,
) -> Result<CapabilityRequest, SourceError> {
    item.read_section(|section| {
        let detail = capability.kind().read_request_detail(section)?;
        let requested = RequestedCapability { capability, detail };
        Ok(CapabilityRequest { requested, why: read_reason(section)? })
    })
}
