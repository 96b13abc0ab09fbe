//! Where a plugin is installed from, and the record of it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use sallyport_contract::{PluginName, text};
use sallyport_runtime::{
    atomic_file::{WriteLock, replace_user_file},
    config::HostSettings,
};
use sallyport_sandbox::ComponentFile;

use crate::cli::exit::{CommandFailure, ExitStatus};

/// The record, in the state folder. Without it, `plugin update` has to be told the source.
const RECORD: &str = "plugin-sources.json";

/// Characters of a digest in hexadecimal.
const DIGEST_CHARS: usize = 64;

/// The files of a plugin.
pub(super) struct PluginSource {
    pub(super) path: PathBuf,
    /// The path as it is recorded.
    pub(super) origin: String,
}

/// Finds a plugin's files, and checks the digest of its component if one is given.
pub(super) fn find_source(
    source: &str,
    digest: Option<&str>,
) -> Result<PluginSource, CommandFailure> {
    if source.contains("://") {
        let message = format!("{} is an address", text::escape_line(source));
        let hint = "download the component, then name the file; --digest checks it";
        return Err(CommandFailure::new(ExitStatus::Usage, message).with_hint(hint));
    }
    let path = PathBuf::from(source);
    if let Some(digest) = digest {
        check_digest(&path, &parse_digest(digest)?)?;
    }
    let full = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
    Ok(PluginSource { path, origin: full.display().to_string() })
}

fn parse_digest(text: &str) -> Result<String, CommandFailure> {
    let digest = text.trim().to_ascii_lowercase();
    let is_digest =
        digest.len() == DIGEST_CHARS && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digest.then_some(digest).ok_or_else(|| {
        let message = format!("{:?} is not a digest", text.chars().take(80).collect::<String>());
        CommandFailure::new(ExitStatus::Usage, message).with_hint(
            "a digest has 64 hexadecimal digits, as `sallyport plugin show FILE` prints it",
        )
    })
}

fn check_digest(path: &Path, digest: &str) -> Result<(), CommandFailure> {
    let file = ComponentFile::read(path).map_err(|error| {
        let message = text::escape_line(&error.to_string());
        CommandFailure::new(ExitStatus::PluginRejected, message).with_hint(error.hint())
    })?;
    if file.digest() == digest {
        return Ok(());
    }
    let message = format!("the component has another digest: {}", file.digest());
    Err(CommandFailure::new(ExitStatus::PluginRejected, message)
        .with_hint("it is not the component that the digest was published for; do not install it"))
}

/// Records where a plugin was installed from.
pub(super) fn record_source(
    settings: &HostSettings,
    name: &PluginName,
    origin: Option<&str>,
) -> Result<(), CommandFailure> {
    let path = settings.paths.state.join(RECORD);
    let _lock = WriteLock::take(&path)?;
    let mut sources = read_sources(settings);
    match origin {
        Some(origin) => sources.insert(name.to_string(), origin.to_owned()),
        None => sources.remove(name.as_str()),
    };
    let text = serde_json::to_string_pretty(&sources).unwrap_or_default();
    Ok(replace_user_file(&path, &text)?)
}

/// Where a plugin was installed from.
pub(super) fn recorded_source(
    settings: &HostSettings,
    name: &PluginName,
) -> Result<String, CommandFailure> {
    read_sources(settings).remove(name.as_str()).ok_or_else(|| {
        let message = format!("it is not recorded where {name} was installed from");
        let hint = format!("name it: sallyport plugin update {name} --from PATH");
        CommandFailure::new(ExitStatus::Usage, message).with_hint(hint)
    })
}

/// A record that cannot be read is as good as none.
fn read_sources(settings: &HostSettings) -> BTreeMap<String, String> {
    let text = fs::read_to_string(settings.paths.state.join(RECORD)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_complete_and_an_address_is_no_path() {
        assert_eq!(parse_digest(&"AB".repeat(32)).ok(), Some("ab".repeat(32)));
        for bad in ["", "ab", &"x".repeat(64), &"a".repeat(65)] {
            assert!(parse_digest(bad).is_err(), "{bad}");
        }
        assert!(find_source("https://example.com/x.wasm", None).is_err());
        assert!(find_source("./x.wasm", None).is_ok());
    }
}
