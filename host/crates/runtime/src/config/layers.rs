//! The configuration files, merged: the project's over the user's.

use std::path::PathBuf;

use serde_json::Value;

use super::{
    Budget, ConfigError, Env, FileConfig, Flags, ForeignFile, Origin, Paths, Project,
    project::Says, sections::BudgetKeys,
};

/// The merged contents of the files.
pub(super) struct Layers {
    pub(super) config_file: PathBuf,
    pub(super) project: Option<Project>,
    pub(super) file: FileConfig,
    pub(super) budget: Budget,
    pub(super) written: Written,
    /// Project configurations that are ignored.
    pub(super) foreign: Vec<ForeignFile>,
}

/// The files as written, with variables not replaced.
#[derive(Debug, Default)]
pub struct Written {
    user: Value,
    /// Only the part that counts.
    project: Value,
}

impl Layers {
    pub(super) fn read(flags: &Flags, env: &Env, paths: &Paths) -> Result<Self, ConfigError> {
        let config_file = file_of(flags, paths);
        let text = super::read(&config_file, flags.config.is_some())?;
        let user = FileConfig::parse(&super::show(&config_file), &text, env)?;
        let (project, foreign) = Project::find(flags, env, &config_file, &paths.state)?;
        let written = Written { user: tree(&text), project: Value::Null };
        let budget = user.budget.resolve();
        let layers = Self { config_file, project: None, file: user, budget, written, foreign };
        Ok(match project {
            Some(project) => layers.under(project),
            None => layers,
        })
    }

    fn under(mut self, (project, says): (Project, Says)) -> Self {
        self.written.project = tree(&project.text);
        match says {
            Says::Trusted(file) => {
                self.file = file.over(self.file);
                self.budget = self.file.budget.resolve();
            }
            Says::Stranger { default_model, budget } => {
                self.file.default_model = default_model.or(self.file.default_model);
                self.lower(budget);
            }
        }
        self.project = Some(project);
        self
    }

    /// Lowers the budget. Numbers that do not lower it count as absent.
    fn lower(&mut self, keys: BudgetKeys) {
        let lowered = keys.lower(self.budget);
        let (before, after) = (self.budget.shown(), lowered.shown());
        if let Some(written) = self.written.project["budget"].as_object_mut() {
            written.retain(|key, _| before.get(key) != after.get(key));
        }
        self.budget = lowered;
    }

    /// The default model, and the file that names it.
    pub(super) fn default_model(&self) -> Option<(&str, Origin)> {
        let name = self.file.default_model.as_deref()?;
        Some((name, self.written.origin("default_model")))
    }
}

impl Written {
    /// The file that a value comes from; `path` is like `chat.system`.
    pub fn origin(&self, path: &str) -> Origin {
        let pointer = format!("/{}", path.replace('.', "/"));
        let has = |tree: &Value| tree.pointer(&pointer).is_some();
        match (has(&self.project), has(&self.user)) {
            (true, _) => Origin::Project,
            (false, true) => Origin::File,
            (false, false) => Origin::Default,
        }
    }

    /// A value as written, and the file that it comes from.
    pub fn value(&self, key: &str) -> Option<(Value, Origin)> {
        let of = |tree: &Value, origin| Some((tree.get(key)?.clone(), origin));
        of(&self.project, Origin::Project).or_else(|| of(&self.user, Origin::File))
    }

    /// The tables under `top`, each with the file that it comes from. A project's table replaces
    /// the user's table of the same name.
    pub fn tables(&self, top: &str) -> Vec<(&str, &Value, Origin)> {
        let mut tables = Vec::new();
        for (tree, origin) in [(&self.project, Origin::Project), (&self.user, Origin::File)] {
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
fn tree(text: &str) -> Value {
    let table = toml::from_str::<toml::Table>(text).unwrap_or_default();
    json_of(toml::Value::Table(table))
}

/// Converts a TOML value. A date becomes a string, as it does where plugins receive one.
fn json_of(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => Value::from(text),
        toml::Value::Integer(number) => Value::from(number),
        toml::Value::Float(number) => Value::from(number),
        toml::Value::Boolean(truth) => Value::from(truth),
        toml::Value::Datetime(date) => Value::from(date.to_string()),
        toml::Value::Array(list) => list.into_iter().map(json_of).collect(),
        toml::Value::Table(table) => {
            table.into_iter().map(|(key, value)| (key, json_of(value))).collect()
        }
    }
}

/// The configuration file: the one that `--config` names, or the default one.
pub fn file_of(flags: &Flags, paths: &Paths) -> PathBuf {
    flags.config.clone().unwrap_or_else(|| paths.config.join("sallyport.toml"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::config::{
        Settings,
        trust::{Trust, digest},
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
            let digest = digest(&fs::read_to_string(&file).unwrap());
            Trust::read(&self.path("home/state")).unwrap().add(&file, digest).unwrap();
        }

        fn resolve(&self) -> Result<Settings, ConfigError> {
            let home = self.path("home");
            let env = Env::of([("SALLYPORT_HOME", home.to_str().unwrap())]);
            let flags = Flags { folder: Some(self.path("work")), ..Flags::default() };
            Settings::resolve(&flags, env)
        }
    }

    const USER: &str = "[model.a]\nprovider = 'vllm'\nmodel = 'a'\n\
                        [model.b]\nprovider = 'vllm'\nmodel = 'b'\n[budget]\nturns = 8";

    #[test]
    fn a_stranger_chooses_a_model_and_lowers_the_budget() {
        let project = "default_model = 'b'\n[budget]\nturns = 4\ncalls = 900\ntokens = 5";
        let settings = Folder::new(USER, project).resolve().unwrap();
        assert_eq!(settings.chosen.name, "b");
        assert!(settings.chosen.why.contains("project"), "{}", settings.chosen.why);
        let turn = settings.budget.turn;
        assert_eq!((turn.turns_max, turn.calls_max, turn.tokens_max), (4, 64, Some(5)));
        let origin = |path: &str| settings.written.origin(path);
        assert_eq!(origin("budget.turns"), Origin::Project);
        assert_eq!(origin("budget.calls"), Origin::Default);
        let higher = Folder::new(USER, "[budget]\nturns = 9").resolve().unwrap();
        assert_eq!(higher.budget.turn.turns_max, 8);
        assert_eq!(higher.written.origin("budget.turns"), Origin::File);
        let unknown = Folder::new(USER, "default_model = 'gpt'").resolve().unwrap_err();
        assert!(unknown.to_string().contains("no [model.gpt]"), "{unknown}");
    }

    #[test]
    fn trust_lets_a_project_set_everything_until_it_changes() {
        let project = "plugin_dir = 'tools'\ndefault_model = 'c'\n[model.c]\n\
                       provider = 'vllm'\nmodel = 'c'\n[budget]\nturns = 90";
        let folder = Folder::new(USER, project);
        assert!(folder.resolve().unwrap_err().to_string().contains("1:14: a project"));
        folder.trust();
        let settings = folder.resolve().unwrap();
        assert_eq!(settings.chosen.name, "c");
        assert_eq!(settings.budget.turn.turns_max, 90);
        assert_eq!(settings.plugin_dirs, [folder.path("work/tools")]);
        assert_eq!(settings.plugin_dirs_origin, Origin::Project);
        assert!(settings.models.entries.contains_key("a"));
        let file = folder.path("work/.sallyport/sallyport.toml");
        fs::write(&file, format!("{project}0")).unwrap();
        assert!(folder.resolve().unwrap_err().to_string().contains("may not set"));
    }
}
