//! Edits `sallyport.toml`: a model and where its key is, for the guided setup, and MCP servers.
//!
//! The text is edited, not regenerated: comments, order and all other keys remain. The file is
//! replaced as a whole.

use std::{
    io,
    path::{Path, PathBuf},
};

use sallyport_contract::PluginName;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value, value};

use super::{
    ConfigError, Env, FileConfig, McpEndpoint, McpServerError, McpServerSettings, file::KEY_PLACES,
    reader::ConfigText,
};
use crate::atomic_file::{self, WriteLock};

/// A model to write into the file.
#[derive(Debug, Clone)]
pub struct ModelTable {
    /// The name of its `[model.NAME]` table.
    pub name: String,
    /// The provider.
    pub provider: String,
    /// The model's name at the provider.
    pub model: String,
    /// The address, if it is not the provider's own.
    pub base_url: Option<String>,
    /// Where the key is.
    pub key: KeyPlace,
}

/// The place of a model's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyPlace {
    /// None is needed, or the provider's own variable contains it. Nothing is written.
    Provider,
    /// A variable of this name.
    Variable(String),
    /// A file.
    File(PathBuf),
    /// An entry of the system's keyring, as SERVICE/ACCOUNT.
    Keyring(String),
}

/// What the file already sets that a new model would replace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplacedSetting {
    /// Its key: `default_model`, or `model.NAME`.
    pub key: String,
}

/// Why a file cannot be edited.
#[derive(Debug, thiserror::Error)]
pub enum ConfigEditError {
    /// The text is not TOML, or its model is not a table.
    #[error("{path} cannot be edited: {message}", path = path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// The problem.
        message: String,
    },
    /// The text would be invalid as a configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The host could not use the server that is added.
    #[error(transparent)]
    McpServer(#[from] McpServerError),
}

/// Adds a model and makes it the default one. Other keys of its table are kept.
///
/// # Errors
///
/// The text is not TOML, or the result would not be a valid configuration.
pub fn set_default_model(
    path: &Path,
    text: &str,
    table: &ModelTable,
    env: &Env,
) -> Result<String, ConfigEditError> {
    let problem = |message: String| ConfigEditError::Text { path: path.to_owned(), message };
    let mut document = parse_document(path, text)?;
    set_text(document.as_table_mut(), "default_model", &table.name);
    let models = document.entry("model").or_insert_with(implicit_table).as_table_like_mut();
    let models = models.ok_or_else(|| problem("\"model\" is not a table".to_owned()))?;
    let entry = models.entry(&table.name).or_insert_with(toml_edit::table).as_table_like_mut();
    let entry = entry.ok_or_else(|| problem(format!("\"{}\" is not a table", table.name)))?;
    write_model(entry, table);
    check_config(path, document, env)
}

/// Adds a `[mcp.NAME]` table. The server is checked as the host reads it from the result later, with
/// the values of its variables.
///
/// # Errors
///
/// The text is not TOML, has such a table, or would not be a valid configuration. The program of the
/// server does not exist, or its address or a header cannot be used.
pub fn add_mcp_server(
    path: &Path,
    text: &str,
    (name, server): (&PluginName, &McpServerSettings),
    env: &Env,
) -> Result<String, ConfigEditError> {
    let problem = |message: String| ConfigEditError::Text { path: path.to_owned(), message };
    let mut document = parse_document(path, text)?;
    let servers = document.entry("mcp").or_insert_with(implicit_table).as_table_like_mut();
    let servers = servers.ok_or_else(|| problem("\"mcp\" is not a table".to_owned()))?;
    if servers.contains_key(name.as_str()) {
        return Err(problem(format!("it has [mcp.{name}] already")));
    }
    servers.insert(name.as_str(), Item::Table(server_table(&server.endpoint)));
    let (text, mut config) = read_document(path, &document, env)?;
    if let Some(entry) = config.mcp.remove(name) {
        McpServerSettings::from_entry(entry, env).check(name, env)?;
    }
    Ok(text)
}

/// The `[mcp.NAME]` table of a server.
fn server_table(endpoint: &McpEndpoint) -> Table {
    let mut table = Table::new();
    let (key, texts) = match endpoint {
        McpEndpoint::Program(program) => {
            table.insert("command", value(Array::from_iter(&program.command)));
            if let Some(folder) = &program.folder {
                table.insert("folder", value(folder.display().to_string()));
            }
            ("env", &program.env)
        }
        McpEndpoint::Address(address) => {
            table.insert("url", value(&address.url));
            ("headers", &address.headers)
        }
    };
    if !texts.is_empty() {
        table.insert(key, value(InlineTable::from_iter(texts)));
    }
    table
}

