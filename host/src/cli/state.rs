//! `sallyport state …`: the persistent state of plugins.

use clap::Subcommand;
use data_encoding::HEXLOWER;
use sallyport_contract::{
    DataOwner, LOCAL_USER, PluginName,
    services::{StateStoreError, StoredValue},
    text,
};
use sallyport_runtime::config::ConfigFlags;
use sallyport_store::{PersistentStateStore, StateOwner};
use sallyport_terminal::listing::ListRow;
use serde_json::{Value, json};

use super::{
    args::{OutputArgs, OutputFormat},
    exit::{CommandFailure, ExitStatus},
    name_kind::NameKind,
    output::{CliOutput, format_count},
    setup,
};

/// Keys per page read from the store.
const PAGE_KEYS: usize = 256;

/// Most characters of a key in a question or an error.
const KEY_CHARS_MAX: usize = 60;

// Commands for state.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(super) enum StateCommand {
    /// List the plugins that have state, or the keys of one plugin
    #[command(visible_alias = "ls")]
    List {
        /// The plugin
        #[arg(add = NameKind::Plugin)]
        plugin: Option<PluginName>,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Print a value
    Get {
        /// The plugin
        #[arg(add = NameKind::Plugin)]
        plugin: PluginName,
        /// The key
        key: String,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Delete one key of a plugin, or all its state
    Clear {
        /// The plugin
        #[arg(add = NameKind::Plugin)]
        plugin: PluginName,
        /// The key; all keys by default
        key: Option<String>,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
}

pub(super) async fn run_state_command(
    flags: &ConfigFlags,
    command: &StateCommand,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let settings = setup::read_settings(flags)?;
    let state = setup::open_store(&settings)?.state;
    match command {
        StateCommand::List { plugin: None, output } => {
            let owners = state.list_owners().await?;
            list_owners(&owners, output.output, out);
        }
        StateCommand::List { plugin: Some(plugin), output } => {
            let keys = read_keys(&*state, &state_owner(plugin)).await?;
            list_keys(plugin, &keys, output.output, out);
        }
        StateCommand::Get { plugin, key, output } => {
            let kept = state
                .get(&state_owner(plugin), key)
                .await?
                .ok_or_else(|| missing_key_failure(plugin, key))?;
            print_value(key, &kept, output.output, out);
        }
        StateCommand::Clear { plugin, key, yes } => {
            if *yes || setup::ask_confirmation(&clear_question(plugin, key.as_deref()), out)? {
                clear_state(&*state, plugin, key.as_deref(), out).await?;
            }
        }
    }
    Ok(ExitStatus::Done)
}

fn state_owner(plugin: &PluginName) -> DataOwner {
    DataOwner { plugin: plugin.clone(), user: LOCAL_USER.to_owned() }
}

fn list_owners(owners: &[StateOwner], format: OutputFormat, out: &CliOutput) {
    if format == OutputFormat::Json {
        let about = |kept: &StateOwner| {
            let plugin = kept.owner.plugin.as_str();
            json!({ "plugin": plugin, "keys": kept.keys, "bytes": kept.bytes })
        };
        return out.print_json(&owners.iter().map(about).collect());
    }
    let row = |kept: &StateOwner| {
        let size = format!("{}, {} bytes", format_count(kept.keys, "key"), kept.bytes);
        ListRow::new([kept.owner.plugin.as_str(), &size])
    };
    out.print_list(&owners.iter().map(row).collect::<Vec<_>>());
    if owners.is_empty() {
        out.print_note("No plugin has state.");
    }
}

async fn read_keys(
    state: &dyn PersistentStateStore,
    owner: &DataOwner,
) -> Result<Vec<String>, StateStoreError> {
    let mut keys: Vec<String> = Vec::new();
    loop {
        let page = state.list_keys(owner, "", keys.last().map(String::as_str), PAGE_KEYS).await?;
        let is_last = page.len() < PAGE_KEYS;
        keys.extend(page);
        if is_last {
            return Ok(keys);
        }
    }
}

fn list_keys(plugin: &PluginName, keys: &[String], format: OutputFormat, out: &CliOutput) {
    match format {
        OutputFormat::Json => out.print_json(&json!(keys)),
        OutputFormat::Text if keys.is_empty() => out.print_note(&format!("{plugin} has no state.")),
        OutputFormat::Text => keys.iter().for_each(|key| out.print_line(&text::escape_line(key))),
    }
}

/// Prints a value. One that is not UTF-8 text is printed in hexadecimal.
fn print_value(key: &str, kept: &StoredValue, format: OutputFormat, out: &CliOutput) {
    let shown = std::str::from_utf8(&kept.value);
    match format {
        OutputFormat::Json => {
            let value = match shown {
                Ok(text) => json!(text),
                Err(_) => Value::Null,
            };
            let (bytes, version) = (kept.value.len(), kept.version);
            let hex = shown.is_err().then(|| HEXLOWER.encode(&kept.value));
            out.print_json(&json!({
                "key": key, "value": value, "hex": hex, "bytes": bytes, "version": version,
            }));
        }
        OutputFormat::Text => match shown {
            Ok(text) => out.print_line(text),
            Err(_) => out.print_line(&HEXLOWER.encode(&kept.value)),
        },
    }
}

fn clear_question(plugin: &PluginName, key: Option<&str>) -> String {
    match key {
        Some(key) => {
            format!("Delete {} of {plugin}?", text::escape_excerpt(key, KEY_CHARS_MAX))
        }
        None => format!("Delete all state of {plugin}?"),
    }
}

async fn clear_state(
    state: &dyn PersistentStateStore,
    plugin: &PluginName,
    key: Option<&str>,
    out: &CliOutput,
) -> Result<(), CommandFailure> {
    let owner = state_owner(plugin);
    let count = match key {
        None => state.clear_owner(&owner).await?,
        Some(key) if state.delete(&owner, key).await? => 1,
        Some(key) => return Err(missing_key_failure(plugin, key)),
    };
    out.print_line(&format!("Deleted {}.", format_count(count, "key")));
    Ok(())
}

fn missing_key_failure(plugin: &PluginName, key: &str) -> CommandFailure {
    let message = format!("{plugin} has no key {}", text::escape_excerpt(key, KEY_CHARS_MAX));
    let hint = format!("list its keys with `sallyport state list {plugin}`");
    CommandFailure::new(ExitStatus::Failed, message).with_hint(hint)
}

impl From<StateStoreError> for CommandFailure {
    fn from(error: StateStoreError) -> Self {
        Self::new(ExitStatus::Failed, error.to_string())
    }
}
