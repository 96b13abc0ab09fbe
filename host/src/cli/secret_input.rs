//! Reads a secret value without showing it or leaving it in a history.
//!
//! A value never comes from an argument, because every process on the machine can read those. A
//! pipe or a file is read unchanged. At a terminal one line is read without echo.

use std::io::{self, IsTerminal, Read};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use sallyport_contract::Secret;
use sallyport_runtime::secrets::{VALUE_BYTES_MAX, parse_secret_value};
use zeroize::Zeroizing;

use super::{
    exit::{CommandFailure, ExitStatus},
    interrupt,
    output::CliOutput,
};

/// Longest line that a terminal delivers, in bytes with its end. It silently drops the rest of a
/// longer one.
const TERMINAL_LINE_BYTES_MAX: usize = 4096;

/// Reads a value from standard input. Returns `None` if the user interrupted.
pub(super) async fn read_secret(
    prompt: &str,
    out: &CliOutput,
) -> Result<Option<Secret>, CommandFailure> {
    let bytes = tokio::select! {
        // Poll the signal first, so that the terminal is restored in any case.
        biased;
        () = interrupt::wait_for_interrupt() => {
            out.print_note("interrupted");
            return Ok(None);
        }
        bytes = prompt_for_secret(prompt, out) => bytes?,
    };
    if io::stdin().is_terminal() && bytes.len() >= TERMINAL_LINE_BYTES_MAX - 1 {
        let failure =
            CommandFailure::new(ExitStatus::Usage, "the value is too long for a terminal line");
        return Err(failure.with_hint("pipe it in, or redirect a file to standard input"));
    }
    let to_message = |problem| format!("the value on standard input cannot be used: {problem}");
    parse_secret_value(&bytes)
        .map(Some)
        .map_err(|problem| CommandFailure::new(ExitStatus::Usage, to_message(problem)))
}

async fn prompt_for_secret(prompt: &str, out: &CliOutput) -> io::Result<Zeroizing<Vec<u8>>> {
    let echo_guard = io::stdin().is_terminal().then(EchoGuard::disable_echo).transpose()?;
    if echo_guard.is_some() {
        out.print_note_piece(prompt);
    }
    tokio::task::spawn_blocking(read_bytes).await.map_err(io::Error::other)?
}

/// Reads one line at a terminal, or all of a pipe.
fn read_bytes() -> io::Result<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(VALUE_BYTES_MAX + 1));
    let mut stdin = io::stdin().lock();
    if stdin.is_terminal() {
        io::BufRead::read_until(&mut stdin, b'\n', &mut bytes)?;
    } else {
        stdin.take(VALUE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Guard that disables echo on a terminal.
struct EchoGuard {
    original_modes: Termios,
}

impl EchoGuard {
    fn disable_echo() -> io::Result<Self> {
        let original_modes = tcgetattr(io::stdin())?;
        let mut attributes = original_modes.clone();
        attributes.local_modes.remove(LocalModes::ECHO);
        attributes.local_modes.insert(LocalModes::ECHONL);
        tcsetattr(io::stdin(), OptionalActions::Flush, &attributes)?;
        Ok(Self { original_modes })
    }
}

impl Drop for EchoGuard {
    fn drop(&mut self) {
        // A terminal that is gone needs no restoring.
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.original_modes);
    }
}
