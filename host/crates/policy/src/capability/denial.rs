//! The subjects and reasons of refusals of capabilities.

use sallyport_contract::{DenialReason, DenialSubject, PluginName};

use super::Capability;
use crate::source::SourceLocation;

/// The subject of a refused action.
pub(crate) fn action_subject(
    plugin: &PluginName,
    capability: Capability,
    action: &str,
) -> DenialSubject {
    DenialSubject::Capability {
        plugin: plugin.clone(),
        capability: capability.as_str().to_owned(),
        action: action.to_owned(),
        item: None,
    }
}

/// The reason of a refusal by an entry that denies the capability.
pub(crate) fn denied_by(capability: Capability, place: &SourceLocation) -> DenialReason {
    let capability = capability.as_str().to_owned();
    DenialReason::CapabilityDenied { capability, place: place.into() }
}

/// The reason of a refusal of a capability that the manifest does not request.
pub(crate) fn not_requested(capability: Capability) -> DenialReason {
    DenialReason::NotRequested { capability: Some(capability.as_str().to_owned()) }
}

/// The reason of a refusal of a capability that the policy does not grant.
pub(crate) fn not_granted(capability: Capability) -> DenialReason {
    DenialReason::NotGranted { capability: Some(capability.as_str().to_owned()) }
}
