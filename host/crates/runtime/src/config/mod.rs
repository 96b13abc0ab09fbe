//! Configuration: everything that is set before a run and that grants nothing.
//!
//! Flags, environment and `sallyport.toml` are read once, here, into [`HostSettings`]. After that,
//! no `Option` means "look elsewhere". A flag beats the environment, the environment beats the
//! files, and the files beat the default. A project's file beats the user's, as far as the project
//! is trusted. Permissions are not configuration: the policy grants them.

pub mod edit;
pub mod env;
pub mod file;
mod layers;
mod login;
mod mcp_server;
pub mod model;
pub mod paths;
mod policy;
pub mod project;
mod project_files;
pub mod provider;
mod reader;
pub mod sections;
mod serve;
pub mod setting_rows;
mod store;
mod telemetry;
pub mod trust;
pub mod values;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use sallyport_contract::{PluginName, Secret};
use sallyport_model::EmbeddingEndpoint;
use sallyport_policy::SourceError;
use sallyport_untrusted_file as untrusted_file;
use serde_json::{Map, Value};

pub use file::{FileConfig, McpServerEntry, config_schema};
use layers::{ConfigLayers, toml_to_json};
pub use layers::{RawConfig, config_file_path};
pub use login::LoginSettings;
pub use mcp_server::{McpAddress, McpEndpoint, McpProgram, McpServerError, McpServerSettings};
pub use model::{ChosenModel, ModelChoice, ModelSources, PluginModelConfig};
pub use paths::HostPaths;
pub use policy::{PolicyFiles, PolicyPath};
pub use project::ProjectConfig;
pub use project_files::ForeignFile;
pub use provider::ProviderDefinition;
pub use sections::{
    ApprovalSettings, BrowserSettings, BudgetSettings, ChatMemoryKind, ChatSettings,
    CompileSettings, EditMode, InternalToolSettings, PackageSettings, PictureMode,
    SessionRetention, TerminalSettings,
};
pub use serve::ServeSettings;
pub(crate) use setting_rows::display_address;
pub use store::StoreSettings;
pub use telemetry::TelemetrySettings;
use values::TextOrTexts;
pub(crate) use values::VariableText;

pub use crate::environment::Env;

/// Why the configuration cannot be used. The operator can fix each of these.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// One of the program's own files cannot be written.
    #[error("cannot write {path}: {source}", path = path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file contains a mistake.
    #[error(transparent)]
    Mistake(#[from] SourceError),
    /// Neither `HOME` nor `SALLYPORT_HOME` is set.
    #[error("neither HOME nor SALLYPORT_HOME is set")]
    NoHome,
    /// The requested model is unknown or incomplete.
    #[error("{message}")]
    Model {
        /// Description of the problem.
        message: String,
        /// How to fix it.
        hint: String,
    },
}

impl ConfigError {
    /// Returns a suggested fix.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unreadable { .. } | Self::Unwritable { .. } => {
                Some("check the path and its permissions".into())
            }
            Self::Mistake(error) => error.hint.clone(),
            Self::NoHome => Some("set SALLYPORT_HOME to a folder of yours".into()),
            Self::Model { hint, .. } => Some(hint.clone()),
        }
    }
}

/// The command-line flags that affect the configuration.
#[derive(Debug, Default, Clone)]
pub struct ConfigFlags {
    /// `--plugin-dir`, once per use of the flag.
    pub plugin_dirs: Vec<PathBuf>,
    /// `--config`.
    pub config: Option<PathBuf>,
    /// `--policy`.
    pub policy: Option<PathBuf>,
    /// `--provider`.
    pub provider: Option<String>,
    /// `--model`.
    pub model: Option<String>,
    /// `--guide`.
    pub guide: Option<PluginName>,
    /// `--no-stream`.
    pub no_stream: bool,
    /// The user's working folder; the process's own when absent.
    pub folder: Option<PathBuf>,
}

