//! Benchmarks: one run, one table. Every figure is a ratio to a floor that holds none of our code and
//! is measured in the same run, in turns with Sallyport, because machines are noisy.

mod start;
mod table;

use std::{fs, path::PathBuf};

use anyhow::{Context, Result, bail, ensure};

use self::table::{Figure, FigureTable};
use crate::{
    build, dist, languages,
    process::{cargo_command, repository_root, run_command, run_for_output},
};

/// Measures one group.
type GroupBenchmark = fn() -> Result<Vec<Figure>>;

/// The groups of benchmarks, in the order of the table.
const GROUPS: [(&str, GroupBenchmark); 6] = [
    ("start", start::measure_starts),
    ("call", || run_bench("sallyport", "call", None)),
    ("python", || run_bench("sallyport", "python", None)),
    ("languages", measure_languages),
    ("session", || run_bench("sallyport", "session", None)),
    ("turn", || run_bench("sallyport-session", "turn", Some("bench"))),
];

/// Where the figures of the last run are, for the next one to compare with.
fn last_run_file() -> PathBuf {
    repository_root().join("target/bench.json")
}

/// What the arguments ask for.
#[derive(Default)]
struct BenchOptions {
    groups: Vec<String>,
    /// Figures to compare with; those of the last run if there are any.
    compare: Option<PathBuf>,
    /// Whether to write the table of all groups into docs/performance.md.
    write: bool,
}

/// Runs groups of benchmarks, or all of them if none is named, and prints their table.
pub(crate) fn run_benchmarks(args: &[String]) -> Result<()> {
    let options = BenchOptions::parse(args)?;
    let before = match &options.compare {
        Some(file) => FigureTable::read(file)?,
        None => FigureTable::read(&last_run_file()).unwrap_or_default(),
    };
    build::build_plugins()?;
    build::build_guests()?;
    let mut table = FigureTable::default();
    for (name, measure) in GROUPS {
        if options.groups.is_empty() || options.groups.iter().any(|group| group == name) {
            eprintln!("measuring: {name} …");
            let mut figures = measure().with_context(|| format!("benchmark {name}"))?;
            figures.iter_mut().for_each(|figure| figure.group = name.to_owned());
            // Kept at once: a run that is cut off later loses nothing.
            FigureTable::keep_group(&last_run_file(), name, &figures)?;
            table.figures.extend(figures);
        }
    }
    println!("{}", table.to_markdown(&before));
    if options.write {
        let groups = GROUPS.map(|(name, _)| name);
        let all = FigureTable::read(&last_run_file())?.in_order(&groups)?;
        write_table("bench", &all.to_markdown(&before.only_figures_of(&table)))?;
    }
    Ok(())
}

/// Makes calls for some seconds, and fails if what the host holds grows.
pub(crate) fn run_soak(args: &[String]) -> Result<()> {
    if let [_, _, ..] = args {
        bail!("soak takes a number of seconds, and nothing else");
    }
    for seconds in args {
        seconds.parse::<u64>().context("the time is a number of seconds")?;
    }
    build::build_plugins()?;
    build::build_guests()?;
    let mut command = cargo_command();
    command.args(["bench", "--quiet", "--package", "sallyport", "--bench", "soak", "--"]);
    command.args(args);
    run_command(&mut command)
}

impl BenchOptions {
    fn parse(args: &[String]) -> Result<Self> {
        let mut options = Self::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--write" => options.write = true,
                "--compare" => {
                    options.compare = Some(args.next().context("--compare takes a file")?.into());
                }
                group if GROUPS.iter().any(|(name, _)| *name == group) => {
                    options.groups.push(group.to_owned());
                }
                other => bail!(
                    "there is no benchmark {other:?}; there are {}",
                    GROUPS.map(|(name, _)| name).join(", ")
                ),
            }
        }
        Ok(options)
    }
}

/// Builds a plugin in each language and measures its calls.
fn measure_languages() -> Result<Vec<Figure>> {
    languages::build_bench_plugins(&dist::build_program()?)?;
    run_bench("sallyport", "languages", None)
}

/// Runs a benchmark of a crate and collects the figures that it prints.
fn run_bench(package: &str, bench: &str, feature: Option<&str>) -> Result<Vec<Figure>> {
    let mut command = cargo_command();
    command.args(["bench", "--quiet", "--package", package, "--bench", bench]);
    command.args(feature.map(|feature| format!("--features={feature}")));
    let output = run_for_output(&mut command)?;
    let rows = output.lines().filter(|line| line.starts_with('{'));
    let figures: Vec<Figure> = rows.map(serde_json::from_str).collect::<Result<_, _>>()?;
    ensure!(!figures.is_empty(), "it printed no figure:\n{output}");
    Ok(figures)
}

/// Replaces the table of a task in docs/performance.md.
pub(crate) fn write_table(task: &str, text: &str) -> Result<()> {
    const END: &str = "<!-- end of the table -->";
    let begin = format!("<!-- table: written by `cargo xtask {task} --write` -->\n");
    let file = repository_root().join("docs/performance.md");
    let page = fs::read_to_string(&file)?;
    let (head, rest) = page
        .split_once(&begin)
        .with_context(|| format!("docs/performance.md has no table of {task}"))?;
    let (_, tail) = rest.split_once(END).context("the table of docs/performance.md has no end")?;
    fs::write(file, format!("{head}{begin}\n{text}\n{END}{tail}"))?;
    Ok(())
}
