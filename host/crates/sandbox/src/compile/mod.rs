//! Turning a component into native code: in a process of its own, behind walls.
//!
//! A component is input from outside, and a compiler is a large program that can be made to work for
//! hours, to fill the memory, and perhaps to do what its input says. So the bytes go to a *worker*:
//! this same program, started again with a hidden first argument. It gives up all that it does not
//! need before it reads a byte of them (`walls`), compiles, answers on its standard output
//! (`reply`), and is watched and in the end killed by the process that wants the code (`process`).
//!
//! There is no way back to compiling here when the worker fails. Only whoever trusts the bytes says
//! [`Compiler::InProcess`].
//!
//! **What this contains.** A component can neither hang, fill nor crash the host by being compiled,
//! and a compiler that it takes over can reach nothing but its own answer.
//!
//! **What this does not contain.** The answer is native code, which the host runs. wasmtime checks its
//! version and settings; nothing can check what it does. So a flaw of the compiler that lets its input
//! choose the emitted code is not contained, whether the compiler is taken over or merely errs.
//! Updates of the engine are the answer to that. A worker does not hide how long it takes either.

mod limits;
mod process;
pub(crate) mod queue;
mod reply;
mod walls;
mod worker;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wasmtime::Engine;

pub use limits::{Limit, Limits};
pub use queue::as_queue;
pub use walls::{Wall, Walls};
pub use worker::as_worker;

use crate::{error::LoadError, runtime::config};

/// Where Linux shows every process its own program.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Where components are compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compiler {
    /// In a process of its own.
    Worker {
        /// The program to start; its `main` has to begin with [`as_worker`].
        program: PathBuf,
        /// What one compilation may cost.
        limits: Limits,
    },
    /// In this process, without any limit: for components that are trusted as the host is.
    InProcess,
}

/// Why there is no code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CompileFailure {
    /// The component is none that can be compiled.
    Refused(String),
    /// It cost too much.
    Limit(Limit),
    /// The worker is not what it should be, or not there.
    Worker(String),
}

impl Compiler {
    /// Makes workers of the program that is running.
    pub fn this_program(limits: Limits) -> Self {
        // The link leads to the very program that runs, even after another version took its place.
        let link = Path::new(OWN_PROGRAM);
        let program = if link.exists() { None } else { std::env::current_exe().ok() };
        Self::Worker { program: program.unwrap_or_else(|| link.to_owned()), limits }
    }

    /// Makes workers of a program, with the limits that are usual.
    pub fn worker(program: PathBuf) -> Self {
        Self::Worker { program, limits: Limits::STANDARD }
    }

    /// Compiles a component.
    ///
    /// # Errors
    ///
    /// The component does not compile, or not within the limits; or there is no compiler.
    pub(crate) fn compile(&self, bytes: &[u8]) -> Result<Vec<u8>, CompileFailure> {
        match self {
            Self::Worker { program, limits } => process::compile(program, limits, bytes),
            Self::InProcess => in_this_process(bytes).map_err(CompileFailure::Refused),
        }
    }

    /// What one compilation may cost.
    pub(crate) fn limits(&self) -> Limits {
        match self {
            Self::Worker { limits, .. } => *limits,
            Self::InProcess => Limits::STANDARD,
        }
    }

    /// Returns the walls that a worker has on this system; without a worker there are none.
    ///
    /// # Errors
    ///
    /// The worker cannot be started.
    pub(crate) fn walls(&self) -> Result<Walls, LoadError> {
        match self {
            Self::Worker { program, limits } => {
                process::walls(program, limits).map_err(|failure| failure.of(program))
            }
            Self::InProcess => Ok(Walls::NONE),
        }
    }
}

impl CompileFailure {
    /// Whether compiling the same bytes again, with the same limits, would end alike. What the wall
    /// clock stopped may have met a busy machine, and a broken worker says nothing of its input.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Self::Refused(_) => true,
            Self::Limit(limit) => !matches!(limit, Limit::Time(_)),
            Self::Worker(_) => false,
        }
    }

    /// The error for the component that was read from `path`.
    pub(crate) fn of(self, path: &Path) -> LoadError {
        let path = path.to_owned();
        match self {
            Self::Refused(message) => LoadError::Invalid { path, message },
            Self::Limit(limit) => LoadError::CompileLimit { path, limit },
            Self::Worker(message) => LoadError::Compiler { message },
        }
    }
}

/// The compiler's objections, from the outermost to the cause.
fn objection(error: &wasmtime::Error) -> String {
    format!("{error:#}")
}

fn in_this_process(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let code = Engine::new(&config()).and_then(|engine| engine.precompile_component(bytes));
    code.map_err(|error| objection(&error))
}
