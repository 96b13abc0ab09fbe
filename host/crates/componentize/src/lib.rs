//! Builds a plugin project in C, C++ or Go into a component.
//!
//! [`build_project`] writes the SDK and the generated bindings into the project's folder `.build`,
//! runs the language's compiler there, and makes a component of the core module that comes out.
//! [`encode_component`] is the last step alone, and [`encode_world`] is that for any world.
//!
//! A component imports what the plugin uses and nothing else: the linkers drop the functions of the
//! SDK that nobody calls, and with them their imports. An import that the manifest does not request
//! is an error here already, because the host would not load the component.

mod bindings;
mod component;
mod error;
mod language_c;
mod language_go;
mod project;
mod request;
mod toolchain;
mod world;

use std::path::Path;

pub use component::{encode_component, encode_world};
pub use error::BuildError;
pub use language_go::GO_VARIABLES;
pub use request::PluginRequest;
pub use toolchain::BuildTools;
pub use world::{go_runtime, wasi_wit};

/// A language that this crate compiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompiledLanguage {
    /// C, with the SDK of `sdk/c`.
    C,
    /// C++, with the SDK of `sdk/c`.
    Cpp,
    /// Go, with the SDK of `sdk/go`.
    Go,
}

/// Builds the project in the folder `project` and writes its component to the file `out`.
///
/// The same sources give the same bytes, regardless of the folder.
///
/// # Errors
///
/// Returns a [`BuildError`] if the toolchain is missing, the compiler reports errors, the plugin has
/// no tools or uses something that its manifest does not request, or a file cannot be written.
pub fn build_project(
    language: CompiledLanguage,
    project: &Path,
    out: &Path,
    tools: &BuildTools,
) -> Result<(), BuildError> {
    let request = PluginRequest::read(&project.join("plugin.toml"))?;
    let core = match language {
        CompiledLanguage::C | CompiledLanguage::Cpp => {
            language_c::compile(language, project, tools)
        }
        CompiledLanguage::Go => language_go::compile(project, tools),
    }?;
    let component = encode_component(&core, &tools.wit, &request)?;
    project::replace_file(out, &component)
}
