//! What the tests start: the stages before a program, a host that can be killed, and a program that
//! does what a tool should not.
//!
//! Which of them it is says the first argument, or the variable `ACT`, since a program behind the
//! walls gets no arguments. An act answers on standard output.

#[cfg(target_os = "linux")]
mod acts;
#[cfg(target_os = "linux")]
mod attempts;

use std::process::ExitCode;

fn main() -> ExitCode {
    sallyport_process::as_stage().unwrap_or_else(work)
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
