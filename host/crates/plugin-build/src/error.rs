//! Why a project was not created or built.

use std::{
    io,
    path::{Path, PathBuf},
};

use sallyport_policy::SourceError;
use thiserror::Error;

use crate::language::SourceLanguage;

/// A name that cannot be the name of a new project.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProjectNameError {
    /// It has other characters, or too many.
    #[error("{0:?} cannot be the name of a plugin")]
    Form(String),
    /// It means something else.
    #[error("{0:?} cannot be the name of a plugin: the name is taken")]
    Taken(String),
}

impl ProjectNameError {
    /// Which names are good.
    fn hint(&self) -> &'static str {
        match self {
            Self::Form(_) => {
                "use lower-case letters, digits and single hyphens, starting with a letter, such as \
                 word-count; at most 64 characters"
            }
            Self::Taken(_) => "choose a name that no language reserves, such as word-count",
        }
    }
}

/// Why a project was not created or built.
#[derive(Debug, Error)]
pub enum PluginBuildError {
    /// The name cannot be the name of a project.
    #[error(transparent)]
    Name(#[from] ProjectNameError),
    /// The new project's folder exists already.
    #[error("{} exists already", folder.display())]
    FolderExists {
        /// The folder.
        folder: PathBuf,
    },
    /// This program contains no template of the language.
    #[error("this program contains no {language} SDK")]
    NoSdk {
        /// The language.
        language: SourceLanguage,
    },
    /// The folder contains no sources of a known language, or lacks the manifest.
    #[error("{} is not a plugin project: {reason}", folder.display())]
    NotProject {
        /// The folder.
        folder: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// The manifest has a mistake.
    #[error(transparent)]
    Manifest(#[from] SourceError),
    /// A tool that the language needs is missing.
    #[error("building {language} plugins needs {tool}, which is not installed")]
    ToolMissing {
        /// The language.
        language: SourceLanguage,
        /// The tool.
        tool: &'static str,
        /// The command that installs it.
        fix: String,
    },
    /// The tool that a variable names does not work.
    #[error("{variable} names {}, which does not work as {tool}", path.display())]
    ToolBroken {
        /// The variable.
        variable: &'static str,
        /// What it names.
        path: PathBuf,
        /// The tool.
        tool: &'static str,
    },
    /// A program was started and failed. It has printed its own message.
    #[error("{program} failed{}", .code.map(|code| format!(" with code {code}")).unwrap_or_default())]
    ProgramFailed {
        /// The program, as the user knows it.
        program: String,
        /// Its exit code; `None` if a signal ended it.
        code: Option<i32>,
    },
    /// A program cannot be started.
    #[error("cannot start {program}: {error}")]
    NotStarted {
        /// The program.
        program: String,
        /// The reason.
        error: io::Error,
    },
    /// The build ended well and made no component.
    #[error("the build made no component: {reason}")]
    NoComponent {
        /// What is wrong.
        reason: String,
        /// What to do.
        fix: String,
    },
    /// A project in C, C++ or Go was not built.
    #[error(transparent)]
    Compiled(#[from] sallyport_componentize::BuildError),
    /// A file cannot be read or written.
    #[error("cannot {action} {}: {error}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
}

impl PluginBuildError {
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::File { action, path, error }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Name(error) => Some(error.hint().to_owned()),
            Self::FolderExists { .. } => {
                Some("choose another name, or another folder with --path".to_owned())
            }
            Self::NotProject { .. } => {
                Some("create a project with: sallyport plugin new NAME --lang rust".to_owned())
            }
            Self::Manifest(error) => error.hint.clone(),
            Self::ToolBroken { variable, .. } => Some(format!(
                "correct {variable}, or unset it and run: sallyport plugin build --get-tools"
            )),
            Self::ToolMissing { fix, .. } | Self::NoComponent { fix, .. } => Some(fix.clone()),
            Self::NoSdk { .. }
            | Self::Compiled(_)
            | Self::ProgramFailed { .. }
            | Self::NotStarted { .. }
            | Self::File { .. } => None,
        }
    }
}
