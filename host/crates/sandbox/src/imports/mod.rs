//! Everything that a guest can import.
//!
//! The interfaces of `wit/` and files are implemented on the parts of a guest that they need
//! (`capability`, `files`). What needs the whole guest is implemented here.

mod http_error_codes;
mod missing_files;
mod monotonic_clock;

use wasmtime::component::{HasSelf, Linker};
use wasmtime_wasi::p2::bindings::{clocks, filesystem};

pub use self::missing_files::find_path_argument;
use crate::{capability, files::FileCallData, guest::Guest};

/// Links everything that a guest can import. Files and sockets are linked for all guests: the
/// standard libraries of most languages import them. Without a grant they give access to nothing.
pub(crate) fn build_linker(engine: &wasmtime::Engine) -> wasmtime::Result<Linker<Guest>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    link_files(&mut linker)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
    capability::link_capabilities(&mut linker, Guest::host_call)?;
    linker.allow_shadowing(true);
    // The guest's clock is that of its run, not the system's.
    clocks::monotonic_clock::add_to_linker::<_, HasSelf<Guest>>(&mut linker, |guest| guest)?;
    http_error_codes::add_to_linker(&mut linker)?;
    linker.allow_shadowing(false);
    Ok(linker)
}

/// Links our implementation instead of the one that is already linked.
fn link_files(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    filesystem::types::add_to_linker::<_, FileCallData>(linker, Guest::file_calls)?;
    filesystem::preopens::add_to_linker::<_, FileCallData>(linker, Guest::file_calls)?;
    missing_files::add_to_linker(linker)?;
    linker.allow_shadowing(false);
    Ok(())
}
