//! The worker's own side: put the walls up, read a component, answer with its code.

use std::{
    ffi::OsString,
    io::{self, Read, Write},
    process::ExitCode,
    time::Duration,
};

use wasmtime::{Engine, OutOfMemory};

use super::{Limits, objection, reply, walls};
use crate::{component::COMPONENT_BYTES_MAX, runtime::config};

/// The hidden first argument. It is followed by the memory in bytes and the processor time in
/// seconds.
const ARGUMENT: &str = "__compile-worker";

/// The arguments of a worker with these limits. It keeps those of memory and processor time itself;
/// time and the size of the code are its parent's to keep.
pub(super) fn arguments(limits: &Limits) -> [OsString; 3] {
    let seconds = limits.cpu_time.as_secs();
    [ARGUMENT.into(), limits.memory_bytes.to_string().into(), seconds.to_string().into()]
}

/// Works as a compile worker if this process was started as one; the caller ends with the code.
///
/// This has to be the first thing that `main` does: nothing that happened before is taken back.
pub fn as_worker() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != ARGUMENT {
        return None;
    }
    Some(match limits(arguments).and_then(|limits| work(&limits)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    })
}

fn limits(mut arguments: impl Iterator<Item = OsString>) -> io::Result<Limits> {
    let mut number = || arguments.next()?.to_str()?.parse().ok();
    match (number(), number()) {
        (Some(memory_bytes), Some(seconds)) => {
            Ok(Limits { memory_bytes, cpu_time: Duration::from_secs(seconds), ..Limits::STANDARD })
        }
        _ => Err(io::Error::other("the limits are missing")),
    }
}

fn work(limits: &Limits) -> io::Result<()> {
    // Made first: it asks the system which processor this is.
    let engine = Engine::new(&config()).map_err(|error| io::Error::other(objection(&error)))?;
    let walls = walls::raise(limits)?;
    let mut output = io::stdout().lock();
    reply::greet(&mut output, walls)?;
    let mut bytes = Vec::new();
    io::stdin().lock().take(COMPONENT_BYTES_MAX).read_to_end(&mut bytes)?;
    if bytes.is_empty() {
        return Ok(());
    }
    reply::answer(&mut output, &compile(&engine, &bytes)?)
}

/// The compiler's answer. That the memory is used up says nothing of the component.
fn compile(engine: &Engine, bytes: &[u8]) -> io::Result<Result<Vec<u8>, String>> {
    match engine.precompile_component(bytes) {
        Err(error) if error.is::<OutOfMemory>() => Err(io::ErrorKind::OutOfMemory.into()),
        compiled => Ok(compiled.map_err(|error| objection(&error))),
    }
}
