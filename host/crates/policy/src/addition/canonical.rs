//! Entries as the policy parser understands them, regardless of their notation.

use std::path::Path;

use sallyport_contract::Decision;
use toml_edit::Value;

use crate::{
    capability::Capability, document::TomlDocument, source::SourceError, table::PluginTable,
    tier::PolicyTier,
};

/// The home folder when only the form of an entry matters.
const ANY_HOME: &str = "/home";

/// Returns the canonical form of a value in a plugin's table: its entries as the policy parser
/// understands them, regardless of their notation.
///
/// # Errors
///
/// The value is not valid in a policy.
pub(crate) fn canonical_values(key: &str, value: &str) -> Result<Vec<String>, SourceError> {
    Ok(parse_values(key, value)?.iter().flat_map(entry_forms).collect())
}

/// Whether an entry of a `net` list allows all requests of another one without a question, so that
/// a question about the other would never be asked. Both are TOML.
pub(crate) fn makes_question_idle(entry: &str, asking: &str) -> bool {
    let allows = |toml: &str| {
        let tables = parse_values("net", &format!("[{toml}]")).unwrap_or_default();
        tables.into_iter().flat_map(|table| table.net.allows).collect::<Vec<_>>()
    };
    let asking = allows(asking);
    allows(entry).iter().filter(|entry| entry.decision == Decision::Allow).any(|entry| {
        asking.iter().any(|asking| asking.decision == Decision::Ask && entry.covers(asking))
    })
}

/// Parses a value in a plugin's table, which is in a policy of its own.
fn parse_values(key: &str, value: &str) -> Result<Vec<PluginTable>, SourceError> {
    let text = format!("[plugin.p]\n{key} = {value}\n");
    let home = Some(Path::new(ANY_HOME));
    TomlDocument::read_with("policy", &text, |root| {
        root.read_named_items("plugin", |name, table| {
            PluginTable::from_toml(name, table, home, PolicyTier::User)
        })
    })
}

fn entry_forms(table: &PluginTable) -> Vec<String> {
    let net = table.net.allows.iter().map(ToString::to_string);
    let fs = table.fs.iter().map(ToString::to_string);
    let env = table.env.iter().map(|entry| entry.name.clone());
    let secrets = table.secrets.iter().map(ToString::to_string);
    let capabilities = Capability::ALL.into_iter();
    let capabilities = capabilities.flat_map(|of| table.capabilities.entries_with_text(of));
    let capabilities = capabilities.map(|(_, text)| text);
    net.chain(fs).chain(env).chain(secrets).chain(capabilities).collect()
}

/// The text of an entry that is a TOML string.
pub(crate) fn plain_item(toml: &str) -> Option<String> {
    toml.parse::<Value>().ok()?.as_str().map(str::to_owned)
}
