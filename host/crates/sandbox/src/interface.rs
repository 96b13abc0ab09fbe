//! The imports and exports of a component, read from its bytes without compiling it.
//!
//! Only names in the outermost sections are read. No module in the component is parsed and no type
//! is built, so the work is bounded by the size of the file for any component. Linking checks later
//! that the types match the names.

use sallyport_policy::Manifest;
use serde::{Deserialize, Serialize};
use wasmparser::{Parser, Payload};
use wasmtime::component::Component;

use crate::{
    ComponentFile, LoadError,
    abi::{self, PluginExport},
    import_check,
};

/// The names of a component's imports and exports, in the order of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ComponentInterface {
    pub(crate) imports: Vec<String>,
    pub(crate) exports: Vec<String>,
}

impl ComponentInterface {
    /// Reads the names from the bytes of a component.
    ///
    /// # Errors
    ///
    /// The outermost sections are not well formed.
    pub(crate) fn from_component_file(file: &ComponentFile) -> Result<Self, LoadError> {
        read_interface(&file.bytes()?)
            .map_err(|error| LoadError::Invalid { path: file.path().to_owned(), message: error })
    }

    /// Reads the names from a compiled component.
    pub(crate) fn from_compiled(component: &Component) -> Self {
        let (ty, engine) = (component.component_type(), component.engine());
        Self {
            imports: ty.imports(engine).map(|(name, _)| name.to_owned()).collect(),
            exports: ty.exports(engine).map(|(name, _)| name.to_owned()).collect(),
        }
    }

    /// Whether it may have functions of its own interface, and nothing else that the host calls. One
    /// that serves HTTP was written for a host, and has a manifest.
    pub(crate) fn has_only_own_functions(&self) -> bool {
        let serves_http = self.exports.iter().any(|name| abi::http::is_http_handler(name));
        abi::has_own_interface(&self.exports) && !serves_http
    }

    /// Refuses a component that can never be a plugin with this manifest: it exports nothing that
    /// the host calls, or imports a power interface that the manifest does not request.
    ///
    /// # Errors
    ///
    /// [`LoadError::NewerWasi`], [`LoadError::Lacking`] or [`LoadError::Unrequested`].
    pub(crate) fn check_manifest(
        &self,
        file: &ComponentFile,
        manifest: &Manifest,
    ) -> Result<(), LoadError> {
        self.check_wasi_version(file)?;
        if !abi::may_be_plugin(&self.exports) {
            let role =
                manifest.roles.first().copied().unwrap_or(sallyport_policy::PluginRole::Tools);
            let export = PluginExport::from_role(role);
            return Err(LoadError::missing_export(
                file,
                &self.exports,
                export.display_name(),
                export.newest_interface_name(),
            ));
        }
        import_check::check_imports(self, file, manifest)
    }

    /// Refuses a component that is not a program.
    ///
    /// # Errors
    ///
    /// [`LoadError::NewerWasi`] or [`LoadError::Lacking`].
    pub(crate) fn check_program(&self, file: &ComponentFile) -> Result<(), LoadError> {
        self.check_wasi_version(file)?;
        if self.exports.iter().any(|name| abi::command::is_program(name)) {
            return Ok(());
        }
        Err(LoadError::missing_export(file, &self.exports, "program", abi::command::RUN_INTERFACE))
    }

    /// Refuses a component that is built for WASI 0.3, because its calling convention is turned off
    /// in this engine.
    fn check_wasi_version(&self, file: &ComponentFile) -> Result<(), LoadError> {
        let is_newer = |name: &String| name.starts_with("wasi:") && name.contains("@0.3.");
        if self.imports.iter().chain(&self.exports).any(is_newer) {
            return Err(LoadError::NewerWasi { path: file.path().to_owned() });
        }
        Ok(())
    }
}

fn read_interface(bytes: &[u8]) -> Result<ComponentInterface, String> {
    let failed = |error: wasmparser::BinaryReaderError| error.to_string();
    let mut interface = ComponentInterface::default();
    visit_sections(bytes, |payload| {
        match payload {
            Payload::ComponentImportSection(section) => {
                for import in section {
                    interface.imports.push(import.map_err(failed)?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) => {
                for export in section {
                    interface.exports.push(export.map_err(failed)?.name.name.to_owned());
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(interface)
}

/// The content of the first custom section of this name, if the component has one.
pub(crate) fn find_custom_section<'b>(bytes: &'b [u8], name: &str) -> Option<&'b [u8]> {
    let mut found = None;
    let visited = visit_sections(bytes, |payload| {
        if let Payload::CustomSection(section) = payload
            && section.name() == name
        {
            found.get_or_insert(section.data());
        }
        Ok(())
    });
    visited.ok().and(found)
}

/// Visits the outermost sections, without those inside of modules and components.
fn visit_sections<'b>(
    bytes: &'b [u8],
    mut visit: impl FnMut(Payload<'b>) -> Result<(), String>,
) -> Result<(), String> {
    let failed = |error: wasmparser::BinaryReaderError| error.to_string();
    let cut = || "it ends in the middle of a section".to_owned();
    let mut parser = Parser::new(0);
    let mut rest = bytes;
    loop {
        let (consumed, payload) = match parser.parse(rest, true).map_err(failed)? {
            wasmparser::Chunk::Parsed { consumed, payload } => (consumed, payload),
            wasmparser::Chunk::NeedMoreData(_) => return Err(cut()),
        };
        rest = &rest[consumed..];
        match payload {
            // Skipped, so that nothing inside can make this slow or recurse.
            Payload::ModuleSection { unchecked_range, .. }
            | Payload::ComponentSection { unchecked_range, .. } => {
                let length = unchecked_range.end - unchecked_range.start;
                rest = rest.get(length..).ok_or_else(cut)?;
            }
            Payload::End(_) => return Ok(()),
            payload => visit(payload)?,
        }
    }
}
