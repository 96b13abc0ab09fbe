//! The configuration files, merged: the project's over the user's.

use std::{fmt, path::PathBuf};

use serde_json::{Value, json};

use super::{
    ConfigError, ConfigFlags, Env, FileConfig, ForeignFile, HostPaths, ProjectConfig,
    SettingOrigin,
    reader::{self, ConfigText},
};

/// The merged contents of the files.
pub(super) struct ConfigLayers {
    pub(super) config_file: PathBuf,
    pub(super) project: Option<ProjectConfig>,
    pub(super) file: FileConfig,
    pub(super) raw_config: RawConfig,
    /// The files that contain keys of servers, also of those that a project replaces.
    pub(super) key_files: Vec<PathBuf>,
    /// Project configurations that are ignored.
    pub(super) foreign: Vec<ForeignFile>,
}

/// The files as written, with variables not replaced.
#[derive(Default)]
pub struct RawConfig {
    user: Value,
    /// Only the part that counts.
    project: Value,
}

impl fmt::Debug for RawConfig {
    /// Leaves out the values, which may be keys and passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawConfig").finish_non_exhaustive()
    }
}

impl ConfigLayers {
    pub(super) fn read_files(
        flags: &ConfigFlags,
        env: &Env,
        paths: &HostPaths,
    ) -> Result<Self, ConfigError> {
        let config_file = config_file_path(flags, paths);
        let text = super::read_config_file(&config_file, flags.config.is_some())?;
        let user = ConfigText { name: super::display_path(&config_file), text: &text };
        let mut table = user.parse(env, true)?;
        let mut file = user.read(table.clone())?;
        let (project, foreign) = ProjectConfig::find_nearest(flags, &config_file, &paths.state)?;
        let mut key_files = key_files_of(&file, env);
        let mut raw_config = RawConfig { user: parse_json_tree(&text), project: Value::Null };
        if let Some(project) = &project {
            let text = project.config_text();
            let nearest = text.parse(env, project.is_trusted)?;
            text.read(nearest.clone())?;
            reader::merge_tables(&mut table, nearest);
            let merged = user.read(table)?;
            raw_config.project = parse_json_tree(text.text);
            key_files.extend(key_files_of(&merged, env));
            let user_budget = std::mem::replace(&mut file, merged).budget;
            if !project.is_trusted {
                file.budget = file.budget.lower_of(user_budget);
                raw_config.retain_lowered_budget(&json!(user_budget), &json!(file.budget));
            }
        }
        for (name, entry) in &mut file.model {
            entry.origin = raw_config.table_origin("model", name);
        }
        Ok(Self { config_file, project, file, raw_config, key_files, foreign })
    }

    /// The default model, and the file that names it.
    pub(super) fn default_model(&self) -> Option<(&str, SettingOrigin)> {
        let name = self.file.default_model.as_deref()?;
        Some((name, self.raw_config.value_origin("default_model")))
    }
}

fn key_files_of(file: &FileConfig, env: &Env) -> Vec<PathBuf> {
    let of_models = file.model.values().filter_map(|entry| entry.key_path(env));
    let of_login = file.login.iter().filter_map(|login| login.secret_path(env));
    let of_service = file.serve.iter().filter_map(|serve| serve.key_path(env).ok());
    let of_store = file.store.iter().filter_map(|store| store.secret_path(env));
    of_models.chain(of_login).chain(of_service).chain(of_store).collect()
}

impl RawConfig {
    /// Removes the limits of a project that do not lower the user's. They count as absent.
    fn retain_lowered_budget(&mut self, user: &Value, lowered: &Value) {
        if let Some(project) = self.project["budget"].as_object_mut() {
            project.retain(|key, _| user[key] != lowered[key]);
        }
    }

    /// The file of a table under a name, which is in one of the files.
    fn table_origin(&self, top: &str, name: &str) -> SettingOrigin {
        match self.project[top].get(name) {
            Some(_) => SettingOrigin::Project,
            None => SettingOrigin::File,
        }
    }

    /// The file that a value comes from; `path` is like `chat.system`.
    pub fn value_origin(&self, path: &str) -> SettingOrigin {
        let pointer = format!("/{}", path.replace('.', "/"));
        let contains_path = |tree: &Value| tree.pointer(&pointer).is_some();
        match (contains_path(&self.project), contains_path(&self.user)) {
            (true, _) => SettingOrigin::Project,
            (false, true) => SettingOrigin::File,
            (false, false) => SettingOrigin::Default,
        }
    }

    /// A value as written, and the file that it comes from.
    pub fn value_with_origin(&self, key: &str) -> Option<(Value, SettingOrigin)> {
        let find_value = |tree: &Value, origin| Some((tree.get(key)?.clone(), origin));
        find_value(&self.project, SettingOrigin::Project)
            .or_else(|| find_value(&self.user, SettingOrigin::File))
    }

    /// The tables under `top`, each with the file that it comes from. A project's table replaces
    /// the user's table of the same name.
    pub fn tables_with_origin(&self, top: &str) -> Vec<(&str, &Value, SettingOrigin)> {
        let mut tables = Vec::new();
        for (tree, origin) in
            [(&self.project, SettingOrigin::Project), (&self.user, SettingOrigin::File)]
        {
            let found = tree.get(top).and_then(Value::as_object).into_iter().flatten();
            for (name, table) in found {
                if !tables.iter().any(|(known, _, _)| *known == name.as_str()) {
                    tables.push((name.as_str(), table, origin));
                }
            }
        }
        tables
    }
}

