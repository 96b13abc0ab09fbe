//! How to build a project.

use std::path::PathBuf;

/// How to build.
#[derive(Debug, Clone)]
pub struct BuildOptions {
    /// The cache folder of the program.
    pub cache: PathBuf,
    /// This program, which wraps the Rust compiler.
    pub program: PathBuf,
    /// Cargo's own folder.
    pub cargo_home: PathBuf,
    /// Tools that the user has named.
    pub tools: ToolPaths,
    /// Whether to install missing tools.
    pub gets_tools: bool,
    /// The engine inside of a JavaScript component, if not the usual one.
    pub engine: Option<String>,
}

/// Tools that the user has named, from variables of these names in upper case after `SALLYPORT_`.
#[derive(Debug, Clone, Default)]
pub struct ToolPaths {
    /// A Python that has componentize-py.
    pub python: Option<PathBuf>,
    /// A folder `node_modules` with the packages that make components of JavaScript.
    pub node_modules: Option<PathBuf>,
    /// The Zig compiler.
    pub zig: Option<PathBuf>,
    /// Go.
    pub go: Option<PathBuf>,
}
