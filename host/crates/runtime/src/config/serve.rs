//! `[serve]`: the certificate of the service.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Env, check_absolute, expand_home};

/// The `[serve]` table.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServeSettings {
    /// The file with the certificate of the service and those that lead to a known authority, in PEM:
    /// an absolute path or one below ~.
    #[schemars(extend("x-variables" = true))]
    certificate_file: String,
    /// The file with the key of the certificate, in PEM; only its owner may be allowed to read it.
    #[schemars(extend("x-variables" = true))]
    key_file: String,
}

impl ServeSettings {
    /// The file with the certificate.
    ///
    /// # Errors
    ///
    /// The path is not absolute. The error is a sentence.
    pub fn certificate_path(&self, env: &Env) -> Result<PathBuf, String> {
        absolute_path(&self.certificate_file, env)
    }

    /// The file with the key of the certificate.
    ///
    /// # Errors
    ///
    /// The path is not absolute. The error is a sentence.
    pub fn key_path(&self, env: &Env) -> Result<PathBuf, String> {
        absolute_path(&self.key_file, env)
    }
}

fn absolute_path(path: &str, env: &Env) -> Result<PathBuf, String> {
    let path = expand_home(path, env);
    check_absolute(&path).map(|()| path)
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;
    use crate::config::{ConfigFlags, HostSettings};

    #[test]
    fn the_key_is_guarded_and_paths_are_absolute() {
        let folder = tempfile::tempdir().unwrap();
        let rows = [("~/key.pem", true), ("/etc/key.pem", true), ("key.pem", false)];
        for (key, is_absolute) in rows {
            let config = folder.path().join("sallyport.toml");
            let table = format!("[serve]\ncertificate_file = '/c.pem'\nkey_file = '{key}'\n");
            fs::write(&config, table).unwrap();
            let env = Env::from_pairs([("HOME", folder.path().to_str().unwrap())]);
            let flags = ConfigFlags {
                config: Some(config),
                folder: Some(folder.path().to_owned()),
                ..ConfigFlags::default()
            };
            let settings = HostSettings::resolve(&flags, env).unwrap();
            let serve = settings.serve.as_ref().unwrap();
            assert_eq!(serve.certificate_path(&settings.env).unwrap(), Path::new("/c.pem"));
            let path = serve.key_path(&settings.env);
            assert_eq!(path.is_ok(), is_absolute, "{path:?}");
            let is_guarded = |path: PathBuf| settings.policy.host_files.contains(&path);
            assert!(path.map_or(true, is_guarded), "{key}");
        }
    }
}
