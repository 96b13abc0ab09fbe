//! Creates plugin projects and builds them into components.
//!
//! The crate contains the SDKs, their templates and the contract, so an installed program needs no
//! repository: [`SdkFolder`] unpacks them into the cache. [`create_project`] writes a template,
//! [`PluginProject`] is a folder with a plugin's sources, and [`build_project`] turns it into a
//! component that contains its manifest. The same sources become the same bytes in any folder.
//!
//! This is one of the few places that start other programs: compilers, and what installs them.

mod build;
mod cargo;
mod error;
mod language;
mod manifest_section;
mod options;
mod process;
mod project;
mod reproducible;
mod sdk;
mod template;
mod toolchain;

pub use build::{BuiltComponent, build_project};
pub use error::{PluginBuildError, ProjectNameError};
pub use language::SourceLanguage;
pub use options::{BuildOptions, ToolPaths};
pub use project::PluginProject;
pub use reproducible::run_if_compiler;
pub use sdk::SdkFolder;
pub use template::create_project;
