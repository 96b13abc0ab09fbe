//! Each wall is raised in a process of its own, which then tries to do what the wall denies.
//!
//! A wall cannot be lowered, so the process is this test program, started again for one ignored
//! test. Each wall is tested without the others, so an attempt that two of them deny is tested with
//! each.

use std::{
    fs::{self, File},
    io::{self, Read},
    net::{TcpListener, TcpStream, UdpSocket},
    process::Command,
    thread,
    time::Duration,
};

use rustix::{
    io::Errno,
    process::{Resource, Rlimit, getppid, getrlimit, setrlimit, test_kill_process},
};
use wasmtime::{Engine, component::Component};

use super::{IsolationLayerStatus, landlock, rlimit, seccomp, start_threads};
use crate::{compile::CompileLimits, engine_config::engine_config};

/// A component with one module, whose only function does nothing.
const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0\x01\x18\
    \0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0\x0a\x04\x01\x02\0\x0b";

/// An operation that a compiler does not need.
type Attempt = (&'static str, fn() -> io::Result<()>);

/// Operations that both walls deny.
const BOTH: [Attempt; 5] = [
    ("read a file", || File::open("/proc/self/status").map(drop)),
    ("list a folder", || fs::read_dir("/").map(drop)),
    ("make a file", || File::create("/tmp/sallyport-compile-wall").map(drop)),
    ("connect", || TcpStream::connect("127.0.0.1:9").map(drop)),
    ("take connections", || TcpListener::bind("127.0.0.1:0").map(drop)),
];

/// More operations that seccomp denies.
const CALLS: [Attempt; 5] = [
    ("make a socket", || UdpSocket::bind("127.0.0.1:0").map(drop)),
    ("start a program", start_a_program),
    ("start a thread", || thread::Builder::new().spawn(|| ()).map(drop)),
    ("change a folder", || std::env::set_current_dir("/")),
    ("raise a limit", || Ok(setrlimit(Resource::Core, Rlimit { current: None, maximum: None })?)),
];

#[expect(clippy::disallowed_methods, reason = "an attempt that has to fail")]
fn start_a_program() -> io::Result<()> {
    Command::new("/bin/true").status().map(drop)
}

#[track_caller]
fn check(attempts: &[Attempt]) {
    for (what, attempt) in attempts {
        let error = attempt().expect_err(what);
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{what}: {error}");
    }
}

/// Runs one of the ignored tests in a process of its own.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "a process of its own to put a wall around")]
fn alone(test: &str) {
    let name = format!("compile::isolation::tests::{test}");
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command.args(["--ignored", "--exact", &name, "--test-threads=1"]);
    let output = command.output().expect("a process");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("1 passed"), "{output:?}");
}

#[test]
fn landlock_shuts_out_files_and_connections() {
    alone("behind_landlock");
}

#[test]
fn seccomp_shuts_out_all_but_computing() {
    alone("behind_seccomp");
}

#[test]
fn the_limits_are_set_for_good() {
    alone("behind_limits");
}

#[test]
#[ignore = "run in a process of its own"]
fn behind_landlock() {
    assert_eq!(
        landlock::apply_landlock(),
        IsolationLayerStatus::Active,
        "this test needs Linux 6.12 or newer"
    );
    check(&BOTH);
    check(&[("start a program", start_a_program)]);
    let parent = getppid().unwrap();
    assert_eq!(test_kill_process(parent), Err(Errno::PERM), "signal the parent");
}

#[test]
#[ignore = "run in a process of its own"]
fn behind_seccomp() {
    let mut inherited = File::open("/proc/self/status").unwrap();
    let engine = Engine::new(&engine_config()).unwrap();
    let parent = getppid().unwrap();
    start_threads(2).unwrap();
    assert_eq!(seccomp::apply_seccomp(), IsolationLayerStatus::Active);
    check(&BOTH);
    check(&CALLS);
    assert_eq!(test_kill_process(parent), Err(Errno::PERM), "signal the parent");
    let error = inherited.read(&mut [0; 8]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "reading what was open: {error}");
    // Compiling works, and running the resulting code does not.
    engine.precompile_component(COMPONENT).unwrap();
    assert!(Component::new(&engine, COMPONENT).is_err(), "there is new code to run");
}

#[test]
#[ignore = "run in a process of its own"]
fn behind_limits() {
    let limits = CompileLimits {
        memory_bytes: 256 * 1024 * 1024,
        cpu_time: Duration::from_secs(7),
        ..CompileLimits::STANDARD
    };
    rlimit::apply_initial_limits(&limits).unwrap();
    rlimit::apply_final_limits().unwrap();
    for (resource, want) in [
        (Resource::Cpu, (7, 9)),
        (Resource::Data, (256 << 20, 256 << 20)),
        (Resource::As, (1280 << 20, 1280 << 20)),
        (Resource::Stack, (8 << 20, 8 << 20)),
        (Resource::Fsize, (0, 0)),
        (Resource::Core, (0, 0)),
        (Resource::Nofile, (0, 0)),
        (Resource::Nproc, (0, 0)),
    ] {
        let Rlimit { current, maximum } = getrlimit(resource);
        assert_eq!((current, maximum), (Some(want.0), Some(want.1)), "{resource:?}");
    }
    assert!(Vec::<u8>::new().try_reserve_exact(256 << 20).is_err(), "memory past the limit");
    assert_eq!(File::open("/dev/null").unwrap_err().raw_os_error(), Some(24), "no descriptor");
    // Limits that are already lower are not raised.
    rlimit::apply_initial_limits(&CompileLimits::STANDARD).unwrap();
    assert_eq!(getrlimit(Resource::Cpu).current, Some(7));
}
