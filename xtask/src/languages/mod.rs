//! `cargo xtask languages`: from an empty folder, in each language: a new project, its build, its
//! test and a call, with times and sizes; the commands of the SDK's README; the time from an edit to
//! the new answer in a chat; the conformance cases; mistakes of authors; and components of other
//! generators.
//!
//! Nothing is written into the repository except the page that `--write` names: sources are built
//! as copies, because builds leave files beside them.

mod author_loop;
mod bench;
mod conformance;
mod edit;
mod mistakes;
mod page;
mod plain;
mod program;
mod readme;

use std::{
    path::PathBuf,
    sync::{Mutex, PoisonError},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, ensure};

pub(crate) use self::bench::build_bench_plugins;
use self::{
    conformance::PassedCases,
    page::write_page,
    program::{Attempt, LanguageProgram, Setback},
};
use crate::{
    build::{build_host, install_target},
    dist,
};

/// A language of plugins.
#[derive(Debug, Clone, Copy)]
struct PluginLanguage {
    /// The word of `--lang`.
    word: &'static str,
    /// What builds it. Languages with the same tools follow one another.
    tools: &'static str,
    /// Its name.
    name: &'static str,
    /// Folder of its conformance plugin.
    conformance: &'static str,
}

/// All languages, in the order of the tables.
const LANGUAGES: [PluginLanguage; 7] = [
    PluginLanguage {
        word: "rust",
        tools: "cargo",
        name: "Rust",
        conformance: "tests/guests/conformance",
    },
    PluginLanguage {
        word: "python",
        tools: "pip",
        name: "Python",
        conformance: "sdk/python/conformance",
    },
    PluginLanguage {
        word: "js",
        tools: "npm",
        name: "JavaScript",
        conformance: "sdk/js/conformance",
    },
    PluginLanguage {
        word: "ts",
        tools: "npm",
        name: "TypeScript",
        conformance: "sdk/js/conformance-ts",
    },
    PluginLanguage { word: "c", tools: "clang", name: "C", conformance: "sdk/c/conformance" },
    PluginLanguage {
        word: "cpp",
        tools: "clang",
        name: "C++",
        conformance: "sdk/c/conformance-cpp",
    },
    PluginLanguage { word: "go", tools: "go", name: "Go", conformance: "sdk/go/conformance" },
];

/// Languages that run at the same time, unless their times are wanted.
const LANES: usize = 2;

/// What one language did in each part. A part that a language does not have is absent.
struct LanguageReport {
    language: PluginLanguage,
    author_loop: Attempt<author_loop::LoopFigures>,
    /// The number of commands in the README of its SDK, which were typed.
    readme: Attempt<usize>,
    /// From saving a file to the new answer in a running chat.
    edit: Option<Attempt<Duration>>,
    conformance: Attempt<Vec<PassedCases>>,
    mistakes: Option<Attempt<PassedCases>>,
    /// A component of the language's generator, written from plain WIT.
    plain: Option<Attempt<PassedCases>>,
}

impl LanguageReport {
    /// Runs every part in one language. Without its tools, the parts after the first are left out.
    fn run(language: PluginLanguage, program: &LanguageProgram) -> Self {
        let author_loop = author_loop::run_loop(language, program);
        let report = match &author_loop {
            Err(missing @ Setback::ToolsMissing(_)) => Self {
                language,
                readme: Err(missing.clone()),
                edit: None,
                conformance: Err(missing.clone()),
                mistakes: None,
                plain: None,
                author_loop,
            },
            _ => Self {
                language,
                readme: readme::type_readme(language, program),
                edit: edit::time_edit(language, program),
                conformance: conformance::run_conformance(language, program),
                mistakes: mistakes::run_mistakes(language, program),
                plain: plain::run_plain(language, program),
                author_loop,
            },
        };
        report.setbacks().iter().for_each(|setback| eprintln!("{}: {setback}", language.name));
        report
    }

    fn setbacks(&self) -> Vec<&Setback> {
        let setbacks = [
            self.author_loop.as_ref().err(),
            self.readme.as_ref().err(),
            self.edit.as_ref().and_then(|edit| edit.as_ref().err()),
            self.conformance.as_ref().err(),
            self.mistakes.as_ref().and_then(|mistakes| mistakes.as_ref().err()),
            self.plain.as_ref().and_then(|plain| plain.as_ref().err()),
        ];
        setbacks.into_iter().flatten().collect()
    }

