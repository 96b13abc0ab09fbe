//! Runs Sallyport with the official programs of the Model Context Protocol: the conformance suite,
//! the clients of the TypeScript and the Python SDK, and the reference servers; and the service with
//! a program that tries what its OpenAPI document allows, and what it does not.
//!
//! It needs Node, Python and the registries of npm and PyPI, so it is a task of its own and not a
//! test. Everything is installed below `target/neighbours`.

mod bench;
mod clients;
mod conformance;
mod home;
mod packages;
mod servers;
mod service;

use anyhow::{Result, bail, ensure};

use self::{home::NeighbourHome, packages::Packages};
use crate::build;

/// What came of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowResult {
    Passed,
    Failed,
    /// It is about something that Sallyport does not offer.
    NotApplying,
}

/// One line of the table.
#[derive(Debug, Clone)]
struct NeighbourRow {
    result: RowResult,
    name: String,
    detail: String,
}

impl NeighbourRow {
    fn new(is_passed: bool, name: impl Into<String>, detail: impl Into<String>) -> Self {
        let result = if is_passed { RowResult::Passed } else { RowResult::Failed };
        Self { result, name: name.into(), detail: detail.into() }
    }
}

/// The parts of the task, by the word that runs only it.
const PARTS: [&str; 5] = ["conformance", "clients", "servers", "service", "bench"];

/// Runs all parts, or those that are named. The bench runs only by its name, because its figures
/// need a release build and a machine that does nothing else.
pub(crate) fn run_neighbours(args: &[String]) -> Result<()> {
    if let Some(unknown) = args.iter().find(|arg| !PARTS.contains(&arg.as_str())) {
        bail!("there is no part {unknown:?}; there are {}", PARTS.join(", "));
    }
    let wants = |part: &str| {
        let is_named = args.iter().any(|arg| arg == part);
        is_named || (args.is_empty() && part != "bench")
    };
    build::build_guests()?;
    let packages = Packages::install()?;
    let mut rows = Vec::new();
    if wants("bench") {
        rows.extend(bench::run_bench(&packages)?);
    }
    if args != ["bench"] {
        let home = NeighbourHome::new(build::build_host()?)?;
        if wants("conformance") {
            rows.extend(conformance::run_suites(&packages, &home)?);
        }
        if wants("clients") {
            rows.extend(clients::run_clients(&packages, &home)?);
        }
        if wants("servers") {
            rows.extend(servers::run_servers(&packages, &home)?);
        }
        if wants("service") {
            rows.push(service::run_schemathesis(&packages, &home)?);
        }
    }
    print_table(&rows);
    let failed = rows.iter().filter(|row| row.result == RowResult::Failed).count();
    ensure!(failed == 0, "{failed} of {} rows failed", rows.len());
    Ok(())
}

fn print_table(rows: &[NeighbourRow]) {
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    for NeighbourRow { result, name, detail } in rows {
        let word = match result {
            RowResult::Passed => "ok    ",
            RowResult::Failed => "FAILED",
            RowResult::NotApplying => "n/a   ",
        };
        println!("{word}  {name:width$}  {detail}");
    }
    let count = |result| rows.iter().filter(|row| row.result == result).count();
    let [passed, failed, other] =
        [RowResult::Passed, RowResult::Failed, RowResult::NotApplying].map(count);
    println!("{passed} passed, {failed} failed, {other} do not apply");
}
