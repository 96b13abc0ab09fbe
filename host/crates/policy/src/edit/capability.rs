//! Grants of capabilities that a policy file mentions already.

use sallyport_contract::PluginName;
use toml_edit::Item;

use super::{
    PAGES_KEY, PLUGIN_KEY,
    addition::{CapabilityAddition, GrantAddition, toml_key, toml_setting_value},
    entry::{canonical_page, list_entries},
    error::EditError,
    text_edit::TextEdit,
    tree::TomlTree,
};

/// Grants a capability, and states a setting of it.
pub(super) fn grant_capability(
    tree: &TomlTree<'_>,
    plugin: &PluginName,
    item: &Item,
    wanted: &CapabilityAddition,
) -> Result<Vec<TextEdit>, EditError> {
    let key = wanted.capability.as_str();
    let is_on = item.as_bool() == Some(true) || item.is_table_like();
    let Some((setting, value)) = &wanted.setting else {
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

/// Allows one more page, unless every page is allowed.
pub(super) fn add_page_pattern(
    tree: &TomlTree<'_>,
    plugin: &PluginName,
    item: &Item,
    page: &GrantAddition,
) -> Result<Vec<TextEdit>, EditError> {
    let key = page.table_key();
    if item.as_bool() == Some(true) {
        return Ok(Vec::new());
    }
    if !item.is_table_like() {
        return tree.replace_value(key, item, &page.value_alone());
    }
    let table = tree.find_table(&[PLUGIN_KEY, plugin.as_str(), key])?;
    let Some(pages) = table.as_ref().and_then(|table| table.get(PAGES_KEY)) else {
        return Ok(Vec::new());
    };
    let GrantAddition::OpenUrl(pattern) = page else { return Ok(Vec::new()) };
    let wanted = canonical_page(pattern);
    let is_there = list_entries(tree, PAGES_KEY, pages)?
        .into_iter()
        .any(|entry| entry.plain_text().map(canonical_page).as_ref() == Some(&wanted));
    match pages.as_array() {
        Some(_) if is_there => Ok(Vec::new()),
        Some(array) => Ok(tree.add_entry(array, &page.entry_toml())),
        None => Err(tree.shape_error(PAGES_KEY, pages, "a list of texts")),
    }
}
