//! Discovers plugins: decides which entries of a plugin folder are plugins.
//!
//! A plugin is a folder with a `plugin.toml` and a component next to it, a folder with only a
//! component, a single `.wasm` file, a folder with a `definition.json` and a program, or a
//! definition: a file `NAME.json`, alone or in a folder `NAME`. A component without a manifest beside it may have one inside, in a custom section. One without any
//! requests nothing, so it can be granted nothing. An invalid plugin
//! is reported and does not affect the others.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use sallyport_contract::PluginName;
use sallyport_policy::Manifest;
use sallyport_process::{ScriptError, find_program};
use sallyport_sandbox::read_embedded_manifest;
use sallyport_untrusted_file as untrusted_file;

use crate::{
    actions::{ActionPlugin, definition_file, definition_name, is_definition_file},
    config::McpServerError,
    environment::Env,
    internal::InternalTool,
    mcp::McpServerPlugin,
    script::{DEFINITION_FILE, ScriptPlugin},
};

/// Name of the manifest in a plugin's folder.
pub(crate) const MANIFEST: &str = "plugin.toml";

/// Size limit of a manifest in bytes.
const MANIFEST_BYTES_MAX: u64 = 1024 * 1024;

/// Most entries of a plugin folder that are read. A folder with more is not meant as one.
const ENTRIES_MAX: usize = 10_000;

/// A potential plugin, whose component has not been read yet.
pub(super) struct PluginCandidate {
    pub(super) manifest: Manifest,
    pub(super) source: CandidateSource,
}

/// The parts of a plugin.
pub(super) enum CandidateSource {
    /// A component with tools of its own.
    Component(PathBuf),
    /// A folder with a definition and a program.
    Script(Box<ScriptPlugin>),
    /// One JSON file, perhaps with a component.
    Definition(Box<ActionPlugin>),
    /// An MCP server.
    McpServer(Arc<McpServerPlugin>),
    /// A plugin that is compiled into the host.
    Internal(Arc<dyn InternalTool>),
}

impl PluginCandidate {
    /// A plugin that is compiled into the host.
    pub(super) fn from_internal_tool(tool: Arc<dyn InternalTool>) -> Self {
        Self { manifest: tool.manifest(), source: CandidateSource::Internal(tool) }
    }

    /// An MCP server.
    ///
    /// # Errors
    ///
    /// The policy cannot name its address.
    pub(super) fn from_mcp_server(server: McpServerPlugin) -> Result<Self, McpServerError> {
        let manifest = server.manifest()?;
        Ok(Self { manifest, source: CandidateSource::McpServer(Arc::new(server)) })
    }

    fn from_definition(plugin: ActionPlugin) -> Self {
        let manifest = plugin.manifest.clone();
        Self { manifest, source: CandidateSource::Definition(Box::new(plugin)) }
    }

    fn from_script(script_plugin: ScriptPlugin) -> Self {
        let manifest = script_plugin.manifest.clone();
        Self { manifest, source: CandidateSource::Script(Box::new(script_plugin)) }
    }

    /// The file that it runs from, if any.
    pub(super) fn file(&self) -> Option<&Path> {
        self.source.file()
    }

    /// Where it comes from, for messages: its file, or its table of the configuration.
    pub(super) fn location(&self) -> PathBuf {
        match self.file() {
            Some(file) => file.to_owned(),
            None => PathBuf::from(format!("[mcp.{}]", self.manifest.name)),
        }
    }

    /// Whether it is compiled into the host.
    pub(super) fn is_internal(&self) -> bool {
        matches!(self.source, CandidateSource::Internal(_))
    }
}

impl CandidateSource {
    /// The file that it runs from, if any.
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Self::Component(file) => Some(file),
            Self::Script(script_plugin) => Some(&script_plugin.script.program.path),
            Self::Definition(plugin) => Some(&plugin.file),
            Self::McpServer(server) => server.program(),
            Self::Internal(_) => None,
        }
    }
}

/// Why something in a plugin folder cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginProblem {
    /// The file or folder.
    pub location: PathBuf,
    /// The plugin, where its name is known.
    pub plugin: Option<PluginName>,
    /// Description of the problem.
    pub message: String,
    /// A suggested fix.
    pub hint: Option<String>,
}

impl PluginProblem {
    pub(super) fn new(
        location: &Path,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        let (location, message) = (location.to_owned(), message.into());
        Self { location, plugin: None, message, hint: Some(hint.into()) }
    }

