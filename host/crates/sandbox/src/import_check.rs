//! Power interfaces. A component that imports one must request it in its manifest, or it is not
//! loaded. So the manifest shows what a plugin could do before anything is granted.
//!
//! The power interfaces are HTTP, reading secrets, and each interface of `wit/` except those for
//! the log, the settings and the pieces of a provider's answer.
//!
//! Files and sockets are not among them, because the standard libraries of most languages always
//! import them. They are linked for all plugins and give access to nothing without a grant.

use sallyport_policy::{Capability, Manifest, PluginRequests};
use wasmtime::component::Component;

use crate::{ComponentFile, LoadError};

/// The request that a manifest must contain before a component may import an interface.
#[derive(Debug, Clone, Copy)]
enum RequiredCapability {
    /// Requests to the network.
    Net,
    /// Requests to the network, or receiving requests.
    NetOrListen,
    /// Reading a secret. A secret that the host sends for a plugin needs no interface.
    RevealSecret,
    /// A capability of the host.
    Capability(Capability),
}

/// The power interfaces. `deltas` is not one: its calls do nothing outside a provider's generation.
const GUARDED_INTERFACES: [(&str, RequiredCapability); 12] = [
    ("sallyport:plugin/commands", RequiredCapability::Capability(Capability::Ui)),
    ("sallyport:plugin/inbox", RequiredCapability::Capability(Capability::Listen)),
    ("sallyport:plugin/notify", RequiredCapability::Capability(Capability::Notify)),
    ("sallyport:plugin/open-url", RequiredCapability::Capability(Capability::OpenUrl)),
    ("sallyport:plugin/packages", RequiredCapability::Capability(Capability::Packages)),
    ("sallyport:plugin/progress", RequiredCapability::Capability(Capability::Progress)),
    ("sallyport:plugin/render", RequiredCapability::Capability(Capability::Ui)),
    ("sallyport:plugin/schedule", RequiredCapability::Capability(Capability::Schedule)),
    ("sallyport:plugin/secrets", RequiredCapability::RevealSecret),
    ("sallyport:plugin/state", RequiredCapability::Capability(Capability::State)),
    ("wasi:http/outgoing-handler", RequiredCapability::Net),
    ("wasi:http/types", RequiredCapability::NetOrListen),
];

impl RequiredCapability {
    fn is_requested(self, request: &PluginRequests) -> bool {
        let requests = |wanted: Capability| {
            request.capabilities.iter().any(|entry| entry.requested.capability() == wanted)
        };
        match self {
            Self::Net => !request.net.is_empty(),
            Self::NetOrListen => !request.net.is_empty() || requests(Capability::Listen),
            Self::RevealSecret => request.secrets.iter().any(|secret| secret.reveal),
            Self::Capability(wanted) => requests(wanted),
        }
    }

    fn request_name(self) -> &'static str {
        match self {
            Self::Net | Self::NetOrListen => "net",
            Self::RevealSecret => "a secret with reveal = true",
            Self::Capability(wanted) => wanted.as_str(),
        }
    }
}

/// The power interfaces that a component imports, with their versions.
pub(crate) fn imported_interfaces(component: &Component) -> Vec<String> {
    let ty = component.component_type();
    let names: Vec<String> =
        ty.imports(component.engine()).map(|(name, _)| name.to_owned()).collect();
    filter_guarded_interfaces(&names)
}

/// The power interfaces among imports.
pub(crate) fn filter_guarded_interfaces(imports: &[String]) -> Vec<String> {
    imports.iter().filter(|name| required_capability(name).is_some()).cloned().collect()
}

/// Refuses a component that imports a power interface which its manifest does not request.
pub(crate) fn check_imports(
    imports: &[String],
    file: &ComponentFile,
    manifest: &Manifest,
) -> Result<(), LoadError> {
    for interface in imports {
        if let Some(required) = required_capability(interface)
            && !required.is_requested(&manifest.request)
        {
            return Err(LoadError::UnrequestedCapability {
                path: file.path().to_owned(),
                interface: interface.clone(),
                capability: required.request_name(),
            });
        }
    }
    Ok(())
}

fn required_capability(import: &str) -> Option<RequiredCapability> {
    let interface = import.split('@').next().unwrap_or(import);
    GUARDED_INTERFACES.iter().find(|(name, _)| *name == interface).map(|(_, required)| *required)
}
