//! The watcher: runs outside the walls, starts a program, feeds and reads it, counts the resources
//! of it and its descendants, and kills them all.
//!
//! It has one thread and one `poll`, so no side can block the other. It adopts every orphan among
//! the descendants, so none of them escapes. They cannot signal it, and it is not in their process
//! group.

use std::{
    io::{self, Write},
    os::fd::{AsFd, BorrowedFd},
    time::{Duration, Instant},
};

use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, kill_process_group,
    set_child_subreaper, setpriority_process, setsid, wait, waitpid,
};

use sallyport_contract::text;

use super::{
    pipes::{ProgramPipes, ReadyProgramPipes},
    private_folder::PrivateFolder,
};
use crate::{
    error::RunError,
    process_table::{self, ProcessEntry},
    spec::{ProcessExit, ProcessSpec, ReachedProcessLimit, ServiceExit},
    wire::{
        self, ProgramExitReport, ProgramResources, ServiceResponse, StarterMessage, StarterRequest,
        StarterToken, WatcherRequest, WatcherResponse,
    },
};

/// The maximum time limit: one year. A much longer one could overflow the clock.
const TIME_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// How often resources are counted. A flood of processes can create a few thousand between two
/// counts.
const COUNT_INTERVAL: Duration = Duration::from_millis(50);

/// How often the number of processes on the whole system is compared. This check is cheap, and a
/// flood grows by the thousand between two counts.
const FLOOD_CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// The highest priority. The only limit on the superuser's processes is the watcher's count, so the
/// watcher has to run among thousands of them. Other users may not set this priority, and do not
/// need it.
const HIGHEST_PRIORITY: i32 = -20;

/// The minimum pause between two counts, as a multiple of the time that a count took. It keeps the
/// cost low on a machine with many processes.
const COUNT_PAUSE_FACTOR: u32 = 20;

/// How long descendants may keep writing after the program itself has ended, as the last program of
/// a pipeline does.
const PIPES_GRACE: Duration = Duration::from_secs(1);

/// How long killed processes are waited for. A process that the kernel holds, such as in a read
/// from a disk that does not answer, is abandoned.
const REAP_TIME_MAX: Duration = Duration::from_secs(5);

/// Maximum length of a stage's error output in a message, in characters.
const STDERR_CHARS_MAX: usize = 300;

/// The mark where text was cut.
const TRUNCATION_MARK: &str = "\n[cut here]";

/// How often to check whether killed processes are gone.
const REAP_INTERVAL: Duration = Duration::from_millis(1);

/// Why the watcher stops waiting for a program.
enum WatchStopReason {
    /// It ended by itself.
    Exited,
    /// It reached a limit.
    Limit(ReachedProcessLimit),
    /// The host no longer waits for the result.
    Abandoned,
}

/// Runs as the watcher.
pub(super) fn run_watcher() -> io::Result<()> {
    leave_host()?;
    let mut stdin = io::stdin().lock();
    let request: WatcherRequest = wire::read_frame(&mut stdin)?;
    let input = wire::read_exact_bytes(&mut stdin, request.input_bytes)?;
    let scratch = PrivateFolder::create_in(&request.temporary)?;
    let watched =
        RunningProgram::start(&request.spec, &scratch, &input).and_then(RunningProgram::finish);
    // If this fails, the folder remains among the temporary files; the result matters more.
    let _ = scratch.remove();
    match watched? {
        Some(Ok((ended, pipes))) => {
            send_response(&WatcherResponse::Finished(ended))?;
            let mut stdout = io::stdout();
            stdout.write_all(&pipes.stdout)?;
            stdout.write_all(&pipes.stderr)?;
            stdout.flush()
        }
        Some(Err(error)) => send_response(&WatcherResponse::Failed(error)),
        None => Ok(()),
    }
}

/// Separates this process from the host that started it, and adopts the orphans among its
/// descendants.
pub(super) fn leave_host() -> io::Result<()> {
    crate::walls::close_inherited_descriptors()?;
    // Leave the terminal, so that signals typed there do not arrive. This fails only for a group
    // leader, and a watcher is started in the group of its parent.
    let _ = setsid();
    Ok(set_child_subreaper(Some(getpid()))?)
}

