//! Makes a component of a core module.

use std::path::Path;

use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wasmparser::{Parser, Payload};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::{Resolve, WorldId};

use crate::{BuildError, PluginRequest, world::resolve_world};

/// The export without which a module has no tools.
const TOOLS_EXPORT: &str = "sallyport:plugin/tools@0.1.0#call-tool";

/// Makes a component of a core module that exports tools.
///
/// The component imports the interfaces that the module imports, in WASI 0.2 instead of preview 1.
/// `wit` is the folder of the package `sallyport:plugin`.
///
/// # Errors
///
/// Returns a [`BuildError`] if the module exports no tools, imports something that `request` does
/// not contain, or is not a valid module.
pub fn encode_component(
    core: &[u8],
    wit: &Path,
    request: &PluginRequest,
) -> Result<Vec<u8>, BuildError> {
    let surface = ModuleSurface::read(core).map_err(|error| invalid(&error.into()))?;
    if !surface.has_tools {
        return Err(BuildError::NothingCallable { hint: "to declare a tool" });
    }
    surface.check_imports(request)?;
    encode(core.to_vec(), wit).map_err(|error| invalid(&error))
}

fn invalid(error: &anyhow::Error) -> BuildError {
    BuildError::Component(format!("{error:#}"))
}

fn encode(core: Vec<u8>, wit: &Path) -> anyhow::Result<Vec<u8>> {
    let (resolve, world) = resolve_world(wit)?;
    encode_world(core, &resolve, world)
}

/// Makes a component of a core module that implements a world.
///
/// # Errors
///
/// The module does not implement the world, or is not a valid module.
pub fn encode_world(
    mut core: Vec<u8>,
    resolve: &Resolve,
    world: WorldId,
) -> anyhow::Result<Vec<u8>> {
    embed_component_metadata(&mut core, resolve, world, StringEncoding::UTF8)?;
    let adapter = WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER;
    let mut encoder = ComponentEncoder::default();
    encoder.validate(true).module(&core)?;
    encoder.adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, adapter)?.encode()
}

/// The names that a core module shares with its host.
struct ModuleSurface {
    imports: Vec<String>,
    has_tools: bool,
}

impl ModuleSurface {
    fn read(core: &[u8]) -> wasmparser::Result<Self> {
        let mut surface = Self { imports: Vec::new(), has_tools: false };
        for payload in Parser::new(0).parse_all(core) {
            match payload? {
                Payload::ImportSection(imports) => {
                    for import in imports.into_imports() {
                        surface.imports.push(import?.module.to_owned());
                    }
                }
                Payload::ExportSection(exports) => {
                    for export in exports {
                        surface.has_tools |= export?.name == TOOLS_EXPORT;
                    }
                }
                _ => {}
            }
        }
        Ok(surface)
    }

    fn check_imports(&self, request: &PluginRequest) -> Result<(), BuildError> {
        for interface in &self.imports {
            if let Some(missing) = request.missing_for(interface) {
                return Err(BuildError::NotRequested {
                    interface: interface.clone(),
                    request: missing.key,
                    fix: missing.fix,
                });
            }
            if interface == "env" {
                return Err(BuildError::UnknownImport { interface: interface.clone() });
            }
        }
        Ok(())
    }
}
