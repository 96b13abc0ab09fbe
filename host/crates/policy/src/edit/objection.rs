//! Objections to an addition to a policy: reasons why it would not have the intended effect.
//!
//! The addition is still valid, and a rebuilt plugin may request it later. So the policy parser
//! does not check for objections; only commands that are about to write an addition do.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::{Path, PathBuf},
};

use sallyport_contract::text::escape_line;
use serde_json::{Map, Value};

use super::EditError;
use crate::{
    addition::GrantAddition,
    document::TomlDocument,
    folder::FsEntry,
    grant::Grant,
    manifest::Manifest,
    net::entry::NetAllowEntry,
    policy_context::PolicyContext,
    request::FsRequest,
    table::{PluginTable, TieredPluginTables},
    tier::PolicyTier,
};

/// Why an addition would not have the intended effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdditionObjection {
    /// The manifest does not request it, so the plugin does not get it.
    NotRequested {
        /// The effect of the addition: `grants the variable TZ`.
        effect: String,
    },
    /// The manifest requests only to read the folder.
    ReadOnly {
        /// The folder, as the addition writes it.
        path: String,
    },
    /// The plugin looks for the file at its own path, but would see it at another.
    MountedElsewhere {
        /// The host path that the manifest requests.
        path: PathBuf,
        /// The path at which the plugin would see it.
        mount: String,
    },
    /// The host has only private addresses, and the entry reaches only public ones.
    PrivateHost {
        /// The entry's pattern.
        pattern: String,
    },
}

impl fmt::Display for AdditionObjection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRequested { effect } => {
                write!(f, "this {effect}, which the plugin does not request, so it has no effect")
            }
            Self::ReadOnly { path } => write!(
                f,
                "this grants write access to {}, and the plugin requests only read access",
                escape_line(path)
            ),
            Self::MountedElsewhere { path, mount } => {
                let path = escape_line(&path.to_string_lossy());
                write!(f, "the plugin looks for {path}, but would see it as {}", escape_line(mount))
            }
            Self::PrivateHost { pattern } => {
                write!(f, "{pattern} has a private address, and the entry reaches public ones only")
            }
        }
    }
}

impl AdditionObjection {
    /// What to write instead.
    pub fn suggested_fix(&self) -> Option<String> {
        match self {
            Self::NotRequested { .. } => None,
            Self::ReadOnly { path } => Some(format!("grant it with --read {}", escape_line(path))),
            Self::MountedElsewhere { path, .. } => {
                Some(format!("leave out --mount, or pass --mount {}", path.display()))
            }
            Self::PrivateHost { .. } => Some("add --to-private".to_owned()),
        }
    }
}

impl GrantAddition {
    /// Returns the addition in the form that the plugin can use, with the objections to it.
    ///
    /// A file that the manifest requests by its path is mounted at that path, unless the addition
    /// has a mount. `settings` are the plugin's own, as for
    /// [`Policy::grant`](crate::Policy::effective_grant); `home` replaces a leading `~`.
    ///
    /// # Errors
    ///
    /// The addition is not valid in a policy.
    pub fn check_against_manifest(
        mut self,
        manifest: &Manifest,
        settings: &Map<String, Value>,
        home: Option<&Path>,
    ) -> Result<(Self, Vec<AdditionObjection>), EditError> {
        let mut table = self.single_entry_table(manifest, home)?;
        if let (Self::Fs(folder), Some(entry)) = (&mut self, table.fs.first())
            && folder.mount.is_none()
            && is_requested_by_path_only(manifest, entry)
        {
            folder.mount = entry.mount.host.to_str().map(str::to_owned);
            table = self.single_entry_table(manifest, home)?;
        }
        let objections = find_objections(&table, manifest, settings);
        Ok((self, objections))
    }

    /// The plugin's table with the addition as its only entry.
    fn single_entry_table(
        &self,
        manifest: &Manifest,
        home: Option<&Path>,
    ) -> Result<PluginTable, EditError> {
        let text =
            format!("[plugin.{}]\n{} = {}\n", manifest.name, self.table_key(), self.value_alone());
        let tables = TomlDocument::read_with("policy", &text, |root| {
            root.read_named_items("plugin", |name, table| {
                PluginTable::from_toml(name, table, home, PolicyTier::User)
            })
        })?;
        Ok(tables.into_iter().next().unwrap_or_else(|| PluginTable::empty(manifest.name.clone())))
    }
}

/// Whether the manifest requests the path by name, and no folder of the operator's choice.
fn is_requested_by_path_only(manifest: &Manifest, entry: &FsEntry) -> bool {
    let mut covering = covering_requests(manifest, entry).peekable();
    covering.peek().is_some() && covering.all(|request| request.path.is_some())
}

fn covering_requests<'m>(
    manifest: &'m Manifest,
    entry: &'m FsEntry,
) -> impl Iterator<Item = &'m FsRequest> {
    manifest.request.fs.iter().filter(|request| request.covers_entry(entry))
}

fn find_objections(
    table: &PluginTable,
    manifest: &Manifest,
    settings: &Map<String, Value>,
) -> Vec<AdditionObjection> {
    // The grant that results from the addition alone.
    let policy_context = PolicyContext {
        tables: TieredPluginTables { effective: table.clone(), user: table.clone() },
        has_covering_rule: false,
        secrets: BTreeSet::new(),
        scratch_quotas: BTreeMap::new(),
    };
    let grant = Grant::new(policy_context, manifest, settings);
    let unrequested = grant
        .unrequested_entries()
        .map(|effect| AdditionObjection::NotRequested { effect: effect.to_owned() });
    let folders = table.fs.iter().filter_map(|entry| folder_objection(manifest, entry));
    let is_unreachable = |allow: &&NetAllowEntry| {
        allow.pattern.host().is_private() && allow.reach.private_ranges().is_empty()
    };
    let hosts = table.net.allows.iter().filter(is_unreachable);
    let hosts =
        hosts.map(|allow| AdditionObjection::PrivateHost { pattern: allow.pattern.to_string() });
    unrequested.chain(folders).chain(hosts).collect()
}

fn folder_objection(manifest: &Manifest, entry: &FsEntry) -> Option<AdditionObjection> {
    let most = covering_requests(manifest, entry).map(|request| request.access).max()?;
    if most < entry.mount.access {
        return Some(AdditionObjection::ReadOnly { path: entry.path_text.clone() });
    }
    let is_elsewhere = Path::new(&entry.mount.guest) != entry.mount.host;
    (is_elsewhere && is_requested_by_path_only(manifest, entry)).then(|| {
        AdditionObjection::MountedElsewhere {
            path: entry.mount.host.clone(),
            mount: entry.mount.guest.clone(),
        }
    })
}