    fn has_failed(&self) -> bool {
        let cases = self.conformance.iter().flatten();
        let others = self.mistakes.iter().chain(&self.plain).flatten();
        let has_failed_cases = cases.chain(others).any(|cases| !cases.is_whole());
        has_failed_cases || self.setbacks().iter().any(|s| matches!(s, Setback::Failed(_)))
    }
}

/// What the arguments ask for.
#[derive(Default)]
struct LanguageArguments {
    writes: bool,
    /// The program to use instead of building one.
    program: Option<PathBuf>,
    languages: Vec<PluginLanguage>,
}

impl LanguageArguments {
    fn parse(args: &[String]) -> Result<Self> {
        let mut parsed = Self::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--write" => parsed.writes = true,
                "--program" => {
                    let program = args.next().context("--program needs the path of a program")?;
                    parsed.program = Some(std::path::absolute(program)?);
                }
                word => parsed.languages.push(find_language(word)?),
            }
        }
        if parsed.languages.is_empty() {
            parsed.languages = LANGUAGES.to_vec();
        }
        ensure!(
            !parsed.writes || parsed.languages.len() == LANGUAGES.len(),
            "--write needs all languages"
        );
        Ok(parsed)
    }
}

fn find_language(word: &str) -> Result<PluginLanguage> {
    let found = LANGUAGES.into_iter().find(|language| language.word == word);
    found.with_context(|| {
        format!("there is no language {word:?}; known are {}", LANGUAGES.map(|l| l.word).join(", "))
    })
}

/// Runs the task with its arguments. A language whose tools are absent is left out, which is not a
/// failure.
pub(crate) fn show_languages(args: &[String]) -> Result<()> {
    let args = LanguageArguments::parse(args)?;
    install_target()?;
    let program = match args.program {
        Some(program) => program,
        // The page has the times of the program that people install.
        None if args.writes => dist::build_program()?,
        None => build_host()?,
    };
    let program = LanguageProgram::new(program)?;
    let lanes = if args.writes { 1 } else { LANES };
    let reports = run_in_lanes(&args.languages, &program, lanes);
    let tables = page::tables(&reports)?;
    tables.iter().for_each(|table| println!("{}", table.text));
    if args.writes {
        write_page(&tables)?;
    }
    let failed: Vec<&str> = reports
        .iter()
        .filter(|report| report.has_failed())
        .map(|report| report.language.name)
        .collect();
    ensure!(failed.is_empty(), "these failed: {}", failed.join(", "));
    Ok(())
}

/// Runs each language in one of several lanes. The first language with some tools installs them, so
/// the others with the same tools come after it, in the same lane.
fn run_in_lanes(
    languages: &[PluginLanguage],
    program: &LanguageProgram,
    lanes: usize,
) -> Vec<LanguageReport> {
    let groups = Mutex::new(languages.chunk_by(|one, next| one.tools == next.tools));
    let next_group = || groups.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run_lane = || -> Vec<LanguageReport> {
        let groups = std::iter::from_fn(next_group);
        groups.flatten().map(|language| LanguageReport::run(*language, program)).collect()
    };
    let mut reports: Vec<LanguageReport> = thread::scope(|scope| {
        let lanes: Vec<_> = (0..lanes).map(|_| scope.spawn(run_lane)).collect();
        lanes.into_iter().flat_map(|lane| lane.join().expect("no lane panics")).collect()
    });
    let place = |report: &LanguageReport| {
        languages.iter().position(|language| language.word == report.language.word)
    };
    reports.sort_by_key(place);
    reports
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_name_languages() {
        let parse = |text: &str| {
            let args: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            LanguageArguments::parse(&args)
        };
        assert_eq!(parse("").unwrap().languages.len(), LANGUAGES.len());
        assert!(parse("--write").unwrap().writes);
        let two = parse("go cpp --program /bin/true").unwrap();
        assert_eq!(two.languages.iter().map(|l| l.name).collect::<Vec<_>>(), ["Go", "C++"]);
        assert_eq!(two.program, Some("/bin/true".into()));
        for wrong in ["cobol", "go --write", "--program"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
