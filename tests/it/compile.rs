//! Compiling: whatever a component costs its compiler, the host pays nothing for it, and whatever
//! the compiler answers, only what it should is taken.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use sallyport_policy::Manifest;
use sallyport_sandbox::{
    Compiler, ComponentFile, ComponentMetadata, LoadError, Sandbox, SandboxOptions, SystemResolver,
    compile::{CompileLimits, CompilerIsolation, ExceededCompileLimit, IsolationLayerStatus},
};
use tempfile::TempDir;

use crate::support::{
    bomb,
    home::{finish, guest, manifest, plugin_component},
    patience::{self, until},
    process::{children, stat, state},
};

const MIB: u64 = 1024 * 1024;
const SECOND: Duration = Duration::from_secs(1);

/// What the processes of a test have to end in, whatever the machine is doing.
const PATIENCE: Duration = Duration::from_secs(60);

/// Little of everything but time by the clock, which says nothing on a busy machine.
const TIGHT: CompileLimits = CompileLimits {
    time: PATIENCE,
    cpu_time: SECOND,
    memory_bytes: 512 * MIB,
    code_bytes: 16 * MIB,
};

pub(crate) fn worker(limits: CompileLimits) -> Compiler {
    Compiler::Worker { program: env!("CARGO_BIN_EXE_sallyport").into(), limits }
}

pub(crate) fn sandbox(compiler: Compiler, cache_dir: Option<PathBuf>) -> Arc<Sandbox> {
    patience::watch();
    let resolver = Arc::new(SystemResolver::default());
    let (sandbox, warning) = Sandbox::new(SandboxOptions { cache_dir, compiler, resolver });
    assert_eq!(warning, None);
    sandbox
}