/// Parses a file into a tree. The file was parsed before, so it has neither mistakes nor deep
/// nesting.
fn parse_json_tree(text: &str) -> Value {
    let table = toml::from_str::<toml::Table>(text).unwrap_or_default();
    toml_to_json(toml::Value::Table(table))
}

/// Converts a TOML value. A date becomes a string, as it does where plugins receive one.
pub(super) fn toml_to_json(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => Value::from(text),
        toml::Value::Integer(number) => Value::from(number),
        toml::Value::Float(number) => Value::from(number),
        toml::Value::Boolean(truth) => Value::from(truth),
        toml::Value::Datetime(date) => Value::from(date.to_string()),
        toml::Value::Array(list) => list.into_iter().map(toml_to_json).collect(),
        toml::Value::Table(table) => {
            table.into_iter().map(|(key, value)| (key, toml_to_json(value))).collect()
        }
    }
}

/// The configuration file: the one that `--config` names, or the default one.
pub fn config_file_path(flags: &ConfigFlags, paths: &HostPaths) -> PathBuf {
    flags.config.clone().unwrap_or_else(|| paths.config.join("sallyport.toml"))
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;
    use crate::config::{
        HostSettings,
        trust::{TrustedProjects, content_digest},
    };

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new(user: &str, project: &str) -> Self {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir_all(folder.path().join("home")).unwrap();
            fs::create_dir_all(folder.path().join("work/.sallyport")).unwrap();
            fs::write(folder.path().join("home/sallyport.toml"), user).unwrap();
            fs::write(folder.path().join("work/.sallyport/sallyport.toml"), project).unwrap();
            Self(folder)
        }

        fn path(&self, path: &str) -> PathBuf {
            self.0.path().join(path)
        }

        fn trust(&self) {
            let file = self.path("work/.sallyport/sallyport.toml");
            let digest = content_digest(&fs::read_to_string(&file).unwrap());
            TrustedProjects::read(&self.path("home/state")).unwrap().add(&file, digest).unwrap();
        }

        fn resolve(&self) -> Result<HostSettings, ConfigError> {
            let home = self.path("home");
            let env = Env::from_pairs([("SALLYPORT_HOME", home.to_str().unwrap())]);
            let flags = ConfigFlags { folder: Some(self.path("work")), ..ConfigFlags::default() };
            HostSettings::resolve(&flags, env)
        }
    }

    const USER: &str = "[model.a]\nprovider = 'vllm'\nmodel = 'a'\n\
                        [model.b]\nprovider = 'vllm'\nmodel = 'b'\n[budget]\nturns = 8";

    #[test]
    fn a_stranger_chooses_a_model_and_lowers_the_budget() {
        let project = "default_model = 'b'\n[budget]\nturns = 4\ncalls = 900\ntokens = 5";
        let settings = Folder::new(USER, project).resolve().unwrap();
        assert_eq!(settings.chosen_model.name, "b");
        assert!(
            settings.chosen_model.reason.contains("project"),
            "{}",
            settings.chosen_model.reason
        );
        let turn = settings.budget.turn_limits();
        assert_eq!((turn.turns_max, turn.calls_max, turn.tokens_max), (4, 64, Some(5)));
        let origin = |path: &str| settings.raw_config.value_origin(path);
        assert_eq!(origin("budget.turns"), SettingOrigin::Project);
        assert_eq!(origin("budget.calls"), SettingOrigin::Default);
        let higher = Folder::new(USER, "[budget]\nturns = 9").resolve().unwrap();
        assert_eq!(higher.budget.turns.0, 8);
        assert_eq!(higher.raw_config.value_origin("budget.turns"), SettingOrigin::File);
        let unknown = Folder::new(USER, "default_model = 'gpt'").resolve().unwrap_err();
        assert!(unknown.to_string().contains("no [model.gpt]"), "{unknown}");
    }

    /// A plugin could read a key file whose table a project replaced.
    #[test]
    fn key_files_of_replaced_tables_stay_guarded() {
        let table = |file: &str| {
            format!("[model.a]\nprovider = 'vllm'\nmodel = 'a'\nkey_file = '/keys/{file}'\n")
        };
        let folder = Folder::new(&table("user"), &table("project"));
        folder.trust();
        let guarded = folder.resolve().unwrap().policy.host_files;
        let config = folder.path("home/keys");
        for file in [Path::new("/keys/user"), Path::new("/keys/project"), &config] {
            assert!(guarded.iter().any(|path| path == file), "{file:?}: {guarded:?}");
        }
    }

    #[test]
    fn trust_lets_a_project_set_everything_until_it_changes() {
        let project = "plugin_dir = 'tools'\ndefault_model = 'c'\n[model.c]\n\
                       provider = 'vllm'\nmodel = 'c'\n[budget]\nturns = 90";
        let folder = Folder::new(USER, project);
        assert!(folder.resolve().unwrap_err().to_string().contains("1:14: a project"));
        folder.trust();
        let settings = folder.resolve().unwrap();
        assert_eq!(settings.chosen_model.name, "c");
        assert_eq!(settings.budget.turns.0, 90);
        assert_eq!(settings.plugin_dirs, [folder.path("work/tools")]);
        assert_eq!(settings.plugin_dirs_origin, SettingOrigin::Project);
        assert!(settings.models.entries.contains_key("a"));
        let file = folder.path("work/.sallyport/sallyport.toml");
        fs::write(&file, format!("{project}0")).unwrap();
        assert!(folder.resolve().unwrap_err().to_string().contains("may not set"));
    }
}
