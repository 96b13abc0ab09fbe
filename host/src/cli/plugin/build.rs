//! `sallyport plugin new|build`: creates a project, and builds one into a component.

use std::path::{Path, PathBuf};

use sallyport_contract::text;
use sallyport_plugin_build::{
    BuildOptions, BuiltComponent, PluginBuildError, PluginProject, SdkFolder, SourceLanguage,
    ToolPaths, build_project, create_project,
};
use sallyport_policy::{PluginRole, SourceError};
use sallyport_runtime::{
    config::{HostSettings, env},
    registry::{PluginSelection, RegisteredPlugin},
};
use sallyport_terminal::listing::ListRow;

use super::{args::BuildArgs, describe_size, find_only_plugin};
use crate::cli::{
    exit::{CommandFailure, ExitStatus},
    output::CliOutput,
    setup,
};

impl From<PluginBuildError> for CommandFailure {
    fn from(error: PluginBuildError) -> Self {
        let exit = match error {
            PluginBuildError::Name(_)
            | PluginBuildError::FolderExists { .. }
            | PluginBuildError::NotProject { .. } => ExitStatus::Usage,
            PluginBuildError::Manifest(_) => ExitStatus::PluginRejected,
            _ => ExitStatus::Failed,
        };
        let location = match &error {
            PluginBuildError::Manifest(mistake) => Some(SourceError::place(mistake)),
            _ => None,
        };
        let message = text::escape_multiline(&error.to_string());
        Self { hint: error.hint(), location, ..Self::new(exit, message) }
    }
}

/// Creates a project from the template of a language, and prints what to do next.
pub(super) fn create_plugin_project(
    settings: &HostSettings,
    name: &str,
    language: SourceLanguage,
    parent: &Path,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let sdk = SdkFolder::unpack(&settings.paths.cache)?;
    let folder = create_project(name, language, parent, &sdk)?;
    let shown = text::escape_line(&folder.display().to_string());
    out.print_line(&format!("Created the {language} plugin {name} in {shown}."));
    out.print_note(&format!(
        "Next:\n  cd {shown}\n  sallyport plugin build\n  sallyport plugin test\nREADME.md shows how to \
         call its tool."
    ));
    Ok(ExitStatus::Done)
}

/// Builds a project, loads the component as a host would, and prints what it is.
pub(super) async fn build_plugin(
    settings: &HostSettings,
    args: &BuildArgs,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let project = PluginProject::open(&args.folder)?;
    let output = args.out.clone().unwrap_or_else(|| project.default_output());
    let options = build_options(settings, args)?;
    let built = build_project(&project, &options, &output)?;
    let selection = PluginSelection::File(built.file.clone());
    let registry = setup::load_selected_registry(settings, selection, out).await?;
    let entry = find_only_plugin(&registry, &built.file)?;
    check_has_tools(entry, built.language)?;
    print_built(entry, &built, out);
    registry.shutdown().await;
    Ok(ExitStatus::Done)
}

/// A plugin without tools and without another role has nothing that anything calls.
fn check_has_tools(
    entry: &RegisteredPlugin,
    language: SourceLanguage,
) -> Result<(), CommandFailure> {
    let has_other_role = entry.manifest().roles.iter().any(|role| *role != PluginRole::Tools);
    if has_other_role || !entry.tools().is_empty() {
        return Ok(());
    }
    let declaration = match language {
        SourceLanguage::Rust => "sallyport_sdk::export_plugin!(tools = [my_tool]);",
        SourceLanguage::Python => "@tool above a function",
        SourceLanguage::JavaScript | SourceLanguage::TypeScript => "export const … = tool({ … })",
        SourceLanguage::C | SourceLanguage::Cpp => "SALLYPORT_TOOL(my_tool, .description = \"…\")",
        SourceLanguage::Go => "sallyport.Tool(\"my_tool\", \"…\", myTool) in func init",
    };
    let message = format!("{} has no tool", entry.name());
    let hint = format!("declare one: {declaration}");
    Err(CommandFailure::new(ExitStatus::PluginRejected, message).with_hint(hint))
}

/// How this program builds, from its own settings and the environment.
pub(super) fn build_options(
    settings: &HostSettings,
    args: &BuildArgs,
) -> Result<BuildOptions, CommandFailure> {
    let path = |name| settings.env.get(name).map(PathBuf::from);
    let home = settings.env.home_dir().unwrap_or_default();
    Ok(BuildOptions {
        // Compilers run in other folders, so that a relative path would lead elsewhere.
        cache: std::path::absolute(&settings.paths.cache)?,
        program: std::env::current_exe()?,
        cargo_home: path(env::CARGO_HOME).unwrap_or_else(|| home.join(".cargo")),
        tools: ToolPaths {
            python: path(env::PYTHON),
            node_modules: path(env::NODE_MODULES),
            zig: path(env::ZIG),
            go: path(env::GO),
        },
        gets_tools: args.get_tools,
        engine: args.engine.clone(),
    })
}

fn print_built(entry: &RegisteredPlugin, built: &BuiltComponent, out: &CliOutput) {
    let tools: Vec<&str> = entry.tools().iter().map(|tool| tool.id.tool.as_str()).collect();
    let file = text::escape_line(&built.file.display().to_string());
    out.print_line(&format!("Built {} {}.", entry.name(), entry.manifest().version));
    let mut rows = vec![ListRow::new(["file", &file])];
    if let Some(facts) = entry.component_facts() {
        rows.push(ListRow::new(["size", &describe_size(facts)]));
    }
    rows.push(ListRow::new(["digest", entry.digest()]));
    rows.push(ListRow::new(["tools", &tools.join(", ")]));
    rows.push(ListRow::new(["language", &built.language.to_string()]));
    out.print_list(&rows);
    for note in entry.notes() {
        out.print_warning(&text::escape_line(&note));
    }
}
