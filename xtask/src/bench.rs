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
    process::{cargo, output, root, run},
};

/// Pairs of runs. The two programs alternate, so noise affects both alike.
const ROUNDS: usize = 300;

/// Runs one benchmark, or all of them if `args` is empty.
pub(crate) fn bench(args: &[String]) -> Result<()> {
    match args.first().map(String::as_str) {
        Some("start") => start(),
        Some("call") => call(),
        Some("python") => python(),
        Some("turn") => turn(),
        None => start().and_then(|()| call()).and_then(|()| python()).and_then(|()| turn()),
        Some(other) => {
            bail!("there is no benchmark {other:?}; there are `start`, `call`, `python` and `turn`")
        }
    }
}

/// `sallyport call clock.get_time '{}'` with a warm cache ÷ `/bin/true`.
fn start() -> Result<()> {
    build::plugins()?;
    run(cargo().args(["build", "--release", "--quiet", "--package", "sallyport"]))?;
    let home = root().join("target/bench-home");
    fs::create_dir_all(&home)?;
    let binary = root().join("target/release/sallyport");
    let ours = || sallyport(&binary, &home);
    let answer = output(&mut ours())?;
    ensure!(answer.contains("\"time\""), "the tool did not answer with a time: {answer}");
    let baseline = || Command::new("/bin/true");
    let (mut own, mut base) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        own.push(timed(ours())?);
        base.push(timed(baseline())?);
    }
    println!("start, {ROUNDS} runs each, taking turns");
    for (name, at) in [("median", 50), ("fastest tenth", 10)] {
        let (ours, base) = (percentile(&mut own, at), percentile(&mut base, at));
        let ratio = ours.as_secs_f64() / base.as_secs_f64();
        println!("  {name}: sallyport call {ours:.2?} ÷ /bin/true {base:.2?} = {ratio:.1}");
    }
    Ok(())
}

fn sallyport(binary: &Path, home: &Path) -> Command {
    let mut command = Command::new(binary);
    command
        .env("SALLYPORT_HOME", home)
        .env("SALLYPORT_PLUGIN_DIR", root().join("plugins-wasm"))
        .args(["call", "clock.get_time", "{}"]);
    command
}

fn timed(mut command: Command) -> Result<Duration> {
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
fn call() -> Result<()> {
    build::plugins()?;
    run(benchmark("sallyport").args(["--bench", "call"]))
}

/// The first call to the code interpreter in a conversation.
fn python() -> Result<()> {
    build::plugins()?;
    ensure!(
        build::plugin_names()?.iter().any(|name| name == "python"),
        "the plugin python is not built; `cargo xtask plugins` says why"
    );
    run(benchmark("sallyport").args(["--bench", "python"]))
}

/// A turn of a conversation with 1,000 tools ÷ parsing and writing the same JSON.
fn turn() -> Result<()> {
    run(benchmark("sallyport-session").args(["--bench", "turn"]))
}

fn benchmark(package: &str) -> Command {
    let mut command = cargo();
    command.args(["bench", "--quiet", "--package", package, "--features", "bench"]);
    command
}
