//! The worker as its parent sees it: a child with three pipes, a deadline, and nothing else.
//!
//! All three pipes are served by one `poll`, so neither side can make the other wait for ever, and
//! no thread is needed. Whatever happens, the worker and all that it may have started are dead and
//! buried when the [`Worker`] is dropped.

use std::{
    io::{self, Read, Write},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::process::{CommandExt, ExitStatusExt},
    },
    path::Path,
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, Signal, kill_process_group},
};

use super::{
    CompileFailure, Limit, Limits, Walls,
    reply::{self, Reply, Unusable},
    worker,
};

/// Most of a worker's standard error that is kept, and shown. What matters is how it begins.
const REMARKS_BYTES_MAX: usize = 512;

/// How the standard library says that a stack was too small, before it aborts.
const STACK_OVERFLOW: &str = "has overflowed its stack";

/// How a worker says that there was no memory: the standard library before it aborts, and an error.
const OUT_OF_MEMORY: [&str; 2] = ["memory allocation of", "out of memory"];

/// Has a component compiled.
pub(super) fn compile(
    program: &Path,
    limits: &Limits,
    bytes: &[u8],
) -> Result<Vec<u8>, CompileFailure> {
    let mut worker = Worker::start(program, limits, bytes)?;
    let heard =
        reply::greeting(&mut worker).and_then(|_| reply::read(&mut worker, limits.code_bytes));
    match heard {
        Ok(Reply::Code(code)) => Ok(code),
        Ok(Reply::Refused(message)) => Err(CompileFailure::Refused(message)),
        Err(unusable) => Err(worker.explain(unusable, limits)),
    }
}

/// Asks a worker how it is walled in. It gets nothing to compile, so it ends after that.
pub(super) fn walls(program: &Path, limits: &Limits) -> Result<Walls, CompileFailure> {
    let mut worker = Worker::start(program, limits, &[])?;
    reply::greeting(&mut worker).map_err(|unusable| worker.explain(unusable, limits))
}

/// A running worker. Reading from it is reading its answer, while it is given its input.
struct Worker<'a> {
    child: Child,
    unsent: &'a [u8],
    input: Option<ChildStdin>,
    output: ChildStdout,
    errors: Option<ChildStderr>,
    remarks: Vec<u8>,
    deadline: Instant,
    status: Option<ExitStatus>,
}

/// Which pipes have something to do.
struct Ready {
    input: bool,
    output: bool,
    errors: bool,
}

impl<'a> Worker<'a> {
    fn start(program: &Path, limits: &Limits, bytes: &'a [u8]) -> Result<Self, CompileFailure> {
        let failed =
            |error: io::Error| CompileFailure::Worker(format!("{}: {error}", program.display()));
        let mut child = spawn(program, limits).map_err(failed)?;
        let (input, output, errors) = pipes(&mut child);
        let worker = Self {
            child,
            unsent: bytes,
            input,
            output,
            errors,
            remarks: Vec::new(),
            deadline: Instant::now() + limits.time,
            status: None,
        };
        worker.unblock().map_err(failed)?;
        Ok(worker)
    }

    fn unblock(&self) -> io::Result<()> {
        let pipes = [
            self.input.as_ref().map(AsFd::as_fd),
            Some(self.output.as_fd()),
            self.errors.as_ref().map(AsFd::as_fd),
        ];
        pipes.into_iter().flatten().try_for_each(|pipe| Ok(rustix::io::ioctl_fionbio(pipe, true)?))
    }

