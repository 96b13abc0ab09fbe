//! Tests of programs behind the walls, honest and hostile ones.
//!
//! The programs are shell scripts and the package's own `hostile-process`, which also provides the
//! stages between these tests and them.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod files;
mod limits;
mod lives;
mod service;
mod start;
mod walls;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use sallyport_process::{
    MissingWallPolicy, ProcessExit, ProcessLimits, ProcessNetwork, ProcessResult, ProcessSpec,
    RunError, ScriptDigest, StageExecutable, run_program,
};
use tokio::time::timeout;

/// The executable with the stages, the host that can be killed, and the hostile program.
const HOSTILE: &str = env!("CARGO_BIN_EXE_hostile-process");

/// How long a test waits for an event that must happen soon.
const SOON: Duration = Duration::from_secs(20);

/// The time limit of a program that is meant to reach another limit first, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Maximum duration of a run, unless it hangs.
const RUN_TIME_MAX: Duration = Duration::from_secs(180);

/// A folder with a program, and the specification of its run.
struct Tool {
    folder: tempfile::TempDir,
    spec: ProcessSpec,
}

impl Tool {
    /// A shell script.
    fn script(body: &str) -> Self {
        Self::of("run.sh", format!("#!/bin/sh\n{body}\n").as_bytes())
    }

    /// A native program that performs one act.
    fn act(act: &str) -> Self {
        let mut tool = Self::of("main", &fs::read(HOSTILE).unwrap());
        tool.spec.env.push(("ACT".into(), act.into()));
        tool
    }

    fn of(name: &str, bytes: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join(name);
        fs::write(&program, bytes).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let spec = ProcessSpec {
            program,
            digest: ScriptDigest::hash_bytes(bytes),
            arguments: Vec::new(),
            folder: Some(folder.path().to_owned()),
            reads: Vec::new(),
            writes: Vec::new(),
            network: ProcessNetwork::None,
            walls: MissingWallPolicy::Required,
            limits: ProcessLimits { time: PATIENCE, ..ProcessLimits::STANDARD },
            env: Vec::new(),
        };
        Self { folder, spec }
    }

    fn with(mut self, change: impl FnOnce(&mut ProcessSpec)) -> Self {
        change(&mut self.spec);
        self
    }

    /// Runs it with this input.
    fn run(&self, input: &[u8]) -> Result<ProcessResult, RunError> {
        let stage = StageExecutable::from_path(HOSTILE.into());
        let in_time = async { timeout(RUN_TIME_MAX, run_program(&stage, &self.spec, input)).await };
        runtime().block_on(in_time).expect("it hangs")
    }

    /// Runs it, and returns its output. It must succeed.
    #[track_caller]
    fn prints(&self) -> String {
        let finished = self.run(b"{}").unwrap();
        assert_eq!(finished.exit, ProcessExit::Code(0), "{finished:?}");
        String::from_utf8(finished.stdout).unwrap()
    }

    /// Runs it, and checks how it ended.
    #[track_caller]
    fn ends(&self, want: ProcessExit) -> ProcessResult {
        let finished = self.run(b"{}").unwrap();
        assert_eq!(finished.exit, want, "{}", finished.stderr);
        finished
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Runs a tool in a separate host that can be killed.
#[expect(clippy::disallowed_methods, reason = "a host that can be killed")]
fn host(tool: &Tool, before: &str, arguments: &str) -> std::process::Child {
    let script = format!("{before}\nexec {HOSTILE} host {arguments}");
    let mut host = Command::new("/bin/sh");
    host.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut host = host.stderr(Stdio::inherit()).spawn().unwrap();
    serde_json::to_writer(host.stdin.take().unwrap(), &tool.spec).unwrap();
    host
}

/// Adds a variable that all processes of a run have, and no others.
fn marked(tool: Tool) -> (Tool, String) {
    // Shells pass on variables with valid names.
    let folder = tool.folder.path().file_name().unwrap().to_string_lossy();
    let mark = format!("MARK_{}", folder.replace('.', "_"));
    let name = mark.clone();
    (tool.with(|spec| spec.env.push((name, "1".into()))), mark)
}

/// Returns the number of processes that have this variable.
fn alive(mark: &str) -> usize {
    let environment = |entry: fs::DirEntry| fs::read(entry.path().join("environ")).ok();
    let processes = fs::read_dir("/proc").unwrap().flatten().filter_map(environment);
    processes.filter(|bytes| String::from_utf8_lossy(bytes).contains(mark)).count()
}

/// Waits until a condition holds, which must be soon.
#[track_caller]
fn soon(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + SOON;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A file outside everything that is granted, with its folder.
fn secret() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("id_ed25519");
    fs::write(&file, "the secret").unwrap();
    (folder, file)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
