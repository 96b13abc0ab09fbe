//! The metadata of a component: its tools, its roles, and whether it has a lifecycle.
//!
//! Each build of a component is asked for its tools once, without any grant, and the result is
//! cached under its digest. Listing a thousand plugins then reads a thousand small files and
//! instantiates nothing.

use std::{collections::BTreeSet, path::Path, sync::Arc, time::Duration};

use sallyport_contract::{
    FailureKind, PluginName, ToolDescriptor, ToolId, ToolName, json, text::escape_excerpt,
};
use sallyport_policy::{Grant, Manifest, PluginRole};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    ComponentFile, LoadError, Sandbox,
    abi::{
        PluginExport, ROLES, RefusedFunction, TOOLS_MAX, ToolList, UncheckedTool,
        dynamic::RefusalReason, shorten_description,
    },
    authorizer::FixedGrantAuthorizer,
    cache::METADATA_BYTES_MAX,
    capability::SharedPluginState,
    dynamic::docs::PackageDocs,
    interface::ComponentInterface,
    plugin::PreparedPlugin,
    power_imports,
    run::{self, RunStopReason},
    run_body::RunBody,
    run_context::RunContext,
    schema::CompiledSchema,
};

/// Longest title of a tool in characters: a few words on a button.
const TITLE_CHARS_MAX: usize = 80;

/// Longest wait for the list of tools. The list is fixed text, but an interpreter needs a moment to
/// start.
const LIST_TIME_MAX: Duration = Duration::from_secs(5);

/// Most characters of what a component wrote to standard error before it failed to list its tools.
const WORDS_CHARS_MAX: usize = 500;

/// Largest schema of one tool, in bytes.
const SCHEMA_BYTES_MAX: usize = 64 * 1024;

/// Most text of the tools that follow from a component's types, in bytes. A component that is asked
/// for its tools may list as much, see `limits.host-call`.
const TOOL_TEXTS_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Most functions without a tool that the metadata names.
const REFUSED_MAX: usize = 256;

/// Functions without a tool that an error names.
const REFUSALS_SHOWN: usize = 5;

/// The prefix of a role's name in rules and records, where a tool call has the name of its tool.
const ROLE_PREFIX: &str = "role:";

/// Increased whenever the format of the cached metadata changes, so that older files are ignored.
const FORMAT_VERSION: u32 = 6;

/// The metadata of a component, which is known without running it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComponentMetadata {
    format: u32,
    /// The digest of the component.
    pub digest: String,
    /// The tools, in the component's order. Their IDs contain the plugin's name.
    pub tools: Vec<ToolDescriptor>,
    /// Whether the component exports `setup` and `teardown`.
    pub managed: bool,
    /// The interfaces that the component exports.
    exports: Vec<PluginExport>,
    /// The names of its imports and exports.
    interface: ComponentInterface,
    /// The functions that cannot be called, one sentence each.
    refused: Vec<String>,
}

impl ComponentMetadata {
    /// The interfaces that it imports, with their versions.
    pub fn imports(&self) -> &[String] {
        &self.interface.imports
    }

    /// The functions that are not tools, one sentence each.
    pub fn refused_functions(&self) -> &[String] {
        &self.refused
    }

    /// The imports that reach nothing because the manifest does not request them, one sentence
    /// each.
    pub fn unrequested_imports(&self, manifest: &Manifest) -> Vec<String> {
        let unrequested = power_imports::unrequested_imports(&self.interface.imports, manifest);
        let sentence = |(import, request): (&str, &str)| {
            format!(
                "it imports {import}, which reaches nothing: its manifest does not request {request}"
            )
        };
        unrequested.into_iter().map(sentence).collect()
    }

    /// Returns the roles that the component exports, including those that its manifest does not
    /// name.
    pub fn roles(&self) -> Vec<PluginRole> {
        let exported = |role: &PluginRole| self.exports.contains(&PluginExport::from_role(*role));
        ROLES.into_iter().filter(exported).collect()
    }