/// Loads a component as far as its list of tools.
pub(crate) fn inspect(
    sandbox: &Arc<Sandbox>,
    bytes: Vec<u8>,
) -> Result<ComponentMetadata, LoadError> {
    let file = ComponentFile::new(Path::new("bad.wasm"), bytes)?;
    let manifest = Manifest::parse("plugin.toml", &manifest("bad", "")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    patience::run(&runtime, sandbox.inspect_component(&file, &manifest))
}

/// How compiling a component ends.
#[derive(Debug)]
enum End {
    /// At a limit.
    At(ExceededCompileLimit),
    /// With an objection that has these words.
    Refused(&'static str),
    /// Well; the component is no plugin though, and that is found out next.
    Compiled,
}

#[track_caller]
fn check(what: &str, limits: CompileLimits, bytes: Vec<u8>, want: End) {
    let got = inspect(&sandbox(worker(limits), None), bytes).map(drop).unwrap_err();
    let is_wanted = match (&want, &got) {
        (End::At(want), LoadError::CompileLimit { limit, .. }) => limit == want,
        (End::Refused(words), LoadError::Invalid { message, .. }) => message.contains(words),
        (End::Compiled, LoadError::InterfaceMismatch { .. } | LoadError::UnknownImports { .. }) => {
            true
        }
        _ => false,
    };
    assert!(is_wanted, "{what}: {got}, wanted is {want:?}");
}

#[test]
fn h07_what_costs_too_much_time_is_stopped() {
    let cpu_time = || End::At(ExceededCompileLimit::CpuTime(SECOND));
    check("an if-chain", TIGHT, bomb::if_chain(100_000), cpu_time());
    check("ifs in ifs", TIGHT, bomb::nested_ifs(50_000), cpu_time());
    check("many functions", TIGHT, bomb::functions(100_000), cpu_time());
    let time = Duration::from_millis(300);
    let hurried = CompileLimits { time, cpu_time: PATIENCE, ..TIGHT };
    check(
        "by the clock",
        hurried,
        bomb::if_chain(100_000),
        End::At(ExceededCompileLimit::Time(time)),
    );
}

#[test]
fn h07_what_costs_too_much_memory_or_disk_is_stopped() {
    let small = |memory_bytes| CompileLimits { memory_bytes, cpu_time: PATIENCE, ..TIGHT };
    for memory_bytes in [48 * MIB, 96 * MIB, 200 * MIB] {
        let bytes = bomb::functions(100_000);
        check(
            "functions",
            small(memory_bytes),
            bytes,
            End::At(ExceededCompileLimit::Memory(memory_bytes)),
        );
    }
    let bytes = bomb::nested_components(20_000);
    check("nested", small(256 * MIB), bytes, End::At(ExceededCompileLimit::Memory(256 * MIB)));
    let bytes = bomb::data(20_000_000);
    check("data", small(32 * MIB), bytes, End::At(ExceededCompileLimit::Memory(32 * MIB)));
    check("code", TIGHT, bomb::data(20_000_000), End::At(ExceededCompileLimit::Code(16 * MIB)));
}

#[test]
fn h07_what_is_large_or_deep_ends_one_way_or_the_other() {
    let patient = CompileLimits { cpu_time: PATIENCE, ..TIGHT };
    for (what, bytes, want) in [
        ("multiplications", bomb::multiplications(50_000), End::Compiled),
        ("segments", bomb::segments(90_000), End::Compiled),
        ("too many segments", bomb::segments(200_000), End::Refused("data segments count")),
        ("elements", bomb::elements(1_000_000), End::Compiled),
        ("imports", bomb::imports(9000), End::Compiled),
        ("exports", bomb::exports(90_000), End::Compiled),
        ("modules", bomb::modules(900), End::Compiled),
        ("too many modules", bomb::modules(2000), End::Refused("exceeds limit of 1000")),
        ("doubling types", bomb::doubling_types(90), End::Refused("type size exceeds")),
        ("nested lists", bomb::nested_lists(2000), End::Refused("too deep")),
        ("nested components", bomb::nested_components(2000), End::Compiled),
        ("nested types", bomb::nested_instance_types(500), End::Compiled),
        (
            "types nested deeper",
            bomb::nested_instance_types(100_000),
            End::At(ExceededCompileLimit::Stack),
        ),
    ] {
        check(what, patient, bytes, want);
    }
}

#[test]
fn h07_the_next_plugin_loads() {
    let sandbox = sandbox(worker(CompileLimits { cpu_time: 3 * SECOND, ..TIGHT }), None);
    for bytes in [bomb::if_chain(100_000), bomb::data(20_000_000)] {
        inspect(&sandbox, bytes).unwrap_err();
        let clock = inspect(&sandbox, plugin_component("clock")).unwrap();
        assert_eq!(clock.tools[0].id.tool.as_str(), "get_time");
    }
}

/// The test below, in a process where nothing else needs memory.
#[test]
fn h07_the_host_needs_no_memory_for_it() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let name = "compile::the_memory_of_this_process_stays";
    command.args(["--ignored", "--exact", name]).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(command.spawn().unwrap(), &[name]).ended(0).answers(&["1 passed"]);
}

#[test]
#[ignore = "run in a process of its own"]
fn the_memory_of_this_process_stays() {
    let bombs = [bomb::functions(60_000), bomb::if_chain(100_000)];
    let limits = CompileLimits { cpu_time: 3 * SECOND, ..TIGHT };
    let before = most_memory_bytes();
    for bytes in bombs {
        inspect(&sandbox(worker(limits), None), bytes).unwrap_err();
    }
    let grown = most_memory_bytes() - before;
    assert!(grown < 32 * MIB, "the host grew by {} MiB", grown / MIB);
}

/// The most that this process ever held in memory.
fn most_memory_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
fn the_walls_are_told() {
    let all = CompilerIsolation {
        landlock: IsolationLayerStatus::Active,
        seccomp: IsolationLayerStatus::Active,
    };
    assert_eq!(sandbox(worker(TIGHT), None).compiler_isolation().unwrap(), all);
    assert_eq!(
        sandbox(Compiler::InProcess, None).compiler_isolation().unwrap(),
        CompilerIsolation::NONE
    );
    sandbox(Compiler::with_program("/nowhere".into()), None).compiler_isolation().unwrap_err();
}

/// What is in the cache needs no compiler, and what is not is never compiled without one.
#[test]
fn a_warm_start_needs_no_compiler_and_a_cold_one_goes_nowhere_else() {
    let folder = TempDir::new().unwrap();
    let with = |compiler: Compiler| sandbox(compiler, Some(folder.path().join("cache")));
    let nothing = || with(Compiler::with_program("/nowhere".into()));
    let clock = || plugin_component("clock");
    let error = inspect(&nothing(), clock()).unwrap_err();
    assert!(matches!(error, LoadError::Compiler { .. }), "{error}");
    inspect(&with(worker(CompileLimits::STANDARD)), clock()).unwrap();
    inspect(&nothing(), clock()).unwrap();
    fs::remove_file(folder.path().join(format!("cache/{}.json", digest(clock())))).unwrap();
    let mapped = nothing();
    inspect(&mapped, clock()).unwrap();
    assert_eq!((mapped.cache_statistics().hits, mapped.cache_statistics().compiled), (1, 0));
}

fn digest(bytes: Vec<u8>) -> String {
    ComponentFile::new(Path::new("x"), bytes).unwrap().digest().to_owned()
}

/// A program in the place of the worker.
fn fake(folder: &TempDir, script: &str) -> PathBuf {
    let program = folder.path().join("worker");
    // Written by another process: a program that this one still has open could not be started.
    let text = format!("#!/bin/sh\n{script}\n");
    let write = r#"printf %s "$1" > "$2" && chmod +x "$2""#;
    let status = Command::new("/bin/sh").args(["-c", write, "sh", &text]).arg(&program).status();
    assert!(status.unwrap().success());
    program
}

/// A worker's first words.
const GREETING: &str = r"printf 'sallyport-compile 1\n\002\002';";

/// A program that does not do what a worker should gives no code, and leaves nothing in the cache.
#[track_caller]
fn check_program(program: &Path, limits: CompileLimits, want: &str) {
    let folder = TempDir::new().unwrap();
    let cache = folder.path().join("cache");
    let compiler = Compiler::Worker { program: program.to_owned(), limits };
    let sandbox = sandbox(compiler, Some(cache.clone()));
    let error = inspect(&sandbox, plugin_component("clock")).unwrap_err().to_string();
    assert!(error.contains(want), "{}: {error}, wanted is {want}", program.display());
    assert!(!error.contains('\x1b') && error.len() < 2048, "{error}");
    let names = fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path());
    let is_refusal = |path: &PathBuf| path.extension().is_some_and(|end| end == "refused");
    assert_eq!(names.filter(|path| !is_refusal(path)).count(), 0, "{error}");
}

