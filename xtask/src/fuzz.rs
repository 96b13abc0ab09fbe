//! Fuzzing: random inputs for the parsers of files and URLs, for values of components, and for the
//! plugin compiler.
//!
//! A run never changes the seeds in `tests/fuzz/corpus`. New inputs are stored in the target
//! folder, where the next run starts. A failing input is kept in `tests/fuzz/artifacts`.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context, Result, bail, ensure};

use crate::process::{cargo_command, repository_root, run_command, run_for_output};

/// The targets in `tests/fuzz`. Code coverage guides their inputs.
const TARGETS: [&str; 3] = ["policy", "manifest", "url"];

/// The target that is a test. Each input goes to a separate process, so its coverage is not
/// visible.
const COMPILE: &str = "compile";

/// The target that is a pair of properties: values of components, to JSON and back. It is not among
/// those in `tests/fuzz`, because it would need an instrumented build of wasmtime.
const VALUES: &str = "values";

/// Cases of each property that take about a second.
const CASES_PER_SECOND: u64 = 500;

/// Hint for a failed build of the targets.
const NEEDS: &str = "the fuzz targets cannot be built (they also need a C++ compiler)";

/// Default time per target, in seconds.
const USUAL_SECONDS: u64 = 10;

/// Longest input, in bytes. It has room for a whole file and is short enough to try many.
const INPUT_BYTES_MAX: usize = 4096;

/// Longest time per input, in seconds, and most memory. No input comes close to either.
const INPUT_SECONDS_MAX: u64 = 10;
const MEMORY_MIB_MAX: usize = 2048;

/// Lines of a failed run that are shown: the message, the stack and the path of the input.
const FAILURE_LINES_MAX: usize = 80;

/// Runs one target, or all, for a time each. Arguments: `[TARGET] [SECONDS]`.
pub(crate) fn run_fuzz_targets(args: &[String]) -> Result<()> {
    let (target, seconds) = match args {
        [] => (None, None),
        [one] if one.parse::<u64>().is_ok() => (None, Some(one)),
        [target] => (Some(target.as_str()), None),
        [target, seconds] => (Some(target.as_str()), Some(seconds)),
        _ => bail!("fuzz takes a target and a number of seconds, and nothing else"),
    };
    let seconds = seconds.map_or(Ok(USUAL_SECONDS), |text| text.parse());
    let seconds = seconds.context("the time is a number of seconds")?;
    match target {
        None => {
            TARGETS.iter().try_for_each(|target| fuzz_target(target, seconds))?;
            fuzz_values(seconds)?;
            fuzz_compile(seconds)
        }
        Some(COMPILE) => fuzz_compile(seconds),
        Some(VALUES) => fuzz_values(seconds),
        Some(target) if TARGETS.contains(&target) => fuzz_target(target, seconds),
        Some(other) => {
            bail!("there is no target {other:?}; there are {TARGETS:?}, {VALUES:?} and {COMPILE:?}")
        }
    }
}

/// Checks formatting and lints of the targets, which are a separate workspace.
pub(crate) fn check_targets() -> Result<()> {
    run_command(instrumenting_cargo().args(["fmt", "--check"]))?;
    run_command(instrumenting_cargo().args([
        "clippy",
        "--release",
        "--quiet",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))
    .context(NEEDS)
}

fn fuzz_folder() -> PathBuf {
    repository_root().join("tests/fuzz")
}

/// A cargo that takes its flags only from the folder of the targets.
fn instrumenting_cargo() -> Command {
    let mut command = cargo_command();
    for name in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET", "CARGO_TARGET_DIR"] {
        command.env_remove(name);
    }
    command.current_dir(fuzz_folder());
    command
}

/// Builds and runs a target of `tests/fuzz`.
fn fuzz_target(target: &str, seconds: u64) -> Result<()> {
    run_command(instrumenting_cargo().args(["build", "--release", "--quiet", "--bin", target]))
        .context(NEEDS)?;
    let found = fuzz_folder().join("target/corpus").join(target);
    for path in [&found, &fuzz_folder().join("artifacts")] {
        fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))?;
    }
    println!("fuzzing {target} for {seconds} s …");
    let mut command = instrumenting_cargo();
    command.args(["run", "--release", "--quiet", "--bin", target, "--"]);
    command.arg(format!("-max_total_time={seconds}"));
    command.arg(format!("-max_len={INPUT_BYTES_MAX}"));
    command.arg(format!("-timeout={INPUT_SECONDS_MAX}"));
    command.arg(format!("-rss_limit_mb={MEMORY_MIB_MAX}"));
    command.args(["-dict=words.dict".to_owned(), format!("-artifact_prefix=artifacts/{target}-")]);
    // libFuzzer writes new inputs to the first folder.
    run_and_report(target, command.arg(found).arg(format!("corpus/{target}")))
}

/// Runs a target to its end and prints the line with its number of runs and its coverage.
fn run_and_report(target: &str, command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    let told = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = told.lines().collect();
    if !output.status.success() {
        let last = &lines[lines.len().saturating_sub(FAILURE_LINES_MAX)..];
        bail!("{target} fails:\n{}", last.join("\n"));
    }
    let done = lines.iter().rfind(|line| line.contains("DONE"));
    println!("{target}: {}", done.context("the target does not say what it did")?);
    Ok(())
}

/// Runs the properties of the bridge between JSON and the values of components.
fn fuzz_values(seconds: u64) -> Result<()> {
    println!("fuzzing {VALUES} for about {seconds} s …");
    let cases = seconds.saturating_mul(CASES_PER_SECOND);
    run_tests(
        cargo_command()
            .env("PROPTEST_CASES", cases.to_string())
            .args(["test", "--quiet", "--workspace", "--lib", "--"])
            .arg("dynamic::tests::properties"),
    )
}

/// Runs the test that compiles damaged components.
fn fuzz_compile(seconds: u64) -> Result<()> {
    println!("fuzzing {COMPILE} for {seconds} s …");
    // Test the whole workspace as elsewhere, because another selection would rebuild all
    // dependencies.
    run_tests(
        cargo_command()
            .env("SALLYPORT_FUZZ_SECONDS", seconds.to_string())
            .args(["test", "--quiet", "--workspace", "--test", "it", "--"])
            .args(["compile_fuzz", "--nocapture"]),
    )
}

/// Runs tests by a part of their name. That no test has such a name is an error, because cargo
/// would succeed without having run anything.
fn run_tests(command: &mut Command) -> Result<()> {
    let printed = run_for_output(command)?;
    print!("{printed}");
    ensure!(has_passed_test(&printed), "{command:?} ran no test; was the test renamed?");
    Ok(())
}

/// Whether one of the test programs whose output this is has run a test.
fn has_passed_test(printed: &str) -> bool {
    let mut results = printed.lines().filter_map(|line| line.strip_prefix("test result: ok. "));
    results.any(|counts| !counts.starts_with("0 passed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_a_test_is_not_taken_for_a_success() {
        let result = |passed: usize| {
            format!(
                "\nrunning {passed} tests\n\ntest result: ok. {passed} passed; 0 failed; 0 ignored\n"
            )
        };
        for (printed, want) in [
            (String::new(), false),
            (result(0), false),
            (result(0) + &result(0), false),
            (result(0) + &result(2) + &result(0), true),
            (result(10), true),
        ] {
            assert_eq!(has_passed_test(&printed), want, "{printed}");
        }
    }
}