/// Where a value came from, in human-readable form.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SettingOrigin {
    /// A command-line flag.
    Flag(&'static str),
    /// An environment variable.
    Variable(&'static str),
    /// The configuration file.
    File,
    /// The configuration file of the project.
    Project,
    /// Not set anywhere.
    #[default]
    Default,
}

/// The configuration, resolved.
#[derive(Debug)]
pub struct HostSettings {
    /// The folders that the host uses.
    pub paths: HostPaths,
    /// The configuration file, which may not exist.
    pub config_file: PathBuf,
    /// The configuration of the project around the working folder, if any.
    pub project: Option<ProjectConfig>,
    /// The policy files of all tiers.
    pub policy: PolicyFiles,
    /// Folders that are searched for plugins.
    pub plugin_dirs: Vec<PathBuf>,
    /// The source of `plugin_dirs`.
    pub plugin_dirs_origin: SettingOrigin,
    /// The model to talk to.
    pub model: ModelChoice,
    /// The name under which it was chosen, and the reason.
    pub chosen_model: ChosenModel,
    /// Every model that can be chosen.
    pub models: ModelSources,
    /// How conversations are held.
    pub chat: ChatSettings,
    /// The embedding model, if any.
    pub embedder: Option<EmbeddingEndpoint>,
    /// How much a conversation may use.
    pub budget: BudgetSettings,
    /// How long sessions are kept.
    pub sessions: SessionRetention,
    /// Which built-in tools are enabled.
    pub internal: InternalToolSettings,
    /// How web pages are opened.
    pub browser: BrowserSettings,
    /// Where questions go besides the program that asks.
    pub approvals: ApprovalSettings,
    /// What the terminal shows.
    pub terminal: TerminalSettings,
    /// Where plugins get packages.
    pub packages: PackageSettings,
    /// How plugins without a cached build are compiled.
    pub compile: CompileSettings,
    /// Where spans are sent, if anywhere.
    pub telemetry: Option<TelemetrySettings>,
    /// Where people log in to the console of the service, if not with a token.
    pub login: Option<LoginSettings>,
    /// The certificate of the service, if it encrypts its connections itself.
    pub serve: Option<ServeSettings>,
    /// Where everything is kept that outlives a process, if not in the home.
    pub store: Option<StoreSettings>,
    /// The MCP servers whose tools are used, each under the name of its plugin.
    pub mcp_servers: BTreeMap<PluginName, McpServerSettings>,
    /// `[settings.PLUGIN]`, for each plugin.
    pub plugin_settings: BTreeMap<PluginName, Map<String, Value>>,
    /// The contents of the files, to report where a value comes from.
    pub raw_config: RawConfig,
    /// The environment, from which plugins are granted variables.
    pub env: Env,
}

impl HostSettings {
    /// Every key that the program itself sends to servers, with the name of its source.
    pub fn server_keys(&self) -> impl Iterator<Item = (String, Secret)> {
        let embedder = self.embedder.as_ref().and_then(|embedder| embedder.key.clone());
        let embedder = embedder.map(|key| ("embedding.key".to_owned(), key));
        let variables = self.mcp_servers.iter().flat_map(|(name, server)| server.secrets(name));
        let models = self.models.server_keys().chain(self.chosen_model.server_key());
        let telemetry = self.telemetry.iter().flat_map(TelemetrySettings::secrets);
        let login = self.login.iter().flat_map(|login| login.secrets(&self.env));
        let store = self.store.iter().flat_map(|store| store.secrets(&self.env));
        models.chain(embedder).chain(variables).chain(telemetry).chain(login).chain(store)
    }

    /// Resolves flags, environment and files.
    ///
    /// # Errors
    ///
    /// A file named on the command line is missing, a file contains a mistake, or the model is
    /// unknown.
    pub fn resolve(flags: &ConfigFlags, env: Env) -> Result<Self, ConfigError> {
        let paths = HostPaths::new(&env)?;
        let layers = ConfigLayers::read_files(flags, &env, &paths)?;
        let (plugin_dirs, plugin_dirs_origin) = resolve_plugin_dirs(flags, &env, &layers, &paths);
        let mut host_files = host_own_files(flags, &layers.config_file, &paths, &plugin_dirs);
        host_files.extend(layers.key_files.iter().cloned());
        let mut policy = PolicyFiles::find(flags, &env, &paths, host_files);
        policy.foreign.extend(layers.foreign.iter().cloned());
        let models = ModelSources::new(flags, &env, &layers.file)?;
        let chosen_model = models.choose_model(flags, layers.default_model())?;
        let ConfigLayers { config_file, project, mut file, raw_config, .. } = layers;
        let embedder = models.choose_embedder(file.embedding.as_ref(), &chosen_model)?;
        file.chat.fill_memory_defaults(chosen_model.context_tokens);
        file.chat.guide = flags.guide.clone().or(file.chat.guide);
        let plugin_settings = file.settings.into_iter().map(|(plugin, settings)| {
            let values = settings.into_iter().map(|(name, value)| (name, toml_to_json(value.0)));
            (plugin, values.collect())
        });
        Ok(Self {
            paths,
            config_file,
            project,
            policy,
            plugin_dirs,
            plugin_dirs_origin,
            model: chosen_model.choice.clone(),
            chat: file.chat,
            embedder,
            budget: file.budget,
            sessions: file.sessions,
            internal: file.internal,
            browser: file.browser.with_env_override(&env),
            approvals: file.approvals,
            terminal: file.terminal,
            packages: file.packages,
            compile: file.compile.with_env_override(&env),
            telemetry: file.telemetry,
            login: file.login,
            serve: file.serve,
            store: file.store,
            mcp_servers: file
                .mcp
                .into_iter()
                .map(|(name, entry)| (name, McpServerSettings::from_entry(entry, &env)))
                .collect(),
            plugin_settings: plugin_settings.collect(),
            chosen_model,
            models,
            raw_config,
            env,
        })
    }

    /// Returns the model that `--model NAME` would choose.
    ///
    /// # Errors
    ///
    /// The table of that name is incomplete, or the name does not mean a model.
    pub fn choose_model(&self, name: &str) -> Result<ChosenModel, ConfigError> {
        self.models.resolve_model_name(name)
    }
}

/// The host's own files and folders. A plugin that could change them could change its own
/// permissions.
fn host_own_files(
    flags: &ConfigFlags,
    config_file: &Path,
    paths: &HostPaths,
    plugin_dirs: &[PathBuf],
) -> Vec<PathBuf> {
    let policy = flags.policy.clone().unwrap_or_else(|| paths.policy_file());
    let files = [config_file.to_owned(), policy, paths.lock_file()];
    let folders = [paths.cache.clone(), paths.state.clone(), model::key_folder(&paths.config)];
    [&files[..], &folders[..], plugin_dirs].concat()
}

/// Size limit of a configuration file. The parser's own limit is lower.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Reads a file. A missing file counts as empty unless it was named.
///
/// # Errors
///
/// The file cannot be read as text.
pub fn read_config_file(path: &Path, named: bool) -> Result<String, ConfigError> {
    match untrusted_file::read_text(path, FILE_BYTES_MAX) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !named => Ok(String::new()),
        Err(source) => Err(ConfigError::Unreadable { path: path.to_owned(), source }),
    }
}

