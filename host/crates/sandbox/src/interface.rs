//! The imports and exports of a component, read from its bytes without compiling it.
//!
//! Only names in the outermost sections are read. No module in the component is parsed and no type
//! is built, so the work is bounded by the size of the file for any component. Linking checks later
//! that the types match the names.

use serde::{Deserialize, Serialize};
use wasmparser::{Parser, Payload};
use wasmtime::component::Component;

use crate::{ComponentFile, LoadError};

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
