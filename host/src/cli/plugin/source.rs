//! Where a plugin is installed from, and the record of it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use data_encoding::HEXLOWER;
use sallyport_contract::{PluginName, text};
use sallyport_runtime::{
    atomic_file::{WriteLock, replace_user_file},
    config::HostSettings,
    plugin_download::{DownloadError, download_component},
};
use sallyport_sandbox::{ComponentFile, LoadError};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::args::SourceCheck;
use crate::cli::{
    exit::{CommandFailure, ExitStatus},
    output::CliOutput,
};

/// The record, in the state folder. Without it, `plugin update` has to be told the source.
const RECORD: &str = "plugin-sources.json";

/// Characters of a digest in hexadecimal.
const DIGEST_CHARS: usize = 64;

/// The files of a plugin.
pub(super) struct PluginSource {
    pub(super) path: PathBuf,
    /// The path or the address as it is recorded.
    pub(super) origin: String,
    /// What was downloaded. It is removed when this is dropped.
    _download: Option<TempDir>,
}

/// A digest that a component must have.
#[derive(Debug, PartialEq, Eq)]
enum ExpectedDigest {
    Blake3(String),
    Sha256(String),
}

/// Finds or downloads a plugin's files, and checks the digest of its component if one is given.
pub(super) async fn find_source(
    source: &str,
    check: &SourceCheck,
    yes: bool,
    out: &CliOutput,
) -> Result<PluginSource, CommandFailure> {
    let digest = check.digest.as_deref().map(parse_digest).transpose()?;
    let found = match source.contains("://") {
        true => download_source(source, check, yes, out).await?,
        false => {
            let path = PathBuf::from(source);
            let full = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
            PluginSource { path, origin: full.display().to_string(), _download: None }
        }
    };
    if let Some(digest) = digest {
        check_digest(&found.path, &digest)?;
    }
    Ok(found)
}

/// Downloads a component into a folder of its own. Without a digest somebody has to look at it.
async fn download_source(
    address: &str,
    check: &SourceCheck,
    yes: bool,
    out: &CliOutput,
) -> Result<PluginSource, CommandFailure> {
    let shown = text::escape_line(address);
    if yes && check.digest.is_none() {
        let message = format!("{shown} is an address, and no digest is given");
        let hint = "pass --digest sha256:HEX as its author publishes it, or leave out --yes";
        return Err(CommandFailure::new(ExitStatus::Usage, message).with_hint(hint));
    }
    out.print_note(&format!("Downloading {shown} …"));
    let bytes = download_component(address, check.allow_private).await?;
    let folder = TempDir::with_prefix("sallyport-download-")?;
    let path = folder.path().join(download_name(address));
    fs::write(&path, bytes)?;
    Ok(PluginSource { path, origin: address.to_owned(), _download: Some(folder) })
}

impl From<DownloadError> for CommandFailure {
    fn from(error: DownloadError) -> Self {
        let (status, hint) = match &error {
            DownloadError::Address(_) => (
                ExitStatus::Usage,
                "write it like https://example.com/plugin.wasm, without a user name",
            ),
            DownloadError::Private(_) => {
                (ExitStatus::Usage, "pass --allow-private if you trust that server")
            }
            DownloadError::Status { .. } => (ExitStatus::Failed, "check the address"),
            DownloadError::TooLarge(_) => {
                (ExitStatus::PluginRejected, "no component is that large")
            }
            DownloadError::Connection { .. } => {
                (ExitStatus::Failed, "check your network connection; no proxy is used")
            }
        };
        Self::new(status, text::escape_line(&error.to_string())).with_hint(hint)
    }
}

/// The name of the file that an address is downloaded into. A component without a manifest is called
/// by it.
fn download_name(address: &str) -> String {
    let path = address.split(['?', '#']).next().unwrap_or_default();
    let last = path.rsplit('/').next().unwrap_or_default();
    let stem = last.strip_suffix(".wasm").unwrap_or_default();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    match !stem.is_empty() && stem.chars().all(is_plain) {
        true => last.to_owned(),
        false => "plugin.wasm".to_owned(),
    }
}

fn parse_digest(text: &str) -> Result<ExpectedDigest, CommandFailure> {
    let digest = text.trim().to_ascii_lowercase();
    let (kind, hex) = digest.split_once(':').unwrap_or(("blake3", &digest));
    let is_digest = hex.len() == DIGEST_CHARS && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    match kind {
        "blake3" if is_digest => Ok(ExpectedDigest::Blake3(hex.to_owned())),
        "sha256" if is_digest => Ok(ExpectedDigest::Sha256(hex.to_owned())),
        _ => {
            let message =
                format!("{:?} is not a digest", text.chars().take(80).collect::<String>());
            Err(CommandFailure::new(ExitStatus::Usage, message).with_hint(
                "a digest has 64 hexadecimal digits: sha256:HEX, or as `sallyport plugin show FILE` \
                 prints it",
            ))
        }
    }
}

fn check_digest(path: &Path, digest: &ExpectedDigest) -> Result<(), CommandFailure> {
    let rejected = |error: LoadError| {
        let message = text::escape_line(&error.to_string());
        CommandFailure::new(ExitStatus::PluginRejected, message).with_hint(error.hint())
    };
    let file = ComponentFile::read(path).map_err(rejected)?;
    let (found, expected) = match digest {
        ExpectedDigest::Blake3(expected) => (file.digest().to_owned(), expected),
        ExpectedDigest::Sha256(expected) => {
            let bytes = file.bytes().map_err(rejected)?;
            (HEXLOWER.encode(&Sha256::digest(bytes.as_slice())), expected)
        }
    };
    if found == *expected {
        return Ok(());
    }
    let message = format!("the component has another digest: {found}");
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
    fn digests_are_complete_and_name_their_kind() {
        let hex = "ab".repeat(32);
        assert_eq!(
            parse_digest(&hex.to_uppercase()).ok(),
            Some(ExpectedDigest::Blake3(hex.clone()))
        );
        let sha256 = parse_digest(&format!("sha256:{hex}")).ok();
        assert_eq!(sha256, Some(ExpectedDigest::Sha256(hex.clone())));
        let other = format!("md5:{hex}");
        for bad in ["", "ab", "sha256:", &"x".repeat(64), &"a".repeat(65), &other] {
            assert!(parse_digest(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_download_is_called_like_the_file_at_the_address() {
        for (address, name) in [
            ("https://example.com/a/dice.wasm", "dice.wasm"),
            ("https://example.com/dice-2.wasm?v=1#x", "dice-2.wasm"),
            ("https://example.com/", "plugin.wasm"),
            ("https://example.com/.wasm", "plugin.wasm"),
            ("https://example.com/..%2f.wasm", "plugin.wasm"),
            ("https://example.com/dice", "plugin.wasm"),
        ] {
            assert_eq!(download_name(address), name, "{address}");
        }
    }
}