#[track_caller]
fn check_script(script: &str, limits: CompileLimits, want: &str) {
    let folder = TempDir::new().unwrap();
    check_program(&fake(&folder, &script.replace("{GREETING}", GREETING)), limits, want);
}

/// Only final refusals are stored. After any other failure, a program was listed as ready.
#[test]
fn a_program_of_webassembly_that_does_not_compile_is_not_ready() {
    let folder = TempDir::new().unwrap();
    let compiler = Compiler::Worker { program: fake(&folder, "exit 1"), limits: TIGHT };
    let cache = folder.path().join("cache");
    let sandbox = sandbox(compiler, Some(cache));
    let file = ComponentFile::new(Path::new("run.wasm"), guest("program")).unwrap();
    sandbox.check_program(&file).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let error = runtime.block_on(sandbox.check_compiles(&file)).unwrap_err();
    assert!(matches!(error, LoadError::Compiler { .. }), "{error}");
}

#[test]
fn a_program_that_is_no_worker_is_not_believed() {
    for (program, want) in [
        ("/nowhere", "No such file"),
        ("/", "ermission denied"),
        ("/bin/true", "it ended early ("),
        ("/bin/false", "it ended early ("),
        ("/bin/cat", "it ended early ("),
        ("/usr/bin/yes", "it does not answer as a worker does"),
    ] {
        check_program(Path::new(program), TIGHT, want);
    }
}

#[test]
fn a_worker_that_goes_astray_is_not_believed() {
    for (script, want) in [
        ("kill -9 $$", "signal: 9"),
        ("kill -XCPU $$", "more than 1s of processor time"),
        ("echo 'thread panicked' >&2; exit 101", "exit status: 101): thread panicked"),
        ("printf 'a\\033[31mb' >&2; exit 1", "a\\u{1b}[31mb"),
        ("yes | head -c 100000 >&2", "(exit status: 0): y y y"),
        ("echo 'memory allocation of 8 bytes failed' >&2; kill -ABRT $$", "512 MiB of memory"),
        ("exec sleep 1000 >/dev/null", "ended early"),
        ("{GREETING}", "ended early (exit status: 0)"),
        ("{GREETING} cat >/dev/null; exec yes", "does not answer as a worker does"),
        (r"{GREETING} printf '\000\377\377\377\377\377\377\377\377'", "16 MiB of native code"),
        (r"{GREETING} printf '\000\005\000\000\000\000\000\000\000abc'", "ended early"),
        (r"{GREETING} printf '\000\003\000\000\000\000\000\000\000abc'", "cannot compile plugins"),
        (r"{GREETING} printf '\000\000\000\000\000\000\000\000\000'", "cannot compile plugins"),
        (r"{GREETING} printf '\001\000\000\200\000\000\000\000\000'", "does not answer"),
        (r"{GREETING} printf '\001\003\000\000\000\000\000\000\000a\033b'", "a\\u{1b}b"),
    ] {
        check_script(script, TIGHT, want);
    }
}

#[test]
fn a_worker_that_hangs_is_not_waited_for() {
    for script in [
        "sleep 1000",
        "sleep 1000 & exit 0",
        "yes >&2",
        "{GREETING} sleep 1000",
        r"{GREETING} printf '\000\000\000\200\000\000\000\000\000'; sleep 1000",
    ] {
        check_script(script, CompileLimits { time: SECOND, ..TIGHT }, "more than 1s");
    }
}

