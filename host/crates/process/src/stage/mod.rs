//! The processes between the host and a program: this very program, with a hidden argument.

mod pipes;
pub(crate) mod scratch;
mod starter;
pub(crate) mod table;
mod watcher;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use crate::wire::{ARGUMENT, STARTER, WATCHER};

/// Works as a stage if this process was started as one; the caller ends with the code.
///
/// This has to be the first thing that `main` does: nothing that happened before is taken back.
pub fn as_stage() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != ARGUMENT {
        return None;
    }
    let worked = match arguments.next() {
        Some(stage) if stage == WATCHER => watcher::work(),
        Some(stage) if stage == STARTER => starter::work(),
        _ => Err(io::Error::other("there is no such stage")),
    };
    Some(match worked {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    })
}
