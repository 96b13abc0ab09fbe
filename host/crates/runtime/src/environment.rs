//! The environment, read once. No other part of the host reads the process's variables.

use std::{collections::BTreeMap, path::PathBuf};

/// The environment as it was when the process started.
#[derive(Clone)]
pub struct Env(BTreeMap<String, String>);

impl Env {
    /// Reads the process's environment. Entries that are not Unicode are dropped.
    #[expect(clippy::disallowed_methods, reason = "this is where the environment enters")]
    pub fn from_process() -> Self {
        let pairs = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Self(pairs.collect())
    }

    /// An environment with these variables only.
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// Returns a variable's value; an empty one counts as unset.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The user's home folder.
    pub fn home_dir(&self) -> Option<PathBuf> {
        self.get("HOME").map(PathBuf::from)
    }
}

impl std::fmt::Debug for Env {
    /// Lists the names only: values may be keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}
