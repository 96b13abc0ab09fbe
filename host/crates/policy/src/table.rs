//! One plugin's table of a policy file, `[plugin.NAME]`, and the tables of all files combined.

use std::{collections::BTreeMap, path::Path};

use sallyport_contract::PluginName;

use crate::{
    capability::CapabilityTable,
    document::{TomlItem, TomlSection},
    environment::EnvEntry,
    folder::{FsEntry, find_conflict},
    limits::StatedLimits,
    net::entry::NetTable,
    secret::SecretGrant,
    source::SourceError,
    tier::PolicyTier,
};

/// The operator's grants to one plugin, whether or not the plugin requests them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PluginTable {
    pub(crate) plugin: PluginName,
    pub(crate) net: NetTable,
    pub(crate) fs: Vec<FsEntry>,
    pub(crate) env: Vec<EnvEntry>,
    pub(crate) secrets: Vec<SecretGrant>,
    pub(crate) capabilities: CapabilityTable,
    pub(crate) limits: StatedLimits,
}

/// One plugin's tables from all files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TieredPluginTables {
    /// The effective table: the tables of all files combined.
    pub(crate) effective: PluginTable,
    /// The table in the user's own file, which a fix replaces.
    pub(crate) user: PluginTable,
}

impl PluginTable {
    /// Returns the table of a plugin that the policy does not mention.
    pub(crate) fn empty(plugin: PluginName) -> Self {
        Self {
            plugin,
            net: NetTable::empty(),
            fs: Vec::new(),
            env: Vec::new(),
            secrets: Vec::new(),
            capabilities: CapabilityTable::empty(),
            limits: StatedLimits::empty(),
        }
    }

    pub(crate) fn from_toml(
        name: TomlItem<'_>,
        table: TomlItem<'_>,
        home: Option<&Path>,
        tier: PolicyTier,
    ) -> Result<Self, SourceError> {
        let plugin = name.read_parsed()?;
        table.read_section(|section| {
            let net = section.read_optional("net", |item| NetTable::from_toml(item, tier))?;
            let fs = read_granted_list(section, "fs", tier, |item| FsEntry::from_toml(item, home))?;
            let env = read_granted_list(section, "env", tier, EnvEntry::from_toml)?;
            let secrets = read_granted_list(section, "secrets", tier, SecretGrant::from_toml)?;
            let capabilities = CapabilityTable::from_toml(section, tier)?;
            let limits = section.read_optional("limits", StatedLimits::from_toml)?;
            let alone = Self {
                plugin,
                net: net.unwrap_or_else(NetTable::empty),
                fs: Vec::new(),
                env,
                secrets: Vec::new(),
                capabilities,
                limits: limits.unwrap_or_else(StatedLimits::empty),
            };
            alone.with_folders(fs)?.with_secrets(secrets)?.check_conflicts()
        })
    }

    /// Combines the tables of several files: a grant in one file is enough, so is a denial, and the
    /// lowest value of each limit applies. A project's table comes last.
    ///
    /// # Errors
    ///
    /// Entries that conflict.
    fn merge_tables(
        plugin: &PluginName,
        tables: impl IntoIterator<Item = (PolicyTier, Self)>,
    ) -> Result<Self, SourceError> {
        let joined = tables.into_iter().try_fold(
            Self::empty(plugin.clone()),
            |mut joined, (tier, table)| {
                joined.net.extend(table.net);
                joined.env.extend(table.env);
                joined.capabilities.merge_from(tier, table.capabilities);
                match tier {
                    PolicyTier::Admin | PolicyTier::User => joined.limits.merge_from(table.limits),
                    PolicyTier::Project => joined.limits.tighten_with(table.limits),
                }
                let is_new =
                    |entry: &FsEntry| !joined.fs.iter().any(|other| entry.has_same_mount(other));
                let more = table.fs.into_iter().filter(is_new).collect();
                joined.with_folders(more)?.with_secrets(table.secrets)
            },
        );
        joined?.check_conflicts()
    }

    fn with_folders(mut self, entries: Vec<FsEntry>) -> Result<Self, SourceError> {
        for entry in entries {
            match find_conflict(&self.fs, &entry.path_text, &entry.mount) {
                None => self.fs.push(entry),
                Some(conflict) => return Err(entry.place.into_hinted_error(&conflict)),
            }
        }
        Ok(self)
    }

    fn check_conflicts(self) -> Result<Self, SourceError> {
        self.capabilities.check_conflicts(&self.fs)?;
        Ok(self)
    }

    fn with_secrets(mut self, entries: Vec<SecretGrant>) -> Result<Self, SourceError> {
        for entry in entries {
            entry.check_header_conflict(&self.secrets)?;
            self.secrets.push(entry);
        }
        Ok(self)
    }
}

/// Reads a list of grants.
fn read_granted_list<'d, T>(
    section: &mut TomlSection<'d>,
    key: &'static str,
    tier: PolicyTier,
    read: impl FnMut(TomlItem<'d>) -> Result<T, SourceError>,
) -> Result<Vec<T>, SourceError> {
    let list = section.read_optional(key, |item| tier.check_may_grant(item)?.read_list(read))?;
    Ok(list.unwrap_or_default())
}

impl TieredPluginTables {
    /// Returns the tables of a plugin that no file mentions.
    pub(crate) fn empty(plugin: PluginName) -> Self {
        let effective = PluginTable::empty(plugin);
        Self { user: effective.clone(), effective }
    }

    /// Combines the tables of all files, plugin by plugin. `limits` are each file's limits for all
    /// plugins; they count as part of every plugin's table.
    ///
    /// # Errors
    ///
    /// Entries of different files that conflict.
    pub(crate) fn from_files(
        files: impl IntoIterator<Item = (PolicyTier, Vec<PluginTable>)>,
        limits: &[(PolicyTier, StatedLimits)],
    ) -> Result<BTreeMap<PluginName, Self>, SourceError> {
        let mut found: BTreeMap<PluginName, Vec<(PolicyTier, PluginTable)>> = BTreeMap::new();
        for (tier, tables) in files {
            for table in tables {
                found.entry(table.plugin.clone()).or_default().push((tier, table));
            }
        }
        let joined = |(plugin, tables): (PluginName, Vec<_>)| {
            Self::from_tables(&plugin, tables, limits).map(|tables| (plugin, tables))
        };
        found.into_iter().map(joined).collect()
    }

    fn from_tables(
        plugin: &PluginName,
        mut tables: Vec<(PolicyTier, PluginTable)>,
        limits: &[(PolicyTier, StatedLimits)],
    ) -> Result<Self, SourceError> {
        let own = tables.iter().filter(|(tier, _)| *tier == PolicyTier::User).cloned();
        let users = PluginTable::merge_tables(plugin, own)?;
        let of_all = limits.iter().map(|(tier, limits)| {
            let limits = limits.per_plugin_limits();
            (*tier, PluginTable { limits, ..PluginTable::empty(plugin.clone()) })
        });
        tables.extend(of_all);
        // A project's file comes last: it tightens the combined values of the others.
        tables.sort_by_key(|(tier, _)| *tier);
        Ok(Self { user: users, effective: PluginTable::merge_tables(plugin, tables)? })
    }

    /// Returns the tables of a plugin that no file mentions, with the limits for all plugins.
    pub(crate) fn for_unmentioned_plugin(
        plugin: PluginName,
        limits: &[(PolicyTier, StatedLimits)],
    ) -> Self {
        // Limits alone never conflict.
        Self::from_tables(&plugin, Vec::new(), limits).unwrap_or_else(|_| Self::empty(plugin))
    }
}
