//! Tasks of this repository: set-up, plugin builds, checks, benchmarks. `cargo xtask` lists them.
//!
//! They are written in Rust, so a clone needs only rustup, git and a C compiler (and a C++ compiler
//! for fuzzing). Plugins written in Python are built if Python is installed.
#![expect(clippy::disallowed_methods, reason = "running programs is what a task runner does")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "its reader is at a terminal")]

mod bench;
mod build;
mod connections;
mod console;
mod demo;
mod dist;
mod drawings;
mod editors;
mod flame;
mod fuzz;
mod languages;
mod load;
mod neighbours;
mod npm;
mod pages;
mod postgres;
mod process;
mod programs;
mod python;
mod serving;
mod start;
mod tidy;
mod wasm;

use std::process::ExitCode;

use anyhow::{Result, bail};

const HELP: &str = "\
cargo xtask TASK

  chat [ARGS]     set up, build, and start a chat session with the plugins of this repository
  run PROMPT      the same for one question
  selftest        the same for a list of everyday sentences; says what came of each
  test            set up and run every test
  check           formatting, lints, documentation and the rules of the house
  ci              check, then test, then languages
  setup           add the wasm32-wasip2 target if it is missing
  plugins         build plugins-src into plugins-wasm
  guests          build the components that the tests run, and the plugins of docs/roles
  wasm ROOT WORKSPACE
                  build components of other sources in the same way: ROOT holds all of them
  bench [start|call|python|languages|session|turn …] [--compare FILE] [--write]
                  measure starts, calls and turns against a floor without our code; print one
                  table, or write it into docs/performance.md
  load [--debug] [--write]
                  load `sallyport serve` on the loopback, beside axum alone (needs the registry of
                  crates, for oha); print one table, or write it into docs/performance.md
  soak [SECONDS]  make calls for a minute or longer; fail if memory, descriptors or threads grow
  flame [SECONDS] draw where the time of calls goes into target/flame/flame.svg (needs perf, and the
                  registry of crates for inferno)
  dist            build a release: an archive with an installer, a Debian package, checksums
  demo [chat|start] [--write]
                  play the sessions and the film that the documents show; print or write them
  editors         drive `sallyport acp` with the official client (needs Node and npm)
  console         drive the console of `sallyport serve` in a browser, and write pictures of its
                  pages into target/console (needs Node, npm and Chromium)
  connections     connect accounts at an identity server (npm's oidc-provider) in a browser, and keep
                  a calendar on Radicale (needs Node, npm, Chromium and Radicale)
  neighbours [conformance|clients|servers|service|bench]
                  run the official programs of the Model Context Protocol with ours: the
                  conformance suite, two SDKs, the reference servers; and schemathesis with the
                  service (needs npm and PyPI)
  postgres [cluster] [--download] [--sessions N] [--kills N] [--seed N]
                  run the tests over Debian's PostgreSQL, also while several hosts are killed (or that
                  test alone), and while the server is killed; with --download, over a server that
                  is unpacked and not installed
  drawings [--check]
                  write the drawings in docs/images; or fail if a file differs
  languages [LANGUAGE …] [--program FILE] [--write]
                  new, build, test and call a plugin in each language, and run the conformance
                  cases, with FILE or the host as built now; print the tables, or write them into
                  docs/languages.md
  fuzz [TARGET] [SECONDS]
                  random inputs for policy, manifest, url, values or compile, or for all of them; 10 s
                  each unless said
  tidy            the rules of the house alone: file and function sizes, dependency arrows
";

fn main() -> ExitCode {
    if let Some(code) = wasm::run_if_compiler().or_else(dist::run_if_linker) {
        return code;
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    match dispatch_task(&args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs all tests, with a small trial of several hosts.
fn run_every_test() -> Result<()> {
    build::run_all_tests()?;
    postgres::run_postgres_tests(&["--sessions", "24", "--kills", "4"].map(str::to_owned))
}

fn dispatch_task(args: &[String]) -> Result<ExitCode> {
    let (task, rest) = args.split_first().map_or(("help", args), |(t, rest)| (t.as_str(), rest));
    match task {
        "chat" | "run" | "selftest" => return start::start_sallyport(task, rest),
        "test" => run_every_test()?,
        "check" => tidy::check_all()?,
        "ci" => {
            tidy::check_all()?;
            run_every_test()?;
            languages::show_languages(&[])?;
        }
        "setup" => build::install_target()?,
        "plugins" => build::build_plugins()?,
        "guests" => build::build_guests()?,
        "wasm" => wasm::build_from_arguments(rest)?,
        "tidy" => tidy::check_house_rules()?,
        "soak" => bench::run_soak(rest)?,
        "flame" => flame::draw_flame_graph(rest)?,
        "bench" => bench::run_benchmarks(rest)?,
        "load" => load::run_load(rest)?,
        "dist" => dist::build_release()?,
        "demo" => demo::run_demo(rest)?,
        "connections" => connections::run_connections()?,
        "console" => console::run_console()?,
        "editors" => editors::run_editors()?,
        "drawings" => drawings::update_drawings(rest)?,
        "languages" => languages::show_languages(rest)?,
        "postgres" => postgres::run_postgres_tests(rest)?,
        "neighbours" => neighbours::run_neighbours(rest)?,
        "fuzz" => fuzz::run_fuzz_targets(rest)?,
        "help" | "-h" | "--help" => print!("{HELP}"),
        other => bail!("there is no task {other:?}\n\n{HELP}"),
    }
    Ok(ExitCode::SUCCESS)
}
