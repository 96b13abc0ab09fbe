//! The folder of a plugin's sources.

use std::{
    fs,
    path::{Path, PathBuf},
};

use sallyport_policy::Manifest;
use sallyport_untrusted_file as untrusted_file;

use crate::{error::PluginBuildError, language::SourceLanguage};

/// Name of the manifest.
const MANIFEST: &str = "plugin.toml";

/// Size limit of a manifest in bytes.
const MANIFEST_BYTES_MAX: u64 = 1024 * 1024;

/// A folder with a manifest and the sources of a plugin.
#[derive(Debug)]
pub struct PluginProject {
    /// The folder, as an absolute path.
    pub folder: PathBuf,
    /// The language of the sources.
    pub language: SourceLanguage,
    /// The manifest.
    pub manifest: Manifest,
    pub(crate) manifest_text: String,
}

impl PluginProject {
    /// Reads a project.
    ///
    /// # Errors
    ///
    /// The folder cannot be read, has no sources of a known language or no manifest, or the manifest
    /// has a mistake.
    pub fn open(folder: &Path) -> Result<Self, PluginBuildError> {
        let folder =
            fs::canonicalize(folder).map_err(PluginBuildError::file("open the folder", folder))?;
        let no_project = |reason: &str| PluginBuildError::NotProject {
            folder: folder.clone(),
            reason: reason.to_owned(),
        };
        let language = SourceLanguage::detect(&folder).ok_or_else(|| {
            no_project(
                "it has no Cargo.toml, pyproject.toml, package.json, go.mod, plugin.c or plugin.cpp",
            )
        })?;
        let path = folder.join(MANIFEST);
        if !path.exists() {
            return Err(no_project("it has no plugin.toml"));
        }
        let manifest_text = untrusted_file::read_text(&path, MANIFEST_BYTES_MAX)
            .map_err(PluginBuildError::file("read", &path))?;
        let manifest = Manifest::parse(&path.display().to_string(), &manifest_text)?;
        Ok(Self { folder, language, manifest, manifest_text })
    }

    /// Where the component is put unless another file is named: beside the manifest, so that the
    /// folder is one that the program loads.
    pub fn default_output(&self) -> PathBuf {
        self.folder.join(format!("{}.wasm", self.manifest.name))
    }
}
