//! Parses a refusal's sentence back into the need behind it.
//!
//! This crate words all refusals, so only this crate takes them apart. A sentence that was
//! truncated or escaped no longer contains the exact need and is not parsed.

use std::net::IpAddr;

use sallyport_contract::{Denial, PluginName};
use url::Url;

use super::RefusedAccess;
use crate::{
    FsAccess,
    capability::{self, PACKAGE_ACTION_PREFIX},
};

/// The end of a truncated text.
const TRUNCATION_MARK: char = '…';

impl RefusedAccess {
    /// Returns the need behind a refusal of the host; `None` if no grant could lift the refusal.
    ///
    /// Do not pass a refusal that the plugin itself reported: the plugin chose its words.
    pub fn from_denial(plugin: &PluginName, denial: &Denial) -> Option<Self> {
        if denial.what.contains('\\') || denial.what.ends_with(TRUNCATION_MARK) {
            return None;
        }
        if let Some(tool) = denial.what.strip_suffix(" may not be called") {
            return tool.parse().ok().map(Self::Call);
        }
        let action = denial.what.strip_prefix(&format!("{plugin} may not "))?;
        if let Some((name, version)) =
            action.strip_prefix(PACKAGE_ACTION_PREFIX).and_then(|p| p.split_once("=="))
        {
            return Some(Self::Package { name: name.to_owned(), version: version.to_owned() });
        }
        if let Some(Ok(url)) = action.strip_prefix("open ").map(Url::parse) {
            return Some(Self::OpenUrl(url));
        }
        if let Some(of) = capability::capability_from_reason(&denial.why) {
            return Some(Self::Capability(of));
        }
        let (verb, rest) = action.split_once(' ')?;
        if let Some(name) = action.strip_prefix("read the secret ") {
            return Some(Self::Secret(name.trim_matches('"').to_owned()));
        }
        let path = |access| Self::Path { guest_path: rest.to_owned(), access };
        match verb {
            "read" => Some(path(FsAccess::Read)),
            "change" => Some(path(FsAccess::ReadWrite)),
            method => {
                let url = Url::parse(rest).ok().filter(Url::has_host)?;
                Some(Self::Net {
                    method: method.to_owned(),
                    url,
                    to_private: refused_address(&denial.why),
                })
            }
        }
    }
}

/// The refused address in `10.0.0.1 is not a public address` or `x.example is at 10.0.0.1, which is
/// not a public address`.
fn refused_address(why: &str) -> Option<IpAddr> {
    let (before, _) = why
        .split_once(", which is not a public address")
        .or_else(|| why.split_once(" is not a public address"))?;
    before.rsplit(' ').next()?.parse().ok()
}
