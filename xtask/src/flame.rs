//! `cargo xtask flame`: where the processor time of calls goes, as a flame graph.
//!
//! The graph is drawn from samples of the soak, which makes calls of several plugins. perf takes the
//! samples, and inferno (CDDL, installed as a program and linked into nothing) draws them.

use std::{
    fs::{self, File},
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    build,
    process::{cargo_command, repository_root, run_command, run_for_output},
    programs::{install_crate_program, is_installed},
};

/// The version of inferno whose programs are run here.
const INFERNO_VERSION: &str = "0.12.8";

/// How long calls are made, unless the arguments say otherwise.
const SECONDS: &str = "10";

/// Samples per second. It is no multiple of the ticks of anything.
const FREQUENCY: &str = "1999";

/// Samples the soak for some seconds, and writes the graph into `target/flame`.
pub(crate) fn draw_flame_graph(args: &[String]) -> Result<()> {
    let seconds = match args {
        [] => SECONDS,
        [seconds] if seconds.parse::<u64>().is_ok() => seconds,
        _ => bail!("flame takes a number of seconds, and nothing else"),
    };
    ensure!(is_installed("perf"), "perf is missing; Debian has it in the package linux-perf");
    let collapse = install_crate_program("inferno", INFERNO_VERSION, "inferno-collapse-perf")?;
    build::build_plugins()?;
    build::build_guests()?;
    let folder = repository_root().join("target/flame");
    fs::create_dir_all(&folder)?;
    let samples = folder.join("perf.data");
    take_samples(seconds, &samples)?;
    let graph = folder.join("flame.svg");
    let drawing = draw_samples(&samples, &collapse, &graph);
    drawing.with_context(|| format!("cannot draw {}", samples.display()))?;
    println!("{}", graph.display());
    Ok(())
}

/// Has cargo run the soak under perf, with the names of functions in it.
fn take_samples(seconds: &str, samples: &Path) -> Result<()> {
    let host = host_target()?.replace('-', "_").to_uppercase();
    let samples = samples.to_str().context("the path of the repository is no text")?;
    // cargo splits the runner at blanks, and knows no quotes.
    ensure!(
        !samples.contains(char::is_whitespace),
        "{samples} has a blank, with which cargo cannot start perf; move the repository"
    );
    let runner = [
        "perf record --quiet --call-graph dwarf,16384 --freq",
        FREQUENCY,
        "--output",
        samples,
        "--",
    ];
    let mut command = cargo_command();
    command
        .env(format!("CARGO_TARGET_{host}_RUNNER"), runner.join(" "))
        .env("CARGO_PROFILE_BENCH_DEBUG", "line-tables-only")
        .env("CARGO_PROFILE_BENCH_STRIP", "none")
        .args(["bench", "--quiet", "--package", "sallyport", "--bench", "soak", "--", seconds]);
    run_command(&mut command)
}

/// The target that cargo builds for, unless told otherwise.
fn host_target() -> Result<String> {
    let version = run_for_output(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc does not say its host")
}

/// Draws samples in three steps: perf writes them as text, and inferno folds equal stacks and draws.
fn draw_samples(samples: &Path, collapse: &Path, graph: &Path) -> Result<()> {
    let folded = samples.with_file_name("folded.txt");
    let mut script = Command::new("perf")
        .args(["script", "--no-inline", "--input"])
        .arg(samples)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let text = script.stdout.take().context("no output of perf")?;
    run_command(Command::new(collapse).arg("--quiet").stdin(text).stdout(File::create(&folded)?))?;
    ensure!(script.wait()?.success(), "perf cannot read its samples");
    let draw = collapse.with_file_name("inferno-flamegraph");
    let mut draw = Command::new(draw);
    draw.args(["--title", "Calls of Sallyport"]).arg(&folded).stdout(File::create(graph)?);
    run_command(draw.stdin(Stdio::null()))
}
