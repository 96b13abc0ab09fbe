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

mod limits;
mod process;
mod reply;
mod walls;
mod worker;

use std::path::{Path, PathBuf};

use wasmtime::Engine;

pub use limits::{Limit, Limits};
pub use walls::{Wall, Walls};
pub use worker::as_worker;

use crate::{component::ComponentFile, error::LoadError, runtime::config};

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
#[derive(Debug)]
enum Failure {
    /// The component is none that can be compiled.
    Refused(String),
    /// It cost too much.
    Limit(Limit),
    /// The worker is not what it should be, or not there.
    Worker(String),
}

impl Compiler {
    /// Makes workers of the program that is running.
    pub fn this_program() -> Self {
        // The link leads to the very program that runs, even after another version took its place.
        let link = Path::new(OWN_PROGRAM);
        let program = if link.exists() { None } else { std::env::current_exe().ok() };
        Self::worker(program.unwrap_or_else(|| link.to_owned()))
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
    pub(crate) fn compile(&self, file: &ComponentFile) -> Result<Vec<u8>, LoadError> {
        let compiled = match self {
            Self::Worker { program, limits } => process::compile(program, limits, file.bytes()),
            Self::InProcess => in_this_process(file.bytes()).map_err(Failure::Refused),
        };
        compiled.map_err(|failure| failure.of(file.path()))
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

impl Failure {
    fn of(self, path: &Path) -> LoadError {
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
