//! The `sallyport` program; everything is in the library beside it.
//!
//! The program starts itself again to compile a plugin. As such a worker it does nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    sallyport_sandbox::compile::as_worker().unwrap_or_else(sallyport::cli::main)
}
