//! Benchmarks. Every figure is a ratio to a baseline measured in the same run, because the machines
//! that run them are noisy.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Result, bail, ensure};

use crate::{
    build,
    process::{cargo_command, repository_root, run_command, run_for_output},
};

/// Pairs of runs. The two programs alternate, so noise affects both alike.
const ROUNDS: usize = 300;

/// Runs one benchmark, or all of them if `args` is empty.
pub(crate) fn run_benchmarks(args: &[String]) -> Result<()> {
    match args.first().map(String::as_str) {
        Some("start") => bench_start(),
        Some("call") => bench_call(),
        Some("python") => bench_python(),
        Some("turn") => bench_turn(),
        None => bench_start()
            .and_then(|()| bench_call())
            .and_then(|()| bench_python())
            .and_then(|()| bench_turn()),
        Some(other) => {
            bail!("there is no benchmark {other:?}; there are `start`, `call`, `python` and `turn`")
        }
    }
}

/// `sallyport call clock.get_time '{}'` with a warm cache ÷ `/bin/true`.
fn bench_start() -> Result<()> {
    build::build_plugins()?;
    run_command(cargo_command().args(["build", "--release", "--quiet", "--package", "sallyport"]))?;
    let home = repository_root().join("target/bench-home");
    fs::create_dir_all(&home)?;
    let binary = repository_root().join("target/release/sallyport");
    let ours = || sallyport_command(&binary, &home);
    let answer = run_for_output(&mut ours())?;
    ensure!(answer.contains("\"time\""), "the tool did not answer with a time: {answer}");
    let baseline = || Command::new("/bin/true");
    let (mut own, mut base) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        own.push(time_command(ours())?);
        base.push(time_command(baseline())?);
    }
    println!("start, {ROUNDS} runs each, taking turns");
    for (name, at) in [("median", 50), ("fastest tenth", 10)] {
        let (ours, base) = (percentile(&mut own, at), percentile(&mut base, at));
        let ratio = ours.as_secs_f64() / base.as_secs_f64();
        println!("  {name}: sallyport call {ours:.2?} ÷ /bin/true {base:.2?} = {ratio:.1}");
    }
    Ok(())
}

fn sallyport_command(binary: &Path, home: &Path) -> Command {
    let mut command = Command::new(binary);
    command
        .env("SALLYPORT_HOME", home)
        .env("SALLYPORT_PLUGIN_DIR", repository_root().join("plugins-wasm"))
        .args(["call", "clock.get_time", "{}"]);
    command
}

fn time_command(mut command: Command) -> Result<Duration> {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let begin = Instant::now();
    let status = command.status()?;
    let elapsed = begin.elapsed();
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(elapsed)
}

fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() - 1) * percent / 100]
}

/// Our isolated call ÷ raw wasmtime, warm start ÷ compile.
fn bench_call() -> Result<()> {
    build::build_plugins()?;
    run_command(bench_command("sallyport").args(["--bench", "call"]))
}

/// The first call to the code interpreter in a conversation.
fn bench_python() -> Result<()> {
    build::build_plugins()?;
    ensure!(
        build::plugin_names()?.iter().any(|name| name == "python"),
        "the plugin python is not built; `cargo xtask plugins` says why"
    );
    run_command(bench_command("sallyport").args(["--bench", "python"]))
}

/// A turn of a conversation with 1,000 tools ÷ parsing and writing the same JSON.
fn bench_turn() -> Result<()> {
    run_command(bench_command("sallyport-session").args(["--bench", "turn"]))
}

fn bench_command(package: &str) -> Command {
    let mut command = cargo_command();
    command.args(["bench", "--quiet", "--package", package, "--features", "bench"]);
    command
}
