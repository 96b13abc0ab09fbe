//! The folders that the host uses: per the XDG rules, or all under `SALLYPORT_HOME`.

use std::path::PathBuf;

use super::{ConfigError, Env, env};

/// Where system-wide plugins are installed: by the administrator, and by a package.
const SYSTEM_PLUGINS: [&str; 2] =
    ["/usr/local/share/sallyport/plugins", "/usr/share/sallyport/plugins"];

/// The folders that the host uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPaths {
    /// `sallyport.toml` and `policy.toml`.
    pub config: PathBuf,
    /// The audit log and everything else that outlives a session.
    pub state: PathBuf,
    /// Compiled plugins. It is safe to delete at any time.
    pub cache: PathBuf,
    /// The default plugin folders, the user's own first.
    pub plugins: Vec<PathBuf>,
}

impl HostPaths {
    /// Determines the folders. Creates none of them.
    ///
    /// # Errors
    ///
    /// Neither `SALLYPORT_HOME` nor `HOME` is set.
    pub fn new(env: &Env) -> Result<Self, ConfigError> {
        if let Some(all) = env.get(env::HOME).map(PathBuf::from) {
            let plugins = vec![all.join("plugins")];
            let (cache, state) = (all.join("cache"), all.join("state"));
            return Ok(Self { cache, state, config: all, plugins });
        }
        let home = env.home_dir().ok_or(ConfigError::NoHome)?;
        let folder = |name: &str, fallback: &str| {
            // The XDG rules ignore a relative path.
            let given = env.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
            given.unwrap_or_else(|| home.join(fallback)).join("sallyport")
        };
        let own_plugins = folder("XDG_DATA_HOME", ".local/share").join("plugins");
        Ok(Self {
            config: folder("XDG_CONFIG_HOME", ".config"),
            state: folder("XDG_STATE_HOME", ".local/state"),
            cache: folder("XDG_CACHE_HOME", ".cache"),
            plugins: [own_plugins].into_iter().chain(SYSTEM_PLUGINS.map(Into::into)).collect(),
        })
    }

    /// The user's policy file, which grants plugins their permissions.
    pub fn policy_file(&self) -> PathBuf {
        self.config.join("policy.toml")
    }

    /// The folder with copies of files that calls of sessions changed.
    pub fn undo_folder(&self) -> PathBuf {
        self.state.join("undo")
    }

    /// The lockfile of accepted plugins.
    pub fn lock_file(&self) -> PathBuf {
        self.config.join("sallyport.lock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_follow_xdg_or_stand_together() {
        let check = |pairs: &[(&str, &str)], config: &str, cache: &str| {
            let paths = HostPaths::new(&Env::from_pairs(pairs.iter().copied())).unwrap();
            assert_eq!(paths.config, PathBuf::from(config));
            assert_eq!(paths.cache, PathBuf::from(cache));
        };
        check(&[("HOME", "/h")], "/h/.config/sallyport", "/h/.cache/sallyport");
        check(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/c")], "/c/sallyport", "/h/.cache/sallyport");
        check(
            &[("HOME", "/h"), ("XDG_CONFIG_HOME", "c")],
            "/h/.config/sallyport",
            "/h/.cache/sallyport",
        );
        check(&[("SALLYPORT_HOME", "/s")], "/s", "/s/cache");
        assert!(HostPaths::new(&Env::from_pairs([])).is_err());
    }
}
