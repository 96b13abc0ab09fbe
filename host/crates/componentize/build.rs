//! Embeds two sets of files that other crates have in their sources: the Go runtime of the bindings
//! (crate `wit-bindgen-go`) and the WIT packages of WASI (crate `wasmtime-wasi-http`).
//!
//! They are read from where cargo keeps its crates, because a copy in this repository would have to
//! be kept at the same version by hand.

#![expect(clippy::disallowed_methods, reason = "cargo gives a build script its input this way")]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../../../Cargo.lock");
    let packages = cargo_packages();
    let tables = [
        file_table(
            "GO_RUNTIME",
            &crate_folder(&packages, "wit-bindgen-go").join("src/pkg"),
            &is_go,
        ),
        file_table(
            "WASI_WIT",
            &crate_folder(&packages, "wasmtime-wasi-http").join("wit/deps"),
            &|_| true,
        ),
    ];
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("embedded.rs"), tables.concat()).expect("OUT_DIR is writable");
}

/// The packages of the workspace and all its dependencies, as `cargo metadata` lists them.
fn cargo_packages() -> Vec<Value> {
    let cargo = env::var_os("CARGO").expect("cargo sets CARGO");
    let host = env::var("HOST").expect("cargo sets HOST");
    let args = ["metadata", "--format-version=1", "--filter-platform", &host];
    let ended = Command::new(cargo).args(args).output().expect("cargo starts");
    let problem = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "cargo metadata failed: {problem}");
    let listed: Value = serde_json::from_slice(&ended.stdout).expect("cargo prints JSON");
    listed["packages"].as_array().expect("cargo lists packages").clone()
}

/// The sources of a crate, in its newest version of those in use.
fn crate_folder(packages: &[Value], name: &str) -> PathBuf {
    let named = packages.iter().filter(|package| package["name"] == name);
    let manifests = named.filter_map(|package| package["manifest_path"].as_str());
    let newest = manifests.max().unwrap_or_else(|| panic!("{name} is not a dependency"));
    Path::new(newest).parent().expect("a manifest is in a folder").to_owned()
}

fn is_go(path: &Path) -> bool {
    let is_source = |ending: &std::ffi::OsStr| ending == "go" || ending == "s" || ending == "mod";
    path.extension().is_some_and(is_source) || path.ends_with("LICENSE")
}

/// Rust source of a table of the files in a folder: path inside the folder and text.
fn file_table(name: &str, folder: &Path, is_wanted: &dyn Fn(&Path) -> bool) -> String {
    let mut files = Vec::new();
    collect_files(folder, &mut files);
    files.retain(|file| is_wanted(file));
    files.sort();
    assert!(!files.is_empty(), "{} has none of the expected files", folder.display());
    let row = |file: &PathBuf| {
        let inside = file.strip_prefix(folder).expect("the file is in the folder");
        format!("    ({:?}, include_str!({:?})),\n", inside.display().to_string(), file)
    };
    let rows: String = files.iter().map(row).collect();
    format!("pub(crate) const {name}: &[(&str, &str)] = &[\n{rows}];\n")
}

fn collect_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder of a crate can be read") {
        let path = entry.expect("the folder of a crate can be read").path();
        match path.is_dir() {
            true => collect_files(&path, files),
            false => files.push(path),
        }
    }
}
