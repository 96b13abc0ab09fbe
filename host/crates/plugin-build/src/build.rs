//! Builds a project into a component with its manifest.

use std::{
    fs,
    path::{Path, PathBuf},
};

use sallyport_componentize::{BuildError, BuildTools, CompiledLanguage};

use crate::{
    cargo,
    error::PluginBuildError,
    language::SourceLanguage,
    manifest_section::{append_language, append_manifest, is_component},
    options::BuildOptions,
    process,
    project::PluginProject,
    sdk::{SdkFolder, write_if_changed},
    toolchain::find_tool,
};

/// A component that was built.
#[derive(Debug)]
pub struct BuiltComponent {
    /// Its file.
    pub file: PathBuf,
    /// The language of its sources.
    pub language: SourceLanguage,
}

/// Builds a project. The component is put into `output` in one step, after it is complete.
///
/// # Errors
///
/// A tool is missing, the build fails after its program has printed why, or a file cannot be
/// written. An older component stays then.
pub fn build_project(
    project: &PluginProject,
    options: &BuildOptions,
    output: &Path,
) -> Result<BuiltComponent, PluginBuildError> {
    let sdk = SdkFolder::unpack(&options.cache)?;
    let folder = tempfile::Builder::new()
        .prefix("build-")
        .tempdir_in(&options.cache)
        .map_err(PluginBuildError::file("write in", &options.cache))?;
    let built = match project.language {
        SourceLanguage::Rust => cargo::build_rust(project, &sdk, options)?,
        SourceLanguage::C | SourceLanguage::Cpp | SourceLanguage::Go => {
            build_compiled(project, &sdk, options, &folder.path().join("component.wasm"))?
        }
        _ => build_with_sdk(project, &sdk, options, &folder.path().join("component.wasm"))?,
    };
    let mut bytes = fs::read(&built).map_err(PluginBuildError::file("read", &built))?;
    if !is_component(&bytes) {
        return Err(PluginBuildError::NoComponent {
            reason: format!("{} is another kind of file", built.display()),
            fix: "build it for the target wasm32-wasip2".to_owned(),
        });
    }
    append_language(&mut bytes, &project.language.to_string());
    append_manifest(&mut bytes, &project.manifest_text);
    write_if_changed(output, &bytes)?;
    Ok(BuiltComponent { file: output.to_owned(), language: project.language })
}

/// Builds C, C++ and Go.
fn build_compiled(
    project: &PluginProject,
    sdk: &SdkFolder,
    options: &BuildOptions,
    output: &Path,
) -> Result<PathBuf, PluginBuildError> {
    let language = match project.language {
        SourceLanguage::Go => CompiledLanguage::Go,
        SourceLanguage::Cpp => CompiledLanguage::Cpp,
        _ => CompiledLanguage::C,
    };
    let tool = find_tool(project.language, sdk, options)?.map(|(_, tool)| tool);
    let (sdks, wit) = (sdk.root().join("sdk"), sdk.wit());
    let tools = BuildTools { zig: tool.clone(), go: tool, sdk: sdks, wit };
    match sallyport_componentize::build_project(language, &project.folder, output, &tools) {
        Ok(()) => Ok(output.to_owned()),
        Err(BuildError::Compile { output }) => {
            process::show_message(&output);
            Err(PluginBuildError::ProgramFailed { program: "the compiler".to_owned(), code: None })
        }
        Err(error) => Err(error.into()),
    }
}

/// Builds with the program that the SDK of the language brings.
fn build_with_sdk(
    project: &PluginProject,
    sdk: &SdkFolder,
    options: &BuildOptions,
    output: &Path,
) -> Result<PathBuf, PluginBuildError> {
    let language = project.language;
    let tool = find_tool(language, sdk, options)?;
    let Some((variable, path)) = tool else {
        return Err(PluginBuildError::NoSdk { language });
    };
    let (interpreter, script) = match language {
        SourceLanguage::Python => (path.clone(), "build.py"),
        SourceLanguage::JavaScript | SourceLanguage::TypeScript => {
            (find_node(language)?, "build.mjs")
        }
        _ => return Err(PluginBuildError::NoSdk { language }),
    };
    let mut build = process::command(interpreter);
    build.arg(sdk.sdk(language).join(script)).arg(&project.folder).arg(output);
    if let Some(engine) = &options.engine {
        build.args(["--engine", engine]);
    }
    build.env(variable, path).env("SALLYPORT_WIT", sdk.wit());
    build.env("PYTHONDONTWRITEBYTECODE", "1");
    process::run(script, build.current_dir(&project.folder))?;
    Ok(output.to_owned())
}

fn find_node(language: SourceLanguage) -> Result<PathBuf, PluginBuildError> {
    if process::succeeds(process::command("node").arg("--version")) {
        return Ok("node".into());
    }
    let fix = "install Node.js 20 or newer, then run the command again".to_owned();
    Err(PluginBuildError::ToolMissing { language, tool: "node", fix })
}
