//! The environment, read once. No other part of the host asks the process for a variable.

use std::{collections::BTreeMap, path::PathBuf};

/// Puts configuration, plugins, policy and cache under one folder.
pub const HOME: &str = "SALLYPORT_HOME";
/// Folders of plugins, separated as in `PATH`.
pub const PLUGIN_DIR: &str = "SALLYPORT_PLUGIN_DIR";
/// The same, under the name that older set-ups use.
pub const PLUGIN_DIR_SHORT: &str = "PLUGIN_DIR";
/// The model to talk to.
pub const MODEL: &str = "SALLYPORT_MODEL";
/// The key for an OpenAI-compatible endpoint.
pub const OPENAI_API_KEY: &str = "OPENAI_API_KEY";
/// Address of an OpenAI-compatible endpoint.
pub const OPENAI_BASE_URL: &str = "OPENAI_BASE_URL";

/// Every variable that the host reads, with what it is for.
pub const ALL: [(&str, &str); 6] = [
    (HOME, "puts configuration, plugins, policy and cache under one folder"),
    (PLUGIN_DIR, "folders of plugins, separated as in PATH"),
    (PLUGIN_DIR_SHORT, "the same, under the name that older set-ups use"),
    (MODEL, "the model to talk to: a name, a [model.NAME] table, or offline"),
    (OPENAI_API_KEY, "the key for an OpenAI-compatible endpoint"),
    (OPENAI_BASE_URL, "address of an OpenAI-compatible endpoint"),
];

/// The environment as it was when the process started.
#[derive(Clone)]
pub struct Env(BTreeMap<String, String>);

impl Env {
    /// Reads the process's environment. Entries that are not Unicode are left out.
    #[expect(clippy::disallowed_methods, reason = "this is where the environment enters")]
    pub fn of_process() -> Self {
        let pairs = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Self(pairs.collect())
    }

    /// An environment of one's own, for tests.
    pub fn of<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// Returns a variable's value; an empty one counts as unset.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The user's home folder.
    pub fn home(&self) -> Option<PathBuf> {
        self.get("HOME").map(PathBuf::from)
    }
}

impl std::fmt::Debug for Env {
    /// Names only: values may be keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}
