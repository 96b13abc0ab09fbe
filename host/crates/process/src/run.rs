//! A run as the host sees it: one process with three pipes, which answers once.
//!
//! Its standard input is also its *lifeline*: it stays open as long as the host waits for the
//! result. When the future is dropped, or the host is killed, the watcher sees end of file and
//! kills everything. A parent-death signal would not work, because it is sent when the thread that
//! started the process ends, and threads of an async runtime come and go.

use std::{
    io,
    path::{self, PathBuf},
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
    spec::{MissingWallPolicy, ProcessLimits, ProcessResult, ProcessSpec, StageExecutable},
    stage::{private_folder::PrivateFolder, stage_command},
    walls,
    wire::{self, ProgramExitReport, ProgramResources, WatcherResponse},
};

/// How much longer than its program a watcher may take: the time to start two processes on a busy
/// machine, and to end a program that writes to a slow disk.
const WATCHER_GRACE: Duration = Duration::from_secs(20);

/// Maximum size of a watcher's own messages, without the output and errors of its program, in
/// bytes.
const FRAMES_BYTES_MAX: u64 = 64 << 10;

/// Maximum wait for the error output of a watcher that was killed.
const STDERR_TIME_MAX: Duration = Duration::from_secs(1);

/// Maximum length of a watcher's error output in a message, in characters.
const STDERR_CHARS_MAX: usize = 300;

/// Runs a program to its end with this input.
///
/// When it returns, or soon after its future is dropped, no process of the program is alive and its
/// private folder is removed.
///
/// # Errors
///
/// The program did not run, or its result is unknown. A program that fails or reaches a limit is
/// not an error.
pub async fn run_program(
    stage: &StageExecutable,
    spec: &ProcessSpec,
    input: &[u8],
) -> Result<ProcessResult, RunError> {
    let (bytes, bytes_max) = (input.len() as u64, spec.limits.input_bytes);
    if bytes > bytes_max {
        return Err(RunError::Input { bytes, bytes_max });
    }
    require_walls(spec)?;
    let mut watcher = WatcherProcess::start(stage).map_err(stage_io_error)?;
    let request_frame = encode_request(spec, bytes).map_err(stage_io_error)?;
    let time = spec.limits.time.saturating_add(WATCHER_GRACE);
    let is_in_time =
        timeout(time, watcher.exchange_messages(&request_frame, input, &spec.limits)).await;
    watcher.take_result(is_in_time.is_ok()).await
}

/// Refuses a program if this system lacks a wall that it needs.
pub(crate) fn require_walls(spec: &ProcessSpec) -> Result<(), RunError> {
    let missing = walls::missing_walls();
    match missing.is_empty() || spec.walls == MissingWallPolicy::AsAvailable {
        true => Ok(()),
        false => Err(RunError::NoWall { missing }),
    }
}

pub(crate) fn encode_request(spec: &ProcessSpec, input_bytes: u64) -> io::Result<Vec<u8>> {
    let temporary = path::absolute(std::env::temp_dir())?;
    wire::encode_frame(&wire::WatcherRequest {
        spec: with_absolute_paths(spec)?,
        temporary,
        input_bytes,
    })
}

/// Makes the paths absolute, because the stages and the program run in other folders than this
/// process.
fn with_absolute_paths(spec: &ProcessSpec) -> io::Result<ProcessSpec> {
    let all = |paths: &[PathBuf]| paths.iter().map(path::absolute).collect::<io::Result<_>>();
    Ok(ProcessSpec {
        program: path::absolute(&spec.program)?,
        folder: spec.folder.as_ref().map(path::absolute).transpose()?,
        reads: all(&spec.reads)?,
        writes: all(&spec.writes)?,
        ..spec.clone()
    })
}

/// A running watcher.
struct WatcherProcess {
    child: Child,
    output: Vec<u8>,
}

impl WatcherProcess {
    fn start(stage: &StageExecutable) -> io::Result<Self> {
        let mut command = Command::from(stage_command(&stage.0, wire::WATCHER));
        // Not killed on drop: when its lifeline closes, it ends its program first and then itself.
        let child = command.kill_on_drop(false).spawn()?;
        Ok(Self { child, output: Vec::new() })
    }