    fn has_roles(&self, roles: &[PluginRole]) -> bool {
        roles.iter().all(|role| self.exports.contains(&PluginExport::from_role(*role)))
    }

    /// Returns the roles that the component exports and its manifest does not name. The host does
    /// not use them.
    pub fn undeclared_roles(&self, manifest: &Manifest) -> Vec<PluginRole> {
        let mut roles = self.roles();
        roles.retain(|role| !manifest.roles.contains(role));
        roles
    }
}

impl Sandbox {
    /// Returns the metadata of a component from the cache, or asks the component for it.
    ///
    /// # Errors
    ///
    /// Every reason that makes a component unusable; see [`LoadError`].
    pub async fn inspect_component(
        self: &Arc<Self>,
        file: &ComponentFile,
        manifest: &Manifest,
    ) -> Result<ComponentMetadata, LoadError> {
        if let Some(known) = self.cached_metadata(file, manifest) {
            return known;
        }
        let package_docs = PackageDocs::from_component(&file.bytes()?);
        let prepared = PreparedPlugin::new(self, file, manifest, &package_docs)?;
        let (tools, refused) = self.find_tools(&prepared, file, &manifest.name).await?;
        let exports =
            PluginExport::ALL.into_iter().filter(|export| prepared.linked.abi.has_export(*export));
        let exports: Vec<PluginExport> = exports.collect();
        let managed = exports.contains(&PluginExport::Lifecycle);
        let digest = file.digest().to_owned();
        let metadata = ComponentMetadata {
            format: FORMAT_VERSION,
            digest,
            tools,
            managed,
            exports,
            interface: ComponentInterface::from_compiled(prepared.linked.pre.component()),
            refused,
        };
        self.store_metadata(&metadata, file)?;
        Ok(metadata)
    }

    /// Stores metadata for the next start, which reads no more than the cache takes.
    fn store_metadata(
        &self,
        metadata: &ComponentMetadata,
        file: &ComponentFile,
    ) -> Result<(), LoadError> {
        let Ok(text) = serde_json::to_string(metadata) else { return Ok(()) };
        if text.len() as u64 > METADATA_BYTES_MAX {
            let (path, bytes) = (file.path().to_owned(), text.len());
            let message = format!(
                "its names and descriptions have {bytes} bytes, at most {METADATA_BYTES_MAX} are kept"
            );
            return Err(LoadError::InvalidTools { path, message });
        }
        self.cache.write_metadata(file.digest(), &text);
        Ok(())
    }

    /// Returns the cached metadata of a component, or the reason why it cannot be a plugin with
    /// this manifest. Returns `None` if the component has to be compiled to find out.
    pub fn cached_metadata(
        &self,
        file: &ComponentFile,
        manifest: &Manifest,
    ) -> Option<Result<ComponentMetadata, LoadError>> {
        let cached = self.read_cached_metadata(file.digest(), &manifest.name);
        // The manifest may have changed since the metadata was cached.
        if let Some(metadata) = cached.filter(|metadata| metadata.has_roles(&manifest.roles)) {
            return Some(
                power_imports::check_imports(&metadata.interface, file, manifest)
                    .map(|()| metadata),
            );
        }
        let interface = ComponentInterface::from_component_file(file);
        interface.and_then(|interface| interface.check_manifest(file, manifest)).err().map(Err)
    }

    /// Returns the tools of a component if an earlier start has cached them. Neither reads nor
    /// compiles the component.
    pub fn cached_tools(&self, path: &Path, plugin: &PluginName) -> Option<Vec<ToolDescriptor>> {
        let digest = self.digests.cached_digest(path)?;
        Some(self.read_cached_metadata(&digest, plugin)?.tools)
    }

    /// Refuses a component that is not a program, without compiling it.
    ///
    /// # Errors
    ///
    /// The component exports no `wasi:cli/run`, is built for WASI 0.3, or is not well formed.
    pub fn check_program(&self, file: &ComponentFile) -> Result<(), LoadError> {
        ComponentInterface::from_component_file(file)?.check_program(file)
    }

