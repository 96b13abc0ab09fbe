//! The pipes of a program, and the bytes read from them. One `poll` serves all of them.

use std::{
    io::{self, Read, Write},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::process::CommandExt,
    },
    path::Path,
    process::{ChildStderr, ChildStdin, ChildStdout},
    time::Instant,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};

use super::stage_command;
use crate::wire;

/// A link to the executable of the process that opens it.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// The size of one read: the capacity of a pipe.
const PIECE_BYTES: usize = 64 << 10;

/// Maximum size of a starter's own messages at the beginning of standard error, in bytes.
const STARTER_MESSAGE_BYTES_MAX: usize = 16 << 10;

/// The pipes of a program.
pub(super) struct ProgramPipes {
    /// Standard output, at most one read longer than the limit.
    pub(super) stdout: Vec<u8>,
    /// Standard error, cut likewise.
    pub(super) stderr: Vec<u8>,
    exited: Option<OwnedFd>,
    unsent: Vec<u8>,
    sent: usize,
    input: Option<ChildStdin>,
    output: Option<ChildStdout>,
    errors: Option<ChildStderr>,
    errors_bytes_max: usize,
    /// Whether the end of standard error is kept, instead of its beginning.
    pub(super) keeps_errors_end: bool,
}

/// The pipes that are ready.
pub(super) struct ReadyProgramPipes {
    /// The host no longer waits for the result.
    pub(super) lifeline: bool,
    /// The program has just ended.
    pub(super) exited: bool,
    input: bool,
    output: bool,
    errors: bool,
}

impl ProgramPipes {
    /// Starts a starter in its own process group, which is sent these bytes.
    pub(super) fn spawn_starter(unsent: Vec<u8>, errors_bytes_max: u64) -> io::Result<(Pid, Self)> {
        let errors_bytes_max = errors_bytes_max.saturating_add(STARTER_MESSAGE_BYTES_MAX as u64);
        let mut child =
            stage_command(Path::new(OWN_PROGRAM), wire::STARTER).process_group(0).spawn()?;
        let program = Pid::from_child(&child);
        let pipes = Self {
            stdout: Vec::new(),
            stderr: Vec::new(),
            exited: Some(pidfd_open(program, PidfdFlags::empty())?),
            unsent,
            sent: 0,
            input: child.stdin.take(),
            output: child.stdout.take(),
            errors: child.stderr.take(),
            errors_bytes_max: errors_bytes_max as usize,
            keeps_errors_end: false,
        };
        pipes.set_nonblocking()?;
        Ok((program, pipes))
    }

