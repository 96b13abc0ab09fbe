//! Builds Rust projects with cargo.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::{
    error::PluginBuildError,
    language::SourceLanguage,
    options::BuildOptions,
    process,
    project::PluginProject,
    reproducible::make_reproducible,
    sdk::{SdkFolder, write_if_changed},
};

/// Target triple of components.
const TARGET: &str = "wasm32-wasip2";

/// File in which a project tells cargo where the SDK is.
const CARGO_CONFIG: &str = ".cargo/config.toml";

/// First line of that file, which tells that this program wrote it.
const CARGO_CONFIG_MARK: &str = "# Written by `sallyport plugin`";

/// Tells plain cargo where the unpacked SDK is, which no registry has. A file of the author's own
/// stays as it is.
pub(crate) fn write_sdk_patch(project: &Path, sdk: &SdkFolder) -> Result<(), PluginBuildError> {
    let path = project.join(CARGO_CONFIG);
    if fs::read_to_string(&path).is_ok_and(|text| !text.starts_with(CARGO_CONFIG_MARK)) {
        return Ok(());
    }
    let text = format!(
        "{CARGO_CONFIG_MARK} for this machine, so that plain cargo finds the SDK. Do not commit it.\n\
         {} = {}\n",
        patch_key(),
        patch_value(sdk),
    );
    write_if_changed(&path, text.as_bytes())
}

fn patch_key() -> &'static str {
    "patch.crates-io.sallyport-sdk.path"
}

/// The path as a TOML string. A JSON string is one, too.
fn patch_value(sdk: &SdkFolder) -> String {
    Value::from(sdk.sdk(SourceLanguage::Rust).display().to_string()).to_string()
}

/// Builds the project and returns the component's path in cargo's own folder.
///
/// # Errors
///
/// Cargo or the target is missing, the build fails, or it makes no component.
pub(crate) fn build_rust(
    project: &PluginProject,
    sdk: &SdkFolder,
    options: &BuildOptions,
) -> Result<PathBuf, PluginBuildError> {
    check_toolchain(options)?;
    write_sdk_patch(&project.folder, sdk)?;
    let mut cargo = process::command("cargo");
    cargo.current_dir(&project.folder);
    cargo.args(["build", "--release", "--target", TARGET]);
    cargo.args(["--message-format", "json-render-diagnostics"]);
    cargo.args(["--config", &format!("{}={}", patch_key(), patch_value(sdk))]);
    if !process::shows_progress() {
        cargo.arg("--quiet");
    }
    // Cargo compiles only what has changed, so a folder for all projects would save little.
    cargo.env_remove("CARGO_TARGET_DIR").env_remove("CARGO_BUILD_TARGET_DIR");
    let folders = [(project.folder.as_path(), "/plugin"), (sdk.root(), "/sallyport")];
    make_reproducible(&mut cargo, &options.program, &options.cargo_home, &folders);
    let messages = process::run_for_output("cargo build", &mut cargo)?;
    find_component(&messages).ok_or_else(|| PluginBuildError::NoComponent {
        reason: "the crate is not a cdylib".to_owned(),
        fix: "add crate-type = [\"cdylib\"] below [lib] in Cargo.toml".to_owned(),
    })
}

fn check_toolchain(options: &BuildOptions) -> Result<(), PluginBuildError> {
    let missing = |tool, fix: &str| PluginBuildError::ToolMissing {
        language: SourceLanguage::Rust,
        tool,
        fix: fix.to_owned(),
    };
    if !process::succeeds(process::command("cargo").arg("--version")) {
        return Err(missing("cargo", "install Rust as https://rustup.rs says"));
    }
    if has_target() {
        return Ok(());
    }
    if options.gets_tools {
        let mut rustup = process::command("rustup");
        return process::run("rustup", rustup.args(["target", "add", TARGET]));
    }
    Err(missing("the target wasm32-wasip2", "rustup target add wasm32-wasip2"))
}

/// Whether the standard library of the target is installed.
fn has_target() -> bool {
    let mut rustc = process::command("rustc");
    let found = process::run_for_output(
        "rustc",
        rustc.args(["--print", "target-libdir", "--target", TARGET]),
    );
    found.is_ok_and(|folder| Path::new(folder.trim()).is_dir())
}

/// The last component among the artifacts that cargo reports.
fn find_component(messages: &str) -> Option<PathBuf> {
    let artifacts = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let is_wasm = |file: &&str| file.ends_with(".wasm");
    artifacts
        .filter(|message| message["reason"] == "compiler-artifact")
        .filter_map(|message| {
            let files = message["filenames"].as_array()?;
            files.iter().filter_map(Value::as_str).find(is_wasm).map(PathBuf::from)
        })
        .next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_component_is_the_last_artifact_of_its_kind() {
        let check = |messages: &str, found: Option<&str>| {
            assert_eq!(find_component(messages), found.map(PathBuf::from), "{messages}");
        };
        let artifact =
            |file: &str| format!(r#"{{"reason":"compiler-artifact","filenames":["{file}"]}}"#);
        check("", None);
        check("noise\n{\"reason\":\"build-finished\"}", None);
        check(&artifact("/t/a.rlib"), None);
        let both = [artifact("/t/a.wasm"), artifact("/t/a.rlib"), artifact("/t/b.wasm")].join("\n");
        check(&both, Some("/t/b.wasm"));
    }

    #[test]
    fn the_authors_own_cargo_config_stays() {
        let folder = tempfile::tempdir().unwrap();
        let sdk = SdkFolder::unpack(folder.path()).unwrap();
        let (project, config) =
            (folder.path().join("p"), folder.path().join("p").join(CARGO_CONFIG));
        write_sdk_patch(&project, &sdk).unwrap();
        let written = fs::read_to_string(&config).unwrap();
        assert!(written.contains("patch.crates-io.sallyport-sdk.path = \"/"), "{written}");
        fs::write(&config, format!("{CARGO_CONFIG_MARK} an older one")).unwrap();
        write_sdk_patch(&project, &sdk).unwrap();
        assert_eq!(fs::read_to_string(&config).unwrap(), written);
        fs::write(&config, "[net]\noffline = true\n").unwrap();
        write_sdk_patch(&project, &sdk).unwrap();
        assert_eq!(fs::read_to_string(&config).unwrap(), "[net]\noffline = true\n");
    }
}
