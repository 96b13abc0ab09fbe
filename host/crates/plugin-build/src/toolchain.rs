//! The tools of the languages other than Rust: where they are, and how they are installed.
//!
//! A tool that a variable names is used as it is. Otherwise the one that `--get-tools` installed
//! into the cache is used, and otherwise the one on the search path. Only pinned versions are
//! installed: each SDK lists them in `tools.txt`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    error::PluginBuildError,
    language::SourceLanguage,
    options::{BuildOptions, ToolPaths},
    process,
    sdk::SdkFolder,
};

/// The list of tools in an SDK's folder.
const TOOL_LIST: &str = "tools.txt";

/// A file that is written after the tools are complete. It contains the list.
const INSTALLED_MARK: &str = "installed.txt";

/// What a language needs: the tool's path is passed on in a variable.
struct ToolKind {
    variable: &'static str,
    name: &'static str,
    installer: Installer,
    /// Places of the tool in the folder of its installation.
    places: &'static [&'static str],
}

/// A package manager.
#[derive(Clone, Copy)]
enum Installer {
    Pip,
    Npm,
}

impl ToolKind {
    fn of(language: SourceLanguage) -> Option<Self> {
        let kind = |variable, name, installer, places| Self { variable, name, installer, places };
        match language {
            SourceLanguage::Rust => None,
            SourceLanguage::Python => {
                Some(kind("SALLYPORT_PYTHON", "componentize-py", Installer::Pip, &["bin/python3"]))
            }
            SourceLanguage::JavaScript | SourceLanguage::TypeScript => Some(kind(
                "SALLYPORT_NODE_MODULES",
                "componentize-qjs",
                Installer::Npm,
                &["node_modules"],
            )),
            SourceLanguage::C | SourceLanguage::Cpp => Some(kind(
                "SALLYPORT_ZIG",
                "Zig",
                Installer::Pip,
                &["lib/*/site-packages/ziglang/zig", "bin/zig"],
            )),
            SourceLanguage::Go => Some(kind(
                "SALLYPORT_GO",
                "Go",
                Installer::Pip,
                &["lib/*/site-packages/go/bin/go", "bin/go"],
            )),
        }
    }

    /// The tool that the user has named.
    fn named(&self, paths: &ToolPaths) -> Option<PathBuf> {
        match self.variable {
            "SALLYPORT_PYTHON" => paths.python.clone(),
            "SALLYPORT_NODE_MODULES" => paths.node_modules.clone(),
            "SALLYPORT_ZIG" => paths.zig.clone(),
            _ => paths.go.clone(),
        }
    }

    /// Whether a tool that the user has named is one. The compiler's own messages would not name
    /// the variable.
    fn works(&self, tool: &Path) -> bool {
        match self.variable {
            "SALLYPORT_PYTHON" => {
                process::succeeds(process::command(tool).args(["-c", "import componentize_py"]))
            }
            "SALLYPORT_NODE_MODULES" => tool.is_dir(),
            _ => process::answers(process::command(tool).arg("version")),
        }
    }

    /// The tool on the search path.
    fn on_search_path(&self) -> Option<PathBuf> {
        let answers = |program: &str, args: &[&str]| {
            process::succeeds(process::command(program).args(args)).then(|| PathBuf::from(program))
        };
        match self.variable {
            "SALLYPORT_PYTHON" => answers("python3", &["-c", "import componentize_py"]),
            "SALLYPORT_NODE_MODULES" => None,
            "SALLYPORT_ZIG" => answers("zig", &["version"]),
            _ => answers("go", &["version"]),
        }
    }
}

/// A tool for a build, as a variable of the environment. `None` for a language that has its own way.
///
/// # Errors
///
/// The tool is missing and is not to be installed, or cannot be installed.
pub(crate) fn find_tool(
    language: SourceLanguage,
    sdk: &SdkFolder,
    options: &BuildOptions,
) -> Result<Option<(&'static str, PathBuf)>, PluginBuildError> {
    let Some(kind) = ToolKind::of(language) else { return Ok(None) };
    if let Some(path) = kind.named(&options.tools) {
        let ToolKind { variable, name: tool, .. } = kind;
        return match kind.works(&path) {
            true => Ok(Some((variable, path))),
            false => Err(PluginBuildError::ToolBroken { variable, path, tool }),
        };
    }
    let (list, folder_name) = read_list(sdk, language, options.engine.as_deref())?;
    let folder = options.cache.join("tools").join(folder_name);
    if let Some(installed) = installed_tool(&kind, &folder, &list) {
        return Ok(Some((kind.variable, installed)));
    }
    if options.gets_tools {
        install_tools(&kind, &folder, &list, language)?;
        let installed = installed_tool(&kind, &folder, &list);
        return installed
            .map(|tool| Some((kind.variable, tool)))
            .ok_or_else(|| missing(&kind, language));
    }
    kind.on_search_path()
        .map(|tool| Some((kind.variable, tool)))
        .ok_or_else(|| missing(&kind, language))
}

fn missing(kind: &ToolKind, language: SourceLanguage) -> PluginBuildError {
    PluginBuildError::ToolMissing {
        language,
        tool: kind.name,
        fix: "sallyport plugin build --get-tools".to_owned(),
    }
}

