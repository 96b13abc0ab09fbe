//! The capability requests of a manifest.

use super::read_reason;
use crate::{
    capability::{Capability, RequestedCapability, read_bounded_list},
    document::{TomlItem, TomlSection},
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
