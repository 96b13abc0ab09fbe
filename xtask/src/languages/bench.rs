//! The plugins of `cargo xtask bench languages`: one from each template, with its first case.

use std::{fs, path::Path};

use anyhow::Result;
use serde_json::{Value, json};

use super::{
    LANGUAGES, PluginLanguage,
    author_loop::first_call,
    program::{Attempt, LanguageProgram, Setback},
};
use crate::process::repository_root;

/// The folder of the plugins, which the benchmark reads.
const FOLDER: &str = "target/languages/bench";

/// The promised time of a fresh call in microseconds, by language.
const GOALS: [(&str, u64); 7] = [
    ("rust", 400),
    ("python", 2500),
    ("js", 1000),
    ("ts", 1000),
    ("c", 400),
    ("cpp", 400),
    ("go", 2000),
];

/// Builds the plugins with a program. A language whose tools are absent is left out.
pub(crate) fn build_bench_plugins(program: &Path) -> Result<()> {
    let program = LanguageProgram::new(program.to_owned())?;
    let all = repository_root().join(FOLDER);
    if all.exists() {
        fs::remove_dir_all(&all)?;
    }
    for language in LANGUAGES {
        match build_bench_plugin(language, &program, &all) {
            Ok(()) => {}
            Err(setback @ Setback::ToolsMissing(_)) => eprintln!("{}: {setback}", language.name),
            Err(setback) => anyhow::bail!("{}: {setback}", language.name),
        }
    }
    Ok(())
}

fn build_bench_plugin(
    language: PluginLanguage,
    program: &LanguageProgram,
    all: &Path,
) -> Attempt<()> {
    let (name, folder) = (format!("bench-{}", language.word), program.folder());
    let project = folder.join(&name);
    program.expect(language, folder, &["plugin", "new", &name, "--lang", language.word])?;
    program.expect(language, &project, &["plugin", "build", "--get-tools"])?;
    let (tool, arguments) = first_call(&project)?;
    let target = all.join(language.word);
    fs::create_dir_all(&target)?;
    let component = format!("{name}.wasm");
    fs::copy(project.join(&component), target.join(&component))?;
    let description = describe(language, &format!("{name}.{tool}"), &arguments)?;
    Ok(fs::write(target.join("call.json"), description.to_string())?)
}

fn describe(language: PluginLanguage, tool: &str, arguments: &str) -> Result<Value> {
    let goal = GOALS.into_iter().find(|(word, _)| *word == language.word);
    Ok(json!({
        "language": language.name,
        "tool": tool,
        "arguments": serde_json::from_str::<Value>(arguments)?,
        "goal_us": goal.map(|(_, goal)| goal),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_a_goal() {
        for language in LANGUAGES {
            let described = describe(language, "a.b", "{}").unwrap();
            assert!(described["goal_us"].is_u64(), "{}", language.name);
        }
    }
}
