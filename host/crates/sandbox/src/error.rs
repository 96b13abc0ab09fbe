//! Why a plugin could not be loaded. These texts are for the operator.

use std::{io, path::PathBuf};

use crate::compile::Limit;

/// Why a plugin could not be loaded.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the fields are named by the messages")]
pub enum LoadError {
    /// The file could not be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// The file is something else.
    #[error("{path} is not a component but {what}", path = path.display())]
    NotAComponent { path: PathBuf, what: String },
    /// The compiler refused the component.
    #[error("{path} does not compile: {message}", path = path.display())]
    Invalid { path: PathBuf, message: String },
    /// Compiling the component would cost too much.
    #[error("{path} does not compile within {limit}", path = path.display())]
    CompileLimit { path: PathBuf, limit: Limit },
    /// There is no compiler: it cannot be started, or does not do what it should.
    #[error("the compiler for plugins does not work: {message}")]
    Compiler { message: String },
    /// The component does not export what it is to be, or not in a version that this host knows.
    #[error("{path} exports no {export}: it has {found}, wanted is {wanted}", path = path.display())]
    Lacking { path: PathBuf, export: &'static str, found: String, wanted: &'static str },
    /// The component wants interfaces that the host does not have.
    #[error("{path} imports what this host does not offer: {names}", path = path.display())]
    UnknownImports { path: PathBuf, names: String },
    /// The component imports a power interface that its manifest does not request.
    #[error("{path} imports {interface}, but its manifest does not request {capability}", path = path.display())]
    Unrequested { path: PathBuf, interface: String, capability: &'static str },
    /// Our interface is there, with other types.
    #[error("{path} does not keep to the plugin contract: {message}", path = path.display())]
    Mismatch { path: PathBuf, message: String },
    /// `list-tools` trapped, took too long or answered something impossible.
    #[error("{path} could not list its tools: {message}", path = path.display())]
    BadTools { path: PathBuf, message: String },
    /// The engine itself could not be set up.
    #[error("cannot set up the WebAssembly engine: {message}")]
    Engine { message: String },
}

impl LoadError {
    /// What can be done about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "check the path and its permissions",
            Self::NotAComponent { .. } => {
                "build the plugin with `cargo build --target wasm32-wasip2`"
            }
            Self::Invalid { .. } => "build the component again; the file may be damaged",
            Self::CompileLimit { .. } => {
                "build it smaller: with optimisation, without what it does not use"
            }
            Self::Compiler { .. } => {
                "plugins are compiled by this same program, in a process of its own: it has to be \
                 allowed to start itself"
            }
            Self::Lacking { .. } => {
                "export what is wanted, as the SDKs do, or name in plugin.toml only the roles it plays"
            }
            Self::UnknownImports { .. } => {
                "build it without them; wit/ and WASI 0.2 are what is offered"
            }
            Self::Unrequested { .. } => "add the matching [[request.*]] entry to plugin.toml",
            Self::Mismatch { .. } => "build it against the wit/ folder of this version",
            Self::BadTools { .. } => {
                "list-tools must answer quickly, always alike, and without grants"
            }
            Self::Engine { .. } => "please report this: it is a bug of the host",
        }
    }
}