    /// Returns cached metadata with the plugin's name filled in. All plugins with this component
    /// share the cache entry.
    fn read_cached_metadata(&self, digest: &str, plugin: &PluginName) -> Option<ComponentMetadata> {
        let mut metadata: ComponentMetadata =
            serde_json::from_str(&self.cache.read_metadata(digest)?).ok()?;
        if metadata.format != FORMAT_VERSION || metadata.digest != digest {
            return None;
        }
        for tool in &mut metadata.tools {
            tool.id.plugin = plugin.clone();
        }
        Some(metadata)
    }

    /// The tools of a component, and sentences about functions that are none.
    async fn find_tools(
        self: &Arc<Self>,
        prepared: &PreparedPlugin,
        file: &ComponentFile,
        plugin: &PluginName,
    ) -> Result<(Vec<ToolDescriptor>, Vec<String>), LoadError> {
        match prepared.linked.abi.list_tools() {
            ToolList::Listed(list) => {
                let tools = self.query_tools(prepared, file, plugin, list).await?;
                Ok((tools, Vec::new()))
            }
            ToolList::Derived { tools, refused } => derive_tools(tools, refused, file, plugin),
        }
    }

    async fn query_tools(
        self: &Arc<Self>,
        prepared: &PreparedPlugin,
        file: &ComponentFile,
        plugin: &PluginName,
        list: RunBody<Vec<UncheckedTool>>,
    ) -> Result<Vec<ToolDescriptor>, LoadError> {
        let bad =
            |message: String| LoadError::ToolListFailed { path: file.path().to_owned(), message };
        let grant = Arc::new(Grant::empty(plugin.clone()));
        let run_context = RunContext::without_call(
            Arc::new(FixedGrantAuthorizer::new(grant)),
            Some(LIST_TIME_MAX),
        );
        let guest = self.create_guest(&run_context, &SharedPluginState::without_plugin());
        let guest = guest.map_err(|error| bad(error.to_string()))?;
        let run = run::run_guest(&prepared.linked, guest, list).await;
        match run.result {
            Ok(tools) => check_tools(tools, plugin).map_err(|message| LoadError::InvalidTools {
                path: file.path().to_owned(),
                message,
            }),
            Err(RunStopReason::Expired(_)) => {
                Err(bad(format!("it took longer than {LIST_TIME_MAX:?}")))
            }
            Err(RunStopReason::Failed(failure)) if failure.kind == FailureKind::BadOutput => {
                let (path, message) = (file.path().to_owned(), failure.message);
                Err(LoadError::InterfaceMismatch { path, message })
            }
            Err(RunStopReason::Failed(failure)) => {
                let words = run_context.effect_log.last_words();
                Err(bad(
                    words.map_or(failure.message, |words| escape_excerpt(&words, WORDS_CHARS_MAX))
                ))
            }
        }
    }
}

/// Validates the tools that follow from a component's types. Whoever wrote it made no promise to
/// have tools, so one that cannot be is left out, and the others remain.
fn derive_tools(
    tools: impl Iterator<Item = UncheckedTool>,
    mut refused: Vec<RefusedFunction>,
    file: &ComponentFile,
    plugin: &PluginName,
) -> Result<(Vec<ToolDescriptor>, Vec<String>), LoadError> {
    let path = || file.path().to_owned();
    let mut checked = Vec::new();
    let mut bytes_left = TOOL_TEXTS_BYTES_MAX;
    for tool in tools {
        let (name, bytes) = (tool.name.clone(), tool.text_bytes());
        match check_tool(tool, plugin) {
            Ok(tool) => {
                bytes_left =
                    bytes_left.checked_sub(bytes).ok_or_else(|| LoadError::InvalidTools {
                        path: path(),
                        message: format!(
                            "the descriptions and schemas of all have more than \
                         {TOOL_TEXTS_BYTES_MAX} bytes"
                        ),
                    })?;
                checked.push(tool);
            }
            Err(message) => {
                refused.push(RefusedFunction::new(&name, RefusalReason::invalid_tool(&message)));
            }
        }
    }
    let more = refused.len().saturating_sub(REFUSED_MAX);
    let mut sentences: Vec<String> =
        refused.iter().take(REFUSED_MAX).map(ToString::to_string).collect();
    if checked.is_empty() {
        return Err(LoadError::NothingCallable { path: path(), refused: shorten_list(&sentences) });
    }
    sentences.extend((more > 0).then(|| format!("{more} more functions are not tools")));
    Ok((checked, sentences))
}

