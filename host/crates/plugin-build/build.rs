//! Lists the files of the SDKs and of the contract, so that the crate can contain them.

use std::{
    env,
    fmt::Write,
    fs, io,
    path::{Path, PathBuf},
};

/// Folders of the repository that an installed program needs.
const EMBEDDED: [&str; 6] = ["wit", "sdk/rust", "sdk/python", "sdk/js", "sdk/c", "sdk/go"];

/// Folders of an SDK that only the repository needs.
const OWN_TESTS: [&str; 5] = ["conformance", "conformance-cpp", "conformance-ts", "test", "tests"];

/// What tools leave behind.
const LEFT_OUT: [&str; 8] = [
    "target",
    "dist",
    "node_modules",
    "__pycache__",
    ".venv",
    ".pytest_cache",
    ".ruff_cache",
    "Cargo.lock",
];

#[expect(clippy::disallowed_methods, reason = "cargo passes its folders in the environment")]
fn main() -> io::Result<()> {
    let folder = |name| env::var(name).map(PathBuf::from).map_err(io::Error::other);
    let root = folder("CARGO_MANIFEST_DIR")?.join("../../..").canonicalize()?;
    let mut files = vec![root.join("Cargo.toml")];
    for embedded in EMBEDDED.map(|name| root.join(name)).iter().filter(|folder| folder.is_dir()) {
        collect_files(embedded, &OWN_TESTS, &mut files)?;
    }
    // An SDK that comes later is noticed too.
    println!("cargo::rerun-if-changed={}", root.join("sdk").display());
    files.sort();
    fs::write(folder("OUT_DIR")?.join("embedded.rs"), render_list(&root, &files)?)
}

/// Collects the files of a folder without those entries of its own.
fn collect_files(folder: &Path, without: &[&str], files: &mut Vec<PathBuf>) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if LEFT_OUT.iter().chain(without).any(|name| entry.file_name() == *name) {
            continue;
        }
        if kind.is_dir() {
            collect_files(&path, &[], files)?;
        } else if kind.is_file() {
            files.push(path);
        }
    }
    Ok(())
}

/// Renders the list as Rust, with a digest of everything in it.
fn render_list(root: &Path, files: &[PathBuf]) -> io::Result<String> {
    let (mut list, mut digest) = (String::new(), blake3::Hasher::new());
    for file in files {
        let name = file.strip_prefix(root).map_err(io::Error::other)?.display().to_string();
        digest.update(name.as_bytes()).update(&[0]).update(&fs::read(file)?);
        let path = file.display().to_string();
        writeln!(list, "    ({name:?}, include_bytes!({path:?})),").map_err(io::Error::other)?;
    }
    let digest = digest.finalize().to_hex();
    Ok(format!(
        "/// The files by path, in order.\n\
         pub(crate) static EMBEDDED_FILES: &[(&str, &[u8])] = &[\n{list}];\n\n\
         /// Digest of all names and contents.\n\
         pub(crate) const EMBEDDED_DIGEST: &str = \"{digest}\";\n"
    ))
}
