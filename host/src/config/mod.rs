//! Configuration: everything that is set before anything runs, and that grants nothing.
//!
//! Flags, environment and `sallyport.toml` are read here, once, into [`Settings`]; after that no
//! `Option` is left that means "look elsewhere". A flag beats the environment, the environment beats
//! the file, and the file beats the default. Powers are not configuration: they stand in the policy.

pub mod env;
pub mod file;
pub mod model;
pub mod paths;
mod policy;

use std::{
    collections::BTreeMap,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use sallyport_contract::PluginName;
use sallyport_policy::SourceError;
use serde_json::{Map, Value};

pub use env::Env;
pub use file::FileConfig;
pub use model::ModelChoice;
pub use paths::Paths;
pub use policy::{PolicyFiles, PolicyPath};

/// Why the configuration cannot be used. The operator can mend all of these.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file that was named cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file has a mistake in it.
    #[error(transparent)]
    Mistake(#[from] SourceError),
    /// There is no home folder and nothing that says where to look instead.
    #[error("neither HOME nor SALLYPORT_HOME is set")]
    NoHome,
    /// The model that is asked for is not known.
    #[error("{0}")]
    Model(String),
}

impl ConfigError {
    /// What can be done about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unreadable { .. } => Some("check the path and its permissions".into()),
            Self::Mistake(error) => error.hint.clone(),
            Self::NoHome => Some("set SALLYPORT_HOME to a folder of yours".into()),
            Self::Model(_) => None,
        }
    }
}

/// The flags that bear on the configuration, as the command line gave them.
#[derive(Debug, Default, Clone)]
pub struct Flags {
    /// `--plugin-dir`, as often as it was given.
    pub plugin_dirs: Vec<PathBuf>,
    /// `--config`.
    pub config: Option<PathBuf>,
    /// `--policy`.
    pub policy: Option<PathBuf>,
    /// `--model`.
    pub model: Option<String>,
    /// `--no-stream`.
    pub no_stream: bool,
    /// The folder that the user works in; the process's own when absent.
    pub folder: Option<PathBuf>,
}

/// Where a value came from; for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A flag of the command line.
    Flag(&'static str),
    /// An environment variable.
    Variable(&'static str),
    /// The configuration file.
    File,
    /// Nothing was set.
    Default,
}

/// The configuration, resolved.
#[derive(Debug)]
pub struct Settings {
    /// The folders that the rest lies in.
    pub paths: Paths,
    /// The configuration file; it need not exist.
    pub config_file: PathBuf,
    /// The policy's files, of all tiers.
    pub policy: PolicyFiles,
    /// Folders in which plugins are looked for.
    pub plugin_dirs: Vec<PathBuf>,
    /// What named these folders.
    pub plugin_dirs_origin: Origin,
    /// The model to talk to.
    pub model: ModelChoice,
    /// `[settings.PLUGIN]`, for each plugin.
    pub plugin_settings: BTreeMap<PluginName, Map<String, Value>>,
    /// The environment, for what plugins are granted of it.
    pub env: Env,
}

impl Settings {
    /// Resolves flags, environment and files.
    ///
    /// # Errors
    ///
    /// A file that was named is missing, a file has a mistake, or the model is not known.
    pub fn resolve(flags: &Flags, env: Env) -> Result<Self, ConfigError> {
        let paths = Paths::new(&env)?;
        let config_file =
            flags.config.clone().unwrap_or_else(|| paths.config.join("sallyport.toml"));
        let text = read(&config_file, flags.config.is_some())?;
        let file = FileConfig::parse(&show(&config_file), &text, &env)?;
        let (plugin_dirs, plugin_dirs_origin) = plugin_dirs(flags, &env, &file, &paths);
        let own = own_files(flags, &config_file, &paths, &plugin_dirs);
        let policy = PolicyFiles::find(flags, &env, &paths, own);
        let model = model::choose(flags, &env, &file)?;
        let plugin_settings = file.settings;
        Ok(Self {
            paths,
            config_file,
            policy,
            plugin_dirs,
            plugin_dirs_origin,
            model,
            plugin_settings,
            env,
        })
    }
}

/// What the host lives from: a plugin that could change it could change what it may do.
fn own_files(
    flags: &Flags,
    config_file: &Path,
    paths: &Paths,
    plugin_dirs: &[PathBuf],
) -> Vec<PathBuf> {
    let policy = flags.policy.clone().unwrap_or_else(|| paths.config.join("policy.toml"));
    let files = [config_file.to_owned(), policy, paths.lock()];
    let folders = [paths.cache.clone(), paths.state.clone()];
    [&files[..], &folders[..], plugin_dirs].concat()
}

/// Longest configuration that is read; the parser refuses less.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A file that nobody named need not exist.
fn read(path: &Path, named: bool) -> Result<String, ConfigError> {
    let mut text = String::new();
    let read = File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text))
        .map(|_| text);
    match read {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !named => Ok(String::new()),
        Err(source) => Err(ConfigError::Unreadable { path: path.to_owned(), source }),
    }
}

fn show(path: &Path) -> String {
    path.display().to_string()
}

/// The first source that says anything decides alone, so that a flag can hide every other folder.
fn plugin_dirs(
    flags: &Flags,
    env: &Env,
    file: &FileConfig,
    paths: &Paths,
) -> (Vec<PathBuf>, Origin) {
    if !flags.plugin_dirs.is_empty() {
        return (flags.plugin_dirs.clone(), Origin::Flag("--plugin-dir"));
    }
    for name in [env::PLUGIN_DIR, env::PLUGIN_DIR_SHORT] {
        if let Some(value) = env.get(name) {
            return (std::env::split_paths(value).collect(), Origin::Variable(name));
        }
    }
    if !file.plugin_dirs.is_empty() {
        return (file.plugin_dirs.clone(), Origin::File);
    }
    (paths.plugins.clone(), Origin::Default)
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flag(name) => write!(f, "the flag {name}"),
            Self::Variable(name) => write!(f, "the variable {name}"),
            Self::File => f.write_str("the configuration file"),
            Self::Default => f.write_str("the default"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dirs(flags: &[&str], env: &[(&str, &str)], file: &str) -> (Vec<PathBuf>, Origin) {
        let mut pairs = vec![("HOME", "/home/a")];
        pairs.extend(env);
        let env = Env::of(pairs);
        let file = FileConfig::parse("c.toml", file, &env).unwrap();
        let flags =
            Flags { plugin_dirs: flags.iter().map(PathBuf::from).collect(), ..Flags::default() };
        plugin_dirs(&flags, &env, &file, &Paths::new(&env).unwrap())
    }

    #[test]
    fn the_nearest_source_of_plugin_folders_decides() {
        let file = "plugin_dir = '/file'";
        let both = [("SALLYPORT_PLUGIN_DIR", "/a:/b"), ("PLUGIN_DIR", "/short")];
        assert_eq!(dirs(&["/flag"], &both, file).0, [PathBuf::from("/flag")]);
        let (found, origin) = dirs(&[], &both, file);
        assert_eq!(found, [PathBuf::from("/a"), PathBuf::from("/b")]);
        assert_eq!(origin, Origin::Variable("SALLYPORT_PLUGIN_DIR"));
        assert_eq!(dirs(&[], &both[1..], file).0, [PathBuf::from("/short")]);
        assert_eq!(dirs(&[], &[], file), (vec![PathBuf::from("/file")], Origin::File));
        let (found, origin) = dirs(&[], &[], "");
        assert_eq!(origin, Origin::Default);
        assert_eq!(found[0], PathBuf::from("/home/a/.local/share/sallyport/plugins"));
    }
}
