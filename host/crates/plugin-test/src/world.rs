//! The world of one case: a home with the plugin, its policy, its files and its settings.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

use sallyport_contract::PluginName;
use sallyport_runtime::config::{ConfigError, ConfigFlags, Env, HostSettings, env};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::{case_file::CaseWorld, error::CaseError};

/// Placeholder for the folder of the case's files in its grant.
const FOLDER_PLACEHOLDER: &str = "{folder}";

/// The plugin that is tested.
#[derive(Debug, Clone)]
pub struct TestedPlugin {
    /// Its name.
    pub name: PluginName,
    /// Its component.
    pub component: PathBuf,
    /// The manifest beside the component. Without one, the manifest is in the component.
    pub manifest: Option<PathBuf>,
}

/// A temporary folder with everything that a case needs. It is removed when this is dropped.
pub(crate) struct CaseHome {
    folder: TempDir,
    pub(crate) settings: HostSettings,
}

impl CaseHome {
    /// Creates the home of a case. `cache` has compiled components, which all cases share.
    pub(crate) fn create(
        tested: &TestedPlugin,
        world: &CaseWorld,
        cache: &Path,
    ) -> Result<Self, CaseError> {
        let folder = TempDir::with_prefix("sallyport-case-").map_err(CaseError::Files)?;
        let (home, files) = (folder.path().join("home"), files_folder(folder.path()));
        fs::create_dir_all(&home)
            .and_then(|()| fs::create_dir(&files))
            .map_err(CaseError::Files)?;
        write_files(&files, world)?;
        install(tested, &home.join("plugins").join(tested.name.as_str()))
            .map_err(CaseError::Files)?;
        let policy = home.join("policy.toml");
        let text = policy_text(&tested.name, world, &files)?;
        fs::write(&policy, text).map_err(CaseError::Files)?;
        let mut settings = resolve_settings(world, folder.path(), &home, policy)?;
        settings.policy.host_files.push(cache.to_owned());
        cache.clone_into(&mut settings.paths.cache);
        settings.plugin_settings.insert(tested.name.clone(), world.settings.clone());
        settings.internal.reminder = false;
        Ok(Self { folder, settings })
    }

    /// The text of a file of the case, or `None` if there is none.
    pub(crate) fn read_file(&self, name: &str) -> Option<String> {
        let bytes = fs::read(files_folder(self.folder.path()).join(name)).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn files_folder(folder: &Path) -> PathBuf {
    folder.join("files")
}

/// Puts the plugin where the host finds it. The component is linked, because it may be large.
fn install(tested: &TestedPlugin, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let component = fs::canonicalize(&tested.component)?;
    std::os::unix::fs::symlink(component, folder.join("plugin.wasm"))?;
    match &tested.manifest {
        Some(manifest) => fs::copy(manifest, folder.join("plugin.toml")).map(drop),
        None => Ok(()),
    }
}

fn write_files(folder: &Path, world: &CaseWorld) -> Result<(), CaseError> {
    for (name, text) in &world.files {
        let is_plain = |part| matches!(part, Component::Normal(_));
        if !Path::new(name).components().all(is_plain) {
            let what = format!("the file {name:?} is not below the folder of the case");
            return Err(CaseError::Case(what));
        }
        let path = folder.join(name);
        let created = path.parent().map_or(Ok(()), fs::create_dir_all);
        // A name that ends in a slash is a folder.
        let written = created.and_then(|()| match name.ends_with('/') {
            true => fs::create_dir_all(&path),
            false => fs::write(&path, text),
        });
        written.map_err(CaseError::Files)?;
    }
    Ok(())
}

fn resolve_settings(
    world: &CaseWorld,
    folder: &Path,
    home: &Path,
    policy: PathBuf,
) -> Result<HostSettings, ConfigError> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let (home, user) = (text(home), text(folder));
    let secrets: Vec<_> = world.secrets.iter().enumerate().collect();
    let secrets: Vec<(String, &str)> = secrets
        .into_iter()
        .map(|(index, (_, value))| (secret_variable(index), value.as_str()))
        .collect();
    let given = world.environment.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let variables = given
        .chain(secrets.iter().map(|(name, value)| (name.as_str(), *value)))
        .chain([(env::HOME, home.as_str()), ("HOME", user.as_str())]);
    let flags = ConfigFlags {
        policy: Some(policy),
        model: Some("offline".to_owned()),
        folder: Some(folder.to_owned()),
        ..ConfigFlags::default()
    };
    HostSettings::resolve(&flags, Env::from_pairs(variables))
}

/// The variable with the value of a secret.
fn secret_variable(index: usize) -> String {
    format!("CASE_SECRET_{index}")
}

/// The policy: the grant of the case, its secrets, and a rule that lets every call run.
fn policy_text(name: &PluginName, world: &CaseWorld, files: &Path) -> Result<String, CaseError> {
    let secrets = world.secrets.keys().enumerate();
    let secrets: Map<String, Value> = secrets
        .map(|(index, secret)| (secret.clone(), json!({ "env": secret_variable(index) })))
        .collect();
    let policy = json!({
        "plugin": { name.as_str(): fill_in(&Value::Object(world.grant.clone()), files) },
        "rule": [{ "tool": format!("{name}.*"), "decision": "allow" }],
        "secret": secrets,
    });
    let table = toml::Table::try_from(policy);
    let text = table
        .map_err(|error| error.to_string())
        .and_then(|table| toml::to_string(&table).map_err(|error| error.to_string()));
    text.map_err(|error| CaseError::Case(format!("the grant cannot be a policy: {error}")))
}

/// Replaces the placeholder of the folder in every text.
fn fill_in(value: &Value, files: &Path) -> Value {
    match value {
        Value::String(text) => {
            text.replace(FOLDER_PLACEHOLDER, &files.display().to_string()).into()
        }
        Value::Array(items) => items.iter().map(|item| fill_in(item, files)).collect(),
        Value::Object(members) => {
            let filled = members.iter().map(|(key, value)| (key.clone(), fill_in(value, files)));
            Value::Object(filled.collect())
        }
        other => other.clone(),
    }
}
