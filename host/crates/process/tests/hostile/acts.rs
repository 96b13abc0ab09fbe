//! Acts of a hostile program that waste time and memory, one function each.

#![expect(clippy::print_stdout, reason = "what it says is how a test knows it")]

use std::{
    io::{self, Read, Write},
    process::ExitCode,
    thread,
    time::Duration,
};

use sallyport_process::{ProcessSpec, StageExecutable};

use crate::attempts;

/// More than any limit of a test.
const MUCH_BYTES: usize = 1 << 30;

/// Maximum lifetime of a host, unless it hangs. Readers of its output wait no longer.
const HOST_LIFE_MAX: Duration = Duration::from_secs(180);

/// Less than any limit of a test.
const PART_BYTES: usize = 20 << 20;

/// Performs the act in the variable `ACT`.
#[expect(clippy::disallowed_methods, reason = "the one word that this program gets")]
pub(crate) fn act() -> ExitCode {
    let act = std::env::var("ACT").unwrap_or_default();
    match act.as_str() {
        "print" => print_for_ever(),
        "private memory" => fill(&mut vec![0; MUCH_BYTES]),
        "shared memory" => shared_memory(),
        "several" => several(),
        "part" => fill(&mut vec![0; PART_BYTES]),
        "threads" => threads(),
        "attempts" => attempts::answer(&attempts::ALL),
        "sockets" => attempts::answer(&attempts::SOCKETS),
        other => panic!("no such act: {other:?}"),
    }
    ExitCode::SUCCESS
}

/// Runs the specification on standard input as a host does, for tests that kill it. To simulate an
/// old kernel, it removes a wall first.
pub(crate) fn host() -> ExitCode {
    thread::spawn(|| {
        thread::sleep(HOST_LIFE_MAX);
        println!("it hangs");
        std::process::exit(1);
    });
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).expect("a description");
    let spec: ProcessSpec = serde_json::from_str(&text).expect("a description");
    match std::env::args().nth(2).as_deref() {
        Some("without-landlock") => attempts::forget(libc::SYS_landlock_create_ruleset),
        Some("without-seccomp") => attempts::forget(libc::SYS_seccomp),
        Some("service") => return service_host(&spec),
        _ => {}
    }
    println!("{:?}", sallyport_process::walls_missing());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let stage = StageExecutable::from_path(std::env::current_exe().expect("this program"));
    let ran =
        runtime.expect("a runtime").block_on(sallyport_process::run_program(&stage, &spec, b"{}"));
    if let Ok(finished) = &ran {
        println!("{}", String::from_utf8_lossy(&finished.stdout));
    }
    println!("{ran:?}");
    ExitCode::SUCCESS
}

/// Starts a service and keeps it, until this process is killed.
fn service_host(spec: &ProcessSpec) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let stage = StageExecutable::from_path(std::env::current_exe().expect("this program"));
    runtime.expect("a runtime").block_on(async {
        let _service = sallyport_process::start_service(&stage, spec).await.expect("a service");
        println!("started");
        std::future::pending::<ExitCode>().await
    })
}

fn print_for_ever() {
    let piece = [b'x'; 1 << 16];
    while io::stdout().write_all(&piece).is_ok() {}
}

/// Writes to every page.
fn fill(memory: &mut [u8]) {
    memory.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    thread::sleep(Duration::from_secs(60));
}

/// Fills memory that no limit of a single process counts.
fn shared_memory() {
    let mut memory = attempts::shared_memory(MUCH_BYTES).expect("shared memory");
    fill(memory.bytes());
}

/// Starts processes that exceed the limit only together.
#[expect(clippy::disallowed_methods, reason = "more of the same")]
fn several() {
    for _ in 0..8 {
        let this = std::env::current_exe().expect("this program");
        let child = std::process::Command::new(this).env("ACT", "part").spawn();
        drop(child.expect("a process"));
    }
    thread::sleep(Duration::from_secs(60));
}

fn threads() {
    for _ in 0..200 {
        thread::spawn(|| thread::sleep(Duration::from_secs(60)));
    }
    thread::sleep(Duration::from_secs(60));
}
