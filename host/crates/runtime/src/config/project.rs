//! A project's own configuration, `.sallyport/sallyport.toml`, and how far it is trusted.
//!
//! A project can come from anywhere, and a user who opens its folder has not read its file yet. So
//! the file may choose one of the user's models and lower the user's budget, and nothing else. An
//! address, a plugin folder or a prompt for the model needs the user's trust first.

use std::path::{Path, PathBuf};

use super::{
    ConfigError, ConfigFlags, Env, ForeignFile, project_files,
    reader::ConfigText,
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

impl ProjectConfig {
    /// Reads the configuration of the nearest project around the working folder. The user's own
    /// file never counts as a project's, regardless of its folder. Also returns the nearer files
    /// that are ignored.
    pub(super) fn find_nearest(
        flags: &ConfigFlags,
        user_file: &Path,
        state: &Path,
    ) -> Result<(Option<Self>, Vec<ForeignFile>), ConfigError> {
        // Without a working folder there cannot be a project.
        let folder = flags.folder.clone().or_else(|| std::env::current_dir().ok());
        let found = folder.map(|folder| find_nearest_project(&folder, user_file));
        let (file, foreign) = found.unwrap_or_default();
        let Some(file) = file else { return Ok((None, foreign)) };
        let text = super::read_owned_file(&file)?;
        let is_trusted =
            TrustedProjects::read(state)?.is_trusted(&file, &trust::content_digest(&text));
        Ok((Some(Self { file, text, is_trusted }), foreign))
    }

    pub(super) fn config_text(&self) -> ConfigText<'_> {
        ConfigText { name: super::display_path(&self.file), text: &self.text }
    }

    /// The project's folder, which relative paths in the file start from.
    pub(super) fn root(&self) -> &Path {
        self.file.parent().and_then(Path::parent).unwrap_or(Path::new("/"))
    }
}

/// Reads a project's file and checks that it parses, because a broken file cannot be trusted.
///
/// # Errors
///
/// The file cannot be read, or contains a mistake.
pub fn read_project_file(file: &Path, env: &Env) -> Result<String, ConfigError> {
    let text = super::read_owned_file(file)?;
    let name = super::display_path(file);
    ConfigText { name, text: &text }.parse_and_read(env)?;
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
            let file = ConfigText { name: "p.toml".to_owned(), text };
            let table = file.parse(&Env::from_pairs([]), false);
            let said = table.and_then(|table| file.read(table)).map_err(|error| error.to_string());
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
