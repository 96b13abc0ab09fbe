//! `cargo xtask languages`: from an empty folder, in each language: a new project, its build, its
//! test and a call, with times and sizes; then the conformance cases in each language.

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    build::{build_host, install_target},
    process::repository_root,
};

/// The languages: the word of `--lang`, their name, and the folder of their conformance plugin.
const LANGUAGES: [(&str, &str, &str); 7] = [
    ("rust", "Rust", "tests/guests/conformance"),
    ("python", "Python", "sdk/python/conformance"),
    ("js", "JavaScript", "sdk/js/conformance"),
    ("ts", "TypeScript", "sdk/js/conformance-ts"),
    ("c", "C", "sdk/c/conformance"),
    ("cpp", "C++", "sdk/c/conformance-cpp"),
    ("go", "Go", "sdk/go/conformance"),
];

/// The page that the tables are written into.
const PAGE: &str = "docs/languages.md";

/// Folder of the conformance cases.
const CASES: &str = "tests/conformance";

/// What a language did, or why it could not.
type Attempt<T> = std::result::Result<T, String>;

/// The author's loop in one language.
struct LoopFigures {
    build: Duration,
    test: Duration,
    call: Duration,
    bytes: u64,
}

/// One kind of behaviour in one language: the cases that passed, of all.
#[derive(Clone, Copy)]
struct PassedCases {
    passed: usize,
    all: usize,
}

/// A program with a home of its own.
struct Sallyport {
    program: PathBuf,
    home: TempDir,
}

/// Runs the task with its arguments.
pub(crate) fn show_languages(args: &[String]) -> Result<()> {
    let writes = match args {
        [] => false,
        [flag] if flag == "--write" => true,
        _ => bail!("the only argument is --write"),
    };
    install_target()?;
    let sallyport = Sallyport::new()?;
    let loops = LANGUAGES.map(|(word, name, _)| {
        let figures = sallyport.run_loop(word);
        report(name, figures.as_ref().map(|_| "new, build, test, call"));
        (name, figures)
    });
    let conformance = sallyport.check_conformance()?;
    let tables = [loop_table(&loops)?, conformance_table(&conformance)?];
    println!("{}\n{}", tables[0], tables[1]);
    if writes {
        write_page(&tables)?;
    }
    let failed = conformance
        .iter()
        .flat_map(|(_, cells)| cells)
        .any(|cell| cell.as_ref().is_ok_and(|cases| cases.passed < cases.all));
    ensure!(!failed, "conformance cases fail; the table shows how many");
    Ok(())
}

fn report(name: &str, attempt: std::result::Result<&str, &String>) {
    match attempt {
        Ok(what) => eprintln!("{name}: {what}: done"),
        Err(reason) => eprintln!("{name}: left out: {reason}"),
    }
}

impl Sallyport {
    fn new() -> Result<Self> {
        Ok(Self { program: build_host()?, home: TempDir::with_prefix("sallyport-languages-")? })
    }

    /// Runs a command in a folder. The cache is that of the repository's builds, so that tools are
    /// installed once.
    fn run(&self, folder: &Path, args: &[&str]) -> Result<Output> {
        let cache = repository_root().join("target/languages");
        let home = self.home.path().join("home");
        fs::create_dir_all(&cache)?;
        fs::create_dir_all(&home)?;
        let link = home.join("cache");
        if link.symlink_metadata().is_err() {
            std::os::unix::fs::symlink(cache, link)?;
        }
        let mut command = Command::new(&self.program);
        command.args(args).current_dir(folder).env("SALLYPORT_HOME", home);
        command.output().with_context(|| format!("cannot run {}", self.program.display()))
    }

    /// Runs a command that has to succeed. Returns its output and its time.
    fn expect(&self, folder: &Path, args: &[&str]) -> Attempt<(String, Duration)> {
        let started = Instant::now();
        let output = self.run(folder, args).map_err(|error| format!("{error:#}"))?;
        let took = started.elapsed();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match output.status.success() {
            true => Ok((text(&output.stdout), took)),
            false => Err(failure_text(&text(&output.stderr), &text(&output.stdout))),
        }
    }

    /// A new project, its build, its test and a call.
    fn run_loop(&self, word: &str) -> Attempt<LoopFigures> {
        let (name, folder) = (format!("try-{word}"), self.home.path());
        let project = folder.join(&name);
        self.expect(folder, &["plugin", "new", &name, "--lang", word])?;
        // The first build may install tools and compile dependencies. The second is one of an author.
        self.expect(&project, &["plugin", "build", "--get-tools"])?;
        let (_, build) = self.expect(&project, &["plugin", "build"])?;
        let (_, test) = self.expect(&project, &["plugin", "test"])?;
        let (tool, arguments) = first_call(&project).map_err(|error| format!("{error:#}"))?;
        let call = ["--plugin-dir", ".", "call", &format!("{name}.{tool}"), &arguments];
        let (_, call) = self.expect(&project, &call)?;
        let component = project.join(format!("{name}.wasm"));
        let bytes = fs::metadata(component).map_err(|error| error.to_string())?.len();
        Ok(LoopFigures { build, test, call, bytes })
    }