fn send_response(answer: &WatcherResponse) -> io::Result<()> {
    let mut stdout = io::stdout();
    stdout.write_all(&wire::encode_frame(answer)?)?;
    stdout.flush()
}

/// The end of a run with its pipes, or an error; `None` if the host no longer waits for it.
type WatchResult = Option<Result<(ProgramExitReport, ProgramPipes), RunError>>;

/// A running program. Its process id is also its group id. The id cannot be reused until its status
/// is reaped, which happens last.
pub(super) struct RunningProgram<'a> {
    spec: &'a ProcessSpec,
    scratch: &'a PrivateFolder,
    token: StarterToken,
    program: Pid,
    pipes: ProgramPipes,
    started: Instant,
    deadline: Instant,
    pipes_deadline: Option<Instant>,
    next_count: Instant,
    tasks_of_all: u16,
}

impl<'a> RunningProgram<'a> {
    pub(super) fn start(
        spec: &'a ProcessSpec,
        scratch: &'a PrivateFolder,
        input: &[u8],
    ) -> io::Result<Self> {
        let token = StarterToken::random()?;
        let mut request = wire::encode_frame(&StarterRequest {
            spec: spec.clone(),
            scratch: scratch.path().to_owned(),
            watcher: getpid().as_raw_pid(),
            mark: token.clone(),
        })?;
        request.extend_from_slice(input);
        let (program, pipes) = ProgramPipes::spawn_starter(request, spec.limits.errors_bytes)?;
        // The program was started before, so it keeps the priority of the host.
        let _ = setpriority_process(None, HIGHEST_PRIORITY);
        let started = Instant::now();
        Ok(Self {
            spec,
            scratch,
            token,
            program,
            pipes,
            started,
            deadline: started + spec.limits.time.min(TIME_MAX),
            pipes_deadline: None,
            next_count: started + COUNT_INTERVAL,
            tasks_of_all: process_table::count_system_tasks(),
        })
    }

    /// Watches the program to its end, and kills all its processes.
    fn finish(mut self) -> io::Result<WatchResult> {
        let ending = self.report_start().and_then(|()| self.watch_program());
        let status = self.kill_and_reap();
        match ending? {
            WatchStopReason::Abandoned => Ok(None),
            WatchStopReason::Exited => Ok(Some(self.into_report(None, status))),
            WatchStopReason::Limit(limit) => Ok(Some(self.into_report(Some(limit), status))),
        }
    }