/// The list of a language's tools, and the name of the folder that they are installed in. Another
/// engine than the usual one has tools of its own.
fn read_list(
    sdk: &SdkFolder,
    language: SourceLanguage,
    engine: Option<&str>,
) -> Result<(String, String), PluginBuildError> {
    let folder = sdk.sdk(language);
    let list = fs::read_to_string(folder.join(TOOL_LIST));
    let list = list.map_err(|_| PluginBuildError::NoSdk { language })?;
    let more = engine.and_then(|engine| {
        let more = fs::read_to_string(folder.join(format!("tools-{engine}.txt"))).ok()?;
        Some((format!("{list}\n{more}"), format!("{}-{engine}", language.sdk_name())))
    });
    Ok(more.unwrap_or_else(|| (list, language.sdk_name().to_owned())))
}

/// The tool in the folder of its installation, if exactly this list is installed.
fn installed_tool(kind: &ToolKind, folder: &Path, list: &str) -> Option<PathBuf> {
    let installed = fs::read_to_string(folder.join(INSTALLED_MARK)).ok()?;
    (installed == list).then(|| kind.places.iter().find_map(|place| find_place(folder, place)))?
}

/// Follows a path with `*` for a folder of any name.
fn find_place(folder: &Path, place: &str) -> Option<PathBuf> {
    let Some((before, after)) = place.split_once("*/") else {
        let path = folder.join(place);
        return path.exists().then_some(path);
    };
    let entries = fs::read_dir(folder.join(before)).ok()?;
    entries.flatten().find_map(|entry| find_place(&entry.path(), after))
}

/// Installs the list into the folder. What an earlier list left there is removed first.
fn install_tools(
    kind: &ToolKind,
    folder: &Path,
    list: &str,
    language: SourceLanguage,
) -> Result<(), PluginBuildError> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(PluginBuildError::file("remove", folder))?;
    }
    fs::create_dir_all(folder).map_err(PluginBuildError::file("create the folder", folder))?;
    match kind.installer {
        Installer::Pip => install_with_pip(folder, list, language)?,
        Installer::Npm => install_with_npm(folder, list, language)?,
    }
    let mark = folder.join(INSTALLED_MARK);
    fs::write(&mark, list).map_err(PluginBuildError::file("write", &mark))
}

fn install_with_pip(
    folder: &Path,
    list: &str,
    language: SourceLanguage,
) -> Result<(), PluginBuildError> {
    let mut venv = process::command("python3");
    if !process::succeeds(venv.args(["-m", "venv"]).arg(folder)) {
        let fix = "install Python 3 with its module venv, then run the command again".to_owned();
        return Err(PluginBuildError::ToolMissing { language, tool: "python3", fix });
    }
    let mut pip = process::command(folder.join("bin/python3"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    process::run("pip install", pip.args(["--only-binary", ":all:"]).args(packages(list)))
}

fn install_with_npm(
    folder: &Path,
    list: &str,
    language: SourceLanguage,
) -> Result<(), PluginBuildError> {
    if !process::succeeds(process::command("npm").arg("--version")) {
        let fix = "install Node.js 20 or newer, then run the command again".to_owned();
        return Err(PluginBuildError::ToolMissing { language, tool: "npm", fix });
    }
    let mut npm = process::command("npm");
    npm.args(["install", "--no-save", "--no-audit", "--no-fund", "--loglevel", "error"]);
    // Packages of compilers need no scripts of their own, and no script runs unseen.
    npm.arg("--ignore-scripts").arg("--prefix").arg(folder);
    process::run("npm install", npm.args(packages(list)))
}

/// The lines of a list that name packages.
fn packages(list: &str) -> impl Iterator<Item = &str> {
    list.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_installations_of_this_list_count() {
        let folder = tempfile::tempdir().unwrap();
        let kind = ToolKind::of(SourceLanguage::C).unwrap();
        let zig = folder.path().join("lib/python3.11/site-packages/ziglang/zig");
        let installed = || installed_tool(&kind, folder.path(), "ziglang==1");
        fs::create_dir_all(zig.parent().unwrap()).unwrap();
        fs::write(&zig, "").unwrap();
        assert_eq!(installed(), None, "an installation that was stopped");
        fs::write(folder.path().join(INSTALLED_MARK), "ziglang==0").unwrap();
        assert_eq!(installed(), None, "another version");
        fs::write(folder.path().join(INSTALLED_MARK), "ziglang==1").unwrap();
        assert_eq!(installed(), Some(zig.clone()));
        fs::remove_file(zig).unwrap();
        assert_eq!(installed(), None);
    }

    #[test]
    fn a_tool_that_the_user_names_has_to_answer() {
        for language in [SourceLanguage::Python, SourceLanguage::C, SourceLanguage::Go] {
            let kind = ToolKind::of(language).unwrap();
            for program in ["/nonexistent", "/bin/false"] {
                assert!(!kind.works(Path::new(program)), "{language}: {program}");
            }
        }
        let zig = ToolKind::of(SourceLanguage::C).unwrap();
        assert!(!zig.works(Path::new("/bin/true")), "it prints no version");
        assert!(zig.works(Path::new("/bin/echo")));
        let modules = ToolKind::of(SourceLanguage::JavaScript).unwrap();
        assert!(modules.works(Path::new("/")) && !modules.works(Path::new("/nonexistent")));
    }

    #[test]
    fn a_list_may_have_comments() {
        let list = "# compiler\n\nziglang==0.17.1 \n  other==1\n";
        assert_eq!(packages(list).collect::<Vec<_>>(), ["ziglang==0.17.1", "other==1"]);
    }
}
