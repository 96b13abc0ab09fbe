//! Compiles a component to native code in a sandboxed process of its own.
//!
//! A component is untrusted input, and a compiler is a large program that can be made to work for
//! hours, to fill the memory, and perhaps to do what its input commands. So the bytes go to a
//! *worker*: this same program, started again with a hidden first argument. The worker drops every
//! privilege that it does not need before it reads the first byte (`isolation`), compiles, and replies
//! on its standard output (`reply`). The process that wants the code watches the worker and finally
//! kills it (`process`).
//!
//! If the worker fails, the host does not fall back to compiling in its own process.
//! [`Compiler::InProcess`] is only for callers that trust the bytes.
//!
//! **What this contains.** Compiling a component cannot hang or crash the host or fill its memory,
//! and a compiler that is taken over can reach nothing but its own reply.
//!
//! **What this does not contain.** The reply is native code, which the host runs. wasmtime checks
//! its version and settings; nothing can check what the code does. So a compiler bug that lets the
//! input choose the emitted code is not contained, whether the compiler is taken over or merely
//! wrong. The remedy is to update the engine. A worker does not hide how long it takes either.

mod isolation;
mod process;
mod reply;
mod worker;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wasmtime::Engine;

pub use isolation::{CompilerIsolation, IsolationLayerStatus};
pub use worker::run_as_worker;

pub use crate::compile_limits::{CompileLimits, ExceededCompileLimit};

use crate::{engine_config::engine_config, error::LoadError};

/// The link to its own program that Linux gives every process.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Where components are compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compiler {
    /// In a process of its own.
    Worker {
        /// The program to start. Its `main` has to begin with [`run_as_worker`].
        program: PathBuf,
        /// The limits of one compilation.
        limits: CompileLimits,
    },
    /// In this process without any limit, for components that are trusted like the host itself.
    InProcess,
}

/// The reason why a compilation produced no code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CompileFailure {
    /// The compiler refused the component.
    Refused(String),
    /// The compilation reached a limit.
    Limit(ExceededCompileLimit),
    /// The worker could not be started, or did not behave like a worker.
    Worker(String),
}

impl Compiler {
    /// A compiler that starts the running program as its worker.
    pub fn from_current_program(limits: CompileLimits) -> Self {
        // The link refers to the program that is running, even after a new version has replaced the
        // file.
        let link = Path::new(OWN_PROGRAM);
        let program = if link.exists() { None } else { std::env::current_exe().ok() };
        Self::Worker { program: program.unwrap_or_else(|| link.to_owned()), limits }
    }

    /// A compiler that starts `program` as its worker, with the default limits.
    pub fn with_program(program: PathBuf) -> Self {
        Self::Worker { program, limits: CompileLimits::STANDARD }
    }

    /// Compiles a component.
    ///
    /// # Errors
    ///
    /// The component does not compile or exceeds a limit, or the worker fails.
    pub(crate) fn compile(&self, bytes: &[u8]) -> Result<Vec<u8>, CompileFailure> {
        match self {
            Self::Worker { program, limits } => process::compile_in_worker(program, limits, bytes),
            Self::InProcess => compile_in_process(bytes).map_err(CompileFailure::Refused),
        }
    }

    /// The limits of one compilation.
    pub(crate) fn limits(&self) -> CompileLimits {
        match self {
            Self::Worker { limits, .. } => *limits,
            Self::InProcess => CompileLimits::STANDARD,
        }
    }

    /// Returns the walls that a worker has on this system. A compiler without a worker has none.
    ///
    /// # Errors
    ///
    /// The worker cannot be started.
    pub(crate) fn isolation(&self) -> Result<CompilerIsolation, LoadError> {
        match self {
            Self::Worker { program, limits } => process::query_worker_isolation(program, limits)
                .map_err(|failure| failure.into_load_error(program)),
            Self::InProcess => Ok(CompilerIsolation::NONE),
        }
    }
}

impl CompileFailure {
    /// Whether compiling the same bytes with the same limits would fail again. The wall-clock limit
    /// is not final, because the machine may have been busy. A broken worker shows nothing about
    /// its input.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Self::Refused(_) => true,
            Self::Limit(limit) => !matches!(limit, ExceededCompileLimit::Time(_)),
            Self::Worker(_) => false,
        }
    }

    /// The error for the component at `path`.
    pub(crate) fn into_load_error(self, path: &Path) -> LoadError {
        let path = path.to_owned();
        match self {
            Self::Refused(message) => LoadError::Invalid { path, message },
            Self::Limit(limit) => LoadError::CompileLimit { path, limit },
            Self::Worker(message) => LoadError::Compiler { message },
        }
    }
}

/// The compiler's error with all its causes, outermost first.
fn format_error_chain(error: &wasmtime::Error) -> String {
    format!("{error:#}")
}

fn compile_in_process(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let code = Engine::new(&engine_config()).and_then(|engine| engine.precompile_component(bytes));
    code.map_err(|error| format_error_chain(&error))
}