/// Removes a `[mcp.NAME]` table. `None` if there is none.
///
/// # Errors
///
/// The text is not TOML, or would not be a valid configuration.
pub fn remove_mcp_server(
    path: &Path,
    text: &str,
    name: &PluginName,
    env: &Env,
) -> Result<Option<String>, ConfigEditError> {
    let mut document = parse_document(path, text)?;
    let servers = document.get_mut("mcp").and_then(Item::as_table_like_mut);
    let Some(servers) = servers else { return Ok(None) };
    if servers.remove(name.as_str()).is_none() {
        return Ok(None);
    }
    if servers.is_empty() {
        document.remove("mcp");
    }
    check_config(path, document, env).map(Some)
}

fn parse_document(path: &Path, text: &str) -> Result<DocumentMut, ConfigEditError> {
    text.parse().map_err(|error: toml_edit::TomlError| ConfigEditError::Text {
        path: path.to_owned(),
        message: error.message().to_owned(),
    })
}

/// Returns the text of a document that is a valid configuration.
fn check_config(path: &Path, document: DocumentMut, env: &Env) -> Result<String, ConfigEditError> {
    read_document(path, &document, env).map(|(text, _)| text)
}

/// Returns the text of a document, and the configuration that it is.
fn read_document(
    path: &Path,
    document: &DocumentMut,
    env: &Env,
) -> Result<(String, FileConfig), ConfigEditError> {
    let text = document.to_string();
    let config = ConfigText { name: path.display().to_string(), text: &text }
        .parse_and_read(env)
        .map_err(ConfigError::from)?;
    Ok((text, config))
}

/// Returns the settings of a text that [`set_default_model`] would replace by others.
pub fn replaced_settings(text: &str, table: &ModelTable) -> Vec<ReplacedSetting> {
    let document = text.parse::<DocumentMut>().unwrap_or_default();
    let default = document.get("default_model").and_then(Item::as_str);
    let is_other_default = default.is_some_and(|name| name != table.name);
    let has_table = document.get("model").and_then(|models| models.get(&table.name)).is_some();
    let default = is_other_default.then(|| "default_model".to_owned());
    let model = has_table.then(|| format!("model.{}", table.name));
    default.into_iter().chain(model).map(|key| ReplacedSetting { key }).collect()
}

/// Keeps other programs from writing `sallyport.toml` until it is dropped.
#[derive(Debug)]
pub struct ConfigWriter {
    path: PathBuf,
    _lock: WriteLock,
}

impl ConfigWriter {
    /// Waits until no other program writes the file. A missing folder is created. Whoever takes it
    /// reads the file again, because another program may have written it meanwhile.
    ///
    /// # Errors
    ///
    /// The folder cannot be created or opened.
    pub fn lock(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), _lock: WriteLock::take(path)? })
    }

    /// Replaces the file as a whole. A symbolic link is followed, and the permissions do not change.
    ///
    /// # Errors
    ///
    /// The folder cannot be written to, or the disk is full. The old file is unchanged.
    pub fn write(self, text: &str) -> io::Result<()> {
        atomic_file::replace_user_file(&self.path, text)
    }
}

