//! Extracts the complete plugins that the pages of `docs/roles` show, so that they can be built.
//!
//! The info string of a fenced block names the plugin and the file after the language. Files are
//! written unchanged. A Rust plugin gets the `Cargo.toml` that all of them share.

use std::{
    collections::BTreeMap,
    fs,
    path::{Component, Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use crate::process::repository_root;

/// Folder of the pages.
const PAGES: &str = "docs/roles";

/// Workspace into which their plugins are written.
const FOLDER: &str = "target/pages";

/// The file that marks a Rust plugin.
const LIBRARY: &str = "src/lib.rs";

/// `Cargo.toml` of a workspace member. `{name}` is replaced.
const MEMBER: &str = r#"[package]
name = "{name}"
version = "0.1.0"
edition = "2024"

[lib]
crate-type = ["cdylib"]

[dependencies]
sallyport-sdk.workspace = true
schemars.workspace = true
serde.workspace = true
"#;

/// `Cargo.toml` of the workspace, with the profile of the plugins that come with Sallyport.
const WORKSPACE: &str = r#"[workspace]
resolver = "3"
members = {members}

[workspace.dependencies]
sallyport-sdk = { path = "../../sdk/rust" }
schemars = "1.2"
serde = { version = "1.0", features = ["derive"] }

[profile.release]
codegen-units = 1
lto = true
opt-level = "s"
panic = "abort"
strip = true
"#;

/// File contents by plugin and path inside the plugin.
type Files = BTreeMap<(String, String), String>;

/// Writes the plugins of all pages and returns the workspace of the Rust ones.
pub(crate) fn write_page_plugins() -> Result<PathBuf> {
    let folder = repository_root().join(FOLDER);
    let mut files = Files::new();
    for entry in fs::read_dir(repository_root().join(PAGES))? {
        let page = entry?.path();
        let text = fs::read_to_string(&page)?;
        extract_files(&text, &mut files).with_context(|| page.display().to_string())?;
    }
    let members = files.keys().filter(|(_, file)| file == LIBRARY);
    let members: Vec<&String> = members.map(|(plugin, _)| plugin).collect();
    ensure!(!members.is_empty(), "no page of {PAGES} shows a plugin in Rust");
    for name in &members {
        write_if_changed(&folder.join(name).join("Cargo.toml"), &MEMBER.replace("{name}", name))?;
    }
    let workspace = WORKSPACE.replace("{members}", &serde_json::to_string(&members)?);
    write_if_changed(&folder.join("Cargo.toml"), &workspace)?;
    for ((plugin, file), text) in &files {
        write_if_changed(&folder.join(plugin).join(file), text)?;
    }
    // Start from the versions that the rest of the repository has already downloaded.
    if !folder.join("Cargo.lock").is_file() {
        fs::copy(repository_root().join("plugins-src/Cargo.lock"), folder.join("Cargo.lock"))?;
    }
    Ok(folder)
}

/// Extracts the files of one page.
fn extract_files(page: &str, files: &mut Files) -> Result<()> {
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(fence) = line.strip_prefix("```") else { continue };
        let inside = lines.by_ref().take_while(|line| *line != "```");
        let text: String = inside.flat_map(|line| [line, "\n"]).collect();
        let word = |key: &str| {
            let mut words = fence.split_whitespace();
            words.find_map(|word| word.strip_prefix(key)?.strip_prefix('=')).map(str::to_owned)
        };
        let Some(plugin) = word("plugin") else { continue };
        let file = word("file").with_context(|| format!("{fence:?} names no file"))?;
        let plain =
            |path: &str| Path::new(path).components().all(|c| matches!(c, Component::Normal(_)));
        ensure!(plain(&plugin) && plain(&file), "{fence:?} leads out of its folder");
        let place = (plugin, file);
        ensure!(!files.contains_key(&place), "{fence:?} stands twice");
        files.insert(place, text);
    }
    Ok(())
}

/// Writes a file unless it has these contents already. A new modification time would trigger a
/// rebuild.
fn write_if_changed(path: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    if is_script_program(path) { make_executable(path) } else { Ok(()) }
}

/// Whether the file is the program of a script plugin.
fn is_script_program(path: &Path) -> bool {
    path.file_stem().is_some_and(|stem| stem == "run")
        && path.extension().is_some_and(|end| end != "json")
}

fn make_executable(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o755))?)
}
