//! The SDKs and the contract, as this program contains them and as it unpacks them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{error::PluginBuildError, language::SourceLanguage};

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// Most characters of the digest in the folder's name. They tell versions of the program apart.
const DIGEST_CHARS: usize = 16;

/// The manifest of the repository's workspace. The Rust SDK inherits versions and lints from it.
const WORKSPACE_MANIFEST: &str = "Cargo.toml";

/// A folder with the unpacked SDKs.
#[derive(Debug, Clone)]
pub struct SdkFolder(PathBuf);

impl SdkFolder {
    /// Unpacks the SDKs into a folder of the cache. Files that are there already stay, so that
    /// compilers see them as unchanged.
    ///
    /// # Errors
    ///
    /// The cache cannot be written.
    pub fn unpack(cache: &Path) -> Result<Self, PluginBuildError> {
        let folder = cache.join("sdk").join(&EMBEDDED_DIGEST[..DIGEST_CHARS]);
        for (name, bytes) in EMBEDDED_FILES {
            let path = folder.join(name);
            if *name == WORKSPACE_MANIFEST {
                write_if_changed(&path, sdk_workspace(bytes).as_bytes())?;
            } else {
                write_if_changed(&path, bytes)?;
            }
        }
        Ok(Self(folder))
    }

    /// The folder that contains `sdk` and `wit`.
    pub(crate) fn root(&self) -> &Path {
        &self.0
    }

    /// The folder of the contract.
    pub(crate) fn wit(&self) -> PathBuf {
        self.0.join("wit")
    }

    /// The folder of a language's SDK.
    pub(crate) fn sdk(&self, language: SourceLanguage) -> PathBuf {
        self.0.join("sdk").join(language.sdk_name())
    }
}

/// The files of a language's template, by their path in a project.
pub(crate) fn template_files(
    language: SourceLanguage,
) -> impl Iterator<Item = (&'static str, &'static [u8])> {
    let folder = format!("sdk/{}/{}/", language.sdk_name(), language.template_name());
    EMBEDDED_FILES
        .iter()
        .filter_map(move |(name, bytes)| Some((name.strip_prefix(folder.as_str())?, *bytes)))
}

/// The workspace around the unpacked Rust SDK: the repository's own, with these members only.
fn sdk_workspace(manifest: &[u8]) -> String {
    let text = String::from_utf8_lossy(manifest);
    let lines = text.lines().filter(|line| !line.starts_with("default-members"));
    let lines = lines.map(|line| match line.starts_with("members") {
        true => r#"members = ["sdk/rust", "sdk/rust/macros"]"#,
        false => line,
    });
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// Writes a file in one step, unless it has these contents.
pub(crate) fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<(), PluginBuildError> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    write_file(path, bytes)
}

/// Writes a file in one step, with the folders around it.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), PluginBuildError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(PluginBuildError::file("create the folder", folder))?;
    let written = tempfile::Builder::new()
        .prefix(".sallyport-")
        // As other programs create files; the default is for the owner only.
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .tempfile_in(folder)
        .and_then(|mut file| {
            std::io::Write::write_all(&mut file, bytes)?;
            file.persist(path).map_err(|failed| failed.error)
        });
    written.map(drop).map_err(PluginBuildError::file("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unpacked_sdk_is_mended_and_otherwise_left_alone() {
        let cache = tempfile::tempdir().unwrap();
        let sdk = SdkFolder::unpack(cache.path()).unwrap();
        let manifest = fs::read_to_string(sdk.root().join("Cargo.toml")).unwrap();
        assert!(manifest.contains(r#"members = ["sdk/rust", "sdk/rust/macros"]"#), "{manifest}");
        assert!(!manifest.contains("default-members"));
        assert!(sdk.wit().join("world.wit").is_file());
        let library = sdk.sdk(SourceLanguage::Rust).join("src/lib.rs");
        let modified = || fs::metadata(&library).unwrap().modified().unwrap();
        let before = modified();
        SdkFolder::unpack(cache.path()).unwrap();
        assert_eq!(modified(), before);
        fs::write(&library, "cut").unwrap();
        SdkFolder::unpack(cache.path()).unwrap();
        assert!(fs::read_to_string(&library).unwrap().starts_with("//! Write Sallyport plugins"));
    }
}