    /// Adds the plugin's name.
    pub(super) fn with_plugin(self, plugin: &PluginName) -> Self {
        Self { plugin: Some(plugin.clone()), ..self }
    }
}

/// Searches plugin folders, in a stable order. A missing folder is a problem only if it was named.
pub(super) fn discover_plugins(
    folders: &[PathBuf],
    named: bool,
    only: Option<&PluginName>,
    env: &Env,
) -> (Vec<PluginCandidate>, Vec<PluginProblem>) {
    let (mut candidates, mut problems) = (Vec::new(), Vec::new());
    for folder in folders {
        match plugin_entries(folder) {
            Ok(entries) => {
                let is_other = |entry: &PathBuf| only.is_some_and(|only| is_other(entry, only));
                for entry in entries.iter().filter(|entry| !is_other(entry)) {
                    match candidate_from_path(entry, env) {
                        Ok(found) => candidates.extend(found),
                        Err(problem) => problems.push(problem),
                    }
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && !named => {}
            Err(error) => {
                let message = format!("cannot read this folder of plugins: {error}");
                problems.push(PluginProblem::new(
                    folder,
                    message,
                    "check --plugin-dir or plugin_dir",
                ));
            }
        }
    }
    (candidates, problems)
}

/// Finds the plugin of one file or folder. A component next to a manifest is the plugin of that.
pub(super) fn discover_plugin_file(
    path: &Path,
    env: &Env,
) -> (Vec<PluginCandidate>, Vec<PluginProblem>) {
    let manifest = path.with_file_name(MANIFEST);
    let found = match path.is_dir() {
        true => candidate_from_path(path, env),
        false if is_definition_file(path) => definition_candidate(path, env).map(Some),
        false if manifest.is_file() => {
            candidate_with_manifest(&manifest, Some(path.to_owned())).map(Some)
        }
        false => candidate_without_manifest(path, path.to_owned()).map(Some),
    };
    match found {
        Ok(candidate) => (candidate.into_iter().collect(), Vec::new()),
        Err(problem) => (Vec::new(), vec![problem]),
    }
}

/// What may be a plugin in a folder of plugins. The folder of one plugin is that plugin.
fn plugin_entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    if is_plugin_folder(folder) {
        return Ok(vec![folder.to_owned()]);
    }
    let mut entries = read_folder_entries(folder)?;
    entries.retain(|entry| !(is_wasm_file(entry) && entry.with_extension("json").is_file()));
    Ok(entries)
}

fn is_plugin_folder(folder: &Path) -> bool {
    folder.join(MANIFEST).is_file()
        || (folder.join(DEFINITION_FILE).is_file() && has_program(folder))
}

/// Whether an entry is the definition of another plugin. Compiling its rules would take a good part of
/// a call of a small plugin.
fn is_other(entry: &Path, only: &PluginName) -> bool {
    let file = match entry.is_dir() {
        true => definition_file(entry),
        false => Some(entry.to_owned()).filter(|entry| is_definition_file(entry)),
    };
    file.and_then(|file| definition_name(&file)).is_some_and(|name| name != *only)
}

fn read_folder_entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)?.take(ENTRIES_MAX) {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths)
}

/// Returns `None` for an entry that does not look like a plugin.
fn candidate_from_path(path: &Path, env: &Env) -> Result<Option<PluginCandidate>, PluginProblem> {
    if let Some(definition) = path.is_dir().then(|| definition_file(path)).flatten() {
        return definition_candidate(&definition, env).map(Some);
    }
    if !path.is_dir() {
        if is_definition_file(path) {
            return definition_candidate(path, env).map(Some);
        }
        return if is_wasm_file(path) {
            candidate_without_manifest(path, path.to_owned()).map(Some)
        } else {
            Ok(None)
        };
    }
    let manifest = path.join(MANIFEST);
    // An entry that is not a file counts too: reading it reports the error, and the folder is not
    // taken for one without a manifest.
    let exists = |path: &Path| path.symlink_metadata().is_ok();
    match (exists(&manifest), exists(&path.join(DEFINITION_FILE))) {
        (false, true) => script_candidate(path, None).map(Some),
        (true, true) if has_program(path) => {
            script_candidate(path, Some(read_manifest(&manifest)?)).map(Some)
        }
        (true, _) => candidate_with_manifest(&manifest, find_only_component(path)?).map(Some),
        (false, false) => find_only_component(path)?
            .map(|component| candidate_without_manifest(path, component))
            .transpose(),
    }
}

