//! The pipes of a program, and what went through them: all are served by one `poll`.

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

use crate::{run, wire};

/// The program that every process is itself.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// What is read at once: what a pipe holds.
const PIECE_BYTES: usize = 64 << 10;

/// The pipes of a program.
pub(super) struct Pipes {
    /// What came out, at most one piece more than is allowed.
    pub(super) stdout: Vec<u8>,
    /// What came out beside it, cut likewise.
    pub(super) stderr: Vec<u8>,
    exited: Option<OwnedFd>,
    unsent: Vec<u8>,
    sent: usize,
    input: Option<ChildStdin>,
    output: Option<ChildStdout>,
    errors: Option<ChildStderr>,
    errors_bytes_max: usize,
}

/// What there is to do.
pub(super) struct Ready {
    /// Nobody waits for the answer any longer.
    pub(super) lifeline: bool,
    /// The program has just ended.
    pub(super) exited: bool,
    input: bool,
    output: bool,
    errors: bool,
}

impl Pipes {
    /// Starts a program in a group of its own, to be given these bytes.
    pub(super) fn start(unsent: Vec<u8>, errors_bytes_max: u64) -> io::Result<(Pid, Self)> {
        let mut child =
            run::command(Path::new(OWN_PROGRAM), wire::STARTER).process_group(0).spawn()?;
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
        };
        pipes.unblock()?;
        Ok((program, pipes))
    }

    fn unblock(&self) -> io::Result<()> {
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

    /// Waits until there is something to do, at most until then.
    pub(super) fn wait(&self, until: Instant) -> io::Result<Ready> {
        let stdin = io::stdin();
        let [input, output, errors] = self.descriptors();
        let ready = ready(
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
        Ok(Ready { lifeline, exited, input, output, errors })
    }

    /// Does what there is to do.
    pub(super) fn serve(&mut self, ready: &Ready) {
        if ready.exited {
            // It would be ready for good.
            self.exited = None;
        }
        if ready.input {
            self.send();
        }
        if ready.output {
            self.hear_output();
        }
        if ready.errors {
            self.hear_errors();
        }
    }

    /// Whether nobody is left who could write.
    pub(super) fn are_closed(&self) -> bool {
        self.output.is_none() && self.errors.is_none()
    }

    /// Gives the program what it takes. One that reads no further has closed its end.
    fn send(&mut self) {
        let Some(pipe) = &mut self.input else { return };
        match pipe.write(&self.unsent[self.sent..]) {
            Ok(sent) => self.sent += sent,
            Err(error) if is_passing(&error) => return,
            Err(_) => self.sent = self.unsent.len(),
        }
        if self.sent == self.unsent.len() {
            self.input = None;
        }
    }

    fn hear_output(&mut self) {
        let heard = self.output.as_mut().map(piece);
        match heard {
            Some(Some(bytes)) => self.stdout.extend(bytes),
            _ => self.output = None,
        }
    }

    /// Goes on reading when it has heard enough, so that a program with much to say is not held up.
    fn hear_errors(&mut self) {
        let heard = self.errors.as_mut().map(piece);
        match heard {
            Some(Some(bytes)) if self.stderr.len() <= self.errors_bytes_max => {
                self.stderr.extend(bytes);
            }
            Some(Some(_)) => {}
            _ => self.errors = None,
        }
    }
}

/// Reads what there is; `None` when there will be no more.
fn piece(pipe: &mut impl Read) -> Option<Vec<u8>> {
    let mut bytes = vec![0; PIECE_BYTES];
    match pipe.read(&mut bytes) {
        Err(error) if is_passing(&error) => Some(Vec::new()),
        Ok(0) | Err(_) => None,
        Ok(length) => {
            bytes.truncate(length);
            Some(bytes)
        }
    }
}

/// Waits for any of the pipes that are there, and says which have something to do.
fn ready<const N: usize>(
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

/// An error that says only "not now".
fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
