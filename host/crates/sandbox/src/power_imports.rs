//! Power interfaces. A component that imports one must request it in its manifest, or it is not
//! loaded. So the manifest shows what a plugin could do before anything is granted.
//!
//! The power interfaces are HTTP and those of `wit/` that [`HOST_INTERFACES`] marks.
//!
//! Files and sockets are not among them, because the standard libraries of most languages always
//! import them. They are linked for all plugins and give access to nothing without a grant. Nor is
//! HTTP for a component of its own interface: its author knows no manifest, and the runtimes of
//! some languages always import it. Without a grant it reaches nothing either. A component that
//! serves HTTP is not such a one, whatever else it exports.

use sallyport_policy::{Capability, Manifest, PluginRequests};

use crate::{
    ComponentFile, LoadError, abi,
    capability::{HOST_INTERFACES, ImportedPower},
    interface::ComponentInterface,
};

/// The power interfaces of WASI.
const WASI_INTERFACES: [(&str, ImportedPower); 2] = [
    ("wasi:http/outgoing-handler", ImportedPower::Net),
    ("wasi:http/types", ImportedPower::NetOrListen),
];

impl ImportedPower {
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

/// Refuses a component that imports a power interface which its manifest does not request.
pub(crate) fn check_imports(
    interface: &ComponentInterface,
    file: &ComponentFile,
    manifest: &Manifest,
) -> Result<(), LoadError> {
    let is_foreign = has_only_own_functions(interface);
    for import in &interface.imports {
        let required = match wasi_request(import) {
            Some(_) if is_foreign => continue,
            required => required.or_else(|| host_request(import)),
        };
        if let Some(required) = required
            && !required.is_requested(&manifest.request)
        {
            return Err(LoadError::UnrequestedCapability {
                path: file.path().to_owned(),
                interface: import.clone(),
                capability: required.request_name(),
            });
        }
    }
    Ok(())
}

/// Whether a component may have functions of its own interface, and nothing else that the host calls.
/// One that serves HTTP was written for a host, and has a manifest.
fn has_only_own_functions(interface: &ComponentInterface) -> bool {
    let serves_http = interface.exports.iter().any(|name| abi::http::is_http_handler(name));
    abi::has_own_interface(&interface.exports) && !serves_http
}

/// The power interfaces of WASI that a component imports without a request in its manifest. It can
/// be loaded, and their calls are refused. Each comes with what the manifest would have to request.
pub(crate) fn unrequested_imports<'i>(
    imports: &'i [String],
    manifest: &Manifest,
) -> Vec<(&'i str, &'static str)> {
    let unrequested = |import: &'i String| {
        let required = wasi_request(import)?;
        let is_requested = required.is_requested(&manifest.request);
        (!is_requested).then_some((import.as_str(), required.request_name()))
    };
    imports.iter().filter_map(unrequested).collect()
}

/// The request for a power interface of `wit/`.
fn host_request(import: &str) -> Option<ImportedPower> {
    let interface = without_version(import);
    HOST_INTERFACES.iter().find(|ours| ours.name == interface)?.required
}

/// The request for a power interface of WASI.
fn wasi_request(import: &str) -> Option<ImportedPower> {
    let interface = without_version(import);
    WASI_INTERFACES.iter().find(|(name, _)| *name == interface).map(|(_, required)| *required)
}

fn without_version(import: &str) -> &str {
    import.split('@').next().unwrap_or(import)
}
