//! Reasons why a plugin could not be loaded. The texts are for the operator.

use std::{io, path::PathBuf};

use crate::compile_limits::ExceededCompileLimit;

/// The reason why a plugin could not be loaded.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the fields are named by the messages")]
pub enum LoadError {
    /// The file could not be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// The file is not a component. The message names what it is instead.
    #[error("{path} is {what}", path = path.display())]
    NotAComponent { path: PathBuf, what: String },
    /// The file is not the one whose digest is known.
    #[error("{path} changed while it was read", path = path.display())]
    Changed { path: PathBuf },
    /// The compiler refused the component.
    #[error("{path} does not compile: {message}", path = path.display())]
    Invalid { path: PathBuf, message: String },
    /// The component is built for a newer WASI.
    #[error("{path} is built for WASI 0.3, which this version cannot run", path = path.display())]
    NewerWasi { path: PathBuf },
    /// Compiling the component reached a limit.
    #[error("compiling {path} needs more than {limit}", path = path.display())]
    CompileLimit { path: PathBuf, limit: ExceededCompileLimit },
    /// The compiler cannot be started, or does not work as expected.
    #[error("cannot compile plugins: {message}")]
    Compiler { message: String },
    /// The component does not export the expected interface in a version that this host knows.
    #[error("{path} exports no {export}: it has {found}, and {wanted} is needed", path = path.display())]
    MissingExport { path: PathBuf, export: &'static str, found: String, wanted: &'static str },
    /// The component imports interfaces that the host does not have.
    #[error("{path} imports what this host does not offer: {names}", path = path.display())]
    UnknownImports { path: PathBuf, names: String },
    /// The component imports a power interface that its manifest does not request.
    #[error("{path} imports {interface}, but plugin.toml does not request {capability}", path = path.display())]
    UnrequestedCapability { path: PathBuf, interface: String, capability: &'static str },
    /// The component has one of our interfaces with other types.
    #[error("{path} does not keep to the plugin contract: {message}", path = path.display())]
    InterfaceMismatch { path: PathBuf, message: String },
    /// None of the functions that the component exports can be called.
    #[error("{path} has no function that can be called: {refused}", path = path.display())]
    NothingCallable { path: PathBuf, refused: String },
    /// The component describes a tool that is not valid.
    #[error("{path} lists a tool that is not valid: {message}", path = path.display())]
    InvalidTools { path: PathBuf, message: String },
    /// `list-tools` trapped or took too long.
    #[error("{path} could not list its tools: {message}", path = path.display())]
    ToolListFailed { path: PathBuf, message: String },
    /// The engine could not be set up.
    #[error("cannot set up the WebAssembly engine: {message}")]
    Engine { message: String },
}

/// The list of exports in an error if the component has none.
pub(crate) const NO_EXPORTS: &str = "no exports at all";

impl LoadError {
    /// A suggestion for the operator.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "check the path and its permissions",
            Self::NotAComponent { .. } => {
                "build a component: in Rust with `cargo build --target wasm32-wasip2`, in Go with \
                 `tinygo build -target=wasip2`, from a core module of another language with \
                 `wasm-tools component new`"
            }
            Self::Changed { .. } => "try again once the file is written completely",
            Self::Invalid { .. } => {
                "build the component again, for WASI 0.2 (wasip2); the file may be damaged"
            }
            Self::NewerWasi { .. } => "build it for WASI 0.2 (wasip2)",
            Self::CompileLimit { .. } => {
                "make the component smaller: build it in release mode and remove unused dependencies"
            }
            Self::Compiler { .. } => {
                "plugins are compiled by this same program, in a process of its own: it has to be \
                 allowed to start itself"
            }
            Self::MissingExport { found, .. } if found == NO_EXPORTS => {
                "in Rust, end src/lib.rs with `sallyport_sdk::export_plugin!(tools = [my_tool]);`; \
                 elsewhere, export a function, or build against the world `plugin` of wit/"
            }
            Self::MissingExport { .. } => {
                "export the interface, or remove the role from `roles` in plugin.toml"
            }
            Self::UnknownImports { .. } => {
                "build it without them; wit/ and WASI 0.2 list what is available"
            }
            Self::UnrequestedCapability { .. } => {
                "add the matching [[request.*]] entry to plugin.toml"
            }
            Self::InterfaceMismatch { .. } => "rebuild it against the wit/ folder of this version",
            Self::NothingCallable { .. } => {
                "export a function whose types are plain values; docs/writing-plugins.md has the \
                 table"
            }
            Self::InvalidTools { .. } => {
                "a tool has a name of its own, and parameters that are a JSON Schema of an object: \
                 put the arguments into a struct with named fields"
            }
            Self::ToolListFailed { .. } => {
                "correct the plugin and build it again; it lists its tools before any call, so that \
                 must be fast, always the same, and need no grants"
            }
            Self::Engine { .. } => "please report this: it is a bug of the host",
        }
    }
}