/// Reads a project's file, which must belong to the user or root and not be world-writable.
///
/// # Errors
///
/// The file cannot be read as text, or has another owner or mode.
fn read_owned_file(path: &Path) -> Result<String, ConfigError> {
    let unreadable = |source| ConfigError::Unreadable { path: path.to_owned(), source };
    untrusted_file::read_own_text(path, FILE_BYTES_MAX).map_err(unreadable)
}

fn display_path(path: &Path) -> String {
    path.display().to_string()
}

/// The first source that is set decides alone, so that a flag can hide every other folder.
fn resolve_plugin_dirs(
    flags: &ConfigFlags,
    env: &Env,
    layers: &ConfigLayers,
    paths: &HostPaths,
) -> (Vec<PathBuf>, SettingOrigin) {
    if !flags.plugin_dirs.is_empty() {
        return (flags.plugin_dirs.clone(), SettingOrigin::Flag("--plugin-dir"));
    }
    for name in [env::PLUGIN_DIR, env::PLUGIN_DIR_SHORT] {
        if let Some(value) = env.get(name) {
            return (std::env::split_paths(value).collect(), SettingOrigin::Variable(name));
        }
    }
    let written = layers.file.plugin_dir.as_ref().map_or(&[][..], TextOrTexts::as_slice);
    if written.is_empty() {
        return (paths.plugins.clone(), SettingOrigin::Default);
    }
    let origin = layers.raw_config.value_origin("plugin_dir");
    let project = layers.project.as_ref().filter(|_| origin == SettingOrigin::Project);
    let root = project.map_or(Path::new(""), ProjectConfig::root);
    (written.iter().map(|folder| root.join(expand_home(folder, env))).collect(), origin)
}