    /// Waits until a pipe can be served.
    fn wait(&self) -> io::Result<Ready> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let pipes = [
            self.input.as_ref().map(|pipe| (pipe.as_fd(), PollFlags::OUT)),
            Some((self.output.as_fd(), PollFlags::IN)),
            self.errors.as_ref().map(|pipe| (pipe.as_fd(), PollFlags::IN)),
        ];
        let [input, output, errors] = ready(pipes, left)?;
        Ok(Ready { input, output, errors })
    }

    /// Gives the worker what it takes of its input. One that reads no further has closed its end,
    /// and will say why, or be found dead.
    fn send(&mut self) {
        let Some(pipe) = &mut self.input else { return };
        match pipe.write(self.unsent) {
            Ok(sent) => self.unsent = &self.unsent[sent..],
            Err(error) if is_passing(&error) => return,
            Err(_) => self.unsent = &[],
        }
        if self.unsent.is_empty() {
            self.input = None;
        }
    }

    /// Keeps the beginning of what the worker says beside its answer; false when there is no more.
    fn listen(&mut self) -> bool {
        let Some(pipe) = &mut self.errors else { return false };
        let mut bytes = [0; 1024];
        match pipe.read(&mut bytes) {
            Err(error) if is_passing(&error) => return false,
            Ok(0) | Err(_) => self.errors = None,
            Ok(length) => {
                let room = REMARKS_BYTES_MAX - self.remarks.len();
                self.remarks.extend(&bytes[..length.min(room)]);
            }
        }
        self.remarks.len() < REMARKS_BYTES_MAX
    }

    /// Says why there is no reply that can be used.
    fn explain(&mut self, unusable: Unusable, limits: &Limits) -> CompileFailure {
        match unusable {
            Unusable::TooLarge => CompileFailure::Limit(Limit::Code(limits.code_bytes)),
            Unusable::Garbage => {
                CompileFailure::Worker("it does not answer as a worker does".into())
            }
            Unusable::Unread(error) if error.kind() == io::ErrorKind::TimedOut => {
                CompileFailure::Limit(Limit::Time(limits.time))
            }
            // Its end of the pipe is closed, so it has ended, and its status stands already.
            Unusable::Unread(_) => match self.end() {
                Ok(status) => self.cause_of(status, limits),
                Err(error) => CompileFailure::Worker(error.to_string()),
            },
        }
    }

    fn cause_of(&mut self, status: ExitStatus, limits: &Limits) -> CompileFailure {
        while self.listen() {}
        let remarks = reply::said(&self.remarks);
        match status.signal() {
            Some(signal) if signal == Signal::XCPU.as_raw() => {
                CompileFailure::Limit(Limit::CpuTime(limits.cpu_time))
            }
            _ if remarks.contains(STACK_OVERFLOW) => CompileFailure::Limit(Limit::Stack),
            _ if OUT_OF_MEMORY.iter().any(|words| remarks.contains(words)) => {
                CompileFailure::Limit(Limit::Memory(limits.memory_bytes))
            }
            _ if remarks.is_empty() => CompileFailure::Worker(format!("it ended early ({status})")),
            _ => CompileFailure::Worker(format!("it ended early ({status}): {remarks}")),
        }
    }

    /// Kills the worker's whole group and takes its status. Whoever ended before keeps the status
    /// that it had.
    fn end(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        // Its number is its own, and that of its group, until its status is taken.
        if let Some(group) = Pid::from_raw(self.child.id().cast_signed()) {
            // Fails only where nobody of the group is left.
            let _ = kill_process_group(group, Signal::KILL);
        }
        Ok(*self.status.insert(self.child.wait()?))
    }
}

impl Read for Worker<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let ready = self.wait()?;
            if ready.input {
                self.send();
            }
            if ready.errors {
                self.listen();
            }
            if ready.output {
                match self.output.read(into) {
                    Err(error) if is_passing(&error) => {}
                    read => return read,
                }
            }
        }
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        // There is nobody to tell, and nothing more to do, should the system refuse.
        let _ = self.end();
    }
}

/// Starts the one program that the host ever starts: itself, with nothing of its surroundings.
#[expect(clippy::disallowed_methods, reason = "the one process that the host starts")]
fn spawn(program: &Path, limits: &Limits) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.arg0("sallyport").args(worker::arguments(limits));
    command.env_clear().current_dir("/").process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
}

fn pipes(child: &mut Child) -> (Option<ChildStdin>, ChildStdout, Option<ChildStderr>) {
    let output = child.stdout.take().expect("standard output is a pipe");
    (child.stdin.take(), output, child.stderr.take())
}

/// Waits for any of the pipes that are there, and says which have something to do.
fn ready<const N: usize>(
    pipes: [Option<(BorrowedFd<'_>, PollFlags)>; N],
    wait: Duration,
) -> io::Result<[bool; N]> {
    let open = pipes.iter().flatten().map(|(pipe, flags)| PollFd::from_borrowed_fd(*pipe, *flags));
    let mut polled: Vec<PollFd<'_>> = open.collect();
    let wait = Timespec::try_from(wait).map_err(io::Error::other)?;
    match poll(&mut polled, Some(&wait)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let mut polled = polled.iter();
    Ok(pipes.map(|pipe| pipe.is_some() && polled.next().is_some_and(|fd| !fd.revents().is_empty())))
}

/// An error that says only "not now".
fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