/// Whether the folder contains a program. A folder with a component of its own may contain a
/// definition for other software.
fn has_program(folder: &Path) -> bool {
    !matches!(find_program(folder), Err(ScriptError::NoProgram { .. }))
}

fn script_candidate(
    folder: &Path,
    manifest: Option<Manifest>,
) -> Result<PluginCandidate, PluginProblem> {
    let script_plugin = ScriptPlugin::read_folder(folder, manifest);
    script_plugin
        .map(PluginCandidate::from_script)
        .map_err(|error| PluginProblem::new(folder, error.to_string(), error.hint()))
}

/// A definition with the component beside it: the one with its name, or the only one in a folder
/// that has the definition's name.
fn definition_candidate(file: &Path, env: &Env) -> Result<PluginCandidate, PluginProblem> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let has_own_folder = definition_file(folder).is_some_and(|own| own == file);
    let beside = file.with_extension("wasm");
    let component = match has_own_folder {
        true => find_only_component(folder)?,
        false => is_wasm_file(&beside).then_some(beside).filter(|path| path.is_file()),
    };
    let manifest = folder.join(MANIFEST);
    let manifest = match (&component, has_own_folder && manifest.is_file()) {
        (_, true) => Some(read_manifest(&manifest)?),
        (Some(component), false) => embedded_manifest(component)?,
        (None, false) => None,
    };
    let plugin = ActionPlugin::read(file, component, manifest, env);
    plugin
        .map(PluginCandidate::from_definition)
        .map_err(|error| PluginProblem::new(file, error.to_string(), error.hint()))
}

fn candidate_with_manifest(
    path: &Path,
    component: Option<PathBuf>,
) -> Result<PluginCandidate, PluginProblem> {
    let manifest = read_manifest(path)?;
    let component = component.ok_or_else(|| {
        PluginProblem::new(
            path,
            "there is no component beside the manifest",
            "build the plugin first",
        )
    })?;
    Ok(PluginCandidate { manifest, source: CandidateSource::Component(component) })
}

fn read_manifest(path: &Path) -> Result<Manifest, PluginProblem> {
    let text = untrusted_file::read_text(path, MANIFEST_BYTES_MAX).map_err(|error| {
        PluginProblem::new(path, format!("cannot read it: {error}"), "check the file")
    })?;
    parse_manifest(path, "", &text)
}

fn parse_manifest(path: &Path, place: &str, text: &str) -> Result<Manifest, PluginProblem> {
    Manifest::parse(&path.display().to_string(), text).map_err(|error| PluginProblem {
        location: path.to_owned(),
        plugin: None,
        message: format!("{place}line {}, column {}: {}", error.line, error.column, error.message),
        hint: error.hint,
    })
}

/// The manifest that a build put into the component.
fn embedded_manifest(component: &Path) -> Result<Option<Manifest>, PluginProblem> {
    let text = read_embedded_manifest(component).map_err(|error| {
        PluginProblem::new(
            component,
            format!("cannot read {}: {error}", component.display()),
            "check the path, or build the plugin again",
        )
    })?;
    text.map(|text| parse_manifest(component, "its embedded manifest, ", &text)).transpose()
}

/// A component without a manifest beside it has one inside, or else gets its name from the file or
/// folder.
fn candidate_without_manifest(
    path: &Path,
    component: PathBuf,
) -> Result<PluginCandidate, PluginProblem> {
    if let Some(manifest) = embedded_manifest(&component)? {
        return Ok(PluginCandidate { manifest, source: CandidateSource::Component(component) });
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let name: PluginName = stem.parse().map_err(|error| {
        PluginProblem::new(path, format!("{error}"), "rename it, or add a plugin.toml with a name")
    })?;
    Ok(PluginCandidate {
        manifest: Manifest::for_bare_component(name),
        source: CandidateSource::Component(component),
    })
}

fn find_only_component(folder: &Path) -> Result<Option<PathBuf>, PluginProblem> {
    let unreadable =
        |error| PluginProblem::new(folder, format!("cannot read it: {error}"), "check it");
    let mut found = read_folder_entries(folder).map_err(unreadable)?;
    found.retain(|path| is_wasm_file(path));
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one.clone())),
        _ => {
            let message = format!("there are {} .wasm files in it", found.len());
            Err(PluginProblem::new(folder, message, "keep one component in a plugin's folder"))
        }
    }
}

/// Whether a path names a component: by its ending, and it is not a folder.
pub(crate) fn is_wasm_file(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "wasm") && !path.is_dir()
}
