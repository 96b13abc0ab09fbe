//! The watcher: runs outside the walls, starts a program, feeds and reads it, counts the resources
//! of it and its descendants, and kills them all.
//!
//! It has one thread and one `poll`, so no side can block the other. It adopts every orphan among
//! the descendants, so none of them escapes. They cannot signal it, and it is not in their process
//! group.

use std::{
    io::{self, Write},
    time::{Duration, Instant},
};

use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, kill_process_group,
    set_child_subreaper, setpriority_process, setsid, wait, waitpid,
};

use sallyport_contract::text;

use super::{
    pipes::{Pipes, Ready},
    scratch::Scratch,
    table::{self, Process},
};
use crate::{
    error::RunError,
    spec::{Exit, Limit, Spec},
    wire::{self, Answer, Begun, Ended, Mark, Said, Start, Watch},
};

/// The maximum time limit: one year. A much longer one could overflow the clock.
const TIME_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// How often resources are counted. A flood of processes can create a few thousand between two
/// counts.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How often the number of processes on the whole system is compared. This check is cheap, and a
/// flood grows by the thousand between two counts.
const GLANCE_EVERY: Duration = Duration::from_millis(10);

/// The highest priority. The only limit on the superuser's processes is the watcher's count, so the
/// watcher has to run among thousands of them. Other users may not set this priority, and do not
/// need it.
const URGENT: i32 = -20;

/// The minimum pause between two counts, as a multiple of the time that a count took. It keeps the
/// cost low on a machine with many processes.
const LOOK_SHARE: u32 = 20;

/// How long descendants may keep writing after the program itself has ended, as the last program of
/// a pipeline does.
const PIPES_GRACE: Duration = Duration::from_secs(1);

/// How long killed processes are waited for. A process that the kernel holds, such as in a read
/// from a disk that does not answer, is abandoned.
const BURIAL_MAX: Duration = Duration::from_secs(5);

/// Maximum size of a starter's own messages, in bytes.
const SAID_BYTES_MAX: u64 = 16 << 10;

/// Maximum length of a stage's error output in a message, in characters.
const LAST_WORDS_CHARS_MAX: usize = 300;

/// The mark where text was cut.
const CUT: &str = "\n[cut here]";

/// How often to check whether killed processes are gone.
const BURIAL_EVERY: Duration = Duration::from_millis(1);

/// Why the watcher stops waiting for a program.
enum Ending {
    /// It ended by itself.
    Own,
    /// It reached a limit.
    Limit(Limit),
    /// The host no longer waits for the result.
    Abandoned,
}

/// Runs as the watcher.
pub(super) fn work() -> io::Result<()> {
    crate::walls::close_inherited()?;
    // Leave the terminal, so that signals typed there do not arrive. This fails only for a group
    // leader, and a watcher is started in the group of its parent.
    let _ = setsid();
    set_child_subreaper(Some(getpid()))?;
    let mut stdin = io::stdin().lock();
    let orders: Watch = wire::read(&mut stdin)?;
    let input = wire::bytes(&mut stdin, orders.input_bytes)?;
    let scratch = Scratch::make(&orders.temporary)?;
    let watched = Run::start(&orders.spec, &scratch, &input).and_then(Run::finish);
    // If this fails, the folder remains among the temporary files; the result matters more.
    let _ = scratch.remove();
    match watched? {
        Some(Ok((ended, pipes))) => {
            say(&Answer::Finished(ended))?;
            let mut stdout = io::stdout();
            stdout.write_all(&pipes.stdout)?;
            stdout.write_all(&pipes.stderr)?;
            stdout.flush()
        }
        Some(Err(error)) => say(&Answer::Failed(error)),
        None => Ok(()),
    }
}

fn say(answer: &Answer) -> io::Result<()> {
    let mut stdout = io::stdout();
    stdout.write_all(&wire::frame(answer)?)?;
    stdout.flush()
}

/// The end of a run with its pipes, or an error; `None` if the host no longer waits for it.
type Watched = Option<Result<(Ended, Pipes), RunError>>;

