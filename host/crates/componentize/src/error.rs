//! The reasons why a project was not built.

use std::{io, path::PathBuf};

/// Why a project was not built. The message is for the author.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The compiler was not found.
    #[error(
        "{program} was not found, and a plugin in {language} needs it. To fix: pip install {package}, \
         and set {variable} to the program, or add it to PATH"
    )]
    ToolchainMissing {
        /// The language of the plugin.
        language: &'static str,
        /// The program that was looked for.
        program: &'static str,
        /// The package that contains it, with its version.
        package: &'static str,
        /// The environment variable that names it.
        variable: &'static str,
    },
    /// The compiler did not start, or ended without reporting an error.
    #[error("{program} does not work: {reason}")]
    ToolchainBroken {
        /// The program.
        program: PathBuf,
        /// What happened.
        reason: String,
    },
    /// The compiler reported errors.
    #[error("the plugin does not compile\n\n{output}")]
    Compile {
        /// What the compiler printed, with the author's files and lines.
        output: String,
    },
    /// The project has no tools.
    #[error("the plugin has no tools. Did you forget {hint}?")]
    NothingCallable {
        /// How a tool is declared in this language.
        hint: &'static str,
    },
    /// The plugin uses something that its manifest does not request.
    #[error(
        "the plugin uses {interface}, but plugin.toml does not request {request}. To fix, add to \
         plugin.toml:\n\n{fix}"
    )]
    NotRequested {
        /// The interface that it imports.
        interface: String,
        /// The missing request.
        request: &'static str,
        /// The lines to add.
        fix: &'static str,
    },
    /// The plugin imports an interface that no host has.
    #[error("the plugin imports {interface}, which Sallyport does not have")]
    UnknownImport {
        /// The name of the import.
        interface: String,
    },
    /// The manifest cannot be read.
    #[error("{path}: {reason}", path = path.display())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file or folder cannot be read or written.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The core module is not accepted as a component.
    #[error("the compiled module cannot become a component: {0}")]
    Component(String),
}

impl BuildError {
    /// Makes the error of a file from its path.
    pub(crate) fn at(path: &std::path::Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| Self::File { path: path.to_owned(), source }
    }
}
