//! One plugin's table of a policy file, `[plugin.NAME]`, and the tables of all files combined.

use std::{collections::BTreeMap, path::Path};

use sallyport_contract::PluginName;

use crate::{
    capability::Capabilities,
    document::{Item, Section},
    environment::EnvEntry,
    folder::{FsEntry, conflict},
    limits::StatedLimits,
    net::entry::NetTable,
    secret::SecretGrant,
    source::SourceError,
    tier::Tier,
};

/// The operator's grants to one plugin, whether or not the plugin requests them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PluginTable {
    pub(crate) plugin: PluginName,
    pub(crate) net: NetTable,
    pub(crate) fs: Vec<FsEntry>,
    pub(crate) env: Vec<EnvEntry>,
    pub(crate) secrets: Vec<SecretGrant>,
    pub(crate) capabilities: Capabilities,
    pub(crate) limits: StatedLimits,
}

/// One plugin's tables from all files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tables {
    /// The effective table: the tables of all files combined.
    pub(crate) joined: PluginTable,
    /// The table in the user's own file, which a fix replaces.
    pub(crate) users: PluginTable,
}

impl PluginTable {
    /// Returns the table of a plugin that the policy does not mention.
    pub(crate) fn empty(plugin: PluginName) -> Self {
        Self {
            plugin,
            net: NetTable::none(),
            fs: Vec::new(),
            env: Vec::new(),
            secrets: Vec::new(),
            capabilities: Capabilities::none(),
            limits: StatedLimits::none(),
        }
    }

    pub(crate) fn read(
        name: Item<'_>,
        table: Item<'_>,
        home: Option<&Path>,
        tier: Tier,
    ) -> Result<Self, SourceError> {
        let plugin = name.parsed()?;
        table.section(|section| {
            let net = section.optional("net", |item| NetTable::read(item, tier))?;
            let fs = granted(section, "fs", tier, |item| FsEntry::read(item, home))?;
            let env = granted(section, "env", tier, EnvEntry::read)?;
            let secrets = granted(section, "secrets", tier, SecretGrant::read)?;
            let capabilities = Capabilities::read(section, tier)?;
            let limits = section.optional("limits", StatedLimits::read)?;
            let alone = Self {
                plugin,
                net: net.unwrap_or_else(NetTable::none),
                fs: Vec::new(),
                env,
                secrets: Vec::new(),
                capabilities,
                limits: limits.unwrap_or_else(StatedLimits::none),
            };
            alone.with_folders(fs)?.with_secrets(secrets)?.checked()
        })
    }

    /// Combines the tables of several files: a grant in one file is enough, so is a denial, and the
    /// lowest value of each limit applies. A project's table comes last.
    ///
    /// # Errors
    ///
    /// Entries that conflict.
    fn joined(
        plugin: &PluginName,
        tables: impl IntoIterator<Item = (Tier, Self)>,
    ) -> Result<Self, SourceError> {
        let joined = tables.into_iter().try_fold(
            Self::empty(plugin.clone()),
            |mut joined, (tier, table)| {
                joined.net.extend(table.net);
                joined.env.extend(table.env);
                joined.capabilities.join(tier, table.capabilities);
                match tier {
                    Tier::Admin | Tier::User => joined.limits.join(table.limits),
                    Tier::Project => joined.limits.tighten(table.limits),
                }
                let is_new = |entry: &FsEntry| !joined.fs.iter().any(|other| entry.repeats(other));
                let more = table.fs.into_iter().filter(is_new).collect();
                joined.with_folders(more)?.with_secrets(table.secrets)
            },
        );
        joined?.checked()
    }

    fn with_folders(mut self, entries: Vec<FsEntry>) -> Result<Self, SourceError> {
        for entry in entries {
            match conflict(&self.fs, &entry.written, &entry.mount) {
                None => self.fs.push(entry),
                Some(conflict) => return Err(entry.place.mistake(&conflict)),
            }
        }
        Ok(self)
    }

    fn checked(self) -> Result<Self, SourceError> {
        self.capabilities.check(&self.fs)?;
        Ok(self)
    }

    fn with_secrets(mut self, entries: Vec<SecretGrant>) -> Result<Self, SourceError> {
        for entry in entries {
            entry.check_beside(&self.secrets)?;
            self.secrets.push(entry);
        }
        Ok(self)
    }
}

/// Reads a list of grants.
fn granted<'d, T>(
    section: &mut Section<'d>,
    key: &'static str,
    tier: Tier,
    read: impl FnMut(Item<'d>) -> Result<T, SourceError>,
) -> Result<Vec<T>, SourceError> {
    let list = section.optional(key, |item| tier.granting(item)?.list(read))?;
    Ok(list.unwrap_or_default())
}

impl Tables {
    /// Returns the tables of a plugin that no file mentions.
    pub(crate) fn empty(plugin: PluginName) -> Self {
        let joined = PluginTable::empty(plugin);
        Self { users: joined.clone(), joined }
    }

    /// Combines the tables of all files, plugin by plugin. `limits` are each file's limits for all
    /// plugins; they count as part of every plugin's table.
    ///
    /// # Errors
    ///
    /// Entries of different files that conflict.
    pub(crate) fn of_files(
        files: impl IntoIterator<Item = (Tier, Vec<PluginTable>)>,
        limits: &[(Tier, StatedLimits)],
    ) -> Result<BTreeMap<PluginName, Self>, SourceError> {
        let mut found: BTreeMap<PluginName, Vec<(Tier, PluginTable)>> = BTreeMap::new();
        for (tier, tables) in files {
            for table in tables {
                found.entry(table.plugin.clone()).or_default().push((tier, table));
            }
        }
        let joined = |(plugin, tables): (PluginName, Vec<_>)| {
            Self::of(&plugin, tables, limits).map(|tables| (plugin, tables))
        };
        found.into_iter().map(joined).collect()
    }

    fn of(
        plugin: &PluginName,
        mut tables: Vec<(Tier, PluginTable)>,
        limits: &[(Tier, StatedLimits)],
    ) -> Result<Self, SourceError> {
        let own = tables.iter().filter(|(tier, _)| *tier == Tier::User).cloned();
        let users = PluginTable::joined(plugin, own)?;
        let of_all = limits.iter().map(|(tier, limits)| {
            let limits = limits.of_each_plugin();
            (*tier, PluginTable { limits, ..PluginTable::empty(plugin.clone()) })
        });
        tables.extend(of_all);
        // A project's file comes last: it tightens the combined values of the others.
        tables.sort_by_key(|(tier, _)| *tier);
        Ok(Self { users, joined: PluginTable::joined(plugin, tables)? })
    }

    /// Returns the tables of a plugin that no file mentions, with the limits for all plugins.
    pub(crate) fn unmentioned(plugin: PluginName, limits: &[(Tier, StatedLimits)]) -> Self {
        // Limits alone never conflict.
        Self::of(&plugin, Vec::new(), limits).unwrap_or_else(|_| Self::empty(plugin))
    }
}
