//! The accepted version of one plugin, in a form that shows later changes.

use std::collections::{BTreeMap, BTreeSet};

use sallyport_contract::ToolDescriptor;
use sallyport_policy::Manifest;
use serde::{Deserialize, Serialize};

use super::{PluginSnapshot, manifest_requests};

/// Characters of a digest that are shown.
const DIGEST_CHARS_SHOWN: usize = 12;

/// A plugin as it was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginPin {
    /// Its version. A change of the version alone needs acceptance too.
    version: String,
    /// BLAKE3 digest of the component.
    component: String,
    /// BLAKE3 hash of the list of tools.
    tools: String,
    /// BLAKE3 hash of its requests.
    request: String,
    /// Its requests, one entry each.
    requests: BTreeSet<String>,
    /// The hash of each tool's definition, by name.
    tool: BTreeMap<String, String>,
}

impl PluginPin {
    /// Pins a plugin as it is now.
    pub fn from_plugin(manifest: &Manifest, digest: &str, tools: &[ToolDescriptor]) -> Self {
        let requests = manifest_requests(manifest).into_iter().map(|(what, _)| what).collect();
        Self::from_parts(&manifest.version, digest, tools, requests)
    }

    /// Whether a snapshot is the version that is pinned. Its imports and permissions are not.
    pub(super) fn describes(&self, snapshot: &PluginSnapshot) -> bool {
        let PluginSnapshot { version, digest, tools, requests, .. } = snapshot;
        *self == Self::from_parts(version, digest, tools, requests.clone())
    }

    fn from_parts(
        version: &str,
        digest: &str,
        tools: &[ToolDescriptor],
        requests: BTreeSet<String>,
    ) -> Self {
        let tool = tools
            .iter()
            .map(|spec| (spec.id.tool.to_string(), hash_text(&tool_definition_json(spec))));
        Self {
            version: version.to_owned(),
            component: digest.to_owned(),
            tools: hash_all(tools.iter().map(tool_definition_json)),
            request: hash_all(requests.iter().cloned()),
            requests,
            tool: tool.collect(),
        }
    }

    /// The differences of `now` from this pin, one sentence each.
    pub fn differences(&self, current: &Self) -> Vec<String> {
        let mut found = Vec::new();
        if self.version != current.version {
            found.push(format!("its version was {} and is {}", self.version, current.version));
        }
        if self.component != current.component {
            let (before, after) = (short_digest(&self.component), short_digest(&current.component));
            found.push(format!("its component was {before}… and is {after}…"));
        }
        found.extend(self.tool_differences(current));
        found.extend(
            current.requests.difference(&self.requests).map(|new| format!("it now asks for {new}")),
        );
        found.extend(
            self.requests
                .difference(&current.requests)
                .map(|gone| format!("it no longer asks for {gone}")),
        );
        if found.is_empty() {
            found.push("its tools stand in another order".to_owned());
        }
        found
    }

    fn tool_differences(&self, current: &Self) -> Vec<String> {
        let mut found = Vec::new();
        for (name, hash) in &current.tool {
            match self.tool.get(name) {
                None => found.push(format!("the tool {name} is new")),
                Some(before) if before != hash => {
                    found.push(format!("the tool {name} is described in another way"));
                }
                Some(_) => {}
            }
        }
        let gone = self.tool.keys().filter(|name| !current.tool.contains_key(*name));
        found.extend(gone.map(|name| format!("the tool {name} is gone")));
        found
    }
}

/// The definition of a tool that a model receives, and the schema of its results.
fn tool_definition_json(spec: &ToolDescriptor) -> String {
    // A derived `Serialize` of plain data cannot fail.
    serde_json::to_string(spec).unwrap_or_default()
}

fn hash_text(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// Hashes a list. Each text follows its length, so that different lists have different hashes.
fn hash_all(texts: impl Iterator<Item = String>) -> String {
    let mut hasher = blake3::Hasher::new();
    for text in texts {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

fn short_digest(digest: &str) -> &str {
    &digest[..digest.floor_char_boundary(DIGEST_CHARS_SHOWN)]
}