/// A running program. Its process id is also its group id. The id cannot be reused until its status
/// is reaped, which happens last.
struct Run<'a> {
    spec: &'a Spec,
    scratch: &'a Scratch,
    mark: Mark,
    program: Pid,
    pipes: Pipes,
    started: Instant,
    deadline: Instant,
    closing: Option<Instant>,
    next_look: Instant,
    tasks_of_all: u16,
}

impl<'a> Run<'a> {
    fn start(spec: &'a Spec, scratch: &'a Scratch, input: &[u8]) -> io::Result<Self> {
        let mark = Mark::random()?;
        let mut orders = wire::frame(&Start {
            spec: spec.clone(),
            scratch: scratch.path().to_owned(),
            watcher: getpid().as_raw_pid(),
            mark: mark.clone(),
        })?;
        orders.extend_from_slice(input);
        let errors_bytes_max = spec.limits.errors_bytes.saturating_add(SAID_BYTES_MAX);
        let (program, pipes) = Pipes::start(orders, errors_bytes_max)?;
        // The program was started before, so it keeps the priority of the host.
        let _ = setpriority_process(None, URGENT);
        let started = Instant::now();
        Ok(Self {
            spec,
            scratch,
            mark,
            program,
            pipes,
            started,
            deadline: started + spec.limits.time.min(TIME_MAX),
            closing: None,
            next_look: started + LOOK_EVERY,
            tasks_of_all: table::tasks_of_all(),
        })
    }

    /// Watches the program to its end, and kills all its processes.
    fn finish(mut self) -> io::Result<Watched> {
        let ending = self.watch();
        let status = self.bury();
        match ending? {
            Ending::Abandoned => Ok(None),
            Ending::Own => Ok(Some(self.report(None, status))),
            Ending::Limit(limit) => Ok(Some(self.report(Some(limit), status))),
        }
    }

    fn watch(&mut self) -> io::Result<Ending> {
        let group = self.program.as_raw_pid();
        say(&Answer::Started(Begun { group, scratch: self.scratch.path().to_owned() }))?;
        loop {
            let ready = self.pipes.wait(self.until())?;
            if ready.lifeline {
                return Ok(Ending::Abandoned);
            }
            if let Some(ending) = self.serve(&ready) {
                return Ok(ending);
            }
            if let Some(limit) = self.look()? {
                return Ok(Ending::Limit(limit));
            }
        }
    }

    /// Returns the time of the next check that does not depend on the pipes.
    fn until(&self) -> Instant {
        let glance = Instant::now() + GLANCE_EVERY;
        self.closing.unwrap_or(self.deadline).min(self.next_look).min(glance)
    }

    fn serve(&mut self, ready: &Ready) -> Option<Ending> {
        self.pipes.serve(ready);
        let limits = &self.spec.limits;
        if self.pipes.stdout.len() as u64 > limits.output_bytes {
            return Some(Ending::Limit(Limit::Output(limits.output_bytes)));
        }
        let now = Instant::now();
        if ready.exited {
            self.closing = Some(now + PIPES_GRACE);
        }
        match self.closing {
            Some(closing) => (self.pipes.are_closed() || now >= closing).then_some(Ending::Own),
            None => (now >= self.deadline).then_some(Ending::Limit(Limit::Time(limits.time))),
        }
    }

    /// Counts resources, if it is time to.
    fn look(&mut self) -> io::Result<Option<Limit>> {
        let begun = Instant::now();
        if begun < self.next_look && !self.is_flooded() {
            return Ok(None);
        }
        self.tasks_of_all = table::tasks_of_all();
        let family = table::descendants()?;
        self.take_orphans(&family);
        let limit = self.over(&family);
        let now = Instant::now();
        self.next_look = now + LOOK_EVERY.max((now - begun) * LOOK_SHARE);
        Ok(limit)
    }

    /// Whether so many processes were created on the whole system that this program may be over its
    /// limit.
    fn is_flooded(&self) -> bool {
        let more = table::tasks_of_all().wrapping_sub(self.tasks_of_all).cast_signed();
        u32::try_from(more).is_ok_and(|more| more > self.spec.limits.processes)
    }