/// The first few sentences, for one error.
fn shorten_list(sentences: &[String]) -> String {
    let more = sentences.len().saturating_sub(REFUSALS_SHOWN);
    let first = sentences[..sentences.len() - more].join("; ");
    if more == 0 { first } else { format!("{first}; and {more} more") }
}

/// Validates the tools that a component lists.
fn check_tools(
    tools: Vec<UncheckedTool>,
    plugin: &PluginName,
) -> Result<Vec<ToolDescriptor>, String> {
    if tools.len() > TOOLS_MAX {
        return Err(format!("it lists {} tools, at most {TOOLS_MAX} are taken", tools.len()));
    }
    let mut seen = BTreeSet::new();
    let specs = tools.into_iter().map(|tool| {
        let spec = check_tool(tool, plugin)?;
        if seen.insert(spec.id.tool.clone()) {
            Ok(spec)
        } else {
            Err(format!("it lists the tool {:?} twice", spec.id.tool.as_str()))
        }
    });
    specs.collect()
}

fn check_tool(tool: UncheckedTool, plugin: &PluginName) -> Result<ToolDescriptor, String> {
    let name: ToolName = tool.name.parse().map_err(|e| format!("{e}"))?;
    let parameters = parse_schema(&tool.parameters, &name, "parameters")?;
    let output = tool.output.map(|text| parse_schema(&text, &name, "output")).transpose()?;
    check_and_trim_tool(ToolDescriptor {
        id: ToolId::new(plugin.clone(), name),
        title: tool.title,
        description: tool.description,
        parameters,
        output,
        hints: tool.hints,
    })
}

/// Validates a tool, and trims its title and description to their limits.
///
/// # Errors
///
/// The name is reserved for roles, the parameters are not an object schema, or a schema cannot be
/// used. The message states which.
pub fn check_and_trim_tool(tool: ToolDescriptor) -> Result<ToolDescriptor, String> {
    let name = &tool.id.tool;
    if name.as_str().starts_with(ROLE_PREFIX) {
        return Err(format!("a tool cannot be called {name}: so the host calls runs in a role"));
    }
    check_schema(&tool.parameters, name, "parameters")?;
    if tool.parameters.get("type").and_then(Value::as_str) != Some("object") {
        return Err(format!("the parameters of {name} are not an object schema"));
    }
    tool.output.iter().try_for_each(|output| check_schema(output, name, "output"))?;
    let title = tool.title.map(|title| escape_excerpt(title.trim(), TITLE_CHARS_MAX));
    let title = title.filter(|title| !title.is_empty());
    Ok(ToolDescriptor { title, description: shorten_description(tool.description), ..tool })
}

fn parse_schema(text: &str, tool: &ToolName, what: &str) -> Result<Value, String> {
    json::parse_json(text, SCHEMA_BYTES_MAX)
        .map_err(|e| schema_error_message(tool, what, &e.to_string()))
}

fn check_schema(schema: &Value, tool: &ToolName, what: &str) -> Result<(), String> {
    let bytes = schema.to_string().len();
    if bytes > SCHEMA_BYTES_MAX {
        let message = format!("it has {bytes} bytes, at most {SCHEMA_BYTES_MAX} are taken");
        return Err(schema_error_message(tool, what, &message));
    }
    CompiledSchema::new(schema).map_err(|e| schema_error_message(tool, what, &e))?;
    Ok(())
}

fn schema_error_message(tool: &ToolName, what: &str, message: &str) -> String {
    format!("the {what} schema of {tool}: {message}")
}
