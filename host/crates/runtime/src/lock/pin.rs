//! What was agreed to about one plugin, in a form that tells later what has changed.

use std::collections::{BTreeMap, BTreeSet};

use sallyport_contract::ToolSpec;
use sallyport_policy::Manifest;
use serde::{Deserialize, Serialize};

use crate::registry::requests;

/// How much of a digest a person is shown.
const DIGEST_CHARS_SHOWN: usize = 12;

/// One plugin as it was agreed to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// Its version; a change of it alone changes nothing else, and is shown all the same.
    version: String,
    /// BLAKE3 digest of the component.
    component: String,
    /// BLAKE3 hash of the list of tools.
    tools: String,
    /// BLAKE3 hash of what it requests.
    request: String,
    /// What it requests, an entry each.
    requests: BTreeSet<String>,
    /// Each tool with the hash of all that a model is told of it.
    tool: BTreeMap<String, String>,
}

impl Pin {
    /// What there is to agree to about a plugin.
    pub fn of(manifest: &Manifest, digest: &str, tools: &[ToolSpec]) -> Self {
        let tool: BTreeMap<String, String> =
            tools.iter().map(|spec| (spec.id.tool.to_string(), hash(&told(spec)))).collect();
        let requests: BTreeSet<String> =
            requests(manifest).into_iter().map(|(what, _)| what).collect();
        Self {
            version: manifest.version.clone(),
            component: digest.to_owned(),
            tools: hash_all(tools.iter().map(told)),
            request: hash_all(requests.iter().cloned()),
            requests,
            tool,
        }
    }

    /// What is different about a plugin now, a sentence each.
    pub fn differences(&self, now: &Self) -> Vec<String> {
        let mut found = Vec::new();
        if self.version != now.version {
            found.push(format!("its version was {} and is {}", self.version, now.version));
        }
        if self.component != now.component {
            let (before, after) = (short(&self.component), short(&now.component));
            found.push(format!("its component was {before}… and is {after}…"));
        }
        found.extend(self.tool_differences(now));
        found.extend(
            now.requests.difference(&self.requests).map(|new| format!("it now asks for {new}")),
        );
        found.extend(
            self.requests
                .difference(&now.requests)
                .map(|gone| format!("it no longer asks for {gone}")),
        );
        if found.is_empty() {
            found.push("its tools stand in another order".to_owned());
        }
        found
    }

    fn tool_differences(&self, now: &Self) -> Vec<String> {
        let mut found = Vec::new();
        for (name, hash) in &now.tool {
            match self.tool.get(name) {
                None => found.push(format!("the tool {name} is new")),
                Some(before) if before != hash => {
                    found.push(format!("the tool {name} is described in another way"));
                }
                Some(_) => {}
            }
        }
        let gone = self.tool.keys().filter(|name| !now.tool.contains_key(*name));
        found.extend(gone.map(|name| format!("the tool {name} is gone")));
        found
    }
}

/// All that a model is told of a tool, and what its results promise.
fn told(spec: &ToolSpec) -> String {
    // A derived `Serialize` of plain data cannot fail.
    serde_json::to_string(spec).unwrap_or_default()
}

fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// Lengths go in as well, so that no two lists read alike.
fn hash_all(texts: impl Iterator<Item = String>) -> String {
    let mut hasher = blake3::Hasher::new();
    for text in texts {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

fn short(digest: &str) -> &str {
    &digest[..digest.floor_char_boundary(DIGEST_CHARS_SHOWN)]
}
