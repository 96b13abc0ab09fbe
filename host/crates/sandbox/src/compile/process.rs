//! The worker as its parent sees it: a child process with three pipes and a deadline.
//!
//! One `poll` serves all three pipes, so neither side can block the other forever and no thread is
//! needed. When the [`CompileWorker`] is dropped, it and every process that it may have started are
//! killed, and the worker is reaped.

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
    CompileFailure, CompileLimits, CompilerIsolation, ExceededCompileLimit,
    reply::{self, CompileReply, CompileReplyError},
    worker,
};

/// Most bytes of a worker's standard error that are kept and shown. The beginning is what matters.
const STDERR_BYTES_MAX: usize = 512;

/// The message of the standard library for a stack overflow, before it aborts.
const STACK_OVERFLOW: &str = "has overflowed its stack";

/// The messages for a lack of memory: the standard library's before it aborts, and an I/O error's.
const OUT_OF_MEMORY: [&str; 2] = ["memory allocation of", "out of memory"];

/// Compiles a component in a worker.
pub(super) fn compile_in_worker(
    program: &Path,
    limits: &CompileLimits,
    bytes: &[u8],
) -> Result<Vec<u8>, CompileFailure> {
    let mut worker = CompileWorker::start(program, limits, bytes)?;
    let result = reply::read_greeting(&mut worker)
        .and_then(|_| reply::read_reply(&mut worker, limits.code_bytes));
    match result {
        Ok(CompileReply::Code(code)) => Ok(code),
        Ok(CompileReply::Refused(message)) => Err(CompileFailure::Refused(message)),
        Err(unusable) => Err(worker.explain_failure(unusable, limits)),
    }
}

/// Asks a worker for its walls. The worker gets no input, so it ends after that.
pub(super) fn query_worker_isolation(
    program: &Path,
    limits: &CompileLimits,
) -> Result<CompilerIsolation, CompileFailure> {
    let mut worker = CompileWorker::start(program, limits, &[])?;
    reply::read_greeting(&mut worker).map_err(|unusable| worker.explain_failure(unusable, limits))
}

/// A running worker. Reading from it yields its reply and feeds it its input.
struct CompileWorker<'a> {
    child: Child,
    unsent: &'a [u8],
    input: Option<ChildStdin>,
    output: ChildStdout,
    stderr: Option<ChildStderr>,
    stderr_bytes: Vec<u8>,
    deadline: Instant,
    status: Option<ExitStatus>,
}

/// The pipes that are ready.
struct WorkerPipeReadiness {
    input: bool,
    output: bool,
    stderr: bool,
}

impl<'a> CompileWorker<'a> {
    fn start(
        program: &Path,
        limits: &CompileLimits,
        bytes: &'a [u8],
    ) -> Result<Self, CompileFailure> {
        let failed =
            |error: io::Error| CompileFailure::Worker(format!("{}: {error}", program.display()));
        let mut child = spawn_worker(program, limits).map_err(failed)?;
        let (input, output, stderr) = take_pipes(&mut child);
        let worker = Self {
            child,
            unsent: bytes,
            input,
            output,
            stderr,
            stderr_bytes: Vec::new(),
            deadline: Instant::now() + limits.time,
            status: None,
        };
        worker.set_nonblocking().map_err(failed)?;
        Ok(worker)
    }

    fn set_nonblocking(&self) -> io::Result<()> {
        let pipes = [
            self.input.as_ref().map(AsFd::as_fd),
            Some(self.output.as_fd()),
            self.stderr.as_ref().map(AsFd::as_fd),
        ];
        pipes.into_iter().flatten().try_for_each(|pipe| Ok(rustix::io::ioctl_fionbio(pipe, true)?))
    }

