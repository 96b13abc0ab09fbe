//! The programs of the server: those that are installed, or those of Debian's packages, which are
//! unpacked and not installed.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::{process::run_command, programs};

/// The package that depends on the newest server and its client.
const PACKAGE: &str = "postgresql";

/// Where Debian puts the programs of each version, below the root.
const VERSIONS: &str = "usr/lib/postgresql";

/// Where Debian puts libraries, below the root.
const LIBRARIES: &str = "usr/lib";

/// The programs of one version.
pub(super) struct ServerPrograms {
    folder: PathBuf,
    /// The packages, unless they are installed.
    unpacked: Option<TempDir>,
}

impl ServerPrograms {
    /// Returns the installed programs, or downloads them. `None` where neither is possible.
    pub(super) fn find(downloads: bool) -> Option<Self> {
        if !downloads && let Some(folder) = newest_version(Path::new("/")) {
            return Some(Self { folder, unpacked: None });
        }
        if !programs::is_installed("apt-get") || !programs::is_installed("dpkg") {
            return None;
        }
        let unpacked = unpack_packages();
        unpacked.inspect_err(|error| println!("PostgreSQL cannot be downloaded: {error:#}")).ok()
    }

    /// The path of a program.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Starts a program with its libraries.
    pub(super) fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.path(name));
        if let Some(root) = &self.unpacked {
            let folder = format!("{}-linux-gnu", env::consts::ARCH);
            command.env("LD_LIBRARY_PATH", root.path().join(LIBRARIES).join(folder));
        }
        command
    }
}

/// The folder of the newest version's programs.
fn newest_version(root: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(root.join(VERSIONS)).ok()?.flatten();
    let mut folders: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    folders.retain(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file());
    folders.sort();
    folders.pop()
}

/// Downloads the packages, and unpacks them into a folder that the server's user may read.
fn unpack_packages() -> Result<ServerPrograms> {
    let (downloads, root) = (TempDir::new()?, TempDir::new()?);
    fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755))?;
    download_packages(downloads.path())?;
    for entry in fs::read_dir(&downloads)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            run_command(Command::new("dpkg").arg("-x").arg(&path).arg(root.path()))?;
        }
    }
    let folder = newest_version(root.path()).context("the packages have no server")?;
    Ok(ServerPrograms { folder, unpacked: Some(root) })
}

/// Downloads the server, its client and their library, and of what they depend on what the system
/// does not have.
fn download_packages(folder: &Path) -> Result<()> {
    let server = server_package()?;
    let client = server.replace(&format!("{PACKAGE}-"), &format!("{PACKAGE}-client-"));
    println!("downloading {server} and {client}");
    fs::create_dir(folder.join("partial"))?;
    let archives = format!("Dir::Cache::archives={}", folder.display());
    let mut missing = apt_get(folder);
    missing.args(["-y", "install", "--download-only", "--no-install-recommends"]);
    missing.args(["-o", &archives, "-o", "Debug::NoLocking=true", &server]);
    run_command(&mut missing)?;
    run_command(apt_get(folder).args(["download", &server, &client, "libpq5"]))
}

fn apt_get(folder: &Path) -> Command {
    let mut command = Command::new("apt-get");
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null());
    // Its own user for downloads may not write here.
    command.args(["-qq", "-o", "APT::Sandbox::User=root"]);
    command
}

/// The package of the newest server: what the general one depends on.
fn server_package() -> Result<String> {
    let shown = Command::new("apt-cache").args(["depends", PACKAGE]).output()?;
    ensure!(shown.status.success(), "apt-cache knows no {PACKAGE}");
    let text = String::from_utf8_lossy(&shown.stdout);
    let depends = text.lines().find_map(|line| line.trim().strip_prefix("Depends: postgresql-"));
    let version = depends.context("apt-cache names no version")?;
    Ok(format!("postgresql-{version}"))
}