    /// Passes the program's standard input and output to `receive`, and closes them here.
    pub(super) fn hand_over_pipes(
        &mut self,
        receive: impl FnOnce([BorrowedFd<'_>; 2]) -> io::Result<()>,
    ) -> io::Result<()> {
        let (input, output) = self.pipes.take_standard_streams()?;
        receive([input.as_fd(), output.as_fd()])
    }

    /// Watches a service to its end, unless its pipes could not be handed over, and kills all its
    /// processes.
    pub(super) fn finish_service(
        mut self,
        handed_over: io::Result<()>,
    ) -> io::Result<ServiceResponse> {
        let ending = handed_over.and_then(|()| self.watch_program());
        let status = self.kill_and_reap();
        let limit = match ending? {
            WatchStopReason::Limit(limit) => Some(limit),
            WatchStopReason::Exited | WatchStopReason::Abandoned => None,
        };
        Ok(match self.into_report(limit, status) {
            Ok((report, pipes)) => ServiceResponse::Ended(ServiceExit {
                exit: report.exit,
                stderr: String::from_utf8_lossy(&pipes.stderr).into_owned(),
            }),
            Err(error) => ServiceResponse::Failed(error),
        })
    }

    /// What has to be cleaned up after this watcher.
    pub(super) fn resources(&self) -> ProgramResources {
        ProgramResources {
            group: self.program.as_raw_pid(),
            scratch: self.scratch.path().to_owned(),
        }
    }

    fn report_start(&self) -> io::Result<()> {
        send_response(&WatcherResponse::Started(self.resources()))
    }

    fn watch_program(&mut self) -> io::Result<WatchStopReason> {
        loop {
            let ready = self.pipes.wait_ready(self.next_check_time())?;
            if ready.lifeline {
                return Ok(WatchStopReason::Abandoned);
            }
            if let Some(ending) = self.serve_pipes(&ready) {
                return Ok(ending);
            }
            if let Some(limit) = self.check_resources()? {
                return Ok(WatchStopReason::Limit(limit));
            }
        }
    }

    /// Returns the time of the next check that does not depend on the pipes.
    fn next_check_time(&self) -> Instant {
        let flood_check = Instant::now() + FLOOD_CHECK_INTERVAL;
        self.pipes_deadline.unwrap_or(self.deadline).min(self.next_count).min(flood_check)
    }

    fn serve_pipes(&mut self, ready: &ReadyProgramPipes) -> Option<WatchStopReason> {
        self.pipes.serve_ready(ready);
        let limits = &self.spec.limits;
        if self.pipes.stdout.len() as u64 > limits.output_bytes {
            return Some(WatchStopReason::Limit(ReachedProcessLimit::Output(limits.output_bytes)));
        }
        let now = Instant::now();
        if ready.exited {
            self.pipes_deadline = Some(now + PIPES_GRACE);
        }
        match self.pipes_deadline {
            Some(closing) => {
                (self.pipes.is_closed() || now >= closing).then_some(WatchStopReason::Exited)
            }
            None => (now >= self.deadline)
                .then_some(WatchStopReason::Limit(ReachedProcessLimit::Time(limits.time))),
        }
    }

    /// Counts resources, if it is time to.
    fn check_resources(&mut self) -> io::Result<Option<ReachedProcessLimit>> {
        let begun = Instant::now();
        if begun < self.next_count && !self.is_flooded() {
            return Ok(None);
        }
        self.tasks_of_all = process_table::count_system_tasks();
        let descendants = process_table::list_descendants()?;
        self.reap_orphans(&descendants);
        let limit = self.exceeded_limit(&descendants);
        let now = Instant::now();
        self.next_count = now + COUNT_INTERVAL.max((now - begun) * COUNT_PAUSE_FACTOR);
        Ok(limit)
    }

    /// Whether so many processes were created on the whole system that this program may be over its
    /// limit.
    fn is_flooded(&self) -> bool {
        let more =
            process_table::count_system_tasks().wrapping_sub(self.tasks_of_all).cast_signed();
        u32::try_from(more).is_ok_and(|more| more > self.spec.limits.processes)
    }

    fn exceeded_limit(&self, descendants: &[ProcessEntry]) -> Option<ReachedProcessLimit> {
        let limits = &self.spec.limits;
        let usage = process_table::total_usage(descendants);
        if usage.tasks > u64::from(limits.processes) {
            Some(ReachedProcessLimit::Processes(limits.processes))
        } else if usage.memory_bytes > limits.memory_bytes {
            Some(ReachedProcessLimit::Memory(limits.memory_bytes))
        } else if usage.cpu_time > limits.cpu_time {
            Some(ReachedProcessLimit::CpuTime(limits.cpu_time))
        } else if self.scratch.size_on_disk() > limits.scratch_bytes {
            Some(ReachedProcessLimit::Scratch(limits.scratch_bytes))
        } else {
            None
        }
    }

    /// Reaps orphans that have ended. No other process does.
    fn reap_orphans(&self, descendants: &[ProcessEntry]) {
        let orphans = descendants.iter().filter(|process| process.is_zombie && process.is_child());
        for orphan in orphans.filter_map(ProcessEntry::id).filter(|pid| *pid != self.program) {
            let _ = waitpid(Some(orphan), WaitOptions::NOHANG);
        }
    }

    /// Kills the program and all its descendants, waits for them, and returns the program's status.
    fn kill_and_reap(&self) -> Option<WaitStatus> {
        // The signal reaches the whole group at the same time, so that no member can start another
        // process first.
        let _ = kill_process_group(self.program, Signal::KILL);
        let deadline = Instant::now() + REAP_TIME_MAX;
        let mut status = None;
        while Instant::now() < deadline {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, ended))) if pid == self.program => status = Some(ended),
                Ok(Some(_)) => {}
                Ok(None) => {
                    kill_escaped_descendants();
                    std::thread::sleep(REAP_INTERVAL);
                }
                Err(_) => break,
            }
        }
        status
    }

    fn into_report(
        mut self,
        limit: Option<ReachedProcessLimit>,
        status: Option<WaitStatus>,
    ) -> Result<(ProgramExitReport, ProgramPipes), RunError> {
        let rest = match self.token.parse_message(&self.pipes.stderr) {
            StarterMessage::Failed(error) => return Err(error),
            StarterMessage::Ready(rest) => rest.to_vec(),
            StarterMessage::Nothing if limit.is_some() => Vec::new(),
            StarterMessage::Nothing => {
                return Err(RunError::Stage { message: self.starter_error_text() });
            }
        };
        let errors_bytes_max = self.spec.limits.errors_bytes;
        self.pipes.stderr = match self.pipes.keeps_errors_end {
            true => end_of_bytes(&rest, errors_bytes_max).to_vec(),
            false => truncate_with_mark(rest, errors_bytes_max),
        };
        self.pipes.stdout.truncate(self.spec.limits.output_bytes as usize);
        let cpu_time = process_table::reaped_cpu_time();
        let ended = ProgramExitReport {
            exit: limit.map_or_else(|| self.program_exit(status, cpu_time), ProcessExit::Limit),
            cpu_time,
            elapsed: self.started.elapsed(),
            stdout_bytes: self.pipes.stdout.len() as u64,
            stderr_bytes: self.pipes.stderr.len() as u64,
        };
        Ok((ended, self.pipes))
    }

    /// Returns the error output of a starter that did not start its program.
    fn starter_error_text(&self) -> String {
        let error_text = String::from_utf8_lossy(&self.pipes.stderr);
        match text::escape_excerpt(error_text.trim(), STDERR_CHARS_MAX) {
            none if none.is_empty() => "it ended before the program began".into(),
            error_text => error_text,
        }
    }

    /// Returns how the program ended. Some signals mean that a limit was reached.
    fn program_exit(&self, status: Option<WaitStatus>, cpu_time: Duration) -> ProcessExit {
        let limits = &self.spec.limits;
        let signal = status.and_then(WaitStatus::terminating_signal);
        let is = |one: Signal| signal == Some(one.as_raw());
        if is(Signal::XFSZ) {
            ProcessExit::Limit(ReachedProcessLimit::File(limits.file_bytes))
        } else if is(Signal::XCPU) || is(Signal::KILL) && cpu_time >= limits.cpu_time {
            ProcessExit::Limit(ReachedProcessLimit::CpuTime(limits.cpu_time))
        } else if let Some(signal) = signal {
            ProcessExit::Signal(signal)
        } else {
            ProcessExit::Code(status.and_then(WaitStatus::exit_status).unwrap_or(-1))
        }
    }
}

/// Kills the descendants that left the group, which only a program without seccomp can do.
fn kill_escaped_descendants() {
    let rest = process_table::list_descendants().unwrap_or_default();
    for pid in rest.iter().filter(|process| !process.is_zombie).filter_map(ProcessEntry::id) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Returns the end of a text.
fn end_of_bytes(text: &[u8], bytes_max: u64) -> &[u8] {
    &text[text.len().saturating_sub(bytes_max as usize)..]
}

/// Returns the beginning of a text, with a mark if it was cut.
fn truncate_with_mark(mut text: Vec<u8>, bytes_max: u64) -> Vec<u8> {
    if text.len() as u64 > bytes_max {
        text.truncate(bytes_max as usize);
        text.extend_from_slice(TRUNCATION_MARK.as_bytes());
    }
    text
}