    fn over(&self, family: &[Process]) -> Option<Limit> {
        let limits = &self.spec.limits;
        let usage = table::usage(family);
        if usage.tasks > u64::from(limits.processes) {
            Some(Limit::Processes(limits.processes))
        } else if usage.memory_bytes > limits.memory_bytes {
            Some(Limit::Memory(limits.memory_bytes))
        } else if usage.cpu_time > limits.cpu_time {
            Some(Limit::CpuTime(limits.cpu_time))
        } else if self.scratch.bytes() > limits.scratch_bytes {
            Some(Limit::Scratch(limits.scratch_bytes))
        } else {
            None
        }
    }

    /// Reaps orphans that have ended. No other process does.
    fn take_orphans(&self, family: &[Process]) {
        let orphans = family.iter().filter(|process| process.is_zombie && process.is_child());
        for orphan in orphans.filter_map(Process::id).filter(|pid| *pid != self.program) {
            let _ = waitpid(Some(orphan), WaitOptions::NOHANG);
        }
    }

    /// Kills the program and all its descendants, waits for them, and returns the program's status.
    fn bury(&self) -> Option<WaitStatus> {
        // The signal reaches the whole group at the same time, so that no member can start another
        // process first.
        let _ = kill_process_group(self.program, Signal::KILL);
        let deadline = Instant::now() + BURIAL_MAX;
        let mut status = None;
        while Instant::now() < deadline {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, ended))) if pid == self.program => status = Some(ended),
                Ok(Some(_)) => {}
                Ok(None) => {
                    kill_rest();
                    std::thread::sleep(BURIAL_EVERY);
                }
                Err(_) => break,
            }
        }
        status
    }

    fn report(
        mut self,
        limit: Option<Limit>,
        status: Option<WaitStatus>,
    ) -> Result<(Ended, Pipes), RunError> {
        let rest = match self.mark.heard(&self.pipes.stderr) {
            Said::Failed(error) => return Err(error),
            Said::Ready(rest) => rest.to_vec(),
            Said::Nothing if limit.is_some() => Vec::new(),
            Said::Nothing => return Err(RunError::Stage { message: self.last_words() }),
        };
        self.pipes.stderr = cut(rest, self.spec.limits.errors_bytes);
        self.pipes.stdout.truncate(self.spec.limits.output_bytes as usize);
        let cpu_time = table::time_of_gone();
        let ended = Ended {
            exit: limit.map_or_else(|| self.exit(status, cpu_time), Exit::Limit),
            cpu_time,
            elapsed: self.started.elapsed(),
            stdout_bytes: self.pipes.stdout.len() as u64,
            stderr_bytes: self.pipes.stderr.len() as u64,
        };
        Ok((ended, self.pipes))
    }

    /// Returns the error output of a starter that did not start its program.
    fn last_words(&self) -> String {
        let words = String::from_utf8_lossy(&self.pipes.stderr);
        match text::escape_excerpt(words.trim(), LAST_WORDS_CHARS_MAX) {
            none if none.is_empty() => "it ended before the program began".into(),
            words => words,
        }
    }

    /// Returns how the program ended. Some signals mean that a limit was reached.
    fn exit(&self, status: Option<WaitStatus>, cpu_time: Duration) -> Exit {
        let limits = &self.spec.limits;
        let signal = status.and_then(WaitStatus::terminating_signal);
        let is = |one: Signal| signal == Some(one.as_raw());
        if is(Signal::XFSZ) {
            Exit::Limit(Limit::File(limits.file_bytes))
        } else if is(Signal::XCPU) || is(Signal::KILL) && cpu_time >= limits.cpu_time {
            Exit::Limit(Limit::CpuTime(limits.cpu_time))
        } else if let Some(signal) = signal {
            Exit::Signal(signal)
        } else {
            Exit::Code(status.and_then(WaitStatus::exit_status).unwrap_or(-1))
        }
    }
}

/// Kills the descendants that left the group, which only a program without seccomp can do.
fn kill_rest() {
    let rest = table::descendants().unwrap_or_default();
    for pid in rest.iter().filter(|process| !process.is_zombie).filter_map(Process::id) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Returns the beginning of a text, with a mark if it was cut.
fn cut(mut text: Vec<u8>, bytes_max: u64) -> Vec<u8> {
    if text.len() as u64 > bytes_max {
        text.truncate(bytes_max as usize);
        text.extend_from_slice(CUT.as_bytes());
    }
    text
}
