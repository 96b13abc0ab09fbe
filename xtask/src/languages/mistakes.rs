//! Mistakes of authors, in the languages whose SDK has no test of its own that sees the whole build:
//! each fails with a message about what is wrong.

use std::fs;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::{
    PluginLanguage,
    conformance::PassedCases,
    program::{Attempt, LanguageProgram},
};
use crate::process::repository_root;

/// Folder of the tables, one for each language.
const TABLES: &str = "tests/mistakes";

/// A table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MistakeTable {
    mistake: Vec<AuthorMistake>,
}

/// A mistake, and a part of the message that explains it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AuthorMistake {
    name: String,
    message: String,
    /// What replaces the source file of a new project.
    code: String,
}

/// Builds each mistake of a language. `None` if the language has no table.
pub(super) fn run_mistakes(
    language: PluginLanguage,
    program: &LanguageProgram,
) -> Option<Attempt<PassedCases>> {
    let table = repository_root().join(TABLES).join(format!("{}.toml", language.word));
    let text = fs::read_to_string(table).ok()?;
    Some(build_mistakes(language, program, &text))
}

fn build_mistakes(
    language: PluginLanguage,
    program: &LanguageProgram,
    table: &str,
) -> Attempt<PassedCases> {
    let table = read_table(table)?;
    let name = format!("mistakes-{}", language.word);
    program.expect(
        language,
        program.folder(),
        &["plugin", "new", &name, "--lang", language.word],
    )?;
    let project = program.folder().join(&name);
    let source = project.join(source_file(language)?);
    // With the tools, so that their absence is not taken for the mistake.
    program.expect(language, &project, &["plugin", "build", "--get-tools"])?;
    let (mut passed, all) = (0, table.mistake.len());
    for mistake in &table.mistake {
        fs::write(&source, &mistake.code)?;
        let output = program.run(&project, &["plugin", "build"])?;
        let said = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() && said.contains(&mistake.message) {
            passed += 1;
        } else {
            let AuthorMistake { name, message, .. } = mistake;
            eprintln!("  {}: {name}: not explained with {message:?}:\n{said}", language.name);
        }
    }
    eprintln!("{}: {passed} of {all} mistakes are explained", language.name);
    Ok(PassedCases { passed, all })
}

fn read_table(text: &str) -> Result<MistakeTable> {
    toml::from_str(text).context("a table of mistakes cannot be read")
}

/// The file of a new project that has its tool.
fn source_file(language: PluginLanguage) -> Result<&'static str> {
    let files = [("c", "plugin.c"), ("cpp", "plugin.cpp"), ("go", "plugin.go")];
    let found = files.into_iter().find(|(word, _)| *word == language.word);
    found
        .map(|(_, file)| file)
        .with_context(|| format!("{} has no source file here", language.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_can_be_read_and_have_about_twenty_rows() {
        for (word, at_least) in [("c", 20), ("cpp", 5), ("go", 20)] {
            let path = repository_root().join(TABLES).join(format!("{word}.toml"));
            let table = read_table(&fs::read_to_string(path).unwrap()).unwrap();
            assert!(table.mistake.len() >= at_least, "{word}");
        }
    }
}
