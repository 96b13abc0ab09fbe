//! The `sallyport` program; everything is in the library beside it.
//!
//! The program starts itself again to compile a plugin, and to stand between itself and a script. As
//! such a process it does nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    sallyport_process::as_stage()
        .or_else(sallyport_sandbox::compile::as_worker)
        .or_else(sallyport_sandbox::compile::as_queue)
        .unwrap_or_else(sallyport::cli::main)
}
