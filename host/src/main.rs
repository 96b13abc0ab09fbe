//! The `sallyport` program, a thin wrapper around the library.
//!
//! The program also starts itself to compile a plugin, to supervise a script, and as a wrapper of
//! the Rust compiler. Such a process does nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    sallyport_process::run_if_stage()
        .or_else(sallyport_sandbox::run_as_worker)
        .or_else(sallyport_sandbox::run_as_queue)
        .or_else(sallyport_plugin_build::run_if_compiler)
        .unwrap_or_else(sallyport::cli::main)
}
