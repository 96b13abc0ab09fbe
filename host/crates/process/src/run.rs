//! A run as the host sees it: one process with three pipes, which answers once.
//!
//! Its standard input is also its *lifeline*: it stays open as long as somebody waits for the
//! answer. When the future is dropped, or this whole process is killed, the watcher sees its end and
//! ends everything. A signal at the death of the parent would not do: it comes at the death of the
//! thread that started the process, and threads of a runtime come and go.

use std::{
    io,
    os::unix::process::CommandExt,
    path::{self, Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};
use sallyport_contract::text;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, Command},
    time::timeout,
};

use crate::{
    error::RunError,
    spec::{Finished, Limits, Spec, Walls},
    stage::scratch::Scratch,
    walls,
    wire::{self, Answer, Begun, Ended},
};

/// Where Linux shows every process its own program.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// How much longer than its program a watcher may take: two starts of a program on a machine that is
/// busy, and the end of a program that is written to a slow disk.
const WATCHER_GRACE: Duration = Duration::from_secs(20);

/// What a watcher says beside the output and errors of its program.
const FRAMES_BYTES_MAX: u64 = 64 << 10;

/// How long the last words of a watcher that was killed may take to arrive.
const LAST_WORDS_TIME_MAX: Duration = Duration::from_secs(1);

/// How much of what a watcher says when it fails is shown.
const COMPLAINT_CHARS_MAX: usize = 300;

/// The program that is started for the stages between the host and a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage(PathBuf);

impl Stage {
    /// Makes stages of the program that is running; its `main` has to begin with
    /// [`as_stage`](crate::as_stage).
    pub fn this_program() -> Self {
        // The link leads to the very program that runs, even after another version took its place.
        Self(OWN_PROGRAM.into())
    }

    /// Makes stages of a program whose `main` begins with [`as_stage`](crate::as_stage).
    pub fn program(program: PathBuf) -> Self {
        Self(program)
    }
}

/// Runs a program with this input to its end, whatever that is.
///
/// When it returns, or soon after its future is dropped, nothing of the program is alive and its
/// private folder is gone.
///
/// # Errors
///
/// The program did not run, or it is not known how it ended. A program that fails, or reaches a
/// limit, is no error.
pub async fn run(stage: &Stage, spec: &Spec, input: &[u8]) -> Result<Finished, RunError> {
    let (bytes, bytes_max) = (input.len() as u64, spec.limits.input_bytes);
    if bytes > bytes_max {
        return Err(RunError::Input { bytes, bytes_max });
    }
    require(spec.walls)?;
    let mut watcher = Watcher::start(stage).map_err(failed)?;
    let orders = orders(spec, bytes).map_err(failed)?;
    let time = spec.limits.time.saturating_add(WATCHER_GRACE);
    let in_time = timeout(time, watcher.ask(&orders, input, &spec.limits)).await;
    watcher.end(in_time.is_ok()).await
}

fn require(walls: Walls) -> Result<(), RunError> {
    let missing = walls::missing();
    if missing.is_empty() || walls == Walls::AsAvailable {
        return Ok(());
    }
    Err(RunError::NoWall { missing })
}

fn orders(spec: &Spec, input_bytes: u64) -> io::Result<Vec<u8>> {
    let temporary = path::absolute(std::env::temp_dir())?;
    wire::frame(&wire::Watch { spec: absolute(spec)?, temporary, input_bytes })
}

/// The stages and the program are in other folders than this process.
fn absolute(spec: &Spec) -> io::Result<Spec> {
    let all = |paths: &[PathBuf]| paths.iter().map(path::absolute).collect::<io::Result<_>>();
    Ok(Spec {
        program: path::absolute(&spec.program)?,
        folder: path::absolute(&spec.folder)?,
        reads: all(&spec.reads)?,
        writes: all(&spec.writes)?,
        ..spec.clone()
    })
}

/// The process that watches a program.
struct Watcher {
    child: Child,
    said: Vec<u8>,
}

impl Watcher {
    fn start(stage: &Stage) -> io::Result<Self> {
        let mut command = Command::from(command(&stage.0, wire::WATCHER));
        // Never killed for being dropped: with its lifeline cut it ends, after its program has.
        let child = command.kill_on_drop(false).spawn()?;
        Ok(Self { child, said: Vec::new() })
    }