/// A worker is dead and buried when its component is refused, and what it started has ended too.
#[test]
fn nothing_of_a_worker_is_left() {
    let folder = TempDir::new().unwrap();
    let note = folder.path().join("pids");
    for (end, want) in
        [("", "ended early"), ("wait", "more than 1s"), ("exec yes", "does not answer")]
    {
        let script = format!("sleep 1000 >&- 2>&- & echo $$ $! > {}; {end}", note.display());
        check_script(&script, CompileLimits { time: SECOND, ..TIGHT }, want);
        let pids = fs::read_to_string(&note).unwrap();
        let mut pids = pids.split_whitespace().map(|pid| pid.parse().unwrap());
        assert_eq!(state(pids.next().unwrap()), None, "{end}: the worker itself");
        gone(pids.next().unwrap());
    }
}

#[test]
fn nothing_of_the_surroundings_reaches_a_worker() {
    let folder = TempDir::new().unwrap();
    let note = folder.path().join("note");
    let script = format!(
        "{{ env | grep -v -e ^PWD= -e ^_= -e ^SHLVL= -e ^OLDPWD=; pwd; }} > {}",
        note.display()
    );
    check_script(&script, TIGHT, "ended early");
    // The shell sets a few variables of its own.
    assert_eq!(fs::read_to_string(note).unwrap(), "/\n");
}

/// Waits until a worker has all of its component, and works at it.
#[track_caller]
pub(crate) fn busy(pid: u32) {
    const USER_TIME: usize = 11;
    const TICKS: u64 = 20;
    until("work", || (stat(pid)?[USER_TIME].parse::<u64>().ok()? > TICKS).then_some(()));
}

/// Waits until a process has ended. One whose new parent has not noticed yet has ended too.
#[track_caller]
pub(crate) fn gone(pid: u32) {
    until("the end of a process", || {
        state(pid).is_none_or(|(state, _)| state == 'Z').then_some(())
    });
}

/// Waits for the worker of a process. Its arguments tell it from others of this one.
#[track_caller]
pub(crate) fn worker_of(parent: u32, argument: &str) -> u32 {
    until("a worker", || {
        let is_it = |pid: &u32| {
            let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.contains("__compile-worker") && line.contains(argument)
        };
        children(parent).into_iter().find(is_it)
    })
}

pub(crate) fn kill(pid: u32) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

#[test]
fn a_worker_that_is_killed_costs_its_component_only() {
    let memory_bytes = 700 * MIB + 4242;
    let limits = CompileLimits { memory_bytes, cpu_time: PATIENCE, ..TIGHT };
    let sandbox = sandbox(worker(limits), None);
    let victim = thread::spawn(move || {
        kill(worker_of(std::process::id(), &memory_bytes.to_string()));
    });
    let error = inspect(&sandbox, bomb::if_chain(100_000)).unwrap_err();
    victim.join().unwrap();
    assert!(error.to_string().contains("signal: 9"), "{error}");
    inspect(&sandbox, plugin_component("clock")).unwrap();
}

/// The walls around a worker at its work, as the system sees them.
#[test]
fn a_worker_at_work_is_walled_in() {
    let memory_bytes = 800 * MIB + 4242;
    let limits = CompileLimits { memory_bytes, cpu_time: PATIENCE, ..TIGHT };
    let sandbox = sandbox(worker(limits), None);
    let look = thread::spawn(move || {
        let pid = worker_of(std::process::id(), &memory_bytes.to_string());
        let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap();
        until("a filter", || read("status").contains("Seccomp:\t2").then_some(()));
        let looked = (read("limits"), read("environ"), threads(pid));
        kill(pid);
        looked
    });
    inspect(&sandbox, bomb::if_chain(100_000)).unwrap_err();
    let (limits, environment, threads) = look.join().unwrap();
    assert_eq!(environment, "");
    assert!(threads.len() > 1, "it has several threads: {threads:?}");
    for status in threads {
        assert!(status.contains("Seccomp:\t2"), "{status}");
        assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    }
    let memory = memory_bytes.to_string();
    for (limit, want) in [
        ("Max cpu time", "60"),
        ("Max data size", &memory),
        ("Max address space", &(memory_bytes + 1024 * MIB).to_string()),
        ("Max stack size", "8388608"),
        ("Max file size", "0"),
        ("Max core file size", "0"),
        ("Max open files", "0"),
        ("Max processes", "0"),
    ] {
        let line = limits.lines().find_map(|line| line.strip_prefix(limit)).unwrap();
        assert_eq!(line.split_whitespace().next(), Some(want), "{limit}");
    }
}

/// What the system tells of each thread of a process.
fn threads(pid: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    tasks.map(|task| fs::read_to_string(task.path().join("status")).unwrap()).collect()
}
