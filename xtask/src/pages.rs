//! The plugins that the pages of `docs/roles` show whole: taken from the pages, and built.
//!
//! A fenced block says after its language which plugin and which file it is. Files are laid out as
//! they stand there; a plugin in Rust gets the `Cargo.toml` that all of them would share.

use std::{
    collections::BTreeMap,
    fs,
    path::{Component, Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use crate::process::root;

/// Where the pages are.
const PAGES: &str = "docs/roles";

/// Where their plugins are laid out, as one workspace.
const FOLDER: &str = "target/pages";

/// What makes a plugin one in Rust.
const LIBRARY: &str = "src/lib.rs";

/// What a member of the workspace is made of. The names are put in.
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

/// The workspace, with the profile of the plugins that come with Sallyport.
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

/// Files by the plugin that they belong to and their path in it.
type Files = BTreeMap<(String, String), String>;

/// Lays out the plugins of all pages, and returns the workspace of those in Rust.
pub(crate) fn lay_out() -> Result<PathBuf> {
    let folder = root().join(FOLDER);
    let mut files = Files::new();
    for entry in fs::read_dir(root().join(PAGES))? {
        let page = entry?.path();
        let text = fs::read_to_string(&page)?;
        take(&text, &mut files).with_context(|| page.display().to_string())?;
    }
    let members = files.keys().filter(|(_, file)| file == LIBRARY);
    let members: Vec<&String> = members.map(|(plugin, _)| plugin).collect();
    ensure!(!members.is_empty(), "no page of {PAGES} shows a plugin in Rust");
    for name in &members {
        write(&folder.join(name).join("Cargo.toml"), &MEMBER.replace("{name}", name))?;
    }
    let workspace = WORKSPACE.replace("{members}", &serde_json::to_string(&members)?);
    write(&folder.join("Cargo.toml"), &workspace)?;
    for ((plugin, file), text) in &files {
        write(&folder.join(plugin).join(file), text)?;
    }
    // Versions that the rest of the repository is built with are there already.
    if !folder.join("Cargo.lock").is_file() {
        fs::copy(root().join("plugins-src/Cargo.lock"), folder.join("Cargo.lock"))?;
    }
    Ok(folder)
}

/// Takes the files out of one page.
fn take(page: &str, files: &mut Files) -> Result<()> {
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

/// Writes a file unless it is as it should be: what is built of it is then still good.
fn write(path: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    if is_program(path) { executable(path) } else { Ok(()) }
}

/// The program of a script plugin.
fn is_program(path: &Path) -> bool {
    path.file_stem().is_some_and(|stem| stem == "run")
        && path.extension().is_some_and(|end| end != "json")
}

fn executable(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o755))?)
}
