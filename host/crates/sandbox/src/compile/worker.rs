//! The worker's own side: raises the walls, reads a component, and replies with its code.

use std::{
    io::{self, Read, Write},
    process::ExitCode,
};

use wasmtime::{Engine, OutOfMemory};

use super::{CompileLimits, format_error_chain, isolation, reply};
use crate::{component::COMPONENT_BYTES_MAX, engine_config::engine_config};

/// The hidden first argument. The limits follow. The worker enforces memory and processor time; its
/// parent enforces the wall-clock time and the size of the code.
pub(super) const ARGUMENT: &str = "__compile-worker";

/// Runs as a compile worker if this process was started as one. The caller exits with the returned
/// code.
///
/// This has to be the first thing that `main` does, because the worker cannot undo what happened
/// before.
pub fn run_as_worker() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != ARGUMENT {
        return None;
    }
    Some(
        match CompileLimits::from_arguments(&mut arguments).and_then(|limits| run_worker(&limits)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                let _ = writeln!(io::stderr(), "{error}");
                ExitCode::FAILURE
            }
        },
    )
}

fn run_worker(limits: &CompileLimits) -> io::Result<()> {
    // Created before the walls: it asks the system for the processor type.
    let engine = Engine::new(&engine_config())
        .map_err(|error| io::Error::other(format_error_chain(&error)))?;
    let applied = isolation::apply_isolation(limits)?;
    let mut output = io::stdout().lock();
    reply::write_greeting(&mut output, applied)?;
    let mut bytes = Vec::new();
    io::stdin().lock().take(COMPONENT_BYTES_MAX).read_to_end(&mut bytes)?;
    if bytes.is_empty() {
        return Ok(());
    }
    reply::write_reply(&mut output, &compile_component(&engine, &bytes)?)
}

/// Compiles. A lack of memory is an error of the worker: it shows nothing about the component.
fn compile_component(engine: &Engine, bytes: &[u8]) -> io::Result<Result<Vec<u8>, String>> {
    match engine.precompile_component(bytes) {
        Err(error) if error.is::<OutOfMemory>() => Err(io::ErrorKind::OutOfMemory.into()),
        compiled => Ok(compiled.map_err(|error| format_error_chain(&error))),
    }
}
