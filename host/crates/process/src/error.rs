//! What is wrong with a script, and why a program did not run. What a program itself did wrong is no
//! error here but how it ended.

use std::path::PathBuf;

use sallyport_contract::json::JsonError;
use serde::{Deserialize, Serialize};

use crate::spec::Wall;

/// Why a folder is not a script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// A file cannot be read.
    #[error("cannot read {}: {message}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        message: String,
    },
    /// Something that has to be a file is none.
    #[error("{} is not a regular file", path.display())]
    NotAFile {
        /// Where it is.
        path: PathBuf,
    },
    /// A file is larger than is accepted.
    #[error("{} has more than {bytes_max} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The most that is accepted.
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
    /// The definition lacks something.
    #[error("{}: {key:?} is missing", path.display())]
    Missing {
        /// The definition.
        path: PathBuf,
        /// What is missing.
        key: &'static str,
    },
    /// The definition says something that it cannot.
    #[error("{}: {key:?} has to be {wanted}", path.display())]
    Invalid {
        /// The definition.
        path: PathBuf,
        /// The key.
        key: &'static str,
        /// What its value has to be.
        wanted: &'static str,
    },
    /// There is nothing to run.
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
    /// What can be done about it.
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

/// Why a program did not run, or why nothing is known of how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum RunError {
    /// The kernel lacks walls.
    #[error("this system cannot sandbox a native program: it lacks {}", list(missing))]
    NoWall {
        /// Those that it lacks.
        missing: Vec<Wall>,
    },
    /// The program is not the one that was read before.
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
        /// What the system says.
        message: String,
    },
    /// The program cannot be started.
    #[error("cannot start {program}: {message}")]
    Start {
        /// The program.
        program: String,
        /// What the system says.
        message: String,
    },
    /// There is more input than is allowed.
    #[error("{bytes} bytes of input, at most {bytes_max} are allowed")]
    Input {
        /// How much there is.
        bytes: u64,
        /// The most that is allowed.
        bytes_max: u64,
    },
    /// What stands between the host and the program failed.
    #[error("the walls around a native program cannot be kept: {message}")]
    Stage {
        /// What is known of it.
        message: String,
    },
}

impl RunError {
    /// What can be done about it.
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

fn list(missing: &[Wall]) -> String {
    missing.iter().map(Wall::to_string).collect::<Vec<_>>().join(", ")
}