    /// Waits until a pipe is ready.
    fn wait_for_pipes(&self) -> io::Result<WorkerPipeReadiness> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let pipes = [
            self.input.as_ref().map(|pipe| (pipe.as_fd(), PollFlags::OUT)),
            Some((self.output.as_fd(), PollFlags::IN)),
            self.stderr.as_ref().map(|pipe| (pipe.as_fd(), PollFlags::IN)),
        ];
        let [input, output, stderr] = poll_pipes(pipes, left)?;
        Ok(WorkerPipeReadiness { input, output, stderr })
    }

    /// Sends as much input as the worker accepts. If the worker has closed its end, the rest of the
    /// input is dropped; the reason follows from its reply or its exit status.
    fn send_input(&mut self) {
        let Some(pipe) = &mut self.input else { return };
        match pipe.write(self.unsent) {
            Ok(sent) => self.unsent = &self.unsent[sent..],
            Err(error) if is_transient(&error) => return,
            Err(_) => self.unsent = &[],
        }
        if self.unsent.is_empty() {
            self.input = None;
        }
    }

    /// Reads standard error and keeps its beginning. Returns false if there is nothing more to read
    /// or to keep.
    fn read_errors(&mut self) -> bool {
        let Some(pipe) = &mut self.stderr else { return false };
        let mut bytes = [0; 1024];
        match pipe.read(&mut bytes) {
            Err(error) if is_transient(&error) => return false,
            Ok(0) | Err(_) => self.stderr = None,
            Ok(length) => {
                let room = STDERR_BYTES_MAX - self.stderr_bytes.len();
                self.stderr_bytes.extend(&bytes[..length.min(room)]);
            }
        }
        self.stderr_bytes.len() < STDERR_BYTES_MAX
    }

    /// Determines why the reply is missing or cannot be used.
    fn explain_failure(
        &mut self,
        unusable: CompileReplyError,
        limits: &CompileLimits,
    ) -> CompileFailure {
        match unusable {
            CompileReplyError::TooLarge => {
                CompileFailure::Limit(ExceededCompileLimit::Code(limits.code_bytes))
            }
            CompileReplyError::Malformed => {
                CompileFailure::Worker("it does not answer as a worker does".into())
            }
            CompileReplyError::Io(error) if error.kind() == io::ErrorKind::TimedOut => {
                CompileFailure::Limit(ExceededCompileLimit::Time(limits.time))
            }
            // The pipe is closed, so the worker has ended or is of no more use.
            CompileReplyError::Io(_) => match self.kill_and_wait() {
                Ok(status) => self.failure_from_status(status, limits),
                Err(error) => CompileFailure::Worker(error.to_string()),
            },
        }
    }

    fn failure_from_status(
        &mut self,
        status: ExitStatus,
        limits: &CompileLimits,
    ) -> CompileFailure {
        while self.read_errors() {}
        let stderr_text = reply::sanitize_worker_text(&self.stderr_bytes);
        match status.signal() {
            Some(signal) if signal == Signal::XCPU.as_raw() => {
                CompileFailure::Limit(ExceededCompileLimit::CpuTime(limits.cpu_time))
            }
            _ if stderr_text.contains(STACK_OVERFLOW) => {
                CompileFailure::Limit(ExceededCompileLimit::Stack)
            }
            _ if OUT_OF_MEMORY.iter().any(|words| stderr_text.contains(words)) => {
                CompileFailure::Limit(ExceededCompileLimit::Memory(limits.memory_bytes))
            }
            _ if stderr_text.is_empty() => {
                CompileFailure::Worker(format!("it ended early ({status})"))
            }
            _ => CompileFailure::Worker(format!("it ended early ({status}): {stderr_text}")),
        }
    }

    /// Kills the worker's process group and returns its exit status. A worker that ended before
    /// keeps the status that it had.
    fn kill_and_wait(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        // The process ID, which is also the group's, cannot be reused until the worker is reaped.
        if let Some(group) = Pid::from_raw(self.child.id().cast_signed()) {
            // Fails only if no process of the group is left.
            let _ = kill_process_group(group, Signal::KILL);
        }
        Ok(*self.status.insert(self.child.wait()?))
    }
}

impl Read for CompileWorker<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let ready = self.wait_for_pipes()?;
            if ready.input {
                self.send_input();
            }
            if ready.stderr {
                self.read_errors();
            }
            if ready.output {
                match self.output.read(into) {
                    Err(error) if is_transient(&error) => {}
                    read => return read,
                }
            }
        }
    }
}

impl Drop for CompileWorker<'_> {
    fn drop(&mut self) {
        // If the system refuses, nothing more can be done.
        let _ = self.kill_and_wait();
    }
}

/// Starts the worker with an empty environment, in `/` and in a process group of its own.
#[expect(clippy::disallowed_methods, reason = "the one process that the host starts")]
fn spawn_worker(program: &Path, limits: &CompileLimits) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.arg0("sallyport").arg(worker::ARGUMENT).args(limits.to_arguments());
    command.env_clear().current_dir("/").process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
}

fn take_pipes(child: &mut Child) -> (Option<ChildStdin>, ChildStdout, Option<ChildStderr>) {
    let output = child.stdout.take().expect("standard output is a pipe");
    (child.stdin.take(), output, child.stderr.take())
}

/// Waits for any of the open pipes and returns which of them are ready.
fn poll_pipes<const N: usize>(
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

/// Whether the operation should be retried later.
fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
