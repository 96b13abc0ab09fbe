//! `cargo xtask dist`: the archive and the Debian package of a release.
//!
//! Both contain the program, the plugins that this machine can build, the manual, completions and
//! the documents. Names are sorted and all times are that of the last commit, so equal sources give
//! equal bytes where the compiler does, but for the order of functions: a trial run finds it, and two
//! runs can differ in what they run through.

mod debian;
mod link;
mod order;
mod tree;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

pub(crate) use self::link::run_if_linker;
use self::{debian::DebianPackage, link::KeptLink, tree::FileTree};
use crate::{
    build,
    process::{cargo_command, repository_root, run_command, run_for_output},
    programs::is_installed,
};

/// Installs the archive that it is part of.
const INSTALLER: &str = include_str!("install.sh");

/// Documents in the root of the repository that belong to a release.
const DOCUMENTS: [&str; 5] =
    ["README.md", "LICENSE", "CHANGELOG.md", "SECURITY.md", "plugins-wasm/README.md"];

/// Shells with completions, and where each looks for them below `share`.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/sallyport"),
    ("zsh", "share/zsh/site-functions/_sallyport"),
    ("fish", "share/fish/vendor_completions.d/sallyport.fish"),
];

const PLUGINS: &str = "share/sallyport/plugins";

/// Builds the archive, the Debian package and their checksums in `target/dist/packages`, and prints their
/// sizes.
pub(crate) fn build_release() -> Result<()> {
    build::build_plugins()?;
    let program = build_program()?;
    let version = program_version(&program)?;
    let folder = build::target_folder().join("dist/packages");
    make_empty_folder(&folder)?;
    let tree = collect_files(&program)?;
    let time = release_time();
    let name = format!("sallyport-{version}-{}-{}", std::env::consts::ARCH, std::env::consts::OS);
    let mut files =
        vec![(format!("{name}.tar.gz"), tree.with_installer(INSTALLER).to_archive(&name, time)?)];
    if cfg!(target_os = "linux") {
        let package = DebianPackage::new(&version, &fs::read(&program)?, tree, time)?;
        files.push((package.file_name(), package.to_bytes()?));
    }
    let mut sums = String::new();
    for (name, bytes) in &files {
        fs::write(folder.join(name), bytes)?;
        sums += &format!("{}  {name}\n", sha256_hex(bytes));
    }
    fs::write(folder.join("SHA256SUMS"), sums)?;
    print_sizes(&folder, &program, &files)
}

/// Makes a folder, or empties it. A package of another version next to this one would make the
/// pattern ambiguous with which the README unpacks the archive.
fn make_empty_folder(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    Ok(fs::create_dir_all(folder)?)
}

/// Builds the program alone, as it is released.
pub(crate) fn build_program() -> Result<PathBuf> {
    eprintln!("building the program …");
    let folder = build::target_folder().join("dist");
    let link = KeptLink::new(folder.join("link"))?;
    let compiled = folder.join("sallyport");
    if !link.is_kept() && compiled.exists() {
        // Cargo would not link it again.
        run_command(cargo_command().args([
            "clean",
            "--profile",
            "dist",
            "--package",
            "sallyport",
        ]))?;
    }
    let mut command = cargo_command();
    command.arg("rustc").args(build::quiet_flag()).args(["--profile", "dist"]);
    command.args(["--package", "sallyport", "--bin", "sallyport"]);
    link.keep(&mut command);
    run_command(&mut command)?;
    if !link.has_order()? || !is_installed(order::VALGRIND) {
        eprintln!(
            "its functions keep the order of the compiler, because lld or valgrind is missing"
        );
        return Ok(compiled);
    }
    // A trial fails where valgrind knows less of the processor than plugins are compiled for.
    put_in_order(&link, &folder).or_else(|error| {
        eprintln!("its functions keep the order of the compiler: {error:#}");
        Ok(compiled)
    })
}

/// Links the program again, with the functions first that frequent commands run through.
fn put_in_order(link: &KeptLink, folder: &Path) -> Result<PathBuf> {
    let ordered = folder.join("ordered");
    let program = ordered.join("sallyport");
    if link.is_older_than(&program) {
        return Ok(program);
    }
    eprintln!("ordering its functions …");
    build::build_plugins()?;
    make_empty_folder(&ordered)?;
    let [named, order] = ["named", "function-order.txt"].map(|file| ordered.join(file));
    link.link_with_names(&named)?;
    fs::write(&order, order::find_order(&named)?.join("\n"))?;
    fs::remove_file(&named)?;
    link.link_in_order(&program, &order)?;
    Ok(program)
}

fn program_version(program: &Path) -> Result<String> {
    let line = run_for_output(Command::new(program).arg("--version"))?;
    let version = line.split_whitespace().nth(1);
    version.map(str::to_owned).with_context(|| format!("no version in {line:?}"))
}

fn collect_files(program: &Path) -> Result<FileTree> {
    let mut tree = FileTree::default();
    tree.add_program("bin/sallyport", fs::read(program)?);
    for name in build::plugin_names()? {
        tree.add_folder(&format!("{PLUGINS}/{name}"), &build::plugin_output_folder(&name))?;
    }
    for name in build::script_names()? {
        let folder = repository_root().join(build::SCRIPTS).join(&name);
        tree.add_folder(&format!("{PLUGINS}/{name}"), &folder)?;
    }
    let manual = tempfile::tempdir()?;
    run_command(Command::new(program).arg("man").arg(manual.path()).stderr(Stdio::null()))?;
    tree.add_folder("share/man/man1", manual.path())?;
    for (shell, path) in COMPLETIONS {
        let script = run_for_output(Command::new(program).args(["completions", shell]))?;
        tree.add_file(path, script.into_bytes());
    }
    let root = repository_root();
    for document in DOCUMENTS {
        tree.add_file(&format!("share/doc/sallyport/{document}"), fs::read(root.join(document))?);
    }
    tree.add_folder("share/doc/sallyport/docs", &root.join("docs"))?;
    Ok(tree)
}

/// The time of all files, in seconds since 1970: `SOURCE_DATE_EPOCH`, or that of the last commit.
fn release_time() -> u64 {
    let given = std::env::var("SOURCE_DATE_EPOCH").ok();
    let of_commit = || {
        let mut git = Command::new("git");
        git.args(["log", "-1", "--format=%ct"]).current_dir(repository_root());
        run_for_output(&mut git).ok()
    };
    given.or_else(of_commit).and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn print_sizes(folder: &Path, program: &Path, files: &[(String, Vec<u8>)]) -> Result<()> {
    let program_bytes = fs::metadata(program)?.len();
    println!("{:>8.1} MB  the program alone", megabytes(program_bytes));
    for (name, bytes) in files {
        ensure!(!bytes.is_empty(), "{name} is empty");
        println!("{:>8.1} MB  {}", megabytes(bytes.len() as u64), folder.join(name).display());
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "one decimal is printed")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

#[cfg(test)]
mod tests;
