//! The tables of `docs/languages.md`.

use std::{fmt::Write, fs, time::Duration};

use anyhow::{Context, Result};

use super::{
    LanguageReport,
    author_loop::LoopFigures,
    conformance::{self, PassedCases},
    program::{Attempt, Setback},
};
use crate::process::repository_root;

/// The page that the tables are written into.
const PAGE: &str = "docs/languages.md";

/// A table, and the mark of its place on the page.
pub(super) struct PageTable {
    mark: &'static str,
    pub(super) text: String,
}

/// The tables of the page.
pub(super) fn tables(reports: &[LanguageReport]) -> Result<[PageTable; 2]> {
    Ok([
        PageTable { mark: "times", text: loop_table(reports)? },
        PageTable { mark: "conformance", text: conformance_table(reports)? },
    ])
}

fn loop_table(reports: &[LanguageReport]) -> Result<String> {
    let mut table = "| language | component | build | test | call | edit to answer | commands |\n\
                     |---|---|---|---|---|---|---|\n"
        .to_owned();
    for LanguageReport { language, author_loop, edit, readme, .. } in reports {
        let name = language.name;
        let edit = edit.as_ref().map_or("–".to_owned(), |edit| {
            let figure = |time: &Duration| format!("{:.1} s", time.as_secs_f64());
            edit.as_ref().map_or_else(Setback::to_string, figure)
        });
        let commands = readme.as_ref().map_or_else(Setback::to_string, usize::to_string);
        match author_loop {
            Ok(LoopFigures { build, test, call, bytes }) => writeln!(
                table,
                "| {name} | {} KiB | {:.1} s | {:.1} s | {} ms | {edit} | {commands} |",
                bytes.div_ceil(1024),
                build.as_secs_f64(),
                test.as_secs_f64(),
                call.as_millis()
            )?,
            Err(setback) => writeln!(table, "| {name} | {setback} | | | | | |")?,
        }
    }
    Ok(table)
}

fn conformance_table(reports: &[LanguageReport]) -> Result<String> {
    let names: Vec<&str> = reports.iter().map(|report| report.language.name).collect();
    let mut table = format!("| | {} |\n|---{}|\n", names.join(" | "), "|---".repeat(reports.len()));
    for (row, file) in conformance::case_files()?.iter().enumerate() {
        let title = file.file_stem().unwrap_or_default().to_string_lossy();
        let cells: Vec<String> = reports.iter().map(|report| cell_text(report, row)).collect();
        writeln!(table, "| {title} | {} |", cells.join(" | "))?;
    }
    let mistakes = optional_cells(reports, |report| &report.mistakes, "in the SDK's own tests");
    writeln!(table, "| mistakes of authors | {mistakes} |")?;
    let plain = optional_cells(reports, |report| &report.plain, "–");
    writeln!(table, "| component from plain WIT | {plain} |")?;
    for LanguageReport { language, conformance, .. } in reports {
        if let Err(setback) = conformance {
            writeln!(table, "\n{}: {setback}.", language.name)?;
        }
    }
    Ok(table)
}

/// The cells of a part that some languages lack.
fn optional_cells(
    reports: &[LanguageReport],
    part: fn(&LanguageReport) -> &Option<Attempt<PassedCases>>,
    absent: &str,
) -> String {
    let cells = reports.iter().map(|report| match part(report) {
        None => absent.to_owned(),
        Some(Ok(cases)) => format!("{}/{}", cases.passed, cases.all),
        Some(Err(_)) => "–".to_owned(),
    });
    cells.collect::<Vec<_>>().join(" | ")
}

fn cell_text(report: &LanguageReport, row: usize) -> String {
    let cases = report.conformance.as_ref().ok().and_then(|files| files.get(row));
    cases.map_or_else(|| "–".to_owned(), |cases| format!("{}/{}", cases.passed, cases.all))
}

/// Writes the tables into the page.
pub(super) fn write_page(tables: &[PageTable]) -> Result<()> {
    let path = repository_root().join(PAGE);
    let mut text = fs::read_to_string(&path)?;
    for PageTable { mark, text: table } in tables {
        text = replace_between(&text, mark, table)?;
    }
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
