//! The processes between the host and a program: this same executable, with a hidden argument.

mod pipes;
pub(crate) mod private_folder;
pub(crate) mod process_table;
mod service_watcher;
mod starter;
mod watcher;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use crate::wire::{ARGUMENT, SERVICE_WATCHER, STARTER, WATCHER};

/// Runs a stage if this process was started as one. The caller must exit with the returned code.
///
/// `main` must call this first: earlier effects are not undone.
pub fn run_if_stage() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != ARGUMENT {
        return None;
    }
    let worked = match arguments.next() {
        Some(stage) if stage == WATCHER => watcher::run_watcher(),
        Some(stage) if stage == SERVICE_WATCHER => service_watcher::run_service_watcher(),
        Some(stage) if stage == STARTER => starter::run_starter(),
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
