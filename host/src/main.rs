//! The `sallyport` program, a thin wrapper around the library.
//!
//! The program also starts itself to compile a plugin and to supervise a script. Such a process
//! does nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    sallyport_process::run_if_stage()
        .or_else(sallyport_sandbox::compile::run_as_worker)
        .or_else(sallyport_sandbox::compile::run_as_queue)
        .unwrap_or_else(sallyport::cli::main)
}