/// A table without a header of its own, so that `[model.NAME]` is the only one.
fn implicit_table() -> Item {
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

fn write_model(entry: &mut dyn TableLike, table: &ModelTable) {
    let key = match &table.key {
        KeyPlace::Provider => None,
        KeyPlace::Variable(name) => Some(("key", format!("${{{name}}}"))),
        KeyPlace::File(path) => Some(("key_file", path.display().to_string())),
        KeyPlace::Keyring(entry) => Some(("key_keyring", entry.clone())),
    };
    let base_url = table.base_url.clone().map(|url| ("base_url", url));
    let own = [("provider", table.provider.clone()), ("model", table.model.clone())];
    let settings: Vec<_> = own.into_iter().chain(base_url).chain(key).collect();
    // A key of another place would be refused next to the new one.
    for key in KEY_PLACES.iter().chain(&["base_url"]) {
        if settings.iter().all(|(name, _)| name != key) {
            entry.remove(key);
        }
    }
    settings.iter().for_each(|(key, text)| set_text(entry, key, text));
}

/// Sets a text, and keeps the comments above and behind the old one.
fn set_text(table: &mut dyn TableLike, key: &str, text: &str) {
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) => {
            let decor = old.decor().clone();
            *old = Value::from(text);
            *old.decor_mut() = decor;
        }
        None => drop(table.insert(key, value(text))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{McpAddress, McpProgram};

    fn table(key: KeyPlace) -> ModelTable {
        ModelTable {
            name: "openai".to_owned(),
            provider: "openai".to_owned(),
            model: "m".to_owned(),
            base_url: None,
            key,
        }
    }

    fn edit(text: &str, table: &ModelTable) -> Result<String, ConfigEditError> {
        set_default_model(Path::new("c.toml"), text, table, &Env::from_pairs([("K", "sk-1")]))
    }

    #[test]
    fn a_model_is_added_and_everything_else_is_kept() {
        const OWN: &str = "provider = \"openai\"\nmodel = \"m\"\n";
        let rows = [
            (
                "",
                KeyPlace::Provider,
                format!("default_model = \"openai\"\n\n[model.openai]\n{OWN}"),
            ),
            (
                "# mine\n[chat]\nsystem = 'x' # why\n",
                KeyPlace::Variable("K".to_owned()),
                format!(
                    "default_model = \"openai\"\n# mine\n[chat]\nsystem = 'x' # why\n\n\
                     [model.openai]\n{OWN}key = \"${{K}}\"\n"
                ),
            ),
            (
                "default_model = 'a' # once\n[model.a]\nprovider = 'vllm'\nmodel = 'a'\n",
                KeyPlace::Keyring("sallyport/openai".to_owned()),
                format!(
                    "default_model = \"openai\" # once\n[model.a]\nprovider = 'vllm'\nmodel = 'a'\n\n\
                     [model.openai]\n{OWN}key_keyring = \"sallyport/openai\"\n"
                ),
            ),
            (
                "[model.openai]\nprovider = 'vllm'\nmodel = 'a'\nkey = 'old'\ntemperature = 0.5\n",
                KeyPlace::File("/keys/openai".into()),
                "default_model = \"openai\"\n[model.openai]\nprovider = \"openai\"\n\
                 model = \"m\"\ntemperature = 0.5\nkey_file = \"/keys/openai\"\n"
                    .to_owned(),
            ),
            (
                "# one\ndefault_model = 'openai' # two\n[model.openai] # three\n# four\n\
                 key_file = '/old' # five\nmodel = 'a' # six\nprovider = 'vllm' # seven\n",
                KeyPlace::File("/keys/openai".into()),
                "# one\ndefault_model = \"openai\" # two\n[model.openai] # three\n# four\n\
                 key_file = \"/keys/openai\" # five\nmodel = \"m\" # six\n\
                 provider = \"openai\" # seven\n"
                    .to_owned(),
            ),
        ];
        for (text, key, want) in rows {
            let table = table(key);
            let edited = edit(text, &table).unwrap();
            assert_eq!(edited, want);
            assert_eq!(edit(&edited, &table).unwrap(), want, "a second edit changes nothing");
        }
    }

    #[test]
    fn what_would_be_invalid_is_refused() {
        for (text, key, want) in [
            ("[chat", KeyPlace::Provider, "c.toml cannot be edited"),
            ("model = 3", KeyPlace::Provider, "not a table"),
            ("[chta]\nx = 1", KeyPlace::Provider, "unknown key"),
            ("", KeyPlace::Variable("NOPE".to_owned()), "\"NOPE\" is not set"),
        ] {
            let error = edit(text, &table(key)).unwrap_err().to_string();
            assert!(error.contains(want), "{text}: {error}");
        }
    }

    #[test]
    fn a_server_is_added_and_removed_and_everything_else_is_kept() {
        let path = Path::new("c.toml");
        let (env, name) = (Env::from_pairs([("K", "v")]), "files".parse().unwrap());
        let mut program = McpProgram::from_command(vec!["/bin/sh".into(), "a b".into()]);
        program.env.insert("KEY".to_owned(), "${K}".to_owned());
        program.folder = Some("/work".into());
        let server = McpEndpoint::Program(program).into();
        let before = "# mine\n[chat]\nsystem = 'x' # why\n";
        let added = add_mcp_server(path, before, (&name, &server), &env).unwrap();
        let table = "\n[mcp.files]\ncommand = [\"/bin/sh\", \"a b\"]\nfolder = \"/work\"\n\
                     env = { KEY = \"${K}\" }\n";
        assert_eq!(added, format!("{before}{table}"));
        let headers = [("Authorization".to_owned(), "Bearer ${K}".to_owned())].into();
        let address = McpAddress { url: "https://a.example/mcp".to_owned(), headers };
        let server_at = McpEndpoint::Address(address).into();
        let at_address = add_mcp_server(path, before, (&name, &server_at), &env).unwrap();
        let table = "\n[mcp.files]\nurl = \"https://a.example/mcp\"\n\
                     headers = { Authorization = \"Bearer ${K}\" }\n";
        assert_eq!(at_address, format!("{before}{table}"));
        let again = add_mcp_server(path, &added, (&name, &server), &env).unwrap_err();
        assert!(again.to_string().contains("it has [mcp.files] already"), "{again}");
        let removed = remove_mcp_server(path, &added, &name, &env).unwrap();
        assert_eq!(removed.as_deref(), Some(before));
        assert_eq!(remove_mcp_server(path, before, &name, &env).unwrap(), None);
        assert!(add_mcp_server(path, "mcp = 3", (&name, &server), &env).is_err());
    }

    #[test]
    fn what_would_be_replaced_is_named() {
        let keys = |text: &str| {
            let settings = replaced_settings(text, &table(KeyPlace::Provider));
            settings.into_iter().map(|setting| setting.key).collect::<Vec<_>>()
        };
        assert!(keys("[chat]\nsystem = 'x'").is_empty());
        assert_eq!(keys("default_model = 'a'"), ["default_model"]);
        assert!(keys("default_model = 'openai'").is_empty());
        assert_eq!(keys("[model.openai]\nprovider = 'vllm'"), ["model.openai"]);
    }
}
