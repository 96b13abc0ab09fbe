//! One plugin's table of a policy, `[plugin.NAME]`: what the operator grants it.

use std::path::Path;

use sallyport_contract::PluginName;

use crate::{
    document::{Item, Section},
    environment::read_env_name,
    folder::{FsEntry, conflict},
    limits::Limits,
    net::entry::NetTable,
    source::SourceError,
};

/// What the operator grants one plugin, whether or not the plugin asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PluginTable {
    pub(crate) plugin: PluginName,
    pub(crate) net: NetTable,
    pub(crate) fs: Vec<FsEntry>,
    pub(crate) env: Vec<String>,
    pub(crate) limits: Limits,
}

impl PluginTable {
    /// The table of a plugin that the policy does not mention.
    pub(crate) fn empty(plugin: PluginName) -> Self {
        let (fs, env) = (Vec::new(), Vec::new());
        Self { plugin, net: NetTable::none(), fs, env, limits: Limits::standard() }
    }

    pub(crate) fn read(
        name: Item<'_>,
        table: Item<'_>,
        home: Option<&Path>,
    ) -> Result<Self, SourceError> {
        let plugin = name.parsed()?;
        table.section(|section| {
            Ok(Self {
                plugin,
                net: section.optional("net", NetTable::read)?.unwrap_or_else(NetTable::none),
                fs: read_folders(section, home)?,
                env: section.list("env", read_env_name)?,
                limits: section.optional("limits", Limits::read)?.unwrap_or_else(Limits::standard),
            })
        })
    }
}

fn read_folders(
    section: &mut Section<'_>,
    home: Option<&Path>,
) -> Result<Vec<FsEntry>, SourceError> {
    let mut entries: Vec<FsEntry> = Vec::new();
    for entry in section.list("fs", |item| FsEntry::read(item, home))? {
        match conflict(&entries, &entry.written, &entry.mount) {
            None => entries.push(entry),
            Some(conflict) => return Err(entry.place.mistake(&conflict)),
        }
    }
    Ok(entries)
}
