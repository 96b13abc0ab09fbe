//! Errors: why a folder is not a script, and why a program did not run. A failure of the program
//! itself is not an error here, but part of the result.

use std::{
    io,
    path::{Path, PathBuf},
};

use sallyport_contract::json::JsonError;
use serde::{Deserialize, Serialize};

use crate::spec::ProcessWall;

/// Why a folder is not a script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// A file cannot be read.
    #[error("cannot read {}: {message}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's message.
        message: String,
    },
    /// The path is not a regular file.
    #[error("{} is not a regular file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// A file is too large.
    #[error("{} has more than {bytes_max} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The maximum size, in bytes.
        bytes_max: u64,
    },
    /// The definition is not JSON.
    #[error("{}: {error}", path.display())]
    NotJson {
        /// The definition.
        path: PathBuf,
        /// What is wrong with it.
        error: JsonError,
    },
    /// The definition lacks a key.
    #[error("{}: {key:?} is missing", path.display())]
    Missing {
        /// The definition.
        path: PathBuf,
        /// The missing key.
        key: &'static str,
    },
    /// The definition has an invalid value.
    #[error("{}: {key:?} has to be {wanted}", path.display())]
    Invalid {
        /// The definition.
        path: PathBuf,
        /// The key.
        key: &'static str,
        /// The values that are allowed.
        wanted: &'static str,
    },
    /// The folder contains no program.
    #[error("{} contains no program", folder.display())]
    NoProgram {
        /// The folder.
        folder: PathBuf,
    },
    /// The program is not executable.
    #[error("{} is not executable", path.display())]
    NotExecutable {
        /// The program.
        path: PathBuf,
    },
}

impl ScriptError {
    pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Self {
        Self::Unreadable { path: path.to_owned(), message: error.to_string() }
    }

    /// Returns how to fix it.
    pub fn hint(&self) -> String {
        match self {
            Self::Unreadable { .. } => "check the path and its permissions".into(),
            Self::NotAFile { .. } => "put a regular file in its place".into(),
            Self::TooLarge { .. } => "make it smaller".into(),
            Self::NotJson { .. } => "write one JSON object, each key once".into(),
            Self::Missing { .. } | Self::Invalid { .. } => {
                "a definition has \"name\", \"description\" and \"parameters\" (a JSON Schema), and \
                 may have \"enabled\" and \"timeout\" (seconds)"
                    .into()
            }
            Self::NoProgram { .. } => {
                "put an executable `run`, `run.sh`, `run.py`, `run.rb` or `main` there, or a \
                 `run.wasm`"
                    .into()
            }
            Self::NotExecutable { path } => format!("chmod +x {}", path.display()),
        }
    }
}

/// Why a program did not run, or why its result is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum RunError {
    /// The kernel lacks walls that are required.
    #[error("this system cannot sandbox a native program: it lacks {}", list(missing))]
    NoWall {
        /// The missing walls.
        missing: Vec<ProcessWall>,
    },
    /// The program has changed since it was read.
    #[error("{program} is not the program that was read before")]
    Changed {
        /// The program.
        program: String,
    },
    /// A granted path cannot be opened.
    #[error("cannot grant {path}: {message}")]
    Grant {
        /// The path.
        path: String,
        /// The system's message.
        message: String,
    },
    /// The program cannot be started.
    #[error("cannot start {program}: {message}")]
    Start {
        /// The program.
        program: String,
        /// The system's message.
        message: String,
    },
    /// The input is too large.
    #[error("{bytes} bytes of input, at most {bytes_max} are allowed")]
    Input {
        /// The size of the input, in bytes.
        bytes: u64,
        /// The maximum size, in bytes.
        bytes_max: u64,
    },
    /// The watcher or the starter failed.
    #[error("the walls around a native program cannot be kept: {message}")]
    Stage {
        /// Details, as far as they are known.
        message: String,
    },
}

impl RunError {
    /// Returns how to fix it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoWall { .. } => "use a newer kernel, or allow `unwalled` in the policy",
            Self::Changed { .. } => "start again, so that the new program is read and asked about",
            Self::Grant { .. } => "make the path, or take it out of the policy",
            Self::Start { .. } => {
                "check its first line: the interpreter has to be one of the system's, or in a \
                 folder that is granted for reading"
            }
            Self::Input { .. } => "call it with shorter arguments",
            Self::Stage { .. } => {
                "native programs are started by this same program: it has to be allowed to start \
                 itself, and to make folders among the temporary ones"
            }
        }
    }
}

fn list(missing: &[ProcessWall]) -> String {
    missing.iter().map(ProcessWall::to_string).collect::<Vec<_>>().join(", ")
}
