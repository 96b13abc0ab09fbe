//! `sallyport state …`: the persistent state of plugins.

use clap::Subcommand;
use sallyport_contract::{
    DataOwner, PluginName,
    services::{StateStore, StateStoreError, StoredValue},
    text,
};
use sallyport_runtime::{config::ConfigFlags, services::USER};
use sallyport_store::{PersistentStateStore, StateOwner};
use serde_json::{Value, json};

use super::{
    args::{Format, OutputArgs},
    compose,
    exit::{Exit, Failure},
    output::Output,
};

/// Keys per page read from the store.
const PAGE_KEYS: usize = 256;

/// Most characters of a key in a question or an error.
const KEY_CHARS_MAX: usize = 60;

/// Commands for state.
#[derive(Debug, Subcommand)]
pub(super) enum StateCommand {
    /// List the plugins that have state, or the keys of one plugin
    List {
        /// The plugin
        plugin: Option<PluginName>,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Print a value
    Get {
        /// The plugin
        plugin: PluginName,
        /// The key
        key: String,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Delete one key of a plugin, or all its state
    Clear {
        /// The plugin
        plugin: PluginName,
        /// The key; all keys by default
        key: Option<String>,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
}

pub(super) fn state(
    flags: &ConfigFlags,
    command: &StateCommand,
    out: &Output,
) -> Result<Exit, Failure> {
    let settings = compose::settings(flags)?;
    let state = compose::store(&settings)?.state();
    match command {
        StateCommand::List { plugin: None, output } => {
            let owners = state.list_owners()?;
            list_owners(&owners, output.output, out);
        }
        StateCommand::List { plugin: Some(plugin), output } => {
            let keys = keys(&state, &owner(plugin))?;
            list_keys(plugin, &keys, output.output, out);
        }
        StateCommand::Get { plugin, key, output } => {
            let kept = state.get(&owner(plugin), key)?.ok_or_else(|| missing(plugin, key))?;
            print(key, &kept, output.output, out);
        }
        StateCommand::Clear { plugin, key, yes } => {
            if *yes || compose::confirms(&question(plugin, key.as_deref()), out)? {
                clear(&state, plugin, key.as_deref(), out)?;
            }
        }
    }
    Ok(Exit::Done)
}

fn owner(plugin: &PluginName) -> DataOwner {
    DataOwner { plugin: plugin.clone(), user: USER.to_owned() }
}

fn list_owners(owners: &[StateOwner], format: Format, out: &Output) {
    if format == Format::Json {
        let about = |kept: &StateOwner| {
            let plugin = kept.owner.plugin.as_str();
            json!({ "plugin": plugin, "keys": kept.keys, "bytes": kept.bytes })
        };
        return out.json(&owners.iter().map(about).collect());
    }
    for kept in owners {
        let keys = counted(kept.keys);
        out.line(&format!("{}  {keys}, {} bytes", kept.owner.plugin, kept.bytes));
    }
    if owners.is_empty() {
        out.note("No plugin has state.");
    }
}

fn keys(state: &PersistentStateStore, owner: &DataOwner) -> Result<Vec<String>, StateStoreError> {
    let mut keys: Vec<String> = Vec::new();
    loop {
        let page = state.list_keys(owner, "", keys.last().map(String::as_str), PAGE_KEYS)?;
        let is_last = page.len() < PAGE_KEYS;
        keys.extend(page);
        if is_last {
            return Ok(keys);
        }
    }
}

fn list_keys(plugin: &PluginName, keys: &[String], format: Format, out: &Output) {
    match format {
        Format::Json => out.json(&json!(keys)),
        Format::Text if keys.is_empty() => out.note(&format!("{plugin} has no state.")),
        Format::Text => keys.iter().for_each(|key| out.line(&text::escape_line(key))),
    }
}

/// Prints a value. One that is not UTF-8 text is printed in hexadecimal.
fn print(key: &str, kept: &StoredValue, format: Format, out: &Output) {
    let shown = std::str::from_utf8(&kept.value);
    match format {
        Format::Json => {
            let value = match shown {
                Ok(text) => json!(text),
                Err(_) => Value::Null,
            };
            let (bytes, version) = (kept.value.len(), kept.version);
            let hex = shown.is_err().then(|| hex(&kept.value));
            out.json(&json!({
                "key": key, "value": value, "hex": hex, "bytes": bytes, "version": version,
            }));
        }
        Format::Text => match shown {
            Ok(text) => out.line(text),
            Err(_) => out.line(&hex(&kept.value)),
        },
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn question(plugin: &PluginName, key: Option<&str>) -> String {
    match key {
        Some(key) => {
            format!("Delete {} of {plugin}?", text::escape_excerpt(key, KEY_CHARS_MAX))
        }
        None => format!("Delete all state of {plugin}?"),
    }
}

fn clear(
    state: &PersistentStateStore,
    plugin: &PluginName,
    key: Option<&str>,
    out: &Output,
) -> Result<(), Failure> {
    let owner = owner(plugin);
    let count = match key {
        None => state.clear_owner(&owner)?,
        Some(key) if state.delete(&owner, key)? => 1,
        Some(key) => return Err(missing(plugin, key)),
    };
    out.line(&format!("Deleted {}.", counted(count as u64)));
    Ok(())
}

fn counted(keys: u64) -> String {
    if keys == 1 { "1 key".to_owned() } else { format!("{keys} keys") }
}

fn missing(plugin: &PluginName, key: &str) -> Failure {
    let message = format!("{plugin} has no key {}", text::escape_excerpt(key, KEY_CHARS_MAX));
    let hint = format!("list its keys with `sallyport state list {plugin}`");
    Failure::new(Exit::Failed, message).with_hint(hint)
}

impl From<StateStoreError> for Failure {
    fn from(error: StateStoreError) -> Self {
        Self::new(Exit::Failed, error.to_string())
    }
}
