//! Grants of capabilities that a policy file mentions or denies already.

use sallyport_contract::PluginName;
use toml_edit::Item;

use super::{
    PLUGIN_KEY,
    entry::list_entries,
    error::EditError,
    text_edit::TextEdit,
    tree::{TableNode, TomlTree},
};
use crate::{
    addition::{GrantAddition, plain_item},
    capability::{CapabilityAddition, CapabilityPart, ValueShape},
    toml_text::{toml_key, toml_setting_value},
};

/// Whether a plugin's table denies an addition with `false`: the capability, or its setting. Lists
/// such as `net` have no such form.
pub(super) fn is_denied(table: Option<&TableNode<'_>>, addition: &GrantAddition) -> bool {
    let GrantAddition::Capability(CapabilityAddition { capability, part }) = addition else {
        return false;
    };
    let Some(stated) = table.and_then(|table| table.get(capability.as_str())) else {
        return false;
    };
    let setting = match part {
        CapabilityPart::Setting { key, .. } => {
            stated.as_table_like().and_then(|table| table.get(key))
        }
        CapabilityPart::Whole | CapabilityPart::Entry(_) => None,
    };
    [Some(stated), setting].into_iter().flatten().any(|item| item.as_bool() == Some(false))
}

/// Grants a capability, and states a setting of it.
pub(super) fn grant_capability(
    tree: &TomlTree<'_>,
    plugin: &PluginName,
    item: &Item,
    wanted: &CapabilityAddition,
) -> Result<Vec<TextEdit>, EditError> {
    let key = wanted.capability.as_str();
    let is_on = item.as_bool() == Some(true) || item.is_table_like();
    let CapabilityPart::Setting { key: setting, value } = &wanted.part else {
        if let ValueShape::Table(list_key) = wanted.capability.kind().shape()
            && item.as_table_like().is_some_and(|table| table.contains_key(list_key))
        {
            return Err(EditError::GrantedInPart { capability: wanted.capability });
        }
        return if is_on { Ok(Vec::new()) } else { tree.replace_value(key, item, "true") };
    };
    if !item.is_table_like() {
        return tree.replace_value(
            key,
            item,
            &GrantAddition::Capability(wanted.clone()).value_alone(),
        );
    }
    let table = tree.find_table(&[PLUGIN_KEY, plugin.as_str(), key])?;
    let table = table.expect("the table has been found before something is stated in it");
    match table.get(setting) {
        None => Ok(tree.add_key(&table, &toml_key(setting), &toml_setting_value(value))),
        Some(item) => tree.replace_value(setting, item, &toml_setting_value(value)),
    }
}

/// Grants one more item of the list under a key of the capability's table, unless every item is
/// granted.
pub(super) fn add_table_item(
    tree: &TomlTree<'_>,
    plugin: &PluginName,
    item: &Item,
    wanted: &CapabilityAddition,
    list_key: &'static str,
) -> Result<Vec<TextEdit>, EditError> {
    let (key, kind) = (wanted.capability.as_str(), wanted.capability.kind());
    let addition = GrantAddition::Capability(wanted.clone());
    if item.as_bool() == Some(true) {
        return Ok(Vec::new());
    }
    if !item.is_table_like() {
        return tree.replace_value(key, item, &addition.value_alone());
    }
    let table = tree.find_table(&[PLUGIN_KEY, plugin.as_str(), key])?;
    let Some(items) = table.as_ref().and_then(|table| table.get(list_key)) else {
        return Ok(Vec::new());
    };
    let own = plain_item(&addition.entry_toml()).map(|item| kind.canonical_item(&item));
    let is_there = list_entries(tree, list_key, items)?
        .into_iter()
        .any(|entry| entry.plain_text().map(|item| kind.canonical_item(item)) == own);
    match items.as_array() {
        Some(_) if is_there => Ok(Vec::new()),
        Some(array) => Ok(tree.add_entry(array, &addition.entry_toml())),
        None => Err(tree.shape_error(list_key, items, "a list of texts")),
    }
}
