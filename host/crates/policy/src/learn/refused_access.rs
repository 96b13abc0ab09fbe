//! The need behind a refusal.

use sallyport_contract::{Denial, DenialReason, DenialSubject, GrantedScope, PluginName};
use url::Url;

use super::RefusedAccess;
use crate::{Capability, FsAccess};

impl RefusedAccess {
    /// Returns the need behind a refusal; `None` if no grant could lift the refusal, or another
    /// plugin was refused.
    pub fn from_denial(plugin: &PluginName, denial: &Denial) -> Option<Self> {
        let (own, access) = match &*denial.subject {
            DenialSubject::Call { tool } => return Some(Self::Call(tool.clone())),
            DenialSubject::Text(_) => return None,
            DenialSubject::Request { plugin, method, url } => {
                let mut to_private = None;
                if let DenialReason::PrivateAddress { address, .. } = denial.reason {
                    to_private = Some(address);
                }
                let url = Url::parse(url).ok().filter(Url::has_host)?;
                (plugin, Self::Net { method: method.clone(), url, to_private })
            }
            DenialSubject::Path { plugin, path, write } => {
                let access = if *write { FsAccess::ReadWrite } else { FsAccess::Read };
                (plugin, Self::Path { guest_path: path.clone(), access })
            }
            DenialSubject::Variable { plugin, name } => (plugin, Self::Env(name.clone())),
            DenialSubject::Secret { plugin, name } => (plugin, Self::Secret(name.clone())),
            DenialSubject::Capability { plugin, capability, item, .. } => {
                let of = Capability::from_name(capability)?;
                let is_final = matches!(
                    denial.reason,
                    DenialReason::GrantedLess(GrantedScope::Everything | GrantedScope::Sandboxed)
                );
                // Nothing more can be granted, or only a setting that the operator has to choose.
                if is_final && item.is_none() {
                    return None;
                }
                (plugin, Self::Capability { capability: of, item: item.clone() })
            }
        };
        (own == plugin).then_some(access)
    }
}
