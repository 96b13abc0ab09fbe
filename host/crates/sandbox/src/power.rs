//! Interfaces that give power. A component that imports one has to say so in its manifest, or it is
//! not loaded: what a plugin could do is known from its manifest, before anyone grants anything.
//!
//! Files and sockets are not among them. The standard libraries of most languages import those
//! whether the program uses them or not, so they are linked for all and hold nothing without a grant.

use sallyport_policy::{Manifest, Request};
use wasmtime::component::Component;

use crate::{ComponentFile, LoadError};

/// An interface that gives power.
struct Power {
    interface: &'static str,
    capability: &'static str,
    is_requested: fn(&Request) -> bool,
}

/// Interfaces that a manifest has to request before a component may import them.
const POWERS: [Power; 3] = [HTTP, Power { interface: "wasi:http/types", ..HTTP }, SECRETS];

const HTTP: Power = Power {
    interface: "wasi:http/outgoing-handler",
    capability: "net",
    is_requested: |request| !request.net.is_empty(),
};

/// Secrets that the host sends for a plugin need no interface; this one shows them to it.
const SECRETS: Power = Power {
    interface: "sallyport:plugin/secrets",
    capability: "a secret with reveal = true",
    is_requested: |request| request.secrets.iter().any(|secret| secret.reveal),
};

/// The power interfaces that a component imports, with their versions.
pub(crate) fn imported(component: &Component) -> Vec<String> {
    let ty = component.component_type();
    let names = ty.imports(component.engine()).map(|(name, _)| name.to_owned());
    names.filter(|name| power(name).is_some()).collect()
}

/// Refuses a component whose manifest does not request what it imports.
pub(crate) fn check(
    imports: &[String],
    file: &ComponentFile,
    manifest: &Manifest,
) -> Result<(), LoadError> {
    for interface in imports {
        if let Some(power) = power(interface)
            && !(power.is_requested)(&manifest.request)
        {
            return Err(LoadError::Unrequested {
                path: file.path().to_owned(),
                interface: interface.clone(),
                capability: power.capability,
            });
        }
    }
    Ok(())
}

fn power(import: &str) -> Option<&'static Power> {
    let interface = import.split('@').next().unwrap_or(import);
    POWERS.iter().find(|power| power.interface == interface)
}
