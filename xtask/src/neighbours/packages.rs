//! The packages of npm and PyPI, below `target/neighbours`.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::{
    npm,
    process::{repository_root, run_command},
};

/// The packages of npm. The suite needs Node 22, which comes as a package.
const NPM_PACKAGES: [&str; 6] = [
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "@modelcontextprotocol/sdk@1.32.2",
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "node@22",
    "zod@^4",
];

/// The packages of PyPI.
const PYPI_PACKAGES: [&str; 3] =
    ["mcp==2.3.0", "mcp-server-time==2026.10.19", "schemathesis==4.32.5"];

/// The scripts of this task, copied next to the packages that they import.
const SCRIPTS: [(&str, &str); 5] = [
    ("client.mjs", include_str!("client.mjs")),
    ("client.py", include_str!("client.py")),
    ("conformance_client.mjs", include_str!("conformance_client.mjs")),
    ("echo.mjs", include_str!("echo.mjs")),
    ("echo.py", include_str!("echo.py")),
];

/// Where everything is installed.
pub(super) struct Packages {
    folder: PathBuf,
}

impl Packages {
    /// Installs what is missing.
    pub(super) fn install() -> Result<Self> {
        let folder = repository_root().join("target/neighbours");
        eprintln!("installing the packages of npm …");
        npm::install_packages(&folder, &SCRIPTS, &NPM_PACKAGES)?;
        let packages = Self { folder };
        packages.install_python()?;
        Ok(packages)
    }

    fn install_python(&self) -> Result<()> {
        eprintln!("installing the packages of PyPI …");
        if !self.python().is_file() {
            let venv = self.folder.join("python");
            run_command(Command::new("python3").args(["-m", "venv"]).arg(venv))
                .context("Python is needed")?;
        }
        run_command(
            Command::new(self.python())
                .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
                .args(PYPI_PACKAGES),
        )
    }

    /// The folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Node 22.
    pub(super) fn node(&self) -> PathBuf {
        self.folder.join("node_modules/node/bin/node")
    }

    /// The Python that has the packages.
    pub(super) fn python(&self) -> PathBuf {
        self.folder.join("python/bin/python")
    }

    /// A file of a package of npm.
    pub(super) fn module(&self, path: &str) -> PathBuf {
        self.folder.join("node_modules").join(path)
    }
}