    /// Sends orders and input, and reads the answer to its end.
    async fn exchange_messages(
        &mut self,
        request_frame: &[u8],
        input: &[u8],
        limits: &ProcessLimits,
    ) {
        let lifeline = self.child.stdin.as_mut().expect("standard input is a pipe");
        // If writing fails, the watcher has ended or will report its error.
        if lifeline.write_all(request_frame).await.is_ok()
            && lifeline.write_all(input).await.is_ok()
        {
            let _ = lifeline.flush().await;
        }
        let written = limits.output_bytes.saturating_add(limits.errors_bytes);
        let answer_bytes_max = written.saturating_add(FRAMES_BYTES_MAX);
        let output = self.child.stdout.as_mut().expect("standard output is a pipe");
        // On an error, the bytes read so far are used.
        let _ = output.take(answer_bytes_max).read_to_end(&mut self.output).await;
    }

    /// Ends the watcher and returns its answer.
    async fn take_result(mut self, is_in_time: bool) -> Result<ProcessResult, RunError> {
        let mut resources = None;
        let result = match parse_answer(&self.output, &mut resources) {
            Ok(answer) => answer,
            Err(_) => {
                self.kill(resources.as_ref());
                let failure = self.missing_answer_error(is_in_time).await;
                remove_private_folder(resources).await;
                Err(failure)
            }
        };
        // The watcher has nothing left to do but end.
        drop(self.child.stdin.take());
        let _ = self.child.wait().await;
        result
    }

    /// Kills a watcher that failed, and the program that it left.
    fn kill(&mut self, resources: Option<&ProgramResources>) {
        resources.iter().for_each(|resources| kill_group(resources));
        let _ = self.child.start_kill();
    }

    /// Returns why the answer is missing, with the watcher's own message if it printed one.
    async fn missing_answer_error(&mut self, is_in_time: bool) -> RunError {
        if !is_in_time {
            return stage_error("it does not answer");
        }
        let mut error_text = Vec::new();
        let errors = self.child.stderr.take().expect("standard error is a pipe");
        // The watcher is dead, so the pipe ends, unless a living process inherited it.
        let mut limited_errors = errors.take(FRAMES_BYTES_MAX);
        let _ = timeout(STDERR_TIME_MAX, limited_errors.read_to_end(&mut error_text)).await;
        let error_text = String::from_utf8_lossy(&error_text);
        match text::escape_excerpt(error_text.trim(), STDERR_CHARS_MAX) {
            empty if empty.is_empty() => stage_error("it ended without an answer"),
            error_text => stage_error(&error_text),
        }
    }
}

/// Kills the program that a watcher left. The group id is valid while one member is alive, and the
/// system does not reuse an id immediately.
pub(crate) fn kill_group(resources: &ProgramResources) {
    if let Some(group) = Pid::from_raw(resources.group) {
        // This fails only if no member of the group is left.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Removes the private folder that a watcher left.
pub(crate) async fn remove_private_folder(resources: Option<ProgramResources>) {
    if let Some(scratch) =
        resources.and_then(|resources| PrivateFolder::from_leftover(resources.scratch))
    {
        // If this fails, the folder remains among the temporary files.
        let _ = tokio::task::spawn_blocking(|| scratch.remove()).await;
    }
}

/// Parses the answer of a watcher: the start, if the program started, and the result.
fn parse_answer(
    mut answer_bytes: &[u8],
    resources: &mut Option<ProgramResources>,
) -> io::Result<Result<ProcessResult, RunError>> {
    let mut answer = wire::read_frame(&mut answer_bytes)?;
    if let WatcherResponse::Started(started) = answer {
        *resources = Some(started);
        answer = wire::read_frame(&mut answer_bytes)?;
    }
    match answer {
        WatcherResponse::Finished(exit_report) => {
            let ProgramExitReport { exit, cpu_time, elapsed, stdout_bytes, stderr_bytes } =
                exit_report;
            let stdout = wire::read_exact_bytes(&mut answer_bytes, stdout_bytes)?;
            let stderr = wire::read_exact_bytes(&mut answer_bytes, stderr_bytes)?;
            let stderr = String::from_utf8_lossy(&stderr).into_owned();
            Ok(Ok(ProcessResult { exit, stdout, stderr, cpu_time, elapsed }))
        }
        WatcherResponse::Failed(error) => Ok(Err(error)),
        WatcherResponse::Started(_) => Err(io::ErrorKind::InvalidData.into()),
    }
}

pub(crate) fn stage_io_error(error: io::Error) -> RunError {
    stage_error(&error.to_string())
}

pub(crate) fn stage_error(message: &str) -> RunError {
    RunError::Stage { message: message.to_owned() }
}
