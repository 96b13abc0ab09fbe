//! The executable that the tests start: the stages, a host that can be killed, and a hostile
//! program.
//!
//! The first argument selects one of them, or the variable `ACT`, because a program behind the
//! walls gets no arguments. An act prints its result to standard output.

#[cfg(target_os = "linux")]
mod acts;
#[cfg(target_os = "linux")]
mod attempts;

use std::process::ExitCode;

fn main() -> ExitCode {
    sallyport_process::run_if_stage().unwrap_or_else(work)
}

#[cfg(target_os = "linux")]
fn work() -> ExitCode {
    match std::env::args().nth(1) {
        Some(host) if host == "host" => acts::host(),
        _ => acts::act(),
    }
}

#[cfg(not(target_os = "linux"))]
fn work() -> ExitCode {
    ExitCode::FAILURE
}