    /// Runs the conformance cases. Returns a row for each kind of behaviour.
    fn check_conformance(&self) -> Result<Vec<(String, Vec<Attempt<PassedCases>>)>> {
        let built = LANGUAGES.map(|(_, name, folder)| {
            let built = self.build_conformance(folder);
            report(name, built.as_ref().map(|_| "conformance"));
            built
        });
        let mut rows = Vec::new();
        for file in case_files()? {
            let cells = built.iter().map(|component| self.run_cases(component.clone()?, &file));
            let title = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            rows.push((title, cells.collect()));
        }
        Ok(rows)
    }

    fn build_conformance(&self, folder: &str) -> Attempt<PathBuf> {
        let folder = repository_root().join(folder);
        if !folder.is_dir() {
            return Err("there is no conformance plugin yet".to_owned());
        }
        let component = self.home.path().join(folder.display().to_string().replace('/', "-"));
        let component = component.with_extension("wasm");
        let file = component.display().to_string();
        self.expect(&folder, &["plugin", "build", "--get-tools", "--out", &file])?;
        Ok(component)
    }

    fn run_cases(&self, component: PathBuf, cases: &Path) -> Attempt<PassedCases> {
        let (component, cases) = (component.display().to_string(), cases.display().to_string());
        let args = ["plugin", "test", &component, "--cases", &cases, "--output", "json"];
        let output = self.run(self.home.path(), &args).map_err(|error| format!("{error:#}"))?;
        let report: Value = serde_json::from_slice(&output.stdout)
            .map_err(|_| failure_text(&String::from_utf8_lossy(&output.stderr), ""))?;
        let results = report["cases"].as_array().cloned().unwrap_or_default();
        for failed in results.iter().filter(|case| case["passed"] != true) {
            eprintln!("  {cases}: {}: {}", failed["name"], failed["differences"]);
        }
        let passed = results.iter().filter(|case| case["passed"] == true).count();
        Ok(PassedCases { passed, all: results.len() })
    }
}

/// The first line that says why something failed.
fn failure_text(stderr: &str, stdout: &str) -> String {
    let lines = || stderr.lines().chain(stdout.lines());
    let error = lines().find(|line| line.starts_with("error"));
    error.or_else(|| lines().next()).unwrap_or("it failed without a message").to_owned()
}

/// The tool and the arguments of a project's first case.
fn first_call(project: &Path) -> Result<(String, String)> {
    let cases: Value = serde_json::from_str(&fs::read_to_string(project.join("cases.json"))?)?;
    let first = &cases["cases"][0];
    let tool = first["tool"].as_str().context("the first case names no tool")?;
    Ok((tool.to_owned(), first["arguments"].to_string()))
}

fn case_files() -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(repository_root().join(CASES))? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "json") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn loop_table(loops: &[(&str, Attempt<LoopFigures>)]) -> Result<String> {
    let mut table =
        "| language | component | build | test | call |\n|---|---|---|---|---|\n".to_owned();
    for (name, figures) in loops {
        match figures {
            Ok(LoopFigures { build, test, call, bytes }) => writeln!(
                table,
                "| {name} | {} KiB | {:.1} s | {:.1} s | {} ms |",
                bytes.div_ceil(1024),
                build.as_secs_f64(),
                test.as_secs_f64(),
                call.as_millis()
            )?,
            Err(reason) => writeln!(table, "| {name} | not measured: {reason} | | | |")?,
        }
    }
    Ok(table)
}

fn conformance_table(rows: &[(String, Vec<Attempt<PassedCases>>)]) -> Result<String> {
    let names = LANGUAGES.map(|(_, name, _)| name).join(" | ");
    let mut table = format!("| | {names} |\n|---{}|\n", "|---".repeat(LANGUAGES.len()));
    for (title, cells) in rows {
        let cells: Vec<String> = cells.iter().map(cell_text).collect();
        writeln!(table, "| {title} | {} |", cells.join(" | "))?;
    }
    for ((_, name, _), cell) in LANGUAGES.iter().zip(rows.first().map_or(&[][..], |(_, c)| c)) {
        if let Err(reason) = cell {
            writeln!(table, "\n{name} is left out: {reason}.")?;
        }
    }
    Ok(table)
}

fn cell_text(cell: &Attempt<PassedCases>) -> String {
    match cell {
        Ok(PassedCases { passed, all }) => format!("{passed}/{all}"),
        Err(_) => "–".to_owned(),
    }
}

fn write_page(tables: &[String; 2]) -> Result<()> {
    let path = repository_root().join(PAGE);
    let text = fs::read_to_string(&path)?;
    let text = replace_between(&text, "times", &tables[0])?;
    let text = replace_between(&text, "conformance", &tables[1])?;
    Ok(fs::write(path, text)?)
}

/// Replaces what is between `<!-- NAME -->` and `<!-- end of NAME -->`.
fn replace_between(text: &str, name: &str, table: &str) -> Result<String> {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let missing = || format!("{PAGE} lacks the marks of {name:?}");
    let (before, rest) = text.split_once(&begin).with_context(missing)?;
    let (_, after) = rest.split_once(&end).with_context(missing)?;
    Ok(format!("{before}{begin}\n{table}\n{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_replaces_the_one_before() {
        let page = "a\n<!-- times -->\nold\n<!-- end of times -->\nb\n";
        let new = replace_between(page, "times", "| 1 |\n").unwrap();
        assert_eq!(new, "a\n<!-- times -->\n\n| 1 |\n\n<!-- end of times -->\nb\n");
        assert_eq!(replace_between(&new, "times", "| 1 |\n").unwrap(), new);
        assert!(replace_between("a", "times", "").is_err());
    }
}
