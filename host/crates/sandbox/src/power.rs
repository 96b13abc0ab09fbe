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
enum Need {
    /// Requests to the network.
    Net,
    /// Requests to the network, or receiving requests.
    NetOrListen,
    /// Reading a secret. A secret that the host sends for a plugin needs no interface.
    Reveal,
    /// A capability of the host.
    Capability(Capability),
}

/// The power interfaces. `deltas` is not one: its calls do nothing outside a provider's generation.
const POWERS: [(&str, Need); 12] = [
    ("sallyport:plugin/commands", Need::Capability(Capability::Ui)),
    ("sallyport:plugin/inbox", Need::Capability(Capability::Listen)),
    ("sallyport:plugin/notify", Need::Capability(Capability::Notify)),
    ("sallyport:plugin/open-url", Need::Capability(Capability::OpenUrl)),
    ("sallyport:plugin/packages", Need::Capability(Capability::Packages)),
    ("sallyport:plugin/progress", Need::Capability(Capability::Progress)),
    ("sallyport:plugin/render", Need::Capability(Capability::Ui)),
    ("sallyport:plugin/schedule", Need::Capability(Capability::Schedule)),
    ("sallyport:plugin/secrets", Need::Reveal),
    ("sallyport:plugin/state", Need::Capability(Capability::State)),
    ("wasi:http/outgoing-handler", Need::Net),
    ("wasi:http/types", Need::NetOrListen),
];

impl Need {
    fn is_met(self, request: &PluginRequests) -> bool {
        let wishes = |wanted: Capability| {
            request.capabilities.iter().any(|entry| entry.wish.capability() == wanted)
        };
        match self {
            Self::Net => !request.net.is_empty(),
            Self::NetOrListen => !request.net.is_empty() || wishes(Capability::Listen),
            Self::Reveal => request.secrets.iter().any(|secret| secret.reveal),
            Self::Capability(wanted) => wishes(wanted),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Net | Self::NetOrListen => "net",
            Self::Reveal => "a secret with reveal = true",
            Self::Capability(wanted) => wanted.as_str(),
        }
    }
}

/// The power interfaces that a component imports, with their versions.
pub(crate) fn imported(component: &Component) -> Vec<String> {
    let ty = component.component_type();
    let names: Vec<String> =
        ty.imports(component.engine()).map(|(name, _)| name.to_owned()).collect();
    named(&names)
}

/// The power interfaces among imports.
pub(crate) fn named(imports: &[String]) -> Vec<String> {
    imports.iter().filter(|name| need(name).is_some()).cloned().collect()
}

/// Refuses a component that imports a power interface which its manifest does not request.
pub(crate) fn check(
    imports: &[String],
    file: &ComponentFile,
    manifest: &Manifest,
) -> Result<(), LoadError> {
    for interface in imports {
        if let Some(need) = need(interface)
            && !need.is_met(&manifest.request)
        {
            return Err(LoadError::Unrequested {
                path: file.path().to_owned(),
                interface: interface.clone(),
                capability: need.word(),
            });
        }
    }
    Ok(())
}

fn need(import: &str) -> Option<Need> {
    let interface = import.split('@').next().unwrap_or(import);
    POWERS.iter().find(|(name, _)| *name == interface).map(|(_, need)| *need)
}