    /// Gives it what it needs and hears it to its end.
    async fn ask(&mut self, orders: &[u8], input: &[u8], limits: &Limits) {
        let lifeline = self.child.stdin.as_mut().expect("standard input is a pipe");
        // One that takes no more has ended, or will say why it failed.
        if lifeline.write_all(orders).await.is_ok() && lifeline.write_all(input).await.is_ok() {
            let _ = lifeline.flush().await;
        }
        let written = limits.output_bytes.saturating_add(limits.errors_bytes);
        let most = written.saturating_add(FRAMES_BYTES_MAX);
        let output = self.child.stdout.as_mut().expect("standard output is a pipe");
        // What was read before an error is all there is.
        let _ = output.take(most).read_to_end(&mut self.said).await;
    }

    /// Ends it, where it did not end itself, and returns what it said.
    async fn end(mut self, in_time: bool) -> Result<Finished, RunError> {
        let result = match heard(&self.said) {
            (_, Ok(answer)) => answer,
            (begun, Err(_)) => {
                self.kill(begun.as_ref());
                let complaint = self.complaint(in_time).await;
                clear_up(begun).await;
                Err(complaint)
            }
        };
        // Nothing is left for it to do but to end.
        drop(self.child.stdin.take());
        let _ = self.child.wait().await;
        result
    }

    /// Kills a watcher that failed, and the program that it left. The number of the group is taken
    /// as long as one of the group is alive; one that has just become free is not given out again.
    fn kill(&mut self, begun: Option<&Begun>) {
        if let Some(group) = begun.and_then(|begun| Pid::from_raw(begun.group)) {
            // Fails only where nobody of the group is left.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.start_kill();
    }

    /// Says why there is no answer: in the words of the watcher, if it had any.
    async fn complaint(&mut self, in_time: bool) -> RunError {
        if !in_time {
            return stage("it does not answer");
        }
        let mut words = Vec::new();
        let errors = self.child.stderr.take().expect("standard error is a pipe");
        // It is dead, so there is an end, unless it gave the pipe to somebody who is not.
        let mut reading = errors.take(FRAMES_BYTES_MAX);
        let _ = timeout(LAST_WORDS_TIME_MAX, reading.read_to_end(&mut words)).await;
        let words = String::from_utf8_lossy(&words);
        match text::excerpt(words.trim(), COMPLAINT_CHARS_MAX) {
            empty if empty.is_empty() => stage("it ended without an answer"),
            words => stage(&words),
        }
    }
}

/// The start of a stage, with nothing of its surroundings.
#[expect(clippy::disallowed_methods, reason = "this very program, as a stage before a script")]
pub(crate) fn command(program: &Path, stage: &str) -> std::process::Command {
    let mut command = std::process::Command::new(program);
    command.arg0("sallyport").args([wire::ARGUMENT, stage]).env_clear().current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Removes the private folder that a watcher could not.
async fn clear_up(begun: Option<Begun>) {
    if let Some(scratch) = begun.and_then(|begun| Scratch::left(begun.scratch)) {
        // What cannot be removed stays among the temporary files.
        let _ = tokio::task::spawn_blocking(|| scratch.remove()).await;
    }
}

/// What a watcher said: what it began, if it came so far, and what came of it.
fn heard(mut said: &[u8]) -> (Option<Begun>, io::Result<Result<Finished, RunError>>) {
    match wire::read(&mut said) {
        Ok(Answer::Started(begun)) => {
            let next = wire::read(&mut said);
            (Some(begun), next.and_then(|answer| outcome(answer, said)))
        }
        first => (None, first.and_then(|answer| outcome(answer, said))),
    }
}

fn outcome(answer: Answer, rest: &[u8]) -> io::Result<Result<Finished, RunError>> {
    match answer {
        Answer::Finished(ended) => finished(ended, rest).map(Ok),
        Answer::Failed(error) => Ok(Err(error)),
        Answer::Started(_) => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn finished(ended: Ended, mut said: &[u8]) -> io::Result<Finished> {
    let stdout = wire::bytes(&mut said, ended.stdout_bytes)?;
    let stderr = wire::bytes(&mut said, ended.stderr_bytes)?;
    Ok(Finished {
        exit: ended.exit,
        stdout,
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
        cpu_time: ended.cpu_time,
        elapsed: ended.elapsed,
    })
}

fn failed(error: io::Error) -> RunError {
    stage(&error.to_string())
}

fn stage(message: &str) -> RunError {
    RunError::Stage { message: message.to_owned() }
}
