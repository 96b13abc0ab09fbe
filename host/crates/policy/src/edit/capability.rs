//! Grants of capabilities that a policy file mentions already.

use sallyport_contract::PluginName;
use toml_edit::Item;

use super::{
    PAGES, PLUGINS,
    addition::{Addition, CapabilityAddition, key_text, setting_value},
    entry::{canonical_page, entries},
    error::EditError,
    splice::Splice,
    tree::Tree,
};

/// Grants a capability, and states a setting of it.
pub(super) fn switch_on(
    tree: &Tree<'_>,
    plugin: &PluginName,
    item: &Item,
    wanted: &CapabilityAddition,
) -> Result<Vec<Splice>, EditError> {
    let key = wanted.capability.word();
    let is_on = item.as_bool() == Some(true) || item.is_table_like();
    let Some((setting, value)) = &wanted.setting else {
        return if is_on { Ok(Vec::new()) } else { tree.replace(key, item, "true") };
    };
    if !item.is_table_like() {
        return tree.replace(key, item, &Addition::Capability(wanted.clone()).only());
    }
    let table = tree.place(&[PLUGINS, plugin.as_str(), key])?;
    let table = table.expect("the table has been found before something is stated in it");
    match table.get(setting) {
        None => Ok(tree.add_pair(&table, &key_text(setting), &setting_value(value))),
        Some(item) => tree.replace(setting, item, &setting_value(value)),
    }
}

/// Allows one more page, unless every page is allowed.
pub(super) fn add_page(
    tree: &Tree<'_>,
    plugin: &PluginName,
    item: &Item,
    page: &Addition,
) -> Result<Vec<Splice>, EditError> {
    let key = page.key();
    if item.as_bool() == Some(true) {
        return Ok(Vec::new());
    }
    if !item.is_table_like() {
        return tree.replace(key, item, &page.only());
    }
    let table = tree.place(&[PLUGINS, plugin.as_str(), key])?;
    let Some(pages) = table.as_ref().and_then(|table| table.get(PAGES)) else {
        return Ok(Vec::new());
    };
    let Addition::Page(pattern) = page else { return Ok(Vec::new()) };
    let wanted = canonical_page(pattern);
    let is_there = entries(tree, PAGES, pages)?
        .into_iter()
        .any(|entry| entry.plain().map(canonical_page).as_ref() == Some(&wanted));
    match pages.as_array() {
        Some(_) if is_there => Ok(Vec::new()),
        Some(array) => Ok(tree.add_entry(array, &page.entry())),
        None => Err(tree.misshapen(PAGES, pages, "a list of texts")),
    }
}
