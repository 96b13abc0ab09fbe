//! Merges the grants that a run was missing into one policy text.
//!
//! Each refusal comes with the whole text that would lift it. Several refusals may concern one
//! plugin, and their texts would not parse if pasted one after another, so they are merged here.

use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, Value};

/// Merges texts that each lift one refusal into one that lifts them all.
///
/// A text that is not TOML is skipped.
pub fn merge_grant_texts<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    let mut merged = DocumentMut::new();
    for text in texts {
        let Ok(one) = text.parse::<DocumentMut>() else { continue };
        add_plugin_tables(&mut merged, &one);
        add_rules(&mut merged, &one);
    }
    merged.to_string()
}

fn add_plugin_tables(merged: &mut DocumentMut, one: &DocumentMut) {
    let Some(plugins) = one.get("plugin").and_then(Item::as_table) else { return };
    let known = merged.entry("plugin").or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let Some(known) = known.as_table_mut() else { return };
    for (plugin, table) in plugins {
        match (known.get_mut(plugin).and_then(Item::as_table_mut), table.as_table()) {
            (Some(known), Some(table)) => add_entries(known, table),
            _ => {
                known.insert(plugin, table.clone());
            }
        }
    }
}

fn add_entries(known: &mut Table, table: &Table) {
    for (key, item) in table {
        match known.get_mut(key) {
            // A value that is not a list is the same in both texts: both copy the plugin's table.
            Some(known) => {
                if let (Some(known), Some(entries)) = (known.as_array_mut(), item.as_array()) {
                    add_missing(known, entries);
                }
            }
            None => {
                known.insert(key, item.clone());
            }
        }
    }
}

fn add_missing(known: &mut Array, entries: &Array) {
    let plain = |value: &Value| value.to_string().trim().to_owned();
    for entry in entries {
        if !known.iter().any(|other| plain(other) == plain(entry)) {
            known.push_formatted(entry.clone());
        }
    }
    known.fmt();
}

fn add_rules(merged: &mut DocumentMut, one: &DocumentMut) {
    let Some(rules) = one.get("rule").and_then(Item::as_array_of_tables) else { return };
    let known = merged.entry("rule").or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
    let Some(known) = known.as_array_of_tables_mut() else { return };
    for rule in rules {
        if !known.iter().any(|other| other.to_string() == rule.to_string()) {
            known.push(rule.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NET: &str = "[plugin.a]\nnet = [\"GET https://x.example/\"]\nenv = [\"TZ\"]\n\n[[rule]]\ntool = \"a.*\"\ndecision = \"allow\"\n";
    const MORE: &str = "[plugin.a]\nnet = [\"GET https://x.example/\", \"GET https://y.example/\"]\nfs = [{ path = \"/n\", access = \"read\" }]\n\n[[rule]]\ntool = \"a.*\"\ndecision = \"allow\"\n";
    const OTHER: &str = "[plugin.b]\nenv = [\"HOME\"]\n";

    #[test]
    fn several_refusals_make_one_text() {
        let text = merge_grant_texts([NET, MORE, OTHER, "not [ toml"]);
        let home = Some(std::path::Path::new("/h"));
        let policy = sallyport_policy::Policy::from_user_file("p", &text, home).unwrap();
        assert_eq!(policy.plugin_names().count(), 2, "{text}");
        assert_eq!(text.matches("https://x.example/").count(), 1, "{text}");
        assert!(text.contains("https://y.example/") && text.contains("path = \"/n\""), "{text}");
        assert_eq!(text.matches("[[rule]]").count(), 1, "{text}");
    }

    #[test]
    fn one_refusal_stays_as_it_is() {
        assert_eq!(merge_grant_texts([NET]), NET);
        assert_eq!(merge_grant_texts([]), "");
    }
}