    /// Sends the starter its request, and gives away the program's input and output. From here on,
    /// the end of standard error is kept.
    pub(super) fn take_standard_streams(&mut self) -> io::Result<(ChildStdin, ChildStdout)> {
        let (Some(mut input), Some(output)) = (self.input.take(), self.output.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        self.keeps_errors_end = true;
        rustix::io::ioctl_fionbio(&input, false)?;
        // It fails if the starter has ended, which is found with its reason soon.
        let _ = input.write_all(&std::mem::take(&mut self.unsent));
        Ok((input, output))
    }

    fn set_nonblocking(&self) -> io::Result<()> {
        let [input, output, errors] = self.descriptors();
        let pipes = [input, output, errors].into_iter().flatten();
        pipes.map(|pipe| rustix::io::ioctl_fionbio(pipe, true)).try_for_each(|done| Ok(done?))
    }

    fn descriptors(&self) -> [Option<BorrowedFd<'_>>; 3] {
        [
            self.input.as_ref().map(AsFd::as_fd),
            self.output.as_ref().map(AsFd::as_fd),
            self.errors.as_ref().map(AsFd::as_fd),
        ]
    }

    /// Waits until a pipe is ready, or until the given time.
    pub(super) fn wait_ready(&self, until: Instant) -> io::Result<ReadyProgramPipes> {
        let stdin = io::stdin();
        let [input, output, errors] = self.descriptors();
        let ready = poll_ready(
            [
                (Some(stdin.as_fd()), PollFlags::IN),
                (self.exited.as_ref().map(AsFd::as_fd), PollFlags::IN),
                (input, PollFlags::OUT),
                (output, PollFlags::IN),
                (errors, PollFlags::IN),
            ],
            until,
        )?;
        let [lifeline, exited, input, output, errors] = ready;
        Ok(ReadyProgramPipes { lifeline, exited, input, output, errors })
    }

    /// Serves the pipes that are ready.
    pub(super) fn serve_ready(&mut self, ready: &ReadyProgramPipes) {
        if ready.exited {
            // The descriptor would stay ready for ever.
            self.exited = None;
        }
        if ready.input {
            self.write_input();
        }
        if ready.output {
            self.read_output();
        }
        if ready.errors {
            self.read_errors();
        }
    }

    /// Whether no process is left that could write.
    pub(super) fn is_closed(&self) -> bool {
        self.output.is_none() && self.errors.is_none()
    }

    /// Writes as much as the program accepts. A program that stops reading has closed its end.
    fn write_input(&mut self) {
        let Some(pipe) = &mut self.input else { return };
        match pipe.write(&self.unsent[self.sent..]) {
            Ok(sent) => self.sent += sent,
            Err(error) if is_temporary(&error) => return,
            Err(_) => self.sent = self.unsent.len(),
        }
        if self.sent == self.unsent.len() {
            self.input = None;
        }
    }

    fn read_output(&mut self) {
        let read_count = self.output.as_mut().map(read_available);
        match read_count {
            Some(Some(bytes)) => self.stdout.extend(bytes),
            _ => self.output = None,
        }
    }

    /// Keeps reading beyond the limit, so that a program with a lot of output does not block.
    fn read_errors(&mut self) {
        let read_count = self.errors.as_mut().map(read_available);
        match read_count {
            Some(Some(bytes)) if self.keeps_errors_end => {
                self.stderr.extend(bytes);
                let excess = self.stderr.len().saturating_sub(self.errors_bytes_max);
                if excess > 0 {
                    let end = STARTER_MESSAGE_BYTES_MAX + excess;
                    self.stderr.drain(STARTER_MESSAGE_BYTES_MAX..end);
                }
            }
            Some(Some(bytes)) if self.stderr.len() <= self.errors_bytes_max => {
                self.stderr.extend(bytes);
            }
            Some(Some(_)) => {}
            _ => self.errors = None,
        }
    }
}

/// Reads the available bytes; `None` at the end.
fn read_available(pipe: &mut impl Read) -> Option<Vec<u8>> {
    let mut bytes = vec![0; PIECE_BYTES];
    match pipe.read(&mut bytes) {
        Err(error) if is_temporary(&error) => Some(Vec::new()),
        Ok(0) | Err(_) => None,
        Ok(length) => {
            bytes.truncate(length);
            Some(bytes)
        }
    }
}

/// Waits for any of the open pipes, and returns which are ready.
fn poll_ready<const N: usize>(
    pipes: [(Option<BorrowedFd<'_>>, PollFlags); N],
    until: Instant,
) -> io::Result<[bool; N]> {
    let open =
        pipes.iter().filter_map(|(pipe, flags)| Some(PollFd::from_borrowed_fd((*pipe)?, *flags)));
    let mut polled: Vec<PollFd<'_>> = open.collect();
    let wait = Timespec::try_from(until.saturating_duration_since(Instant::now()));
    match poll(&mut polled, Some(&wait.map_err(io::Error::other)?)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let mut polled = polled.iter();
    Ok(pipes.map(|(pipe, _)| {
        pipe.is_some() && polled.next().is_some_and(|fd| !fd.revents().is_empty())
    }))
}

/// Whether an error is only temporary.
fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
