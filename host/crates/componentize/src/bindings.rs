//! The generated code between an SDK and the host.

use std::path::Path;

use anyhow::Result;
use wit_bindgen_core::{Files, WorldGenerator};

use crate::world::resolve_world;

/// The Go package path below which the bindings are, inside the module of the SDK.
const GO_PACKAGE: &str = "sallyport/internal/wit";

/// `bindings.c` and `bindings.h`.
pub(crate) fn c_bindings(wit: &Path) -> Result<Files> {
    let options = wit_bindgen_c::Opts { no_object_file: true, ..Default::default() };
    generate(options.build(), wit)
}

/// The packages below `sallyport/internal/wit`. Their paths are relative to that folder.
pub(crate) fn go_bindings(wit: &Path) -> Result<Files> {
    let options = wit_bindgen_go::Opts {
        // The formatter may be missing, and nobody reads the result.
        format: wit_bindgen_go::Format::False,
        pkg_name: Some(GO_PACKAGE.to_owned()),
        ..Default::default()
    };
    generate(options.build(), wit)
}

fn generate(mut generator: Box<dyn WorldGenerator>, wit: &Path) -> Result<Files> {
    let (mut resolve, world) = resolve_world(wit)?;
    let mut files = Files::default();
    generator.generate(&mut resolve, world, &mut files)?;
    Ok(files)
}
