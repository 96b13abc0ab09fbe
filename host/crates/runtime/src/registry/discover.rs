//! Finding plugins: which folders and files of a plugin folder are plugins, and which are not.
//!
//! A plugin is a folder with a `plugin.toml` and a component beside it, a folder with a component
//! alone, a single `.wasm` file, or a folder with a `definition.json` and a program. A component
//! without a manifest requests nothing, so it can be granted nothing. What cannot be a plugin is
//! reported and stops no other.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use sallyport_contract::PluginName;
use sallyport_policy::Manifest;
use sallyport_process::{ScriptError, find_program};
use sallyport_untrusted_file as untrusted_file;

use crate::{
    internal::InternalTool,
    script::{DEFINITION_FILE, Described},
};

/// Name of the manifest in a plugin's folder.
const MANIFEST: &str = "plugin.toml";

/// Largest manifest that is read.
const MANIFEST_BYTES_MAX: u64 = 1024 * 1024;

/// Plugins of one folder. A folder with more was not meant as one.
const ENTRIES_MAX: usize = 10_000;

/// Something that looks like a plugin; its component has not been read.
pub(super) struct Candidate {
    pub(super) manifest: Manifest,
    pub(super) source: Source,
}

/// What a plugin is made of.
pub(super) enum Source {
    /// A component with tools of its own.
    Component(PathBuf),
    /// A folder with a definition and a program.
    Script(Box<Described>),
    /// Nothing but the host itself.
    Internal(Arc<dyn InternalTool>),
}

impl Candidate {
    /// A plugin that is compiled into the host.
    pub(super) fn internal(tool: Arc<dyn InternalTool>) -> Self {
        Self { manifest: tool.manifest(), source: Source::Internal(tool) }
    }

    fn script(described: Described) -> Self {
        let manifest = described.manifest.clone();
        Self { manifest, source: Source::Script(Box::new(described)) }
    }

    /// The file that it runs from, if it has one.
    pub(super) fn file(&self) -> Option<&Path> {
        self.source.file()
    }
}

impl Source {
    /// The file that it runs from, if it has one.
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Self::Component(file) => Some(file),
            Self::Script(described) => Some(&described.script.program.path),
            Self::Internal(_) => None,
        }
    }
}

/// Why something in a plugin folder cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file or folder.
    pub place: PathBuf,
    /// The plugin, as far as its name is known.
    pub plugin: Option<PluginName>,
    /// What is wrong with it.
    pub message: String,
    /// What can be done about it.
    pub hint: Option<String>,
}

impl Problem {
    pub(super) fn new(place: &Path, message: impl Into<String>, hint: impl Into<String>) -> Self {
        let (place, message) = (place.to_owned(), message.into());
        Self { place, plugin: None, message, hint: Some(hint.into()) }
    }

    /// Says which plugin it is about.
    pub(super) fn of(self, plugin: &PluginName) -> Self {
        Self { plugin: Some(plugin.clone()), ..self }
    }
}

/// Looks through plugin folders, in a stable order. A folder that does not exist is a problem only
/// when somebody named it.
pub(super) fn discover(folders: &[PathBuf], named: bool) -> (Vec<Candidate>, Vec<Problem>) {
    let (mut candidates, mut problems) = (Vec::new(), Vec::new());
    for folder in folders {
        match entries(folder) {
            Ok(entries) => {
                for entry in entries {
                    match candidate(&entry) {
                        Ok(found) => candidates.extend(found),
                        Err(problem) => problems.push(problem),
                    }
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && !named => {}
            Err(error) => {
                let message = format!("cannot read this folder of plugins: {error}");
                problems.push(Problem::new(folder, message, "check --plugin-dir or plugin_dir"));
            }
        }
    }
    (candidates, problems)
}

fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)?.take(ENTRIES_MAX) {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths)
}

/// Returns `None` for what makes no claim to be a plugin.
fn candidate(path: &Path) -> Result<Option<Candidate>, Problem> {
    if !path.is_dir() {
        return if is_wasm(path) { bare(path, path.to_owned()).map(Some) } else { Ok(None) };
    }
    let manifest = path.join(MANIFEST);
    // Also what is no file: it is named when it is read, and not taken for a plugin without a manifest.
    let has = |path: &Path| path.symlink_metadata().is_ok();
    match (has(&manifest), has(&path.join(DEFINITION_FILE))) {
        (false, true) => script(path, None).map(Some),
        (true, true) if has_program(path) => {
            script(path, Some(read_manifest(&manifest)?)).map(Some)
        }
        (true, _) => with_manifest(&manifest, only_component(path)?).map(Some),
        (false, false) => only_component(path)?.map(|component| bare(path, component)).transpose(),
    }
}

/// A folder may hold a definition for other programs beside a component of its own.
fn has_program(folder: &Path) -> bool {
    !matches!(find_program(folder), Err(ScriptError::NoProgram { .. }))
}

fn script(folder: &Path, manifest: Option<Manifest>) -> Result<Candidate, Problem> {
    let described = Described::read(folder, manifest);
    described
        .map(Candidate::script)
        .map_err(|error| Problem::new(folder, error.to_string(), error.hint()))
}

fn with_manifest(path: &Path, component: Option<PathBuf>) -> Result<Candidate, Problem> {
    let manifest = read_manifest(path)?;
    let component = component.ok_or_else(|| {
        Problem::new(path, "there is no component beside the manifest", "build the plugin first")
    })?;
    Ok(Candidate { manifest, source: Source::Component(component) })
}

fn read_manifest(path: &Path) -> Result<Manifest, Problem> {
    let text = untrusted_file::read_text(path, MANIFEST_BYTES_MAX).map_err(|error| {
        Problem::new(path, format!("cannot read it: {error}"), "check the file")
    })?;
    Manifest::parse(&path.display().to_string(), &text).map_err(|error| Problem {
        place: path.to_owned(),
        plugin: None,
        message: format!("line {}, column {}: {}", error.line, error.column, error.message),
        hint: error.hint,
    })
}

/// A component without a manifest takes its name from the file or folder.
fn bare(path: &Path, component: PathBuf) -> Result<Candidate, Problem> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let name: PluginName = stem.parse().map_err(|error| {
        Problem::new(path, format!("{error}"), "rename it, or add a plugin.toml with a name")
    })?;
    Ok(Candidate { manifest: Manifest::bare(name), source: Source::Component(component) })
}

fn only_component(folder: &Path) -> Result<Option<PathBuf>, Problem> {
    let unreadable = |error| Problem::new(folder, format!("cannot read it: {error}"), "check it");
    let mut found = entries(folder).map_err(unreadable)?;
    found.retain(|path| is_wasm(path));
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one.clone())),
        _ => {
            let message = format!("there are {} .wasm files in it", found.len());
            Err(Problem::new(folder, message, "keep one component in a plugin's folder"))
        }
    }
}

fn is_wasm(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "wasm") && !path.is_dir()
}
