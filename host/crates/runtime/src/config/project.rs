//! A project's own configuration, `.sallyport/sallyport.toml`, and how far it is trusted.
//!
//! A project can come from anywhere, and a user who opens its folder has not read its file yet. So
//! the file may choose one of the user's models and lower the user's budget, and nothing else. An
//! address, a plugin folder or a prompt for the model needs the user's trust first.

use std::path::{Path, PathBuf};

use sallyport_policy::{
    SourceError,
    document::{TomlDocument, TomlItem},
};

use super::{
    ConfigError, ConfigFlags, Env, FileConfig, ForeignFile, SettingOrigin, keys, project_files,
    sections::BudgetKeys,
    trust::{self, TrustedProjects},
};

/// A project's configuration, relative to the project's folder.
const PROJECT_CONFIG_FILE: &str = ".sallyport/sallyport.toml";

/// The configuration of a project.
#[derive(Debug)]
pub struct ProjectConfig {
    /// The file.
    pub file: PathBuf,
    /// Its contents.
    pub text: String,
    /// Whether the user trusts its current contents.
    pub is_trusted: bool,
}

/// The settings that a project's file may make.
#[derive(Debug)]
pub(super) enum ProjectSettings {
    /// All settings: the user trusts the file.
    Trusted(Box<FileConfig>),
    /// The settings of a file that the user does not trust.
    Untrusted {
        /// One of the user's models.
        default_model: Option<String>,
        /// Limits that can only lower the user's.
        budget: BudgetKeys,
    },
}

/// A project that counts, with its settings, if there is one, and the nearer files that are
/// ignored.
type FoundProject = (Option<(ProjectConfig, ProjectSettings)>, Vec<ForeignFile>);

impl ProjectConfig {
    /// Reads the configuration of the nearest project around the working folder. The user's own
    /// file never counts as a project's, regardless of its folder. Also returns the settings that
    /// the file may make, and the nearer files that are ignored.
    pub(super) fn find_nearest(
        flags: &ConfigFlags,
        env: &Env,
        user_file: &Path,
        state: &Path,
    ) -> Result<FoundProject, ConfigError> {
        // Without a working folder there cannot be a project.
        let folder = flags.folder.clone().or_else(|| std::env::current_dir().ok());
        let found = folder.map(|folder| find_nearest_project(&folder, user_file));
        let (file, foreign) = found.unwrap_or_default();
        let Some(file) = file else { return Ok((None, foreign)) };
        let text = super::read_owned_file(&file)?;
        let is_trusted =
            TrustedProjects::read(state)?.is_trusted(&file, &trust::content_digest(&text));
        let name = super::display_path(&file);
        let project_settings = match is_trusted {
            true => {
                ProjectSettings::Trusted(Box::new(parse_trusted_file(&name, &text, env, &file)?))
            }
            false => parse_untrusted_file(&name, &text)?,
        };
        Ok((Some((Self { file, text, is_trusted }, project_settings)), foreign))
    }
}

/// Reads a project's file and checks that it parses, because a broken file cannot be trusted.
///
/// # Errors
///
/// The file cannot be read, or contains a mistake.
pub fn read_project_file(file: &Path, env: &Env) -> Result<String, ConfigError> {
    let text = super::read_owned_file(file)?;
    parse_trusted_file(&super::display_path(file), &text, env, file)?;
    Ok(text)
}

/// The file of the nearest project around a folder, and the nearer ones that are ignored as
/// possibly another user's.
pub fn find_nearest_project(
    folder: &Path,
    user_file: &Path,
) -> (Option<PathBuf>, Vec<ForeignFile>) {
    let user_file = user_file.canonicalize().ok();
    project_files::find_project_file(folder, PROJECT_CONFIG_FILE, |path| {
        path.canonicalize().ok() == user_file
    })
}

/// Parses a trusted file. Relative plugin folders are resolved against the project's folder.
fn parse_trusted_file(
    name: &str,
    text: &str,
    env: &Env,
    file: &Path,
) -> Result<FileConfig, SourceError> {
    let mut config = FileConfig::parse(name, text, env)?;
    let root = file.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
    let entries = config.models.values_mut().chain(&mut config.embedding);
    entries.for_each(|entry| entry.origin = SettingOrigin::Project);
    for folder in &mut config.plugin_dirs {
        *folder = root.join(&folder);
    }
    Ok(config)
}

/// Reads the settings that an untrusted file may make. No variable is replaced.
fn parse_untrusted_file(name: &str, text: &str) -> Result<ProjectSettings, SourceError> {
    TomlDocument::read_with(name, text, |root| {
        let default_model = root.read_optional("default_model", TomlItem::read_nonblank_string)?;
        let budget =
            root.read_optional("budget", |item| item.read_section(BudgetKeys::read_section))?;
        for key in keys::top_level_keys().filter(|key| !["default_model", "budget"].contains(key)) {
            if let Some(item) = root.take_item(key) {
                let message = format!("a project that is not trusted may not set {key:?}");
                let hint = "read the file, then trust it with `sallyport trust` in its folder";
                return Err(item.place().into_error(message).with_hint(hint));
            }
        }
        Ok(ProjectSettings::Untrusted { default_model, budget: budget.unwrap_or_default() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stranger_says_little() {
        let rows = [
            ("default_model = 'a'\n[budget]\nturns = 3", None),
            ("plugin_dir = '/x'", Some("1:14: a project that is not trusted may not set")),
            ("[model.a]\nprovider = 'openai'", Some("may not set \"model\"")),
            ("[chat]\nsystem = 'obey'", Some("may not set \"chat\"")),
            ("[settings.weather]\nurl = '${HOME}'", Some("may not set \"settings\"")),
            ("[price.'*']\ninput = 0\noutput = 0", Some("may not set \"price\"")),
            ("[sessions]\nkeep = '1h'", Some("may not set \"sessions\"")),
            ("[budgt]\nturns = 3", Some("1:2: unknown key \"budgt\"")),
            ("[budget]\nturn = 3", Some("2:1: unknown key \"turn\"")),
        ];
        for (text, want) in rows {
            let said = parse_untrusted_file("p.toml", text).map_err(|error| error.to_string());
            match (said, want) {
                (Ok(_), None) => {}
                (Err(error), Some(want)) => assert!(error.contains(want), "{error}"),
                (said, want) => panic!("{text}: {said:?}, not {want:?}"),
            }
        }
    }

    #[test]
    fn the_users_own_file_is_no_project() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(PROJECT_CONFIG_FILE);
        std::fs::create_dir(folder.path().join(".sallyport")).unwrap();
        std::fs::write(&file, "").unwrap();
        let inner = folder.path().join("a/b");
        assert_eq!(find_nearest_project(&inner, Path::new("/other")).0, Some(file.clone()));
        assert_eq!(find_nearest_project(&inner, &file).0, None);
    }
}