pub(crate) fn expand_home(text: &str, env: &Env) -> PathBuf {
    match (text.strip_prefix("~/"), env.home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(text),
    }
}

/// Checks a path of the configuration that may not depend on the working folder.
///
/// # Errors
///
/// The path is not absolute. The error is a sentence.
pub(crate) fn check_absolute(path: &Path) -> Result<(), String> {
    match path.is_absolute() {
        true => Ok(()),
        false => Err(format!("{} is not an absolute path", path.display())),
    }
}

impl std::fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flag(name) => write!(f, "the flag {name}"),
            Self::Variable(name) => write!(f, "the variable {name}"),
            Self::File => f.write_str("the configuration file"),
            Self::Project => f.write_str("the project's configuration file"),
            Self::Default => f.write_str("the default"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dirs(flags: &[&str], env: &[(&str, &str)], text: &str) -> (Vec<PathBuf>, SettingOrigin) {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("c.toml");
        std::fs::write(&config, text).unwrap();
        let mut pairs = vec![("HOME", "/home/a")];
        pairs.extend(env);
        let flags = ConfigFlags {
            plugin_dirs: flags.iter().map(PathBuf::from).collect(),
            config: Some(config),
            folder: Some(folder.path().to_owned()),
            ..ConfigFlags::default()
        };
        let settings = HostSettings::resolve(&flags, Env::from_pairs(pairs)).unwrap();
        (settings.plugin_dirs, settings.plugin_dirs_origin)
    }

    #[test]
    fn the_nearest_source_of_plugin_folders_decides() {
        let file = "plugin_dir = '/file'";
        let both = [("SALLYPORT_PLUGIN_DIR", "/a:/b"), ("PLUGIN_DIR", "/short")];
        assert_eq!(dirs(&["/flag"], &both, file).0, [PathBuf::from("/flag")]);
        let (found, origin) = dirs(&[], &both, file);
        assert_eq!(found, [PathBuf::from("/a"), PathBuf::from("/b")]);
        assert_eq!(origin, SettingOrigin::Variable("SALLYPORT_PLUGIN_DIR"));
        assert_eq!(dirs(&[], &both[1..], file).0, [PathBuf::from("/short")]);
        assert_eq!(dirs(&[], &[], file), (vec![PathBuf::from("/file")], SettingOrigin::File));
        let home = "plugin_dir = ['~/tools', '/opt/x']";
        let found = dirs(&[], &[], home).0;
        assert_eq!(found, [PathBuf::from("/home/a/tools"), PathBuf::from("/opt/x")]);
        let (found, origin) = dirs(&[], &[], "");
        assert_eq!(origin, SettingOrigin::Default);
        assert_eq!(found[0], PathBuf::from("/home/a/.local/share/sallyport/plugins"));
    }
}
